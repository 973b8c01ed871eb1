//! What can bound throughput.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What bounds throughput at a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Limit {
    pub id: Resource,
    /// Share of the mean response time that it holds, 0 to 1.
    pub share: f64,
    /// One sentence.
    pub text: String,
}

/// A resource that transactions wait for, or a queue in front of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    Cpu,
    Lock,
    Disk,
    Network,
    /// A bound on the threads that may work at a time.
    Pool,
    /// Other nodes of the cluster.
    Nodes,
    /// The load generator.
    Client,
    /// Nothing: more users would do more.
    None,
    Unknown,
}

impl Resource {
    pub(super) const ALL: [Resource; 9] = [
        Resource::Cpu,
        Resource::Lock,
        Resource::Disk,
        Resource::Network,
        Resource::Pool,
        Resource::Nodes,
        Resource::Client,
        Resource::None,
        Resource::Unknown,
    ];

    /// Returns the name that programs know.
    pub fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Lock => "lock",
            Resource::Disk => "disk",
            Resource::Network => "network",
            Resource::Pool => "pool",
            Resource::Nodes => "nodes",
            Resource::Client => "client",
            Resource::None => "none",
            Resource::Unknown => "unknown",
        }
    }
}

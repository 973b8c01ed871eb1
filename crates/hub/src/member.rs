//! A hub's settings, and who may use its bus.

use serde::{Deserialize, Serialize};

use crate::host_name::HostName;

/// How a hub is set up, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubSettings {
    /// Address and port that it listens on.
    pub listen: String,
    /// Host and port at which members reach it.
    pub address: String,
    /// Space for frames that were not received yet. Beyond it agents keep theirs.
    pub bytes_max: u64,
}

/// What a member is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberKind {
    /// A host that is watched, or that loads.
    Agent,
    /// Gives agents orders, such as whyso run --hosts.
    Commander,
    /// The hub's own process.
    Hub,
}

/// Who may use the bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub name: HostName,
    pub kind: MemberKind,
    /// Of its key.
    pub public_key: String,
}

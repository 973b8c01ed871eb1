//! Kinds of clusters, and what nodes are for.

use serde::{Deserialize, Serialize};

/// How the nodes of a cluster share their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterKind {
    /// One source, whose changes its replicas apply.
    Replication,
}

impl ClusterKind {
    pub const ALL: [ClusterKind; 1] = [ClusterKind::Replication];

    pub fn name(self) -> &'static str {
        match self {
            ClusterKind::Replication => "replication",
        }
    }
}

/// What a node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Takes the changes.
    Source,
    /// Applies those of the source.
    Replica,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Source => "source",
            Role::Replica => "replica",
        }
    }
}

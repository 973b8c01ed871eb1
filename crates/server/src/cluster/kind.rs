//! Kinds of clusters, and what nodes are for.

use serde::{Deserialize, Serialize};

/// How the nodes of a cluster share their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterKind {
    /// One source, whose changes its replicas apply.
    Replication,
    /// Every node takes changes, and all certify each transaction before it commits.
    Galera,
}

impl ClusterKind {
    pub const ALL: [ClusterKind; 2] = [ClusterKind::Replication, ClusterKind::Galera];

    pub fn name(self) -> &'static str {
        match self {
            ClusterKind::Replication => "replication",
            ClusterKind::Galera => "galera",
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
    /// Takes changes and applies those of the others.
    Member,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Source => "source",
            Role::Replica => "replica",
            Role::Member => "member",
        }
    }
}

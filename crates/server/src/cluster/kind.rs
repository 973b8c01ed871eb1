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
    /// MySQL Cluster: data nodes hold the tables, and SQL nodes take the statements.
    Ndb,
}

impl ClusterKind {
    pub const ALL: [ClusterKind; 3] = [ClusterKind::Replication, ClusterKind::Galera, ClusterKind::Ndb];

    pub fn name(self) -> &'static str {
        match self {
            ClusterKind::Replication => "replication",
            ClusterKind::Galera => "galera",
            ClusterKind::Ndb => "ndb",
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
    /// Takes statements, and has its data on the data nodes.
    Sql,
    /// Holds a part of the data.
    Data,
    /// Has the configuration of all nodes.
    Manager,
    /// Passes what clients send on to the nodes that take changes.
    Proxy,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Source => "source",
            Role::Replica => "replica",
            Role::Member => "member",
            Role::Sql => "SQL node",
            Role::Data => "data node",
            Role::Manager => "manager",
            Role::Proxy => "proxy",
        }
    }

    /// Whether it is a server itself that clients can log in to.
    pub fn is_server(self) -> bool {
        !matches!(self, Role::Data | Role::Manager | Role::Proxy)
    }

    /// Whether a load may go to it.
    pub fn takes_changes(self) -> bool {
        matches!(self, Role::Source | Role::Member | Role::Sql)
    }
}

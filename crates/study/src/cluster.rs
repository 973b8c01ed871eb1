//! The cluster that the servers of a cell are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::scalar::Values;

/// `cluster = { … }`, of the file or of a part. What it leaves out is as in what stands before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSetup {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ClusterOf>,
    /// Replicas, in addition to the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// Nodes of Galera.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<u32>,
    /// Nodes of NDB that take statements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql_nodes: Option<u32>,
    /// Nodes of NDB that hold the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_nodes: Option<u32>,
    /// Connections of each SQL node to the data nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<u32>,
    /// Parameters of the data nodes.
    #[serde(default)]
    pub data_set: Values,
    /// CPUs of single nodes, by what their names have after the kind: "1", "data-2", "manager".
    #[serde(default)]
    pub node_cpus: Values,
    /// Settings of single servers, by their number from 1, in addition to those of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_set: BTreeMap<String, Values>,
    /// Clients reach the nodes that take changes through HAProxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<bool>,
    /// The load goes over every node that takes changes, and not to the first one alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_nodes: Option<bool>,
}

/// Nodes that one tracer follows.
const LOADED_MAX: u32 = 4;

/// How the nodes share their data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterOf {
    Replication,
    Galera,
    Ndb,
}

impl ClusterOf {
    fn name(self) -> &'static str {
        match self {
            ClusterOf::Replication => "replication",
            ClusterOf::Galera => "galera",
            ClusterOf::Ndb => "ndb",
        }
    }
}

impl ClusterSetup {
    /// The same with what a part says in its place.
    pub(crate) fn with(&self, part: &ClusterSetup) -> ClusterSetup {
        let merged = |before: &Values, after: &Values| -> Values {
            before.iter().chain(after).map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        ClusterSetup {
            kind: part.kind.or(self.kind),
            replicas: part.replicas.or(self.replicas),
            nodes: part.nodes.or(self.nodes),
            sql_nodes: part.sql_nodes.or(self.sql_nodes),
            data_nodes: part.data_nodes.or(self.data_nodes),
            pool: part.pool.or(self.pool),
            data_set: merged(&self.data_set, &part.data_set),
            node_cpus: merged(&self.node_cpus, &part.node_cpus),
            node_set: {
                let mut all = self.node_set.clone();
                for (node, set) in &part.node_set {
                    let before = all.get(node).cloned().unwrap_or_default();
                    all.insert(node.clone(), merged(&before, set));
                }
                all
            },
            proxy: part.proxy.or(self.proxy),
            all_nodes: part.all_nodes.or(self.all_nodes),
        }
    }

    /// Refuses what its kind does not have.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |why: String| Err(Error::Spec(why));
        let Some(kind) = self.kind else {
            return wrong(
                "cluster has no kind: give kind = \"replication\", \"galera\" or \"ndb\"".to_string(),
            );
        };
        let keys = [
            ("replicas", self.replicas.is_some(), ClusterOf::Replication),
            ("nodes", self.nodes.is_some(), ClusterOf::Galera),
            ("sql_nodes", self.sql_nodes.is_some(), ClusterOf::Ndb),
            ("data_nodes", self.data_nodes.is_some(), ClusterOf::Ndb),
            ("pool", self.pool.is_some(), ClusterOf::Ndb),
            ("data_set", !self.data_set.is_empty(), ClusterOf::Ndb),
        ];
        let counts = [
            ("replicas", self.replicas, 1..=15),
            ("nodes", self.nodes, 2..=16),
            ("sql_nodes", self.sql_nodes, 1..=16),
            ("data_nodes", self.data_nodes, 1..=16),
            ("pool", self.pool, 1..=200),
        ];
        let is_off = |(_, count, range): &(&str, Option<u32>, std::ops::RangeInclusive<u32>)| {
            count.is_some_and(|count| !range.contains(&count))
        };
        if let Some((key, _, range)) = counts.into_iter().find(is_off) {
            return wrong(format!("cluster: {key} must be {} to {}", range.start(), range.end()));
        }
        if self.data_nodes.is_some_and(|count| count > 1 && !count.is_multiple_of(2)) {
            return wrong(
                "cluster: data_nodes must be 1 or an even number: each part of the data lies on two of them"
                    .to_string(),
            );
        }
        if let Some(node) = self.node_set.keys().find(|node| node.parse::<usize>().is_err()) {
            return wrong(format!("cluster: node_set has {node:?}: give the server's number from 1"));
        }
        let loaded = match kind {
            ClusterOf::Replication => 1,
            ClusterOf::Galera => self.nodes.unwrap_or(0),
            ClusterOf::Ndb => self.sql_nodes.unwrap_or(0),
        };
        if (self.all_nodes == Some(true) || self.proxy == Some(true)) && loaded > LOADED_MAX {
            return wrong(format!(
                "cluster: {loaded} nodes would be loaded, and up to {LOADED_MAX} are traced: give fewer nodes"
            ));
        }
        match keys.into_iter().find(|(_, is_given, of)| *is_given && *of != kind) {
            Some((key, _, of)) => wrong(format!(
                "cluster: {key} is of {}, and kind = \"{}\": remove it",
                of.name(),
                kind.name()
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_replaces_what_it_says_and_a_kind_has_its_own_keys() {
        let of = |text: &str| toml::from_str::<ClusterSetup>(text).unwrap();
        let whole = of("kind = 'ndb'\nsql_nodes = 2\npool = 1\ndata_set = { DataMemory = '256M' }");
        let merged = whole.with(&of("pool = 8\ndata_set = { MaxNoOfTables = 64 }"));
        assert_eq!((merged.sql_nodes, merged.pool, merged.data_set.len()), (Some(2), Some(8), 2));
        assert!(merged.check().is_ok());
        let says = |text: &str| of(text).check().unwrap_err().to_string();
        assert!(
            says("kind = 'galera'\npool = 8").contains("pool is of ndb"),
            "{}",
            says("kind = 'galera'\npool = 8")
        );
        assert!(says("pool = 8").contains("no kind"));
        let sides = of("node_set = { 1 = { a = 1, b = 2 }, 2 = { c = 3 } }")
            .with(&of("node_set = { 1 = { b = 4 } }"));
        let own: Vec<String> =
            sides.node_set["1"].iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!((own, sides.node_set.len()), (vec!["a=1".to_string(), "b=4".to_string()], 2));
        assert!(says("kind = 'replication'\nnode_set = { east = { a = 1 } }").contains("number from 1"));
        assert!(says("kind = 'replication'\nreplicas = 0").contains("replicas must be 1 to 15"));
        assert!(says("kind = 'ndb'\ndata_nodes = 3").contains("even number"));
        assert!(says("kind = 'galera'\nnodes = 5\nall_nodes = true").contains("up to 4"));
        assert!(toml::from_str::<ClusterSetup>("kind = 'galera'\nnode = 3").is_err());
    }
}

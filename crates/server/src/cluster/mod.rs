//! Clusters of our own: servers that belong together, and stay until they are stopped.
//!
//! Each node is a server in a folder of its own, on its own port of 127.0.0.1. Until all are up, each is watched over as a throw-away server
//! is. After that each has it in its folder which cluster it belongs to, and how it is started again.

mod galera;
pub(crate) mod kind;
mod ndb;
mod node;
mod ports;
mod program;
mod proxy;
mod replication;
mod start;
mod started;
mod steps;

use crate::error::{Error, Result};
use crate::throwaway::kept_servers;

pub use kind::{ClusterKind, Role};
pub use ndb::NdbSpec;
pub use node::{Node, appliers};
pub use start::{ClusterSpec, DryRun, start, start_until_dropped};
use started::BACK_WITHIN;
pub use started::StartedCluster;

/// A cluster that was started.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub name: String,
    pub kind: ClusterKind,
    /// Those that take statements first, each role by name.
    pub nodes: Vec<Node>,
}

impl Cluster {
    /// Ends the nodes, and removes their data: a proxy first, replicas before their source, SQL nodes before their data nodes.
    ///
    /// # Errors
    /// The first node that does not end, or whose folder can't be removed. The others are ended all the same.
    pub fn stop(&self) -> Result<()> {
        let end = |node: &Node| node.server.remove().map(|_| ());
        let (proxies, mut nodes): (Vec<&Node>, Vec<&Node>) =
            self.nodes.iter().partition(|node| node.role == Role::Proxy);
        if self.kind != ClusterKind::Ndb {
            nodes.reverse();
        }
        let ended: Vec<Result<()>> = proxies.into_iter().chain(nodes).map(end).collect();
        ended.into_iter().collect()
    }

    /// Gives parameters of the data nodes other values, which count once the nodes are restarted.
    ///
    /// # Errors
    /// It has no data nodes, a parameter is none, or the file can't be written.
    pub fn set_of_data_nodes(&self, set: &[(String, String)]) -> Result<()> {
        node::set_of_data_nodes(&self.name, &self.nodes, set)
    }

    /// Cuts a node of Galera off from the others: it hears nobody, and nobody hears it. `node`: its name, or its number.
    ///
    /// # Errors
    /// There is no such node, or it refuses.
    pub async fn isolate(&self, node: &str) -> Result<()> {
        self.member(node)?.set_isolated(true).await
    }

    /// Lets a node that was cut off come back, and waits until it takes part.
    ///
    /// # Errors
    /// There is no such node, it refuses, or it is not back within two minutes.
    pub async fn rejoin(&self, node: &str) -> Result<()> {
        let node = self.member(node)?;
        node.set_isolated(false).await?;
        node.wait_until_it_takes_part(BACK_WITHIN).await
    }

    fn member(&self, node: &str) -> Result<&Node> {
        if self.kind != ClusterKind::Galera {
            return Err(Error::BuildName(format!(
                "{} is no cluster of Galera: only its nodes are cut off and come back by themselves",
                self.name
            )));
        }
        let is_it =
            |found: &&Node| found.server.name == node || found.server.name == format!("{}-{node}", self.name);
        self.nodes.iter().find(is_it).ok_or_else(|| {
            let names: Vec<&str> = self.nodes.iter().map(|node| node.server.name.as_str()).collect();
            Error::BuildName(format!(
                "there is no node '{}' in {}: its nodes are {}",
                node.escape_default(),
                self.name,
                names.join(", ")
            ))
        })
    }

    /// Restarts the nodes one after the other, each once the one before takes part again. A proxy stays. `hear`: what is being done.
    ///
    /// # Errors
    /// A node does not end, or is not back within two minutes.
    pub async fn restart(&self, hear: &dyn Fn(&str)) -> Result<()> {
        for node in self.nodes.iter().rev().filter(|node| node.role != Role::Proxy) {
            hear(&format!("restarting {}, the {}", node.server.name, node.role.name()));
            node.leave_cluster();
            node.server.end()?;
            node.server.start_again()?;
            node.wait_until_it_takes_part(BACK_WITHIN).await?;
            node::wait_for_arbitrator(&self.nodes, BACK_WITHIN).await?;
        }
        Ok(())
    }
}

/// The clusters that were started, by name.
///
/// # Errors
/// [`Error::Io`] where the folder of servers can't be listed.
pub fn clusters() -> Result<Vec<Cluster>> {
    let mut found: Vec<Cluster> = Vec::new();
    for server in kept_servers()? {
        let Some(kept) = server.node.clone() else { continue };
        let node = Node { role: kept.role, port: kept.port, server };
        match found.iter_mut().find(|cluster| cluster.name == kept.cluster) {
            Some(cluster) => cluster.nodes.push(node),
            None => found.push(Cluster { name: kept.cluster, kind: kept.kind, nodes: vec![node] }),
        }
    }
    for cluster in &mut found {
        let number = |name: &str| name.rsplit('-').next().and_then(|number| number.parse::<u32>().ok());
        cluster.nodes.sort_by_key(|node| (node.role, number(&node.server.name)));
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// The cluster of this name.
///
/// # Errors
/// [`Error::BuildName`] where there is none.
pub fn find(name: &str) -> Result<Cluster> {
    let all = clusters()?;
    let names: Vec<String> = all.iter().map(|cluster| cluster.name.clone()).collect();
    all.into_iter().find(|cluster| cluster.name == name).ok_or_else(|| {
        let those = if names.is_empty() {
            "none was started".to_string()
        } else {
            format!("those that were started are {}", names.join(", "))
        };
        Error::BuildName(format!("there is no cluster '{}': {those}", name.escape_default()))
    })
}

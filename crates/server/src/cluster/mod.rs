//! Clusters of our own: servers that belong together, and stay until they are stopped.
//!
//! Each node is a server in a folder of its own, on its own port of 127.0.0.1. Until all are up, each is watched over as a throw-away server
//! is. After that each has it in its folder which cluster it belongs to, and how it is started again.

mod galera;
pub(crate) mod kind;
mod node;
mod ports;
mod replication;
mod start;
mod steps;

use std::time::Duration;

use crate::error::{Error, Result};
use crate::throwaway::kept_servers;

pub use kind::{ClusterKind, Role};
pub use node::{Node, appliers};
pub use start::{ClusterSpec, start};

/// A node is given up on that is not back after this time.
const BACK_WITHIN: Duration = Duration::from_secs(120);

/// A cluster that was started.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub name: String,
    pub kind: ClusterKind,
    /// In the order in which they were started.
    pub nodes: Vec<Node>,
}

impl Cluster {
    /// Ends the nodes, the last one first, and removes their data.
    ///
    /// # Errors
    /// The first node that does not end, or whose folder can't be removed. The others are ended all the same.
    pub fn stop(&self) -> Result<()> {
        let ended: Vec<Result<_>> = self.nodes.iter().rev().map(|node| node.server.remove()).collect();
        ended.into_iter().collect::<Result<Vec<_>>>().map(|_| ())
    }

    /// Restarts the nodes one after the other, each once the one before takes part again. `hear`: what is being done.
    ///
    /// # Errors
    /// A node does not end, or is not back within two minutes.
    pub async fn restart(&self, hear: &dyn Fn(&str)) -> Result<()> {
        for node in self.nodes.iter().rev() {
            hear(&format!("restarting {}, the {}", node.server.name, node.role.name()));
            node.server.end()?;
            node.server.start_again()?;
            node.wait_until_it_takes_part(BACK_WITHIN).await?;
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
        cluster.nodes.sort_by(|one, other| one.server.name.cmp(&other.server.name));
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

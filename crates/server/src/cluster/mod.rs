//! Clusters of our own: servers that belong together, and stay until they are stopped.
//!
//! Each node is a server in a folder of its own, on its own port of 127.0.0.1. Until all are up, each is watched over as a throw-away server
//! is. After that each has it in its folder which cluster it belongs to, and how it is started again.

mod galera;
pub(crate) mod kind;
mod ndb;
mod node;
mod ports;
mod replication;
mod start;
mod steps;

use std::time::Duration;

use crate::error::{Error, Result, io};
use crate::throwaway::kept_servers;

pub use kind::{ClusterKind, Role};
pub use ndb::NdbSpec;
pub use node::{Node, appliers};
pub use start::{ClusterSpec, DryRun, start};

/// A node is given up on that is not back after this time.
const BACK_WITHIN: Duration = Duration::from_secs(120);

/// A cluster that was started.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub name: String,
    pub kind: ClusterKind,
    /// Those that take statements first, each role by name.
    pub nodes: Vec<Node>,
}

impl Cluster {
    /// Ends the nodes, and removes their data: replicas before their source, SQL nodes before their data nodes.
    ///
    /// # Errors
    /// The first node that does not end, or whose folder can't be removed. The others are ended all the same.
    pub fn stop(&self) -> Result<()> {
        let end = |node: &Node| node.server.remove().map(|_| ());
        let ended: Vec<Result<()>> = match self.kind {
            ClusterKind::Ndb => self.nodes.iter().map(end).collect(),
            ClusterKind::Replication | ClusterKind::Galera => self.nodes.iter().rev().map(end).collect(),
        };
        ended.into_iter().collect()
    }

    /// Gives parameters of the data nodes other values, which count once the nodes are restarted.
    ///
    /// # Errors
    /// It has no data nodes, a parameter is none, or the file can't be written.
    pub fn set_of_data_nodes(&self, set: &[(String, String)]) -> Result<()> {
        if set.is_empty() {
            return Ok(());
        }
        let Some(manager) = self.nodes.iter().find(|node| node.role == Role::Manager) else {
            return Err(Error::BuildName(format!("the cluster {} has no data nodes", self.name)));
        };
        let path = manager.server.folder.join(ndb::CONFIG_FILE);
        let text = std::fs::read_to_string(&path).map_err(io("cannot read", &path))?;
        std::fs::write(&path, ndb::change_config(&text, set)?).map_err(io("cannot write", &path))
    }

    /// Restarts the nodes one after the other, each once the one before takes part again. `hear`: what is being done.
    ///
    /// # Errors
    /// A node does not end, or is not back within two minutes.
    pub async fn restart(&self, hear: &dyn Fn(&str)) -> Result<()> {
        for node in self.nodes.iter().rev() {
            hear(&format!("restarting {}, the {}", node.server.name, node.role.name()));
            node.leave_cluster();
            node.server.end()?;
            node.server.start_again()?;
            node.wait_until_it_takes_part(BACK_WITHIN).await?;
            self.wait_for_arbitrator().await?;
        }
        Ok(())
    }

    /// Waits until the data nodes have one who decides which of them survive: until then, each of a pair shuts itself down without the other.
    async fn wait_for_arbitrator(&self) -> Result<()> {
        let data_nodes = self.nodes.iter().filter(|node| node.role == Role::Data).count();
        let sql_node = self.nodes.iter().find(|node| node.role == Role::Sql && node.server.pid.is_some());
        match sql_node {
            Some(sql_node) if data_nodes > 1 => sql_node.wait_for_arbitrator(data_nodes, BACK_WITHIN).await,
            _ => Ok(()),
        }
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

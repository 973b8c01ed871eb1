//! Nodes of a cluster that is loaded.

use std::collections::HashMap;
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use whyso_model::{Missing, NotMeasured};
use whyso_record::run::{NodeFacts, RunInfo};
use whyso_server::Dsn;
use whyso_server::cluster::{self, Node, Role, StartedCluster};
use whyso_trace::{Listeners, tcp_address};
use whyso_tracing::Processes;

use crate::Error;
use crate::server_under_test::SharedCell;

/// Servers that one tracer follows, at most.
pub(crate) const LOADED_MAX: usize = 4;

/// Role of one of several servers that belong to no cluster.
pub(crate) const SERVER: &str = "server";

/// Threads of a data node that are traced one by one, at most.
const THREADS_MAX: usize = 64;

/// A node of the cluster that is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    pub name: String,
    /// What it is for, such as "replica".
    pub role: &'static str,
    /// `None` for a program of the cluster that is no server, such as a data node.
    pub dsn: Option<Dsn>,
    /// Its TCP port for clients; `None` where it listens at none.
    pub port: Option<u16>,
    pub pid: Option<u32>,
    /// The load goes to it.
    pub is_loaded: bool,
    /// A proxy through which the load goes: where clients reach it.
    pub entry: Option<Dsn>,
    /// Its number among the nodes of NDB that hold data.
    pub ndb_id: Option<u32>,
    /// Of processes of any kind, all of them.
    pub processes: Option<Processes>,
}

impl From<&Node> for ClusterNode {
    fn from(node: &Node) -> ClusterNode {
        ClusterNode {
            name: node.server.name.clone(),
            role: node.role.name(),
            dsn: node.role.is_server().then(|| node.server.dsn()),
            port: node.role.is_server().then_some(node.port),
            pid: node.server.pid,
            is_loaded: false,
            entry: None,
            ndb_id: node.data_node_id(),
            processes: None,
        }
    }
}

impl ClusterNode {
    fn facts(&self) -> NodeFacts {
        NodeFacts {
            name: self.name.clone(),
            host: String::new(),
            role: self.role.to_string(),
            endpoint: self.dsn.as_ref().or(self.entry.as_ref()).map_or_else(String::new, Dsn::endpoint),
            is_loaded: self.is_loaded,
            ndb_id: self.ndb_id,
            listens: self.listens(),
        }
    }

    /// Where it takes clients: its processes on this machine, or a server elsewhere.
    fn listens(&self) -> Vec<String> {
        let pids = match &self.processes {
            Some(processes) => processes.pids.clone(),
            None => self.pid.into_iter().collect(),
        };
        let elsewhere = self.dsn.as_ref().filter(|dsn| pids.is_empty() && dsn.socket.is_none());
        let addresses = elsewhere.and_then(|dsn| (dsn.host.as_str(), dsn.port).to_socket_addrs().ok());
        let mut listens = Listeners::of(&pids).addresses();
        listens.extend(addresses.into_iter().flatten().map(tcp_address));
        listens
    }

    /// Whether it has threads that apply what other servers have changed.
    pub(crate) fn applies_changes(&self) -> bool {
        [Role::Replica, Role::Member].iter().any(|role| role.name() == self.role)
    }
}

/// A cluster that was started for a run alone, and may be restarted during it. The last owner ends it.
#[derive(Clone)]
pub struct OwnCluster {
    pub(crate) cell: SharedCell<StartedCluster>,
    /// No further node is to be restarted.
    pub(crate) is_over: Arc<AtomicBool>,
}

impl std::fmt::Debug for OwnCluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OwnCluster")
    }
}

/// Writes down which node is loaded, which are not, and what is not measured of those.
pub(crate) fn describe(nodes: &[ClusterNode], info: &mut RunInfo) {
    let Some((loaded, others)) = nodes.split_first() else { return };
    info.node = Some(NodeFacts { endpoint: info.server.endpoint.clone(), ..loaded.facts() });
    info.nodes = others.iter().map(ClusterNode::facts).collect();
    if others.iter().any(|node| node.processes.is_none() && !node.is_loaded) {
        info.not_measured.push(NotMeasured::new(
            Missing::Other,
            "requests, locks and statements of the nodes that are not loaded",
            "of these the counters are read, and the states of their threads are traced",
        ));
    }
}

/// The nodes after the first to which the load goes, too.
pub(crate) fn loaded_others(nodes: &[ClusterNode]) -> impl Iterator<Item = &ClusterNode> {
    nodes.iter().skip(1).filter(|node| node.is_loaded)
}

/// Where the load goes in place of the nodes: to a proxy. `None` where it goes to them.
pub(crate) fn entry(nodes: &[ClusterNode]) -> Option<&Dsn> {
    nodes.iter().find_map(|node| node.entry.as_ref())
}

/// Refuses what one server alone can have.
pub(crate) fn check(nodes: &[ClusterNode], follows_commands: bool) -> Result<(), Error> {
    let loaded = loaded_others(nodes).count() + 1;
    if loaded > LOADED_MAX {
        return Err(Error::Plan(format!(
            "the tracer follows up to {LOADED_MAX} servers, and {loaded} nodes would be loaded: start a smaller cluster, or load it without --all-nodes and without a proxy"
        )));
    }
    if loaded > 1 && follows_commands {
        return Err(Error::Plan(
            "--trace-sql follows one server: leave it out, or --all-nodes, or the proxy".to_string(),
        ));
    }
    Ok(())
}

/// Refuses what one server alone can have, where several are loaded that belong to no cluster.
pub(crate) fn check_servers(servers: usize, follows_commands: bool) -> Result<(), Error> {
    if servers > LOADED_MAX {
        return Err(Error::Plan(format!(
            "the tracer follows up to {LOADED_MAX} servers, and {servers} were named: leave some out, or load them without a recording by whyso load"
        )));
    }
    if servers > 1 && follows_commands {
        return Err(Error::Plan(
            "--trace-sql follows one server: leave it out, or the other servers".to_string(),
        ));
    }
    Ok(())
}

/// Processes on this machine of the nodes after the first. Programs that are no nodes stay what they are to a server: others on its machine.
pub(crate) fn other_pids(nodes: &[ClusterNode]) -> Vec<u32> {
    let others = nodes.iter().skip(1).filter(|node| node.processes.is_none());
    others.filter_map(|node| node.pid).collect()
}

/// The threads of a data node or a proxy, with their names.
fn threads_of(pid: u32) -> Vec<(u32, String)> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let named = threads.flatten().filter_map(|thread| {
        let tid = thread.file_name().to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(thread.path().join("comm")).ok()?;
        Some((tid, name.trim().to_string()))
    });
    named.take(THREADS_MAX).collect()
}

/// The threads of a node that are traced one by one, by number: those that apply changes, or those of a data node or a proxy. Without an answer of
/// its server there are none.
pub(crate) async fn single_threads(node: &ClusterNode, pid: u32) -> HashMap<u32, String> {
    let threads = match &node.dsn {
        Some(dsn) => cluster::appliers(dsn).await.unwrap_or_default(),
        None if node.ndb_id.is_some() || node.role == Role::Proxy.name() => threads_of(pid),
        None => Vec::new(),
    };
    threads.into_iter().collect()
}

//! The other nodes of a cluster, while its first one is loaded.

use std::time::Duration;

use whyso_model::{Missing, NotMeasured};
use whyso_record::Recorder;
use whyso_record::run::{NodeFacts, RunInfo};
use whyso_server::Dsn;
use whyso_server::cluster::{Node, Role};
use whyso_watch::{WatchSpec, Watcher};

use crate::Error;
use crate::recording::watch_spec;

/// Another node of the cluster than the one that is loaded first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNode {
    pub name: String,
    pub role: Role,
    pub dsn: Dsn,
    pub pid: Option<u32>,
}

impl From<&Node> for ClusterNode {
    fn from(node: &Node) -> ClusterNode {
        ClusterNode {
            name: node.server.name.clone(),
            role: node.role,
            dsn: node.server.dsn(),
            pid: node.server.pid,
        }
    }
}

impl ClusterNode {
    fn facts(&self) -> NodeFacts {
        NodeFacts {
            name: self.name.clone(),
            role: self.role.name().to_string(),
            endpoint: self.dsn.endpoint(),
        }
    }

    fn watch(&self, interval: Duration, recorder: &Recorder) -> Result<Watcher, Error> {
        let spec = WatchSpec {
            server_host: self.name.clone(),
            is_other_node: true,
            ..watch_spec(&self.dsn, self.pid, None, interval)
        };
        Ok(Watcher::start(spec, recorder.clone())?)
    }
}

/// Writes down the nodes, and what is not measured of them.
pub(crate) fn describe(nodes: &[ClusterNode], info: &mut RunInfo) {
    info.nodes = nodes.iter().map(ClusterNode::facts).collect();
    if !nodes.is_empty() {
        info.not_measured.push(NotMeasured::new(
            Missing::Other,
            "the time budget, locks and statements of the cluster's other nodes",
            "they are watched by their counters; the load goes to the first node, and that is traced",
        ));
    }
}

/// Their processes on this machine.
pub(crate) fn pids(nodes: &[ClusterNode]) -> Vec<u32> {
    nodes.iter().filter_map(|node| node.pid).collect()
}

/// Begins to watch the nodes.
pub(crate) fn watch(
    nodes: &[ClusterNode],
    interval: Duration,
    recorder: &Recorder,
) -> Result<Vec<Watcher>, Error> {
    nodes.iter().map(|node| node.watch(interval, recorder)).collect()
}

/// Ends the watching, and writes down what it missed.
pub(crate) fn stop(watchers: Vec<Watcher>, nodes: &[ClusterNode], info: &mut RunInfo) {
    for (watcher, node) in watchers.into_iter().zip(nodes) {
        for line in watcher.stop() {
            let what = format!("{}: {}", node.name, line.what);
            info.not_measured.push(NotMeasured { what, ..line });
        }
    }
}

//! The nodes of a cluster after the first, while that is loaded: they are watched and traced, too, also as the processes that they become.

use std::time::Duration;

use tokio::runtime::Runtime;
use whyso_model::{Missing, NotMeasured};
use whyso_record::Recorder;
use whyso_record::run::RunInfo;
use whyso_tracing::{NodeTracing, OtherStacks, TracedNode, TracedProgram, Tracing};
use whyso_watch::{WatchSpec, Watcher};

use crate::Error;
use crate::cluster_node::{ClusterNode, single_threads};
use crate::node_processes::{NewProcess, NodeProcesses};
use crate::recording::watch_spec;

/// The nodes of a cluster while its first one is loaded.
#[derive(Default)]
pub(crate) struct OtherNodes<'a> {
    /// Those after the first.
    nodes: &'a [ClusterNode],
    watchers: Vec<Watcher>,
    /// Ends when the recording does.
    tracing: Option<NodeTracing>,
    /// Of all nodes; `None` where there is no cluster.
    processes: Option<NodeProcesses>,
}

impl<'a> OtherNodes<'a> {
    /// Begins to watch the nodes after the first. `trace`: their threads, too, and the stacks of programs.
    pub(crate) fn watch(
        nodes: &'a [ClusterNode],
        interval: Duration,
        (runtime, trace): (&Runtime, Option<OtherStacks>),
        recorder: &Recorder,
        info: &mut RunInfo,
    ) -> Result<OtherNodes<'a>, Error> {
        let has_servers = nodes.iter().any(|node| node.processes.is_none());
        let processes = has_servers.then(|| NodeProcesses::follow(nodes, info.server.pid, runtime));
        let others = nodes.get(1..).unwrap_or_default();
        Ok(OtherNodes {
            processes,
            ..OtherNodes::watch_all(others, interval, (runtime, trace), recorder, info)?
        })
    }

    /// The same of all nodes: there is no first target. None of them is a server.
    pub(crate) fn watch_all(
        others: &'a [ClusterNode],
        interval: Duration,
        (runtime, trace): (&Runtime, Option<OtherStacks>),
        recorder: &Recorder,
        info: &mut RunInfo,
    ) -> Result<OtherNodes<'a>, Error> {
        let watchers =
            others.iter().map(|node| watch(node, interval, recorder)).collect::<Result<Vec<_>, Error>>()?;
        let tracing = trace.and_then(|stacks| trace_threads(others, stacks, runtime, recorder, info));
        Ok(OtherNodes { nodes: others, watchers, tracing, processes: None })
    }

    /// A level has ended, and the next has not begun.
    pub(crate) fn between_levels(&self) {
        if let Some(tracing) = &self.tracing {
            tracing.between_levels();
        }
    }

    /// Whether there are nodes, the first one included, that are followed into new processes.
    pub(crate) fn has_nodes(&self) -> bool {
        self.processes.is_some()
    }

    /// Watches and traces nodes as the processes that they have become. `first`: what watches the first node. Never waits.
    pub(crate) fn follow(&self, first: &Watcher, tracing: Option<&Tracing>) {
        let Some(processes) = &self.processes else { return };
        for next in processes.came_back() {
            match next.node.checked_sub(1) {
                None => {
                    first.server_pid_changed(Some(next.pid));
                    if let Some(tracing) = tracing {
                        tracing.server_pid_changed(next.pid);
                    }
                }
                Some(at) => self.follow_other(at, next, first, tracing),
            }
        }
    }

    fn follow_other(&self, at: usize, next: NewProcess, first: &Watcher, tracing: Option<&Tracing>) {
        let (Some(node), Some(watcher)) = (self.nodes.get(at), self.watchers.get(at)) else { return };
        watcher.server_pid_changed(Some(next.pid));
        first.other_node_pid_changed(next.old_pid, next.pid);
        if let (Some(tracing), Some(old_pid)) = (tracing.filter(|_| node.is_loaded), next.old_pid) {
            tracing.other_pid_changed(old_pid, next.pid);
        }
        if let Some(tracing) = &self.tracing {
            tracing.process_changed(TracedNode {
                name: node.name.clone(),
                pid: next.pid,
                appliers: next.threads,
            });
        }
    }

    /// Ends the watching, and writes down what it missed.
    pub(crate) fn stop(self, info: &mut RunInfo) {
        for (watcher, node) in self.watchers.into_iter().zip(self.nodes) {
            for line in watcher.stop() {
                let what = format!("{}: {}", node.name, line.what);
                info.not_measured.push(NotMeasured { what, ..line });
            }
        }
    }
}

fn watch(node: &ClusterNode, interval: Duration, recorder: &Recorder) -> Result<Watcher, Error> {
    let spec = WatchSpec {
        server_host: node.name.clone(),
        is_other_node: true,
        ..watch_spec(node.dsn.as_ref(), node.pid, None, interval)
    };
    Ok(Watcher::start(spec, recorder.clone())?)
}

fn trace_threads(
    others: &[ClusterNode],
    stacks: OtherStacks,
    runtime: &Runtime,
    recorder: &Recorder,
    info: &mut RunInfo,
) -> Option<NodeTracing> {
    let traced = |node: &ClusterNode| {
        let pid = node.pid.filter(|_| node.processes.is_none())?;
        // Without them, the node's threads are counted by role alone.
        let appliers = runtime.block_on(single_threads(node, pid));
        Some(TracedNode { name: node.name.clone(), pid, appliers })
    };
    let traced: Vec<TracedNode> = others.iter().filter_map(traced).collect();
    let program = |node: &ClusterNode| {
        let processes = node.processes.as_ref()?;
        Some(TracedProgram { name: node.name.clone(), program: processes.program() })
    };
    let programs: Vec<TracedProgram> = others.iter().filter_map(program).collect();
    if traced.is_empty() && programs.is_empty() {
        return None;
    }
    let begun = NodeTracing::begin(traced, &programs, stacks, recorder.clone(), &mut info.not_measured);
    match begun {
        Ok(tracing) => {
            if !programs.is_empty() && !stacks.sampling.takes_waits() {
                let names: Vec<String> = programs.into_iter().map(|program| program.name).collect();
                info.not_measured.push(NotMeasured::new(
                    Missing::Other,
                    format!("the stacks of waits of {}", whyso_words::list(&names)),
                    "they were not taken; --stacks takes them",
                ));
            }
            Some(tracing)
        }
        Err(error) => {
            let names: Vec<String> = others.iter().map(|node| node.name.clone()).collect();
            let what = format!("the threads of {}", whyso_words::list(&names));
            info.not_measured.push(NotMeasured::new(Missing::Other, what, error.to_string()));
            None
        }
    }
}

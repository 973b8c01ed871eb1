//! Nodes of a cluster that end, and come back as other processes.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

use crate::cluster_node::{ClusterNode, single_threads};
use crate::process::{self, Process};

/// Between two checks whether a process still exists, or is back.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The same for a node that has been away for longer.
const LATER_INTERVAL: Duration = Duration::from_secs(5);
const AWAY: Duration = Duration::from_secs(60);
/// How often a server that is back is asked for the threads that apply changes, a second apart: they may begin later than it answers.
const ASKED_FOR_THREADS: usize = 10;

/// A node that is another process now, or whose threads are known now.
pub(crate) struct NewProcess {
    /// Its place among the nodes.
    pub(crate) node: usize,
    /// `None` where the node was down before.
    pub(crate) old_pid: Option<u32>,
    pub(crate) pid: u32,
    /// Threads that are traced one by one, by number.
    pub(crate) threads: HashMap<u32, String>,
}

/// Looks for the processes of nodes that have ended, until it is dropped.
pub(crate) struct NodeProcesses {
    came_back: Receiver<NewProcess>,
    tasks: Vec<AbortHandle>,
}

impl NodeProcesses {
    /// `first_pid`: that of the first node, where nobody knows it from the cluster.
    pub(crate) fn follow(nodes: &[ClusterNode], first_pid: Option<u32>, runtime: &Runtime) -> NodeProcesses {
        let (sender, came_back) = channel();
        // The tracer of processes of any kind follows them by itself.
        let servers = nodes.iter().enumerate().filter(|(_, node)| node.processes.is_none());
        let tasks = servers.map(|(place, node)| {
            let pid = node.pid.or_else(|| first_pid.filter(|_| place == 0));
            let node = ClusterNode { pid, ..node.clone() };
            runtime.spawn(follow(place, node, sender.clone())).abort_handle()
        });
        NodeProcesses { tasks: tasks.collect(), came_back }
    }

    /// Those that came back since this was asked for. Never waits.
    pub(crate) fn came_back(&self) -> impl Iterator<Item = NewProcess> {
        self.came_back.try_iter()
    }
}

impl Drop for NodeProcesses {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

async fn follow(place: usize, node: ClusterNode, sender: Sender<NewProcess>) {
    let mut process = node.pid.and_then(Process::now);
    let command = process.map(|process| process::command_line(process.pid)).unwrap_or_default();
    let mut away_since = Instant::now();
    loop {
        let is_away_for_long = process.is_none_or(|process| !process.lives()) && away_since.elapsed() > AWAY;
        tokio::time::sleep(if is_away_for_long { LATER_INTERVAL } else { CHECK_INTERVAL }).await;
        if process.is_some_and(Process::lives) {
            away_since = Instant::now();
            continue;
        }
        let found = match &node.dsn {
            Some(dsn) => process::of_server(dsn).await,
            None => process::started_by(&command),
        };
        let Some(next) = found.and_then(Process::now).filter(|next| Some(*next) != process) else { continue };
        let old_pid = process.map(|process| process.pid);
        process = Some(next);
        let back = |old_pid, threads| NewProcess { node: place, old_pid, pid: next.pid, threads };
        let is_server = node.dsn.is_some();
        let threads = if is_server { HashMap::new() } else { single_threads(&node, next.pid).await };
        if sender.send(back(old_pid, threads)).is_err() {
            return;
        }
        if is_server && place > 0 && node.applies_changes() {
            let threads = applying_threads(&node, next).await;
            // With no one to hear it, the next attempt ends this.
            let _ = sender.send(back(Some(next.pid), threads));
        }
    }
}

/// The threads of a server that apply changes; none where it has not begun any.
async fn applying_threads(node: &ClusterNode, process: Process) -> HashMap<u32, String> {
    for _ in 0..ASKED_FOR_THREADS {
        let threads = single_threads(node, process.pid).await;
        if !threads.is_empty() || !process.lives() {
            return threads;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
    HashMap::new()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn program() -> Child {
        Command::new("sleep").arg("48.25").spawn().unwrap()
    }

    #[test]
    fn a_program_that_ends_and_is_started_again_is_found() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let mut first = program();
        // Until it has become the program, it has this one's command.
        std::thread::sleep(Duration::from_millis(300));
        let node = ClusterNode {
            name: "n-data-1".to_string(),
            role: "data node",
            dsn: None,
            port: None,
            pid: Some(first.id()),
            is_loaded: false,
            entry: None,
            ndb_id: Some(1),
            processes: None,
        };
        let processes = NodeProcesses::follow(&[node], None, &runtime);
        std::thread::sleep(Duration::from_millis(300));
        first.kill().unwrap();
        first.wait().unwrap();
        assert!(processes.came_back().next().is_none());
        let mut second = program();
        let deadline = Instant::now() + Duration::from_secs(10);
        let back = loop {
            if let Some(back) = processes.came_back().next() {
                break Some(back);
            }
            if Instant::now() > deadline {
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        second.kill().unwrap();
        second.wait().unwrap();
        let back = back.expect("it was not found");
        assert_eq!((back.node, back.old_pid, back.pid), (0, Some(first.id()), second.id()));
        assert_eq!(back.threads.values().collect::<Vec<_>>(), ["sleep"]);
    }
}

//! The nodes of a cluster, as a table.

use whyso_explain::model::{Applier, NodeState, Part, StateThreads};
use whyso_words::{number, percent, seconds};

use super::layout::aligned_with_words;
use super::{clean, dash};

/// A column: its head, and what a node has there.
type Column = (&'static str, fn(&NodeState) -> Option<String>);

/// Columns that every table has.
const FIRST: [Column; 4] = [
    ("node", |node| Some(clean(&node.name))),
    ("role", |node| Some(role(node))),
    ("CPUs", |node| node.cpus.map(number)),
    ("statements/s", |node| node.statements_per_s.map(number)),
];
/// Columns that a table has where a node has something there.
const OTHERS: [Column; 11] = [
    ("behind", |node| node.behind_s.map(seconds)),
    ("executed", |node| node.executed.map(percent)),
    ("paused", |node| node.paused.map(percent)),
    ("asked/s", |node| node.pauses_asked_per_s.map(number)),
    ("queue", |node| node.receive_queue.map(number)),
    ("conflicts/s", |node| node.conflicts_per_s.map(number)),
    ("memory", |node| node.memory_used.map(percent)),
    ("page hits", |node| node.page_hits.map(percent)),
    ("in kernel", |node| node.in_kernel.map(percent)),
    ("busiest thread", |node| node.applier.as_ref().map(applier)),
    ("threads, in the mean", |node| (!node.threads.is_empty()).then(|| threads(&node.threads))),
];

/// States of threads in a line.
const STATES_MAX: usize = 3;
/// Fewer threads in a state are not named.
const THREADS_MIN: f64 = 0.01;

/// "2.1 waiting on locks inside the kernel, 0.9 work on a CPU"
fn threads(states: &[StateThreads]) -> String {
    let words = |state: &str| match state {
        "upstream" => "waiting for servers that they asked",
        "net_receive" => "waiting for clients",
        "idle" => "idle",
        state => Part::ALL.into_iter().find(|part| part.name() == state).unwrap_or(Part::Other).words(),
    };
    let named = states.iter().filter(|of| of.threads >= THREADS_MIN).take(STATES_MAX);
    named.map(|of| format!("{} {}", number(of.threads), words(&of.state))).collect::<Vec<_>>().join(", ")
}

fn role(node: &NodeState) -> String {
    let loaded = if node.is_loaded { ", loaded" } else { "" };
    format!("{}{loaded}", clean(&node.role))
}

fn applier(applier: &Applier) -> String {
    format!(
        "{} of the time, of {}",
        percent(applier.busy),
        whyso_words::count(u64::from(applier.threads), "thread")
    )
}

/// The nodes with a headline; empty where there are none.
pub(crate) fn nodes(nodes: &[NodeState]) -> String {
    if nodes.is_empty() {
        return String::new();
    }
    let is_known = |(_, cell): &&Column| nodes.iter().any(|node| cell(node).is_some());
    let columns: Vec<&Column> = FIRST.iter().chain(OTHERS.iter().filter(is_known)).collect();
    let has = |role: &str| nodes.iter().any(|node| node.role == role);
    let are_separate = nodes.iter().all(|node| ["server", "program"].contains(&node.role.as_str()));
    let mut rows = vec![columns.iter().map(|(head, _)| (*head).to_string()).collect::<Vec<_>>()];
    if are_separate {
        rows[0][0] = "target".to_string();
    }
    for node in nodes {
        rows.push(columns.iter().map(|(_, cell)| cell(node).unwrap_or_else(dash)).collect());
    }
    let title = match (are_separate, has("server"), has("program")) {
        (true, true, true) => "Servers and programs",
        (true, true, false) => "Servers",
        (true, false, _) => "Programs",
        _ => "Nodes of the cluster",
    };
    format!("{title}\n{}", aligned_with_words(&rows, &[0, 1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_no_node_has_is_left_out() {
        let source = NodeState {
            name: "db-1".to_string(),
            role: "source".to_string(),
            is_loaded: true,
            cpus: Some(1.25),
            statements_per_s: Some(4_200.0),
            ..NodeState::default()
        };
        let replica = NodeState {
            name: "db-2".to_string(),
            role: "replica".to_string(),
            is_loaded: false,
            cpus: Some(0.5),
            behind_s: Some(14.0),
            executed: Some(0.61),
            applier: Some(Applier {
                name: "slave_sql".to_string(),
                threads: 2,
                busy: 0.97,
                states: Vec::new(),
            }),
            ..source.clone()
        };
        let table = nodes(&[source, replica]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4, "{table}");
        assert!(lines[1].starts_with("node ") && !table.contains("paused"), "{table}");
        assert!(lines[2].contains("source, loaded") && lines[2].contains('–'), "{table}");
        assert!(lines[3].contains("61 %") && lines[3].ends_with("97 % of the time, of 2 threads"), "{table}");
        assert_eq!(nodes(&[]), "");
    }
}

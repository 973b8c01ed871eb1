//! The nodes of the server's cluster: how busy each was, how far behind, and which of them held the others up.

pub(crate) mod data_node;
mod state;
mod words;

pub use state::{Applier, Applying, NodeState, StateShare, StateThreads};

use whyso_model::Role;

use crate::level::Level;
use crate::model::{Evidence, Finding, NodeInput};
use words::{advice, applier_words, names};

/// Being behind for less than this is no finding: servers count whole seconds.
pub const BEHIND_S_MIN: f64 = 2.0;

/// Source of the series of the servers' processes.
const PROCESS: &str = "server_process";
/// Source of the time of threads by state.
const THREADS: &str = "threads";
/// Role of processes that are none of a server.
const PROGRAM: &str = "program";

/// What every node of the cluster did at the level that the cause is asked about; empty where the server is in no cluster that whyso knows.
pub(crate) fn states(level: &Level) -> Vec<NodeState> {
    states_of(level.nodes, level.seconds)
}

/// What each of these nodes did in a window of this length.
pub(crate) fn states_of(nodes: &[NodeInput], seconds: f64) -> Vec<NodeState> {
    let of_data_nodes = nodes.first();
    let state = |node: &NodeInput| {
        let state = NodeState::new(node, seconds);
        match (of_data_nodes, node.ndb_id) {
            (Some(sql_node), Some(id)) => data_node::with_ndbinfo(state, sql_node, id),
            _ => state,
        }
    };
    nodes.iter().map(state).collect()
}

/// CPU time of the nodes that are not loaded, and of the programs that were recorded: none of them are programs of others.
pub(crate) fn others_cpu_s(level: &Level) -> f64 {
    let of_node = |node: &NodeInput| match node.role.as_str() {
        // All of its processes.
        PROGRAM => {
            let of_threads = node.counters.iter().filter(|counter| {
                counter.series.source == THREADS
                    && counter.series.metric == "cpu_ns"
                    && counter.increase > 0.0
            });
            of_threads.map(|counter| counter.increase).sum()
        }
        _ => counter(node, PROCESS, "run_ns", "server").unwrap_or(0.0),
    };
    level.nodes.iter().filter(|node| !node.is_loaded).map(of_node).sum::<f64>() / 1e9
}

/// Whether a program of this name was recorded.
pub(crate) fn is_recorded_program(level: &Level, name: &str) -> bool {
    level
        .nodes
        .iter()
        .any(|node| node.role == PROGRAM && (node.name == name || node.name.ends_with(&format!("({name})"))))
}

/// Replicas that fell behind, in one sentence each, and what their appliers did meanwhile.
pub(crate) fn findings(level: &Level) -> Vec<Finding> {
    let states = states(level);
    let behind = level.nodes.iter().zip(&states).filter_map(|(node, state)| behind(level, node, state));
    behind.chain(data_node::finding(level, &states)).collect()
}

fn behind(level: &Level, node: &NodeInput, state: &NodeState) -> Option<Finding> {
    let behind_s = state.behind_s.filter(|behind_s| *behind_s >= BEHIND_S_MIN)?;
    let applied = state.executed.map_or(String::new(), |share| {
        format!(", and executed {} of what it fetched meanwhile", whyso_words::percent(share))
    });
    let text = format!(
        "Replication lag at {}: {} was up to {} behind its source{applied}.{}",
        level.name(),
        names(state),
        whyso_words::seconds(behind_s),
        applier_words("busiest applier", state.applier.as_ref(), &advice(state)),
    );
    Some(Finding { id: "replication-lag".to_string(), text, evidence: lag_evidence(level, node) })
}

fn lag_evidence(level: &Level, node: &NodeInput) -> Vec<Evidence> {
    let of_lag = node.gauges.iter().filter(|gauge| gauge.series.metric == state::BEHIND);
    let of_applier = node.counters.iter().filter(|counter| {
        counter.series.source == "threads"
            && counter.series.instance == Role::Replication.name()
            && counter.series.metric == "cpu_ns"
    });
    let series = of_lag.map(|gauge| &gauge.series).chain(of_applier.map(|counter| &counter.series));
    series
        .map(|series| Evidence::Series {
            series: series.clone(),
            begin_ns: level.begin_ns,
            end_ns: level.end_ns,
        })
        .collect()
}

/// The series of a node with this name.
pub(crate) fn evidence(level: &Level, node: &NodeInput, source: &str, metric: &str) -> Vec<Evidence> {
    let own = node
        .counters
        .iter()
        .filter(|counter| counter.series.source == source && counter.series.metric == metric);
    own.map(|counter| Evidence::Series {
        series: counter.series.clone(),
        begin_ns: level.begin_ns,
        end_ns: level.end_ns,
    })
    .collect()
}

/// Growth of a node's counter over the level.
pub(crate) fn counter(node: &NodeInput, source: &str, metric: &str, instance: &str) -> Option<f64> {
    let found = node.counters.iter().find(|counter| {
        let series = &counter.series;
        series.source == source && series.metric.eq_ignore_ascii_case(metric) && series.instance == instance
    });
    found.map(|counter| counter.increase).filter(|increase| (0.0..1e24).contains(increase))
}

#[cfg(test)]
mod tests;

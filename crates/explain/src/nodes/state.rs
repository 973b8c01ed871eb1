//! One node over a level's window.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use whyso_model::State;

use super::{PROCESS, PROGRAM, counter};
use crate::model::NodeInput;

/// How far a replica is behind its source, by its own count.
pub(super) const BEHIND: &str = "seconds_behind_source";

/// States in which a thread has nothing to do, or may have: it waits for work on a condition, and a lock looks the same.
const AT_REST: [State; 4] = [State::Idle, State::NetReceive, State::Sleep, State::Lock];

/// What a node of the cluster did over a level's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct NodeState {
    pub name: String,
    /// What it is for: "source", "replica", "member", "SQL node", "data node", "manager", "proxy"; "server" where it is in no cluster, and
    /// "program" of processes that are none of a server.
    pub role: String,
    /// The load went to it.
    pub is_loaded: bool,
    /// CPUs that its process kept busy, or its processes; `None` where it was not watched.
    pub cpus: Option<f64>,
    /// Statements that clients sent to it, per second.
    pub statements_per_s: Option<f64>,
    /// How far it was behind its source at most, in seconds; `None` where it has none.
    pub behind_s: Option<f64>,
    /// Of the source's log that it fetched, which share it executed; more than 1 where it catches up. By bytes.
    pub executed: Option<f64>,
    /// Galera: share of the time for which flow control let no transaction of the cluster commit.
    pub paused: Option<f64>,
    /// Galera: pauses that this node asked for, per second.
    pub pauses_asked_per_s: Option<f64>,
    /// Galera: changes that waited here to be applied, in the mean.
    pub receive_queue: Option<f64>,
    /// Galera: transactions of this node that were refused or ended because another node had changed the same rows, per second.
    pub conflicts_per_s: Option<f64>,
    /// NDB: share of the data memory that is in use.
    #[serde(default)]
    pub memory_used: Option<f64>,
    /// NDB: of requests for pages of disk data, the share that the buffer had.
    #[serde(default)]
    pub page_hits: Option<f64>,
    /// NDB: of its threads' CPU time, the share that the kernel took.
    #[serde(default)]
    pub in_kernel: Option<f64>,
    /// The busiest thread that applies changes of other nodes, or that works on a data node; `None` where none was traced.
    pub applier: Option<Applier>,
    /// What its appliers were found to do, by the server; `None` where it showed none.
    #[serde(default)]
    pub applying: Option<Applying>,
    /// Of a program: in which states its threads were, most of them first.
    #[serde(default)]
    pub threads: Vec<StateThreads>,
}

/// How many threads of a program were in one state, in the mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct StateThreads {
    /// Such as "kernel_lock".
    pub state: String,
    pub threads: f64,
}

/// Threads that apply what other nodes have changed, or those of a data node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Applier {
    /// Name of the busiest.
    pub name: String,
    /// Of how many.
    pub threads: u32,
    /// Share of the time in which it surely had something to do. It may have had more: waits on locks and for work look the same.
    pub busy: f64,
    /// Where that time went, by state, the largest share first.
    pub states: Vec<StateShare>,
}

/// What the threads that apply changes were found to do when they had something to do, by the server's own words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Applying {
    /// Threads that were found, over all readings.
    pub samples: f64,
    /// Share of them that had something to do.
    pub busy: f64,
    /// Of these, the states that they were in, the most frequent first.
    pub states: Vec<StateShare>,
}

/// Share of a thread's time in one state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct StateShare {
    /// Such as "file_sync".
    pub state: String,
    pub share: f64,
}

impl NodeState {
    pub(crate) fn new(node: &NodeInput, seconds: f64) -> NodeState {
        let per_s = |source: &str, metric: &str, instance: &str| {
            Some(counter(node, source, metric, instance)? / seconds).filter(|value| value.is_finite())
        };
        let status = |metric: &str| per_s("status", metric, "");
        // MariaDB counts for Galera where there is none, too.
        let is_galera = gauge_max(node, "status", "wsrep_cluster_size").is_some_and(|nodes| nodes > 0.0);
        let galera = |metric: &str| status(metric).filter(|_| is_galera);
        let threads = if node.role == PROGRAM { threads(node, seconds) } else { Vec::new() };
        let on_cpus = threads.iter().find(|of| of.state == State::Cpu.name()).map(|of| of.threads);
        let conflicts = [galera("wsrep_local_cert_failures"), galera("wsrep_local_bf_aborts")];
        NodeState {
            name: node.name.clone(),
            role: node.role.clone(),
            is_loaded: node.is_loaded,
            cpus: match node.role == PROGRAM {
                true => on_cpus,
                false => per_s(PROCESS, "run_ns", "server").map(|ns_per_s| ns_per_s / 1e9),
            },
            statements_per_s: status("Questions"),
            behind_s: gauge_max(node, "replication", BEHIND),
            executed: executed(node),
            paused: galera("wsrep_flow_control_paused_ns").map(|ns_per_s| (ns_per_s / 1e9).min(1.0)),
            pauses_asked_per_s: galera("wsrep_flow_control_sent"),
            receive_queue: gauge_mean(node, "status", "wsrep_local_recv_queue").filter(|_| is_galera),
            conflicts_per_s: conflicts.into_iter().flatten().reduce(|one, other| one + other),
            memory_used: None,
            page_hits: None,
            in_kernel: None,
            applier: applier(node, seconds),
            applying: applying(node),
            threads,
        }
    }
}

/// Threads of a program by state, of all its processes.
fn threads(node: &NodeInput, seconds: f64) -> Vec<StateThreads> {
    let mut of_states: BTreeMap<&str, f64> = BTreeMap::new();
    for counter in node.counters.iter().filter(|counter| counter.series.source == "threads") {
        let threads = counter.increase.max(0.0) / 1e9 / seconds;
        if let Some(state) = counter.series.metric.strip_suffix("_ns")
            && threads.is_finite()
        {
            *of_states.entry(state).or_default() += threads;
        }
    }
    let mut states: Vec<StateThreads> = of_states
        .into_iter()
        .filter(|(_, threads)| *threads > 0.0)
        .map(|(state, threads)| StateThreads { state: state.to_string(), threads })
        .collect();
    states.sort_by(|one, other| other.threads.total_cmp(&one.threads));
    states
}

/// Of what was fetched, the share that was executed; `None` where next to nothing was fetched.
fn executed(node: &NodeInput) -> Option<f64> {
    let sum = |metric: &str| {
        let of_metric = |counter: &&crate::model::Counter| {
            counter.series.source == "replication" && counter.series.metric == metric
        };
        node.counters.iter().filter(of_metric).map(|counter| counter.increase.max(0.0)).sum::<f64>()
    };
    let share = sum("exec_source_log_pos") / sum("read_source_log_pos");
    share.is_finite().then_some(share)
}

fn gauge_max(node: &NodeInput, source: &str, metric: &str) -> Option<f64> {
    let of_metric =
        node.gauges.iter().filter(|gauge| gauge.series.source == source && gauge.series.metric == metric);
    of_metric.map(|gauge| gauge.max.max(gauge.mean)).filter(|value| value.is_finite()).max_by(f64::total_cmp)
}

fn gauge_mean(node: &NodeInput, source: &str, metric: &str) -> Option<f64> {
    let found =
        node.gauges.iter().find(|gauge| gauge.series.source == source && gauge.series.metric == metric);
    found.map(|gauge| gauge.mean).filter(|value| value.is_finite())
}

/// Words of states in which an applier has nothing to do: of MariaDB and MySQL.
const NOTHING_TO_DO: [&str; 4] =
    ["waiting for more updates", "work from sql thread", "event from coordinator", "next event in relay log"];

/// What its appliers were found to do.
fn applying(node: &NodeInput) -> Option<Applying> {
    let found: Vec<(&str, f64)> = node
        .counters
        .iter()
        .filter(|counter| counter.series.source == "applying" && counter.series.metric == "samples")
        .map(|counter| (counter.series.instance.as_str(), counter.increase))
        .filter(|(_, threads)| (0.0..1e12).contains(threads))
        .collect();
    let samples: f64 = found.iter().map(|(_, threads)| threads).sum();
    if samples <= 0.0 {
        return None;
    }
    let has_work = |state: &str| {
        let state = state.to_lowercase();
        !NOTHING_TO_DO.iter().any(|rest| state.contains(rest))
    };
    let at_work = || found.iter().filter(|(state, threads)| *threads > 0.0 && has_work(state));
    let busy: f64 = at_work().map(|(_, threads)| threads).sum();
    let mut states: Vec<StateShare> = at_work()
        .map(|(state, threads)| StateShare { state: (*state).to_string(), share: threads / busy })
        .collect();
    states.sort_by(|one, other| other.share.total_cmp(&one.share));
    Some(Applying { samples, busy: busy / samples, states })
}

/// The thread that had most to do.
fn applier(node: &NodeInput, seconds: f64) -> Option<Applier> {
    let mut threads: BTreeMap<&str, Vec<StateShare>> = BTreeMap::new();
    for counter in node.counters.iter().filter(|counter| counter.series.source == "appliers") {
        let Some(state) = counter.series.metric.strip_suffix("_ns") else { continue };
        let share = counter.increase.max(0.0) / 1e9 / seconds;
        if share.is_finite() {
            let states = threads.entry(&counter.series.instance).or_default();
            states.push(StateShare { state: state.to_string(), share });
        }
    }
    let is_rest = |state: &str| AT_REST.iter().any(|rest| rest.name() == state);
    let busy = |states: &[StateShare]| {
        states.iter().filter(|state| !is_rest(&state.state)).map(|state| state.share).sum::<f64>().min(1.0)
    };
    let count = threads.len() as u32;
    let (name, mut states) =
        threads.into_iter().max_by(|(_, one), (_, other)| busy(one).total_cmp(&busy(other)))?;
    let busy = busy(&states);
    states.retain(|state| !is_rest(&state.state));
    states.sort_by(|one, other| other.share.total_cmp(&one.share));
    let name = name.rsplit_once('-').map_or(name, |(name, _)| name).to_string();
    Some(Applier { name, threads: count, busy, states })
}

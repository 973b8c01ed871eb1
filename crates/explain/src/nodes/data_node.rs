//! Data nodes of MySQL Cluster: how full, how busy, and with what.

use super::counter;
use super::state::{Applier, NodeState};
use super::words::{applier_words, names};
use crate::level::{Level, levels_evidence};
use crate::model::{Finding, NodeInput, Part};

/// Source of what `ndbinfo` shows, which an SQL node was asked for.
const NDBINFO: &str = "ndbinfo";
/// From this share of the time on, one thread is as busy as it can be.
pub(crate) const FULL: f64 = 0.85;
/// From this share of the CPU time on, the kernel's work is worth a look.
const IN_KERNEL_MANY: f64 = 0.5;

/// Adds what an SQL node said of the data node with this number.
pub(super) fn with_ndbinfo(state: NodeState, sql_node: &NodeInput, id: u32) -> NodeState {
    let of_node = format!("node {id}");
    let count = |metric: &str| counter(sql_node, NDBINFO, metric, &of_node);
    let threads = |metric: &str| {
        let of_threads = sql_node.counters.iter().filter(|counter| {
            let series = &counter.series;
            series.source == NDBINFO
                && series.metric == metric
                && series.instance.strip_prefix(&of_node).is_some_and(|rest| rest.starts_with(" thread"))
        });
        of_threads.map(|counter| counter.increase.max(0.0)).sum::<f64>()
    };
    let share = |part: f64, whole: f64| Some(part / whole).filter(|share| share.is_finite());
    let hits = count("disk_page_hits").unwrap_or(0.0);
    let misses = count("disk_page_waits_io").unwrap_or(0.0) + count("disk_page_waits_queue").unwrap_or(0.0);
    let memory = |metric: &str| {
        let instance = format!("{of_node} data memory");
        let gauge = sql_node.gauges.iter().find(|gauge| {
            let series = &gauge.series;
            series.source == NDBINFO && series.metric == metric && series.instance == instance
        });
        gauge.map(|gauge| gauge.mean)
    };
    let (user, kernel) = (threads("thread_user_us"), threads("thread_system_us"));
    NodeState {
        memory_used: memory("memory_used_bytes")
            .zip(memory("memory_total_bytes"))
            .and_then(|(used, total)| share(used, total)),
        page_hits: share(hits, hits + misses),
        in_kernel: share(kernel, user + kernel),
        ..state
    }
}

/// The data node whose busiest thread had most to do.
pub(crate) fn busiest<'a>(level: &Level, states: &'a [NodeState]) -> Option<&'a NodeState> {
    let is_data_node =
        |state: &&NodeState| level.nodes.iter().any(|node| node.name == state.name && node.ndb_id.is_some());
    let busy = |state: &NodeState| state.applier.as_ref().map_or(0.0, |thread| thread.busy);
    states.iter().filter(is_data_node).max_by(|one, other| busy(one).total_cmp(&busy(other)))
}

/// Share of the time in which a thread had work, and waited for a CPU to do it.
pub(crate) fn queued(thread: &Applier) -> f64 {
    let waits = thread.states.iter().filter(|of| of.state == Part::Runqueue.name());
    waits.map(|of| of.share).sum()
}

/// Data nodes whose busiest thread is as busy as it can be, in one sentence, and how to read its CPU time.
pub(super) fn finding(level: &Level, states: &[NodeState]) -> Option<Finding> {
    let state = busiest(level, states)?;
    let thread = state.applier.as_ref().filter(|thread| thread.busy >= FULL)?;
    let queued = queued(thread);
    let reading = match state.in_kernel {
        _ if thread.busy - queued < FULL => format!(
            " It waited for a CPU for {} of the time: give the data nodes CPUs of their own.",
            whyso_words::percent(queued)
        ),
        Some(share) if share >= IN_KERNEL_MANY => format!(
            " {} of the node's CPU time was the kernel's: look for what keeps the system busy, such as the network, swapping or other programs.",
            whyso_words::percent(share)
        ),
        Some(share) => format!(
            " {} of the node's CPU time was its own code: it has too much to do, and more threads or data nodes would help.",
            whyso_words::percent(1.0 - share)
        ),
        None => String::new(),
    };
    let text = format!(
        "Busy data node at {}: {}.{}{reading}",
        level.name(),
        names(state),
        applier_words("busiest thread", Some(thread), "")
    );
    Some(Finding {
        id: "busy-data-node".to_string(),
        text,
        evidence: vec![levels_evidence("transactions_per_s", &[level])],
    })
}

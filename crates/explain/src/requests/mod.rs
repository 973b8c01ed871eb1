//! Access logs over a level's window: kinds of requests with rates, errors and times, and the same requests as the tracer saw them.

mod model;
mod words;

pub use model::{AccessLogTime, RequestKind, ServingProcess, TracedRequests};
pub(crate) use words::findings;

use std::collections::BTreeMap;

use crate::level::Level;
use crate::model::{AccessLogInput, RequestSums, TierTime, Worker};

/// Kinds that are reported, at most.
const KINDS_MAX: usize = 10;
/// Processes that are reported, at most.
const PROCESSES_MAX: usize = 16;
/// Kinds for which the log had no room.
const OTHER: &str = "other";

/// The access logs of a level.
pub(crate) fn times(level: &Level, tiers: &[TierTime]) -> Vec<AccessLogTime> {
    level.access_logs.iter().filter_map(|log| time(log, level.workers, tiers)).collect()
}

fn time(log: &AccessLogInput, workers: &[Vec<Worker>], tiers: &[TierTime]) -> Option<AccessLogTime> {
    let seconds = log.seconds;
    if !(seconds > 0.0 && seconds < 1e12) {
        return None;
    }
    let mut all = log.all.clone();
    // The table of all lines has no durations of its own: those of the kinds are all.
    for (us, count) in log.kinds.iter().flat_map(|kind| &kind.durations_us) {
        *all.durations_us.entry(*us).or_default() += count;
    }
    let kind = |sums: &RequestSums| kind(sums, &all, seconds);
    let mut sums: Vec<&RequestSums> = log.kinds.iter().filter(|kind| kind.requests > 0).collect();
    sums.sort_by(|a, b| {
        let place =
            |sums: &RequestSums| (sums.name == OTHER, std::cmp::Reverse((sums.duration_ns, sums.requests)));
        place(a).cmp(&place(b)).then_with(|| a.name.cmp(&b.name))
    });
    let processes = processes(log, workers);
    Some(AccessLogTime {
        log: log.log.clone(),
        seconds,
        malformed: log.malformed,
        all: kind(&all),
        kinds: sums.iter().take(KINDS_MAX).map(|sums| kind(sums)).collect(),
        left_out: u32::try_from(sums.len().saturating_sub(KINDS_MAX)).unwrap_or(u32::MAX),
        traced: traced(&processes, tiers),
        processes,
    })
}

fn kind(sums: &RequestSums, all: &RequestSums, seconds: f64) -> RequestKind {
    let quantile_ms = |share: f64| sums.quantile_ns(share).map(|ns| ns as f64 / 1e6);
    let is_timed = sums.timed > 0;
    RequestKind {
        name: sums.name.clone(),
        requests: sums.requests,
        requests_per_s: sums.requests as f64 / seconds,
        errors_4xx: sums.errors_4xx,
        errors_5xx: sums.errors_5xx,
        share: (all.duration_ns > 0).then(|| sums.duration_ns as f64 / all.duration_ns as f64),
        mean_ms: is_timed.then(|| sums.duration_ns as f64 / 1e6 / sums.timed as f64),
        p50_ms: quantile_ms(0.5),
        p90_ms: quantile_ms(0.9),
        p99_ms: quantile_ms(0.99),
        max_ms: is_timed.then(|| sums.duration_ns_max as f64 / 1e6),
    }
}

fn processes(log: &AccessLogInput, workers: &[Vec<Worker>]) -> Vec<ServingProcess> {
    let mut programs: BTreeMap<String, &str> = BTreeMap::new();
    for worker in workers.iter().flatten() {
        programs.insert(worker.pid.to_string(), &worker.program);
    }
    let mut sums: Vec<&RequestSums> = log.processes.iter().filter(|sums| sums.requests > 0).collect();
    sums.sort_by(|a, b| {
        let time = |sums: &RequestSums| (sums.duration_ns, sums.requests);
        time(b).cmp(&time(a)).then_with(|| a.name.cmp(&b.name))
    });
    let process = |sums: &&RequestSums| ServingProcess {
        pid: sums.name.clone(),
        program: programs.get(&sums.name).map(|program| (*program).to_string()),
        requests: sums.requests,
        mean_ms: (sums.timed > 0).then(|| sums.duration_ns as f64 / 1e6 / sums.timed as f64),
    };
    sums.iter().take(PROCESSES_MAX).map(process).collect()
}

/// The program that answered the log's requests: whose processes the log names, else the only one that no other program asks.
fn traced(processes: &[ServingProcess], tiers: &[TierTime]) -> Option<TracedRequests> {
    let mut by_process: BTreeMap<&str, u64> = BTreeMap::new();
    for process in processes {
        if let Some(program) = &process.program {
            *by_process.entry(program).or_default() += process.requests;
        }
    }
    let most = by_process.iter().max_by_key(|(_, requests)| **requests).map(|(program, _)| *program);
    let named = most.and_then(|program| tiers.iter().find(|tier| tier.name == program));
    let mut firsts = tiers.iter().filter(|tier| tier.is_first && !tier.is_database);
    let (tier, is_by_process) = match (named, firsts.next(), firsts.next()) {
        (Some(tier), ..) => (tier, true),
        (None, Some(only), None) => (only, false),
        _ => return None,
    };
    Some(TracedRequests {
        program: tier.name.clone(),
        requests_per_s: tier.requests_per_s,
        mean_ms: tier.mean_ms,
        is_by_process,
    })
}

#[cfg(test)]
mod tests;

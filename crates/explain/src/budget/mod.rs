//! The time budget: where the time of a level's transactions went, part by part, and what remains.
//!
//! For N users over T seconds there are exactly N·T user-seconds. The tracer counts, as ever-growing sums, what the load's
//! requests spent in which state. A part is the increase of its sums over a level's measured window, divided by the transactions that
//! ended in it. The remainder to the mean response time is shown with its sign, never spread.

mod background;
mod classes;
mod ended;
mod model;
mod objects;
mod part;
mod words;

pub use model::{Budget, ClassTime, CpuSplit, PartTime};
pub use part::Part;

pub(crate) use background::busiest;
pub(crate) use classes::COUNT_MIN;
pub(crate) use objects::{described, main_object, suspect_object};
pub(crate) use words::{findings, series_evidence};

use crate::level::Level;
use crate::model::{Estimate, LoopKind, SeriesName};

/// Sampler of the tracer's sums.
pub(crate) const SOURCE: &str = "trace";

/// Parts that are the sum of these metrics.
const SERVER_SUMS: [(Part, &[&str]); 14] = [
    (Part::Wakeup, &["request_wakeup_ns", "transit_in_wakeup_ns"]),
    (Part::Runqueue, &["request_runqueue_ns", "transit_in_runqueue_ns"]),
    (Part::Cpu, &["request_cpu_ns"]),
    (Part::Lock, &["request_lock_ns"]),
    (Part::KernelLock, &["request_kernel_lock_ns"]),
    (Part::FileRead, &["request_file_read_ns"]),
    (Part::FileWrite, &["request_file_write_ns"]),
    (Part::FileSync, &["request_file_sync_ns"]),
    (Part::NetSend, &["request_net_send_ns"]),
    (Part::PageFault, &["request_page_fault_ns"]),
    (Part::Sleep, &["request_sleep_ns"]),
    (Part::Other, &["request_other_ns"]),
    (Part::TransitOut, &["transit_out_ns"]),
    (Part::ClientDelay, &["client_delay_ns"]),
];

/// From this share of relayed requests on, what lies between load and server is a part of the budget and no remainder.
const RELAYED_MIN: f64 = 0.9;

/// What the tracer calls waits whose file it could not find out, and files whose path it could not keep.
const FILES_LOST: [&str; 2] = ["no place for a file", "no place for a path"];

/// What it calls clients of a thread pool whose connection it did not keep.
const CLIENTS_LOST: &str = "no place for a client";

/// A remainder below this share of the response time is what rounding leaves.
const ROUNDING: f64 = 1e-6;

/// The budget of a level; `None` where it was not traced.
pub(crate) fn budget(level: &Level) -> Option<Budget> {
    let response_ms = level.latency_mean_ms?;
    let sums = Sums { level };
    let is_server_traced = sums.of("request_ns").is_some();
    let is_client_traced = sums.of("wire_ns").is_some() || sums.of("client_held_ns").is_some();
    if !(is_server_traced || is_client_traced) || level.transactions == 0 {
        return None;
    }

    let mut budget = Budget {
        level: level.index,
        users: level.users,
        repeat: level.repeat,
        response_ms,
        remote: !is_server_traced,
        recorded: level.pacing == LoopKind::Recorded,
        ..Budget::default()
    };
    let client_queue_ms = client_queue_ms(level, response_ms);
    budget.push(Part::ClientQueue, client_queue_ms, Vec::new());
    if let Some(held) = sums.of("client_held_ns") {
        let outside_ms = outside_ms(level, response_ms - client_queue_ms);
        let held_ms = (held.ms - outside_ms).max(0.0);
        let pause_ms = level.pause_ms().min(held_ms);
        if pause_ms > 0.0 {
            budget.push(Part::ClientPause, pause_ms, Vec::new());
        }
        budget.push(Part::ClientCpu, held_ms - pause_ms, vec![held.series]);
        if !matches!(level.pacing, LoopKind::Closed | LoopKind::Recorded) {
            budget.notes.push(
                "client_cpu is derived: the time between a user's transactions is taken off what the generator held \
                 connections for, and both are large."
                    .to_string(),
            );
        }
    }
    if let (true, Some(transit)) = (is_server_traced, sums.of("transit_in_ns")) {
        let delays = ["transit_in_wakeup_ns", "transit_in_runqueue_ns"].map(|metric| sums.of(metric));
        let delays_ms: f64 = delays.iter().flatten().map(|sum| sum.ms).sum();
        budget.push(Part::TransitIn, (transit.ms - delays_ms).max(0.0), vec![transit.series]);
    }
    for (part, metrics) in SERVER_SUMS {
        let found: Vec<Sum> = metrics.iter().filter_map(|metric| sums.of(metric)).collect();
        if !found.is_empty() {
            let ms = found.iter().map(|sum| sum.ms).sum();
            budget.push(part, ms, found.into_iter().map(|sum| sum.series).collect());
        }
    }
    if let Some((ms, series)) = relayed(&sums).filter(|_| is_server_traced && is_client_traced) {
        budget.parts.retain(|part| part.part != Part::TransitOut);
        budget.push(Part::TransitOut, ms, series);
        let between_hosts = "Server and load are on two machines, whose clocks agree only within a bound. So the way there and the way back can't \
             be separated: both are in transit_out, which is what is left of the time between sending and answer.";
        let between_relays = "Something relays between the load and the server, such as a proxy or a network: what it takes in both directions \
             is in transit_out, which is what is left of the time between sending and answer. Behind it, whyso can't distinguish requests \
             of other clients from the load's.";
        budget.notes.push(if level.is_across_hosts { between_hosts } else { between_relays }.to_string());
    }
    let is_sent_elsewhere =
        level.is_across_hosts && is_server_traced && !is_client_traced && !budget.recorded;
    if let (true, Some(request)) = (is_sent_elsewhere, sums.of("request_ns")) {
        let transit_in_ms = sums.of("transit_in_ns").map_or(0.0, |transit| transit.ms);
        let ms = (response_ms - client_queue_ms - request.ms - transit_in_ms).max(0.0);
        budget.parts.retain(|part| part.part != Part::TransitOut);
        budget.push(Part::TransitOut, ms, vec![request.series]);
        budget.notes.push(
            "Other hosts sent the load. The way there, the way back and the delays of the generators can't be separated: they are in \
             transit_out, which is what is left of the response time."
                .to_string(),
        );
    }
    if let (false, Some(wire)) = (is_server_traced, sums.of("wire_ns")) {
        budget.push(Part::ServerAndNetwork, wire.ms, vec![wire.series]);
        budget.notes.push(
            "The budget stops at the wire: the server is on another machine, or could not be traced."
                .to_string(),
        );
    }
    if is_server_traced && !is_client_traced && !is_sent_elsewhere {
        let between = match budget.recorded {
            true => "is in no part and not in the mean",
            false => "is in what is unaccounted for",
        };
        budget.notes.push(format!(
            "The server's parts are samples of its threads' states; what lies between client and server was not seen, and {between}."
        ));
    }
    let connect_ms = level.connect_ms();
    if connect_ms > 0.0 {
        let open_ms = response_ms - budget.parts.iter().map(|part| part.ms).sum::<f64>();
        budget.push(Part::Connect, connect_ms.min(open_ms.max(0.0)), Vec::new());
    }
    budget.parts.sort_by_key(|part| part.part);
    budget.unaccounted_ms = response_ms - budget.parts.iter().map(|part| part.ms).sum::<f64>();
    if budget.unaccounted_ms.abs() < ROUNDING * response_ms {
        budget.unaccounted_ms = 0.0;
    }
    budget.classes = classes::split(&budget, level.wait_classes);
    budget.activities = level
        .activities
        .as_ref()
        .map_or(Vec::new(), |sampled| sampled.per_transaction(level.transactions as f64));
    budget.cpu_split = cpu_split(level);
    budget.client_wakeup_ms = sums.of("client_delay_wakeup_ns").map_or(0.0, |sum| sum.ms);
    budget.notes.extend(lost(level));
    Some(budget)
}

/// Whether nearly all requests of the load were relayed.
pub(crate) fn is_relayed(requests: f64, relayed: f64) -> bool {
    requests > 0.0 && relayed >= RELAYED_MIN * requests
}

/// Where nearly all requests were relayed: what the relay took of each, in both directions, which can't be separated.
fn relayed(sums: &Sums<'_, '_>) -> Option<(f64, Vec<SeriesName>)> {
    let [requests, relayed, wire, request, transit] =
        ["requests", "relayed_requests", "wire_ns", "request_ns", "transit_in_ns"]
            .map(|metric| sums.of(metric));
    let (wire, request, transit) = (wire?, request?, transit?);
    let is_relayed = sums.level.is_across_hosts || wire.ms > 0.0 && is_relayed(requests?.ms, relayed?.ms);
    let ms = (wire.ms - request.ms - transit.ms).max(0.0);
    is_relayed.then(|| (ms, vec![wire.series, request.series, transit.series]))
}

impl Budget {
    fn push(&mut self, part: Part, ms: f64, series: Vec<SeriesName>) {
        if ms.is_finite() {
            self.parts.push(PartTime { part, ms, series });
        }
    }
}

/// What a counter of the tracer grew by, for one transaction.
struct Sum {
    ms: f64,
    series: SeriesName,
}

struct Sums<'a, 'b> {
    level: &'b Level<'a>,
}

impl Sums<'_, '_> {
    fn of(&self, metric: &str) -> Option<Sum> {
        let counter = self.level.counter(SOURCE, metric, "")?;
        let ms = counter.increase / 1e6 / self.level.transactions as f64;
        Some(Sum { ms, series: counter.series.clone() })
    }
}

/// In an open loop, the time from when a transaction was due until its first attempt was sent. In a closed one a
/// transaction is due when it is sent.
fn client_queue_ms(level: &Level, response_ms: f64) -> f64 {
    if level.pacing != LoopKind::Open {
        return 0.0;
    }
    let attempts_lost_ms = level.lost_ms / level.transactions as f64;
    level.service_mean_ms.map_or(0.0, |service_ms| (response_ms - service_ms - attempts_lost_ms).max(0.0))
}

/// Time of the users out of transactions, for one transaction. `sent_ms` is that within one.
fn outside_ms(level: &Level, sent_ms: f64) -> f64 {
    if matches!(level.pacing, LoopKind::Closed | LoopKind::Recorded) {
        return 0.0;
    }
    let users_ms = f64::from(level.users) * level.seconds * 1e3 / level.transactions as f64;
    (users_ms - sent_ms).max(0.0)
}

fn cpu_split(level: &Level) -> Option<CpuSplit> {
    let samples = |metric| level.counter(SOURCE, metric, "").map(|counter| counter.increase.round());
    let user = samples("cpu_user_samples")?;
    let all = user + samples("cpu_system_samples")?;
    (all >= 1.0).then(|| CpuSplit { samples: all as u64, user: share_of_samples(user, all) })
}

/// A share with its 95 % interval: E. B. Wilson, "Probable inference, the law of succession, and statistical
/// inference", Journal of the American Statistical Association 22, 1927.
fn share_of_samples(hits: f64, all: f64) -> Estimate {
    const Z: f64 = 1.96;
    let share = hits / all;
    let middle = (share + Z * Z / (2.0 * all)) / (1.0 + Z * Z / all);
    let half =
        Z / (1.0 + Z * Z / all) * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).max(0.0).sqrt();
    Estimate { value: share, low95: (middle - half).max(0.0), high95: (middle + half).min(1.0) }
}

/// What the tracer could not count, by why.
fn lost(level: &Level) -> Vec<String> {
    // Of a wait that found no place only its pattern or its file is lost: its time is in the sums.
    let has_its_time = |series: &SeriesName| {
        let why = series.instance.as_str();
        why == crate::pauses::LOST || FILES_LOST.contains(&why)
    };
    let is_lost =
        |series: &SeriesName| series.source == SOURCE && series.metric == "lost" && !has_its_time(series);
    let lost = level.counters.iter().filter(|counter| is_lost(&counter.series) && counter.increase >= 0.5);
    lost.filter(|counter| counter.increase < 1e18)
        .map(|counter| {
            if counter.series.instance == CLIENTS_LOST {
                return format!(
                    "The tracer forgot {} clients of shared threads; an answer to one of them may have been counted as one to another client.",
                    whyso_words::whole(counter.increase.round() as u64),
                );
            }
            format!(
                "The tracer could not count {} threads or events ({}); what they did is unaccounted.",
                whyso_words::whole(counter.increase.round() as u64),
                if counter.series.instance.is_empty() { "no reason given" } else { &counter.series.instance },
            )
        })
        .collect()
}

#[cfg(test)]
mod tests;

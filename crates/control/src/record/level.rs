//! What was recorded between two edges, as a level's result.

use whyso_model::{Pacing, Role, State};
use whyso_record::run::{Latency, Level, LevelResult, Purpose, RunEnd, SessionsResult, Window};
use whyso_trace::{Reading, ThreadSums};
use whyso_watch::SessionSums;

use super::edges::Edge;

const NS_PER_MS: f64 = 1e6;

/// What the edges of a level belong to.
#[derive(Clone, Copy)]
pub(super) struct LevelContext<'a> {
    /// Name of the load.
    pub(super) workload: &'a str,
    /// A database server is watched, which counts its statements.
    pub(super) of_server: bool,
    /// Its requests are traced one by one.
    pub(super) requests: bool,
}

/// What the kernel saw of the requests between two edges, as a level's result: a request stands for a transaction.
pub(super) fn level(context: LevelContext<'_>, index: u32, begin: &Edge, end: &Edge, ended: RunEnd) -> Level {
    let window = Window { begin_ns: begin.at_ns, end_ns: end.at_ns };
    let seconds = window.seconds().max(1e-9);
    let mut result = LevelResult {
        seconds,
        workload: context.workload.to_string(),
        pacing: Pacing::Recorded,
        ..LevelResult::default()
    };
    let mut users = 0;
    match (&begin.read, &end.read) {
        (Some(from), Some(to)) if context.requests => {
            result.transactions = to.server.requests - from.server.requests;
            result.latency_ms = mean_of(from, to);
            users = count_at_work(&from.threads, &to.threads);
        }
        _ if !context.of_server => {}
        (Some(from), Some(to)) => {
            let asked = end.questions.saturating_sub(begin.questions);
            (result.transactions, result.latency_ms) = mean_without_requests(from, to, asked);
            users = count_running(&from.threads, &to.threads);
        }
        _ => result.transactions = end.questions.saturating_sub(begin.questions),
    }
    result.sessions = sessions(begin.sessions, end.sessions).filter(|_| context.of_server);
    if let (0, Some(sessions)) = (users, result.sessions) {
        // Nothing saw which connections were at work: those that there were stand for them.
        users = sessions.clients_mean.round() as u32;
    }
    result.service_ms = result.latency_ms;
    result.queries = result.transactions;
    result.transactions_per_s = result.transactions as f64 / seconds;
    result.queries_per_s = result.transactions_per_s;
    let no_warmup = Window { begin_ns: begin.at_ns, end_ns: begin.at_ns };
    Level {
        index,
        users,
        purpose: Purpose::Sweep,
        warmup: no_warmup,
        warmup_steady: false,
        window,
        result,
        ended,
    }
}

/// What the process list showed between two edges; `None` where it was not read.
fn sessions(from: SessionSums, to: SessionSums) -> Option<SessionsResult> {
    let snapshots = to.snapshots.checked_sub(from.snapshots).filter(|snapshots| *snapshots > 0)?;
    let mean = |from: u64, to: u64| to.saturating_sub(from) as f64 / snapshots as f64;
    Some(SessionsResult {
        looks: snapshots,
        active_mean: mean(from.in_statement, to.in_statement),
        clients_mean: mean(from.clients, to.clients),
    })
}

/// The mean time of a request: from when it was in the server's socket to when its answer was in the client's. Where the
/// generator was traced too, what it did with the answer until its next request is in it: the whole of its cycle.
fn mean_of(from: &Reading, to: &Reading) -> Latency {
    let requests = to.server.requests - from.server.requests;
    let answers = to.client.answers - from.client.answers;
    let mean = |ns: u64, count: u64| if count == 0 { 0.0 } else { ns as f64 / count as f64 / NS_PER_MS };
    let served_ns =
        to.server.request_ns - from.server.request_ns + to.server.transit_ns - from.server.transit_ns;
    let (was, is) = (&from.client, &to.client);
    let cycle_ns = (is.wire_ns - was.wire_ns) + (is.delay_ns - was.delay_ns) + (is.held_ns - was.held_ns);
    // A generator of which only some connections were traced is no measure of the others.
    let is_covered = answers > 0 && answers * 10 >= requests * 9;
    Latency {
        mean: if is_covered { mean(cycle_ns, answers) } else { mean(served_ns, requests) },
        ..Latency::default()
    }
}

/// Requests and their mean time where the tracer does not see the server's side of them. If the generator was traced,
/// they are as it had them. Else they are as many as the server counted, and as long as samples of its connections'
/// threads make them.
fn mean_without_requests(from: &Reading, to: &Reading, asked: u64) -> (u64, Latency) {
    let answers = to.client.answers - from.client.answers;
    if answers > 0 {
        return (answers, mean_of(from, to));
    }
    let served_ns = to.server.request_ns - from.server.request_ns;
    let mean = if asked == 0 { 0.0 } else { served_ns as f64 / asked as f64 / NS_PER_MS };
    (asked, Latency { mean, ..Latency::default() })
}

/// Threads of connections that ran between two readings.
fn count_running(from: &[ThreadSums], to: &[ThreadSums]) -> u32 {
    let cpu_ns = |thread: &ThreadSums| thread.states[State::Cpu as usize];
    let before =
        |thread: &ThreadSums| from.iter().find(|earlier| earlier.tid == thread.tid).map_or(0, cpu_ns);
    let of_connections = to.iter().filter(|thread| thread.role == Role::Connection);
    of_connections.filter(|thread| cpu_ns(thread) > before(thread)).count() as u32
}

/// Threads that answered a request between two readings: as many connections were at work, where each has a thread.
fn count_at_work(from: &[ThreadSums], to: &[ThreadSums]) -> u32 {
    let before = |thread: &ThreadSums| {
        from.iter()
            .find(|earlier| earlier.tid == thread.tid && earlier.born_ns == thread.born_ns)
            .map_or(0, |earlier| earlier.requests)
    };
    // A single request is a login, of our own samplers too.
    to.iter().filter(|thread| thread.requests > before(thread) + 1).count() as u32
}

//! The results of a level.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine_kind::EngineKind;
pub use crate::error_code::{ErrorCode, HttpProblem, UnknownErrorCode};
use crate::measure::histogram::Histogram;
use crate::tuning::Tuning;

/// The kind under which whole transactions appear among an interval's rows; those of one kind alone appear under
/// "transaction:" and its name.
pub const TRANSACTION: &str = "transaction";
/// The kind under which the making of connections in mid-level is counted, from the first packet to the prepared
/// statements; not a query.
pub const CONNECT: &str = "connect";
/// The kind under which rollbacks before a retry are counted.
pub const ROLLBACK: &str = "rollback";

/// The result of one level: of its measured window alone, unless a field says otherwise. Something counts into the
/// window when it was completed at or after `window_begin_ns` and before `window_end_ns`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LevelOutcome {
    pub users: u32,
    /// When the level's first statement could be sent (monotonic nanoseconds, as all times here).
    pub begin_ns: i64,
    /// Where measuring never began, `window_begin_ns` equals `window_end_ns` and every count is 0.
    pub window_begin_ns: i64,
    pub window_end_ns: i64,
    /// Transactions that ended well, each once however often it was retried.
    pub transactions: u64,
    /// Statements that the server answered, well or with an error; rollbacks before a retry included.
    pub queries: u64,
    pub errors_by_code: BTreeMap<ErrorCode, u64>,
    /// Time that transactions lost to each error, in nanoseconds: from the attempt's begin, reconnecting included, until
    /// the next attempt could begin.
    pub lost_ns_by_code: BTreeMap<ErrorCode, u64>,
    /// Transactions' attempts that were rolled back and begun again.
    pub retries: u64,
    /// Of a transaction from its first attempt's first byte to its last answer, retries included.
    pub response: Histogram,
    /// Of a transaction's last, successful attempt.
    pub service: Histogram,
    /// Response only of those transactions that needed more than one attempt.
    pub retried: Histogram,
    /// One for each kind of transaction, in the workload's order; empty where there is only one kind.
    pub by_transaction: Vec<TransactionOutcome>,
    /// In the workload's order; "rollback" and "connect" last, where there was one.
    pub kinds: Vec<KindOutcome>,
    /// Transactions that ended in each 100 ms from `window_begin_ns` on; the last bin may be shorter.
    pub bins_100ms: Vec<u32>,
    pub client: ClientUse,
    pub engine: EngineUse,
    /// Of an open loop; `None` in a closed one.
    pub arrivals: Option<ArrivalsOutcome>,
    /// What was due and unanswered when the window ended.
    pub in_flight: InFlight,
    pub user_time: UserTime,
    /// When the last answer within the window, or before it, arrived; `None`: none did.
    pub last_answer_ns: Option<i64>,
    /// One for each endpoint of the load.
    pub endpoints: Vec<EndpointOutcome>,
    /// What on the client's machine bounded the load, such as its local ports; one sentence.
    pub client_limit: Option<String>,
    /// Why the level ended before it was stopped; `None` where it went well. Of the whole level.
    pub failure: Option<Failure>,
    /// Connections that were lost and opened again (see `Limits::reconnect`). Of the whole level.
    pub reconnects: u64,
    /// Intervals that nobody took from the channel in time. Of the whole level.
    pub intervals_lost: u64,
    /// One for each host that sent a part of the load; empty where this process sent all of it.
    pub generators: Vec<GeneratorOutcome>,
}

/// One host's part of a load that several hosts sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GeneratorOutcome {
    pub host: String,
    pub users: u32,
    pub transactions: u64,
    pub queries: u64,
    pub errors: u64,
    pub response: Histogram,
    pub client: ClientUse,
    pub engine: EngineUse,
    /// As [`LevelOutcome::invalid_why`], of this generator alone.
    pub invalid_why: Option<String>,
}

/// Share of the time that a transaction takes, above which the generator's own delays are held to distort it.
const DELAY_SHARE_MAX: f64 = 0.1;
/// Lateness below this is not held against the generator: a machine's timers and scheduler have as much.
const LATE_NS_MIN: u64 = 1_000_000;

impl LevelOutcome {
    /// A level in whose window nothing was done.
    pub fn nothing(users: u32, engine: EngineUse, (begin_ns, end_ns): (i64, i64)) -> LevelOutcome {
        LevelOutcome {
            users,
            begin_ns,
            window_begin_ns: begin_ns,
            window_end_ns: end_ns,
            transactions: 0,
            queries: 0,
            errors_by_code: BTreeMap::new(),
            lost_ns_by_code: BTreeMap::new(),
            retries: 0,
            response: Histogram::new(),
            service: Histogram::new(),
            retried: Histogram::new(),
            by_transaction: Vec::new(),
            kinds: Vec::new(),
            bins_100ms: Vec::new(),
            client: ClientUse::default(),
            engine,
            arrivals: None,
            in_flight: InFlight::default(),
            user_time: UserTime::default(),
            last_answer_ns: None,
            endpoints: Vec::new(),
            client_limit: None,
            failure: None,
            reconnects: 0,
            intervals_lost: 0,
            generators: Vec::new(),
        }
    }

    /// Why the level says more of the load generator than of the server; `None` where there is no sign of it. Next to
    /// [`ClientUse::saturated_why`] and [`client_limit`](LevelOutcome::client_limit) there are two reasons.
    /// Transactions began late although a user stood ready: p99 over 1 ms, and over a tenth of the mean response. Or
    /// answers waited in the event loop for more than a tenth of the time that statements took.
    ///
    /// Where several hosts sent the load, each is judged by itself, and the first of which it is true is named.
    pub fn invalid_why(&self) -> Option<String> {
        if !self.generators.is_empty() {
            let named =
                |part: &GeneratorOutcome| Some(format!("{}: {}", part.host, part.invalid_why.as_ref()?));
            return self.generators.iter().find_map(named);
        }
        self.client_limit.clone().or_else(|| self.client.saturated_why()).or_else(|| self.delayed_why())
    }

    fn delayed_why(&self) -> Option<String> {
        let mean_ns = self.response.sum_ns() as f64 / self.response.count().max(1) as f64;
        let late_ns = self.arrivals.as_ref().map_or(0, |arrivals| arrivals.late.quantile_ns(0.99));
        if late_ns > LATE_NS_MIN && late_ns as f64 > DELAY_SHARE_MAX * mean_ns {
            return Some(format!(
                "1 % of the transactions began {:.1} ms or more late although a user stood ready",
                late_ns as f64 / 1e6
            ));
        }
        let statement_ns: u64 = self.kinds.iter().map(|kind| kind.latency.sum_ns()).sum();
        let share = self.client.answer_delay_ns as f64 / statement_ns.max(1) as f64;
        (share > DELAY_SHARE_MAX).then(|| {
            format!(
                "answers waited in the load's event loop for {:.0} % of the time that the statements took",
                share * 100.0
            )
        })
    }
}

/// Transactions that were due when the window ended, and had not ended. Each has its age then, from when it was due:
/// a lower bound of its response time, also where it ended soon after.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InFlight {
    pub ages: Histogram,
    /// Of them, those of an open loop that had not begun: no user was free.
    pub not_begun: u64,
    /// Of them, those that were older than the longest response time of any that ended in the window.
    pub older_than_ended: u64,
}

/// What the users did with the time of the window, in nanoseconds of all users together. `ended_ns`, `in_flight_ns` and
/// `outside_ns` add up to the number of users times the window's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserTime {
    /// Within the window, in transactions that ended in it.
    pub ended_ns: u64,
    /// In transactions that were in flight when it ended.
    pub in_flight_ns: u64,
    /// Between transactions: think times, pauses between arrivals, users that had nothing to do.
    pub outside_ns: u64,
    /// Before the window, in transactions that ended in it; no part of the sum.
    pub before_ns: u64,
    /// In pauses within transactions, as the work asked for them; a part of `ended_ns` and `in_flight_ns`.
    pub paused_ns: u64,
}

/// One kind of transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TransactionOutcome {
    pub kind: String,
    /// As [`LevelOutcome::response`], of this kind alone.
    pub response: Histogram,
    /// As [`LevelOutcome::service`], of this kind alone.
    pub service: Histogram,
    /// As [`InFlight::ages`], of this kind alone.
    pub in_flight: Histogram,
}

/// One kind of statement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KindOutcome {
    pub kind: String,
    /// Statements that went well.
    pub count: u64,
    /// Statements that the server answered with an error; their times are in no histogram.
    pub errors: u64,
    /// Rows that the server returned.
    pub rows: u64,
    pub latency: Histogram,
    /// Times of those that were answered with an error.
    pub error_latency: Histogram,
    /// Ages of those that had no answer when the window ended.
    pub in_flight: Histogram,
}

/// Which engine drove a level, and why that one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineUse {
    /// Never [`EngineKind::Auto`].
    pub kind: EngineKind,
    /// Event loops, or threads.
    pub loops: u32,
    /// One sentence.
    pub why: String,
    /// What else was asked for.
    pub tuning: Tuning,
}

/// How well the load kept to an open loop's schedule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArrivalsOutcome {
    /// Transactions that became due in the window.
    pub due: u64,
    /// Those due in the level but not begun, at the window's begin and end, and the most in between (sampled ten
    /// times per second).
    pub backlog_begin: u64,
    pub backlog_end: u64,
    pub backlog_max: u64,
    /// How late transactions began for which a user stood ready: the generator's own delay.
    pub late: Histogram,
}

/// One endpoint's share of a level.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointOutcome {
    /// As "db1:3306".
    pub address: String,
    pub transactions: u64,
    pub errors: u64,
    pub response: Histogram,
    /// Of the whole level.
    pub outages: Vec<Outage>,
}

/// A time in which an endpoint could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// When the first connection to it was lost.
    pub begin_ns: i64,
    /// When the first transaction on it ended well again; `None`: not within the level.
    pub end_ns: Option<i64>,
}

/// What the load's own threads used between the window's edges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientUse {
    /// User and system CPU of the load's threads together, in nanoseconds, as the scheduler counts it.
    pub threads_cpu_ns: u64,
    /// The same of the whole process: samplers and recording included.
    pub process_cpu_ns: u64,
    /// Time that the load's threads were runnable and waited for a CPU, together (`schedstat`).
    pub run_delay_ns: u64,
    /// CPU of the thread that used most.
    pub busiest_thread_cpu_ns: u64,
    pub threads: u32,
    /// CPUs that the load's threads may run on.
    pub cpus_allowed: u32,
    /// Peak resident memory of the whole process so far.
    pub max_rss_kb: u64,
    /// Length of the window.
    pub window_ns: u64,
    /// Answers that waited for their turn in an event loop, which knew of them. Here is their number; `answer_delay_ns` is
    /// the sum of the time that they waited. 0 with threads.
    pub answers: u64,
    pub answer_delay_ns: u64,
    /// CPU that event loops spent on looking for news before they slept; a part of `threads_cpu_ns`. 0 without
    /// [`Tuning::busy_poll`].
    pub busy_poll_cpu_ns: u64,
}

/// Share of the CPUs that they may use, above which the load's threads are held to be the bottleneck.
const CPU_SHARE_MAX: f64 = 0.9;
/// Mean share of a thread's time on a CPU above which it is the thread that limits its connection.
const THREAD_SHARE_MAX: f64 = 0.8;

impl ClientUse {
    /// Why the load generator was probably the bottleneck; `None` where there is no sign of it. Either its threads used
    /// 90 % of the CPUs that they may run on. Or they were on a CPU for 80 % of their time on average. Then each
    /// waits for its server less than a fifth of the time. Waiting for a CPU is evidence in `run_delay_ns`, but not judged,
    /// since a server on the same CPUs causes it too. Busy polling in place of sleeping is not judged, either.
    pub fn saturated_why(&self) -> Option<String> {
        if self.window_ns == 0 || self.threads == 0 || self.cpus_allowed == 0 {
            return None;
        }
        let worked_ns = self.threads_cpu_ns.saturating_sub(self.busy_poll_cpu_ns);
        let cpus_used = worked_ns as f64 / self.window_ns as f64;
        if cpus_used >= CPU_SHARE_MAX * f64::from(self.cpus_allowed) {
            return Some(format!(
                "the load's {} threads used {cpus_used:.2} of the {} CPUs that they may run on",
                self.threads, self.cpus_allowed
            ));
        }
        let thread_share = cpus_used / f64::from(self.threads);
        if thread_share >= THREAD_SHARE_MAX {
            return Some(format!(
                "each of the load's threads was on a CPU for {:.0} % of the time, and waited for the server only in the \
                 rest",
                thread_share * 100.0
            ));
        }
        None
    }
}

/// Share of the window for which a generator's threads wait for a CPU, above which its response times are held to be too long.
const STARVED_SHARE_MAX: f64 = 0.1;

impl ClientUse {
    /// Why the load's own CPUs made response times longer; `None` where there is no sign of it. Only for CPUs that the server does not run
    /// on: the load's threads waited for one for more than a tenth of the window, on average.
    pub fn starved_why(&self) -> Option<String> {
        let time_ns = self.window_ns as f64 * f64::from(self.threads);
        let share = self.run_delay_ns as f64 / time_ns.max(1.0);
        (share > STARVED_SHARE_MAX).then(|| {
            format!(
                "the load's threads were ready to run and waited for a CPU for {:.0} % of the time, which is in the response times",
                share * 100.0
            )
        })
    }
}

/// Why a level was ended by something else than `stop`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub at_ns: i64,
    pub cause: Cause,
    /// One sentence: what happened, at which statement.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Cause {
    /// An error that is not among the workload's `retry_errors`.
    ServerError(ErrorCode),
    /// The server closed the connection, or the network did.
    ConnectionLost,
    /// No answer within `Limits::stall`.
    NoAnswer,
    /// What decides what is sent could not be created, or gave up.
    Driver,
    /// The server sent what the protocol does not allow, or asked for a local file, which is refused.
    Protocol,
}

/// What happened in one interval, of about a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Whether it lies in the measured window; the window's edges are always edges of intervals.
    pub measured: bool,
    /// [`TRANSACTION`] comes first. Where there are several kinds of transactions, every one that ended at least once
    /// follows. Then comes every kind of statement that was sent at least once.
    pub rows: Vec<IntervalRow>,
    /// Transactions that were due and not begun at its end; `None` in a closed loop.
    pub backlog: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IntervalRow {
    pub statement: String,
    pub count: u64,
    pub rows: u64,
    pub errors: Vec<(ErrorCode, u64)>,
    pub response_sum_ns: u64,
    /// For a statement the same as `response_sum_ns`: each is sent as soon as it is due.
    pub service_sum_ns: u64,
    pub response_max_ns: u64,
    /// Non-empty buckets: (upper bound in ns, count), ascending.
    pub response: Vec<(u64, u64)>,
    /// Empty for a statement: the same as `response`.
    pub service: Vec<(u64, u64)>,
}

/// Progress of a running level, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    pub transactions: u64,
    pub queries: u64,
    pub errors: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(threads_cpu_ms: u64, threads: u32, cpus_allowed: u32) -> ClientUse {
        let threads_cpu_ns = threads_cpu_ms * 1_000_000;
        ClientUse { threads_cpu_ns, threads, cpus_allowed, window_ns: 1_000_000_000, ..ClientUse::default() }
    }

    #[test]
    fn a_generator_that_used_up_its_cpus_is_saturated() {
        assert!(used(1900, 64, 2).saturated_why().unwrap().contains("1.90 of the 2 CPUs"));
        assert_eq!(used(1700, 64, 2).saturated_why(), None);
    }

    #[test]
    fn threads_that_hardly_wait_are_saturated_whatever_cpus_are_left() {
        assert!(used(850, 1, 8).saturated_why().unwrap().contains("85 %"));
        assert_eq!(used(500, 1, 8).saturated_why(), None);
        assert_eq!(ClientUse::default().saturated_why(), None);
    }

    #[test]
    fn looking_for_news_in_place_of_sleeping_is_not_held_against_the_generator() {
        let polled = ClientUse { busy_poll_cpu_ns: 600_000_000, ..used(990, 1, 2) };
        assert_eq!(polled.saturated_why(), None);
        assert!(ClientUse { busy_poll_cpu_ns: 100_000_000, ..polled }.saturated_why().is_some());
    }

    #[test]
    fn a_generator_whose_machine_is_busy_with_other_programs_is_starved() {
        let waited = |run_delay_ns| ClientUse { run_delay_ns, ..used(100, 2, 2) };
        assert!(waited(700_000_000).starved_why().unwrap().contains("35 %"));
        assert_eq!(waited(100_000_000).starved_why(), None);
        assert_eq!(ClientUse::default().starved_why(), None);
    }

    #[test]
    fn an_error_code_prints_as_number_and_state_and_is_read_so() {
        let code = ErrorCode { errno: 1213, sqlstate: *b"40001" };
        assert_eq!(code.to_string(), "1213 (40001)");
        assert_eq!("1213 (40001)".parse(), Ok(code));
        for wrong in ["1213", "1213 (400)", "x (40001)", "70000 (40001)"] {
            assert!(wrong.parse::<ErrorCode>().is_err(), "{wrong}");
        }
    }
}

//! `run.json`: what was run, on what, and how it went.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use whyso_clock::Anchor;
use whyso_model::{HostFacts, NotMeasured, Pacing, RunSpec, ServerFacts, Stacks};
pub use whyso_series::{InFlight, UserSeconds};

/// The format of recordings that this version writes, and the newest that it knows: a higher one may hold what it would misread. What is
/// merely added keeps the number. Format 2 has the plan, the pacing and what was not measured in parts, which were texts before.
pub const FORMAT: u32 = 3;

/// A recording's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(transparent)]
pub struct Format(pub u32);

impl Default for Format {
    fn default() -> Format {
        Format(FORMAT)
    }
}

impl Format {
    /// Of recordings that don't say.
    fn first() -> Format {
        Format(1)
    }
}

/// The whole of `run.json`. Times are monotonic nanoseconds, see [`whyso_clock`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct RunInfo {
    #[serde(default = "Format::first")]
    pub format: Format,
    pub id: String,
    /// Version of whyso that wrote the recording.
    pub tool_version: String,
    /// The command line, with secrets masked.
    pub command: Vec<String>,
    /// The plan as it was asked for and as it was resolved.
    pub spec: RunSpec,
    pub host: HostFacts,
    pub server: ServerFacts,
    /// What the run's server is in its cluster; `None` where it is in none that whyso knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub node: Option<NodeFacts>,
    /// The other nodes of the server's cluster. They were watched, too: a node's name is the host of its series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeFacts>,
    /// Other machines that were recorded by agents: a machine's name is the host of its series.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<RecordedHost>,
    /// First at the start, then one each minute, last at the end.
    pub anchors: Vec<Anchor>,
    pub levels: Vec<Level>,
    /// One execution of each kind of statement that only reads, before the first level; empty where none was executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statement_work: Vec<StatementWork>,
    /// What was done to the server during the run, on request.
    #[serde(default)]
    pub actions: Vec<ActionRecord>,
    /// What was not measured, and why.
    pub not_measured: Vec<NotMeasured>,
    /// `None` during the run, and after a crash.
    pub ended: Option<RunEnd>,
}

/// Role of processes of any kind.
pub const PROGRAM: &str = "program";

/// A node of a cluster, or a target that was recorded together with others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct NodeFacts {
    pub name: String,
    /// The machine that it runs on, where an agent recorded it; empty: it is not known, or there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[ts(optional, as = "Option<String>")]
    pub host: String,
    /// What it is for: "source", "replica", "member", "SQL node", "data node", "manager", "proxy"; "server" where it is in no cluster, and
    /// "program" of processes that are none of a server.
    pub role: String,
    /// Host and port, or socket; empty for one that is no server.
    pub endpoint: String,
    /// The load went to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub is_loaded: bool,
    /// Its number among the nodes of NDB, by which `ndbinfo` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub ndb_id: Option<u32>,
    /// Where it takes clients on its machine, such as "tcp 80" or "unix /run/a.sock"; empty where that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[ts(optional, as = "Option<Vec<String>>")]
    pub listens: Vec<String>,
}

/// A machine that an agent recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct RecordedHost {
    pub name: String,
    /// The run's server is on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional, as = "Option<bool>")]
    pub has_server: bool,
    pub facts: HostFacts,
    /// Its clock against this recording's: first at the start, then one each minute, last at the end.
    pub clock: Vec<HostClock>,
    /// What it recorded and could not hand over, in pieces.
    pub lost: u64,
    /// Why its part ends early, or is missing; empty where it is whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[ts(optional, as = "Option<String>")]
    pub problem: String,
}

/// Another host's clock at one time of the recording's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct HostClock {
    pub t_ns: i64,
    /// What the other clock showed more.
    pub offset_ns: i64,
    /// How much faster it was, in parts per 1,000,000,000.
    pub drift_ppb: i64,
    /// Times of the host are right within it. Nothing finer can be said of two hosts' times.
    pub bound_ns: i64,
    /// The smallest round trip of a question about it.
    pub round_trip_ns: i64,
}

/// Sources that are about the load, wherever that runs.
const GENERATOR_SOURCES: [&str; 3] = ["load", "generator_process", "trace"];

impl RunInfo {
    /// The machine of the run's server, where an agent recorded it.
    pub fn server_host(&self) -> Option<&RecordedHost> {
        self.hosts.iter().find(|host| host.has_server)
    }

    /// The load came from here, and an agent recorded the server's machine.
    pub fn is_across_hosts(&self) -> bool {
        self.server_host().is_some() && !self.spec.recorded
    }

    /// Whether a series shows what the run's server, its machine or the load did: those of other machines do not.
    pub fn is_about_server(&self, host: &str, source: &str) -> bool {
        let Some(server) = self.server_host() else { return true };
        if host == server.name {
            return true;
        }
        if host == "client" {
            return !self.spec.recorded && GENERATOR_SOURCES.contains(&source);
        }
        self.hosts.iter().all(|other| other.name != host)
    }

    /// Whether a series of this host is of another node of the cluster than the run's server. Other servers and programs that were recorded
    /// together with it count as such.
    pub fn is_other_node(&self, host: &str) -> bool {
        self.nodes.iter().any(|node| node.name == host)
    }

    /// Whether a series of this host is of a program that was recorded together with the run's first target.
    pub fn is_other_program(&self, host: &str) -> bool {
        self.nodes.iter().any(|node| node.name == host && node.role == PROGRAM)
    }

    /// Whether a series of this host is of another node, to which the load went, too.
    pub fn is_other_loaded_node(&self, host: &str) -> bool {
        self.nodes.iter().any(|node| node.is_loaded && node.name == host)
    }

    /// A later version wrote it, in a format that this one does not know. This one reads what it can, and never writes to it.
    pub fn is_newer(&self) -> bool {
        self.format > Format(FORMAT)
    }

    /// What the watched processes are called, where they are no database server's: then there are no transactions.
    pub fn process(&self) -> Option<&str> {
        self.spec.process.as_deref()
    }

    /// Whether something else loaded the server during each level.
    pub fn is_recorded(&self) -> bool {
        !self.levels.is_empty() && self.levels.iter().all(|level| level.result.is_recorded())
    }

    /// Whether stacks were sampled lightly: fewer, without those of waits, and without files and lines. Recordings that do not say have
    /// all or none.
    pub fn has_light_stacks(&self) -> bool {
        self.spec.stacks == Some(Stacks::Light)
    }

    /// How the Performance Schema was set, such as "synch, not timed: on, 320 of 900 instruments, none timed" or "as the server had it: off";
    /// `None` where that was not recorded.
    pub fn performance_schema(&self) -> Option<String> {
        let setup = self.spec.performance_schema.as_ref()?;
        match setup.words.as_str() {
            "" => setup.asked.clone(),
            words => Some(words.to_string()),
        }
    }

    /// The sweep's level with the highest throughput: repeats of a level do not count.
    pub fn best_level(&self) -> Option<&Level> {
        let swept = self.levels.iter().filter(|level| level.purpose == Purpose::Sweep);
        swept.max_by(|one, other| one.result.transactions_per_s.total_cmp(&other.result.transactions_per_s))
    }

    /// Whether the sweep's levels differ in the rate of transactions that were due, and not in their users.
    pub fn sweeps_rates(&self) -> bool {
        let swept = self.levels.iter().filter(|level| level.purpose == Purpose::Sweep);
        let rates: Vec<Option<f64>> = swept.map(|level| level.result.rate_per_s).collect();
        rates.iter().all(Option::is_some) && rates.windows(2).any(|pair| pair[0] != pair[1])
    }
}

/// What the server did for one execution of a statement, alone and with warm caches, by its own counts for the session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct StatementWork {
    /// Kind of statement, as in [`LevelResult::by_statement`].
    pub kind: String,
    /// From sending it to the end of its answer.
    pub seconds: f64,
    pub rows_sent: u64,
    /// Rows that were read from tables, also from temporary ones.
    pub rows_read: u64,
    pub rows_sorted: u64,
    /// Rows that were entered into temporary tables.
    pub rows_in_temporary_tables: u64,
    /// Rows that were read and met no condition, by the server's analysis of an execution; `None` where the server has none.
    pub rows_rejected: Option<u64>,
}

/// How a run or a level ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum RunEnd {
    Complete { at_ns: i64 },
    CutShort { at_ns: i64, why: String },
}

/// Something that was done during the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct ActionRecord {
    /// As it was asked for, such as "SET GLOBAL innodb_io_capacity = 2000".
    pub text: String,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Why it failed; empty where it did not.
    pub error: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Window {
    pub begin_ns: i64,
    pub end_ns: i64,
}

impl Window {
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.begin_ns) as f64 / 1e9
    }

    /// Whether a time lies in it, its end excluded.
    pub fn has(&self, t_ns: i64) -> bool {
        self.begin_ns <= t_ns && t_ns < self.end_ns
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A level of the sweep.
    Sweep,
    /// The best level once more, to see whether throughput drifted.
    Repeat,
    /// The level before once more, with as many event loops as the one before that had. A difference is then the load generator's own
    /// step, and not the server's.
    Switch,
}

/// One level of load: a warm-up and a measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Level {
    /// Position in the run, from 0.
    pub index: u32,
    pub users: u32,
    pub purpose: Purpose,
    pub warmup: Window,
    /// Whether the warm-up saw a steady throughput before its bound.
    pub warmup_steady: bool,
    /// The measured window. The result is only of this.
    pub window: Window,
    pub result: LevelResult,
    pub ended: RunEnd,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct LevelResult {
    /// Length of the measured window.
    pub seconds: f64,
    pub transactions: u64,
    pub queries: u64,
    pub errors: u64,
    /// "1213 (40001)" → count.
    pub errors_by_code: BTreeMap<String, u64>,
    /// Transactions that were begun again after a deadlock or a lock timeout.
    pub retries: u64,
    pub transactions_per_s: f64,
    pub queries_per_s: f64,
    /// Of a transaction, retries included.
    pub latency_ms: Latency,
    /// Of a transaction's last, successful attempt.
    pub service_ms: Latency,
    /// One a kind of transaction; empty where there is only one kind.
    #[serde(default)]
    pub by_transaction: Vec<TransactionResult>,
    pub by_statement: Vec<StatementResult>,
    pub client: Client,
    /// Transactions that ended in each 100 ms of the window, in order.
    pub bins_100ms: Vec<u32>,
    /// Name of the workload; empty in recordings that have only one.
    #[serde(default)]
    pub workload: String,
    /// When transactions began.
    #[serde(default)]
    pub pacing: Pacing,
    /// The percentiles that were asked for.
    #[serde(default)]
    pub percentiles: Vec<PercentileResult>,
    /// Only of transactions that needed more than one attempt, from their first.
    #[serde(default)]
    pub retried_ms: Latency,
    /// Time that transactions lost to each error, retrying and reconnecting included, in milliseconds.
    #[serde(default)]
    pub lost_ms_by_code: BTreeMap<String, f64>,
    /// Connections that were lost and made again, of the whole level.
    #[serde(default)]
    pub reconnects: u64,
    #[serde(default)]
    pub engine: EngineResult,
    /// Transactions that were to become due per second, where that was the same all the time. `None` in a closed loop.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// `None` in a closed loop.
    #[serde(default)]
    pub arrivals: Option<ArrivalsResult>,
    #[serde(default)]
    pub endpoints: Vec<EndpointResult>,
    /// One for each host that sent a part of the load; empty where one process sent all of it.
    #[serde(default)]
    pub generators: Vec<GeneratorResult>,
    /// What on the client's machine bounded the load, such as its local ports; empty where nothing did.
    #[serde(default)]
    pub client_limit: String,
    /// One per requirement, in the order in which they were given.
    #[serde(default)]
    pub slo: Vec<SloResult>,
    /// Intervals that could not be read from the load in time.
    #[serde(default)]
    pub intervals_lost: u64,
    /// Clients' sessions by the server's process list; `None` where it was not read, or whyso itself was the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub sessions: Option<SessionsResult>,
    /// What was due and unanswered when the window ended; `None` where it was not recorded.
    #[serde(default)]
    pub in_flight: Option<InFlight>,
    /// `None` where it was not recorded.
    #[serde(default)]
    pub user_seconds: Option<UserSeconds>,
}

/// Clients' sessions, as samples of the server's process list show them. whyso's own are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct SessionsResult {
    /// Times that the process list was read.
    pub looks: u64,
    /// Sessions in a statement, on average.
    pub active_mean: f64,
    /// Connections of clients, on average.
    pub clients_mean: f64,
}

impl LevelResult {
    /// Whether something else loaded the server. Requests that the kernel saw, or else the server's own `Questions`, then replace
    /// transactions and queries. Of their time only the mean is known, and of the generator nothing.
    pub fn is_recorded(&self) -> bool {
        self.pacing == Pacing::Recorded
    }
}

/// One percentile of a transaction's times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct PercentileResult {
    /// Above 0, at most 100.
    pub percentile: f64,
    pub latency_ms: f64,
    pub service_ms: f64,
    /// The latency is this or more: it is the age of something in flight.
    #[serde(default)]
    pub is_lower_bound: bool,
}

/// How the load was driven.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct EngineResult {
    /// "threads", "epoll" or "io-uring"; empty where it was not recorded.
    pub kind: String,
    /// Event loops, or threads.
    pub loops: u32,
    /// Why this one, in a sentence.
    pub why: String,
    /// Completions that an event loop waits for at a time, where that was asked for; else 0.
    #[serde(default)]
    pub min_complete: u32,
    /// How long it waits for them at most.
    #[serde(default)]
    pub min_complete_at_most_ns: u64,
    /// How long it polls before it sleeps.
    #[serde(default)]
    pub busy_poll_ns: u64,
    /// Of its threads, where one was asked for, such as "batch"; else empty.
    #[serde(default)]
    pub scheduling_policy: String,
}

/// How the schedule of an open loop was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct ArrivalsResult {
    /// Transactions that became due in the window.
    pub due: u64,
    pub due_per_s: f64,
    /// Transactions due and not begun at the window's begin, at its end, and the most in between.
    pub backlog_begin: u64,
    pub backlog_end: u64,
    pub backlog_max: u64,
    /// The rate was kept up with: the backlog did not grow.
    pub held: bool,
    /// How late transactions began for which a user stood ready: the generator's own delay.
    pub late_ms: Latency,
}

/// One host's part of a load that several hosts sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct GeneratorResult {
    pub host: String,
    pub users: u32,
    pub transactions: u64,
    pub transactions_per_s: f64,
    pub errors: u64,
    pub latency_ms: Latency,
    pub client: Client,
}

/// One endpoint's share of a level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct EndpointResult {
    /// As "db1:3306".
    pub address: String,
    pub transactions: u64,
    pub transactions_per_s: f64,
    pub errors: u64,
    pub latency_ms: Latency,
    /// Of the whole level.
    pub outages: Vec<OutageResult>,
}

/// A time in which an endpoint could not be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct OutageResult {
    /// When the first connection to it was lost (monotonic nanoseconds).
    pub begin_ns: i64,
    /// Until the first transaction on it ended well again; `None`: not within the level.
    pub seconds: Option<f64>,
}

/// One requirement of a service level, and what was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct SloResult {
    /// "transaction", or a kind of transaction or of statement.
    pub kind: String,
    /// "avg", "max", or a percentile such as "p99".
    pub measure: String,
    pub required_ms: f64,
    /// `None` where nothing of this kind was measured.
    pub measured_ms: Option<f64>,
    /// The measured value is this or more: it is the age of something in flight.
    #[serde(default)]
    pub is_lower_bound: bool,
    pub mean_ms: f64,
    pub p90_ms: f64,
    pub max_ms: f64,
    pub held: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
    /// Percentiles above this one, and the max, are lower bounds: something in flight when the window ended was older than
    /// all that had ended. `None`: all are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub lower_bounds_above: Option<f64>,
}

impl Latency {
    /// Whether this percentile (100: the max) is a lower bound.
    pub fn is_lower_bound(&self, percentile: f64) -> bool {
        self.lower_bounds_above.is_some_and(|above| percentile > above)
    }
}

/// One kind of transaction; times as those of all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct TransactionResult {
    /// Its name, such as "new_order".
    pub kind: String,
    pub transactions: u64,
    pub transactions_per_s: f64,
    pub latency_ms: Latency,
    /// Of its latency, the time that 90 of 100 did not exceed; may be a lower bound, as the latency's.
    pub p90_ms: f64,
    pub service_ms: Latency,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct StatementResult {
    /// Such as "point_select" or "commit".
    pub kind: String,
    pub count: u64,
    pub errors: u64,
    pub rows: u64,
    pub latency_ms: Latency,
    /// Of those that were answered with an error.
    #[serde(default)]
    pub error_ms: Latency,
}

/// What the load generator itself used during the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Client {
    /// User and system CPU of the threads that drive the load.
    pub cpu_s: f64,
    pub cpu_us_per_query: f64,
    /// Peak resident memory of the whole process so far.
    pub max_rss_kb: u64,
    /// The generator was the bottleneck.
    pub saturated: bool,
    /// Why it counts as saturated; empty where it does not.
    pub saturated_why: String,
    /// Time that the load's threads were runnable and waited for a CPU, together.
    #[serde(default)]
    pub run_delay_s: f64,
    /// Mean time that answers waited in an event loop for their turn, in microseconds; 0 with threads.
    #[serde(default)]
    pub answer_delay_us: f64,
    #[serde(default)]
    pub threads: u32,
    /// CPUs that the load's threads may run on.
    #[serde(default)]
    pub cpus_allowed: u32,
}

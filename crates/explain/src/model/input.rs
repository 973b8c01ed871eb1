//! What goes into an explanation.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use whyso_model::{FileWait, LoggedRequests, Pacing, SeriesName, Worker};
use whyso_series::{InFlight, UserSeconds};

use crate::activities::Activity;
use crate::locks::LockObject;
use crate::pauses::Pauses;

/// Everything that the explanation is based on. Made from a recording; holds no clock and no file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// In the order in which they ran.
    pub levels: Vec<LevelInput>,
    pub machine: Machine,
    /// What was done to the server during a run.
    #[serde(default)]
    pub actions: Vec<ActionInput>,
    /// What was not measured, in plain words; repeated in the findings.
    pub not_measured: Vec<whyso_model::NotMeasured>,
    /// The server's global variables at the start of the run, as the server names them.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// What the watched processes are called, where they are no server's: then there are no requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// How the Performance Schema was set in the run; `None` where that was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_schema: Option<PfsSetup>,
    /// The server's status variables `Performance_schema_…_lost` as they were last read, counted since its start.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub performance_schema_lost: BTreeMap<String, f64>,
    /// What one execution of each kind of statement does; empty where none was executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statement_work: Vec<StatementWork>,
}

/// Rows that one execution of a kind of statement handles, by the server's own counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementWork {
    /// As in [`StatementTime`].
    pub kind: String,
    pub rows_sent: f64,
    /// Also those of temporary tables.
    pub rows_read: f64,
    pub rows_sorted: f64,
    pub rows_in_temporary_tables: f64,
    /// Rows that were read and met no condition; `None` where the server does not count them.
    pub rows_rejected: Option<f64>,
}

/// How the Performance Schema was set in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PfsSetup {
    /// What was asked for and what was in force, in a sentence.
    pub words: String,
    /// Somebody asked for it, so that it is reported whatever it cost.
    #[serde(default)]
    pub asked: bool,
    /// The server's `performance_timers`.
    pub timers: Vec<Timer>,
    /// The server's `setup_timers`: the timer of each kind of events; empty where it has no such table.
    pub used: BTreeMap<String, String>,
    /// Instruments that were timed; `None` where that was not recorded: those whose time grew stand for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<Instruments>,
}

/// Some of a server's instruments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instruments {
    /// Every instrument whose name begins so; the empty one stands for all.
    pub beginnings: Vec<String>,
    pub names: BTreeSet<String>,
}

impl Instruments {
    pub fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
            || self.beginnings.iter().any(|beginning| name.starts_with(beginning.as_str()))
    }
}

/// A line of `performance_timers`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Timer {
    pub name: String,
    /// Units of the timer in a second; `None` where the machine lacks it.
    pub frequency: Option<f64>,
    /// Units by which it goes forward at once.
    #[serde(default)]
    pub resolution: Option<f64>,
    /// CPU cycles that a reading takes at least.
    pub overhead_cycles: Option<f64>,
}

/// When a user's next transaction begins, as far as findings depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    /// As soon as the one before has ended.
    #[default]
    Closed,
    /// After a pause.
    ClosedWithPauses,
    /// When it is due, whatever the server does.
    Open,
    /// As it came: something else loaded the server, and requests stand in for transactions.
    Recorded,
}

impl From<&Pacing> for LoopKind {
    fn from(pacing: &Pacing) -> LoopKind {
        match pacing {
            Pacing::Closed { think: None, .. } => LoopKind::Closed,
            Pacing::Closed { think: Some(_), .. } => LoopKind::ClosedWithPauses,
            Pacing::Open { .. } => LoopKind::Open,
            Pacing::Recorded => LoopKind::Recorded,
        }
    }
}

/// Something that was done during a run, such as a change of a setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActionInput {
    pub text: String,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Why it failed; empty where it did not.
    pub error: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// CPUs that the server may use; 0 where unknown (a remote server).
    pub server_cpus: u32,
    /// Their numbers, as the operating system counts them; empty where unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server_cpu_numbers: Vec<u32>,
    /// CPUs that the generator may use.
    pub client_cpus: u32,
    /// Generator and server may run on the same CPU.
    pub shared: bool,
    /// CPUs of the server's machine; 0 where unknown.
    #[serde(default)]
    pub cpus: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelInput {
    /// Index of the level in the recording.
    pub index: u32,
    pub users: u32,
    /// Transactions that were due per second, where the levels of the sweep differ in that and not in their users.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// Of such a level, whether the rate was kept up with: the backlog did not grow.
    #[serde(default)]
    pub rate_held: bool,
    /// The best level once more, for drift; no part of the sweep.
    pub repeat: bool,
    /// The load came from another machine than the server's, and both were traced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_across_hosts: bool,
    /// How long the threads of a load host were ready to run without a CPU, as a share of the window, 0 to 1. Of several hosts, the largest;
    /// 0 where one process sent the load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub load_hosts_waited: f64,
    /// What a transaction takes on the load hosts themselves, outside of the server and of the way, by an estimate: their threads' CPU time, their
    /// waits for a CPU, and the queue that these make in one thread. 0 where one process sent the load.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub load_hosts_ms: f64,
    /// The measured window, monotonic ns.
    pub begin_ns: i64,
    pub end_ns: i64,
    pub transactions: u64,
    pub queries: u64,
    pub errors: u64,
    /// Mean response time of a transaction.
    pub latency_mean_ms: f64,
    pub latency_p99_ms: f64,
    /// Transactions that ended in each 100 ms of the window.
    pub bins_100ms: Vec<u32>,
    /// CPU seconds of the generator in the window.
    pub client_cpu_s: f64,
    /// Why the generator was held to be saturated by the load itself; empty where it was not.
    pub client_saturated_why: String,
    /// Why the level ended early; empty where it did not.
    pub cut_short: String,
    /// What was required of response times, and what was measured.
    #[serde(default)]
    pub slo: Vec<SloInput>,
    /// CPU of the machine, as fractions of all its CPUs; `None` where it was not measured.
    pub cpu: Option<CpuUse>,
    /// CPU seconds of the server's process in the window, where it is local.
    pub server_cpu_s: Option<f64>,
    /// The nodes of the server's cluster, the one that was loaded first; empty where it is in none that whyso knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeInput>,
    /// Machines that were recorded in addition to the server's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineInput>,
    /// Growth of every counter over the window.
    pub counters: Vec<Counter>,
    /// Mean of every gauge over the window.
    pub gauges: Vec<Gauge>,
    #[serde(default)]
    pub pacing: LoopKind,
    /// Mean time of a transaction's last, successful attempt; 0 where it was not recorded.
    #[serde(default)]
    pub service_mean_ms: f64,
    /// Of a recorded load on a site: its pages, as the users waited for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageTimes>,
    /// Time that attempts of transactions lost to each error, such as "1213 (40001)".
    #[serde(default)]
    pub lost_ms_by_code: BTreeMap<String, f64>,
    /// Statements that ended in the window by kind, as the load generator measured them; "connect" for new connections. Empty where something else
    /// loaded the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementTime>,
    /// Waits by file, where the server was traced.
    #[serde(default)]
    pub file_waits: Vec<FileWait>,
    /// The same of programs that were recorded together with a first target: the role is the program's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program_file_waits: Vec<FileWait>,
    /// Long waits of the server's threads, where it was traced.
    #[serde(default)]
    pub pauses: Vec<Pauses>,
    /// Time of connections' threads by wait class, where their stacks were sampled.
    #[serde(default)]
    pub wait_classes: Vec<SampledClass>,
    /// CPU time of the server's threads by activity, where their stacks were sampled. The observer's is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activities: Vec<SampledActivity>,
    /// Connections' waits for locks by what those did that ended them, where stacks were sampled.
    #[serde(default)]
    pub ended_waits: Vec<EndedWaits>,
    /// What connections were found waiting for, by table and index, where the server reported it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lock_objects: Vec<LockObject>,
    /// What access logs got, where some were followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_logs: Vec<AccessLogInput>,
    /// Processes of recorded programs, at each time that they were looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<Vec<Worker>>,
    /// Whether the warm-up ended because throughput was steady, or at its bound; `None` where nobody waited long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_steady: Option<bool>,
    /// What was due and unanswered when the window ended; `None` where it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_seconds: Option<UserSeconds>,
}

/// What an access log got over a level's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AccessLogInput {
    /// Name of its file.
    pub log: String,
    /// The part of the window in which the log was read.
    pub seconds: f64,
    /// Lines that are no requests in the log's format.
    pub malformed: u64,
    /// All requests, without their durations one by one.
    pub all: RequestSums,
    pub kinds: Vec<RequestSums>,
    /// By the process that served them: the name is its number.
    pub processes: Vec<RequestSums>,
}

/// Requests of one kind or process, added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestSums {
    pub name: String,
    pub requests: u64,
    pub errors_4xx: u64,
    pub errors_5xx: u64,
    /// Requests that have a duration.
    pub timed: u64,
    pub duration_ns: u64,
    pub duration_ns_max: u64,
    /// How many took how long, in microseconds: at most 1 % too high.
    pub durations_us: BTreeMap<u64, u64>,
}

impl RequestSums {
    pub fn add(&mut self, row: &LoggedRequests) {
        self.name.clone_from(&row.name);
        let sums = [
            (&mut self.requests, row.requests),
            (&mut self.errors_4xx, row.errors_4xx),
            (&mut self.errors_5xx, row.errors_5xx),
            (&mut self.timed, row.timed),
            (&mut self.duration_ns, row.duration_ns),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
        self.duration_ns_max = self.duration_ns_max.max(row.duration_ns_max);
        for (us, count) in &row.durations_us {
            let sum = self.durations_us.entry(*us).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// The duration that this share of the requests, 0 to 1, does not exceed, in nanoseconds; `None` where none has a duration.
    pub fn quantile_ns(&self, share: f64) -> Option<u64> {
        let all = self.durations_us.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
        let wanted = (share * all as f64).ceil().max(1.0) as u64;
        let mut sum = 0_u64;
        let reaches = |(_, count): &(&u64, &u64)| {
            sum = sum.saturating_add(**count);
            sum >= wanted
        };
        let (us, _) = self.durations_us.iter().find(reaches)?;
        Some(us.saturating_mul(1_000).min(self.duration_ns_max))
    }
}

/// What a machine other than the server's did over a level's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineInput {
    pub name: String,
    /// The load came from it.
    pub is_generator: bool,
    /// Of its CPUs, and of the programs on it.
    pub counters: Vec<Counter>,
}

/// What a node of the server's cluster did over a level's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeInput {
    pub name: String,
    /// What it is for, such as "replica".
    pub role: String,
    /// The load goes to it.
    pub is_loaded: bool,
    /// Its number among the nodes of NDB, by which `ndbinfo` names it.
    #[serde(default)]
    pub ndb_id: Option<u32>,
    /// The machine that it runs on; empty where only one was recorded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// That machine's IP addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Where it takes clients on its machine, such as "tcp 3306".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listens: Vec<String>,
    /// What concerns its part in the cluster: its process, its threads, replication.
    pub counters: Vec<Counter>,
    pub gauges: Vec<Gauge>,
}

/// Waits of a class, and what the threads did that were waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedWaits {
    /// Empty: no rule names any function of these stacks.
    pub class: String,
    /// Waits that it is based on, and the time that they stand for.
    pub count: u64,
    pub ns: f64,
    /// While they lasted, chains of waits followed to their ends; shares that add up to 1.
    pub deeds: Vec<DeedShare>,
}

/// What threads of a role were in, and for which share of the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeedShare {
    pub role: String,
    /// Name of a state; empty where that was not kept.
    pub state: String,
    pub share: f64,
}

/// Sampled time in one state whose stacks have the same wait class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledClass {
    /// Name of a part of the budget, such as "lock"; "cpu" for threads that spin.
    pub state: String,
    /// Empty: no rule names any function of these stacks, or, on a CPU, they did not spin.
    pub class: String,
    /// Samples and waits that it is based on.
    pub count: u64,
    /// The time that they stand for.
    pub ns: f64,
    /// Of that, the length of the waits that were sampled: long waits are all sampled, and stand for themselves.
    #[serde(default)]
    pub seen_ns: f64,
}

/// What one kind of statement took, from sending it to its whole answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementTime {
    pub kind: String,
    pub count: u64,
    pub mean_ms: f64,
}

/// Sampled CPU time of threads of one role in one activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledActivity {
    pub activity: Activity,
    /// Such as "connection" or "purge".
    pub role: String,
    pub count: u64,
    /// The time that the samples stand for.
    pub ns: f64,
}

/// Pages of a site that a load asked for, and that were answered in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PageTimes {
    pub count: u64,
    /// Mean time to the end of its answer. In a closed loop it begins with the wish for the page, connecting included. In an open loop it begins
    /// when the page is asked for: how long it was due before is no part of it.
    pub mean_ms: f64,
}

/// One requirement of a service level at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SloInput {
    /// "transaction", or a kind of transaction or of statement.
    pub kind: String,
    /// Such as "p99".
    pub measure: String,
    pub required_ms: f64,
    /// `None` where nothing was measured.
    pub measured_ms: Option<f64>,
    /// The true value is this or more: it is the age of something in flight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lower_bound: bool,
    pub held: bool,
}

/// Fractions of the machine's CPU time, 0 to 1; they add up to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct CpuUse {
    pub user: f64,
    pub system: f64,
    pub iowait: f64,
    pub steal: f64,
    pub idle: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counter {
    pub series: SeriesName,
    pub unit: String,
    /// Increase over the measured window, resets taken into account.
    pub increase: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Gauge {
    pub series: SeriesName,
    pub unit: String,
    pub mean: f64,
    pub max: f64,
}

/// What is not there is not written.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

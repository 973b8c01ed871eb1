//! What goes into an explanation, and what comes out of it. Plain data.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
pub use whyso_series::{InFlight, UserSeconds};

pub use crate::budget::{Budget, ClassTime, CpuSplit, Part, PartTime};
pub use crate::locks::LockObject;
pub use crate::other_clients::OtherClients;
pub use crate::pauses::{Kind as PauseKind, Moments, Pauses, Regular};
pub use crate::processes::{ProcessTime, StateTime};
pub use crate::suspects::{Cause, Gain, Possible, Suspect};

/// Everything that the explanation rests on. Made from a recording; holds no clock and no file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// In the order in which they ran.
    pub levels: Vec<LevelInput>,
    pub machine: Machine,
    /// What was done to the server in mid-run.
    #[serde(default)]
    pub actions: Vec<ActionInput>,
    /// What was not measured, in plain words; repeated in the findings.
    pub not_measured: Vec<String>,
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
}

/// How the Performance Schema was set in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PfsSetup {
    /// What was asked for and what was in force, in a sentence.
    pub words: String,
    /// Somebody asked for it, so that it is told whatever it cost.
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
        self.names.contains(name) || self.beginnings.iter().any(|one| name.starts_with(one.as_str()))
    }
}

/// A line of `performance_timers`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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

/// When a user's next transaction begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
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

/// What threads of one role waited for on one file, in one way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileWait {
    pub path: String,
    /// "file_read", "file_write", "file_sync" or "kernel_lock".
    pub state: String,
    /// Role of the threads, such as "connection".
    pub role: String,
    pub count: f64,
    /// Sum of the waits in the window.
    pub ns: f64,
}

/// Something that was done in mid-run, such as a change of a setting.
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
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelInput {
    /// Index of the level in the recording.
    pub index: u32,
    pub users: u32,
    /// Transactions that were due a second, where the levels of the sweep differ in that and not in their users.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// Of such a level, whether the rate was kept up with: the backlog did not grow.
    #[serde(default)]
    pub rate_held: bool,
    /// The best level once more, for drift; no part of the sweep.
    pub repeat: bool,
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
    /// Growth of every counter over the window.
    pub counters: Vec<Counter>,
    /// Mean of every gauge over the window.
    pub gauges: Vec<Gauge>,
    #[serde(default)]
    pub pacing: Pacing,
    /// Mean time of a transaction's last, successful attempt; 0 where it was not recorded.
    #[serde(default)]
    pub service_mean_ms: f64,
    /// Time that attempts of transactions lost to each error, such as "1213 (40001)".
    #[serde(default)]
    pub lost_ms_by_code: BTreeMap<String, f64>,
    /// Waits by file, where the server was traced.
    #[serde(default)]
    pub file_waits: Vec<FileWait>,
    /// Long waits of the server's threads, where it was traced.
    #[serde(default)]
    pub pauses: Vec<Pauses>,
    /// Time of connections' threads by wait class, where their stacks were sampled.
    #[serde(default)]
    pub wait_classes: Vec<SampledClass>,
    /// Connections' waits for locks by what those did that ended them, where stacks were sampled.
    #[serde(default)]
    pub ended_waits: Vec<EndedWaits>,
    /// What connections were found waiting for, by table and index, where the server told it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lock_objects: Vec<LockObject>,
    /// Whether the warm-up ended because throughput was steady, or at its bound; `None` where nobody waited long enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmup_steady: Option<bool>,
    /// What was due and unanswered when the window ended; `None` where it was not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlight>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_seconds: Option<UserSeconds>,
}

/// Waits of a class, and what the threads did that were waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndedWaits {
    /// Empty: no rule names any function of these stacks.
    pub class: String,
    /// Waits that it rests on, and the time that they stand for.
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
    /// Samples and waits that it rests on.
    pub count: u64,
    /// The time that they stand for.
    pub ns: f64,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    pub user: f64,
    pub system: f64,
    pub iowait: f64,
    pub steal: f64,
    pub idle: f64,
}

/// Names a series, as the recording does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeriesName {
    pub host: String,
    pub source: String,
    pub metric: String,
    pub instance: String,
}

impl SeriesName {
    /// Whether it tells of the generator, or of its machine where the server is on another one.
    pub(crate) fn is_of_generator(&self) -> bool {
        self.host == "client"
    }
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

// ---------------------------------------------------------------- what comes out

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// One a level of the input, same order.
    pub levels: Vec<LevelVerdict>,
    pub peak: Option<Peak>,
    pub usl: Option<UslFit>,
    /// Per transaction from the best level to the last, most suspicious first.
    pub growth: Vec<Growth>,
    pub drift: Option<Drift>,
    /// One an action of the input, same order.
    #[serde(default)]
    pub actions: Vec<ActionEffect>,
    /// Where the time of transactions went: one a level that was traced, in the order of the levels.
    #[serde(default)]
    pub budgets: Vec<Budget>,
    /// Index of the level that the cause is asked about; `None` where nothing was measured.
    #[serde(default)]
    pub about: Option<u32>,
    /// Who is suspected at that level, the first suspect first.
    #[serde(default)]
    pub suspects: Vec<Suspect>,
    /// What may be the cause there by a setting, a version or a count, and was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub possible: Vec<Possible>,
    /// Of processes that are no server's, where their threads' time went: one a level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessTime>,
    /// The result in a sentence or two. It is the first finding's words, so the two can't contradict each other.
    #[serde(default)]
    pub headline: String,
    /// What makes the result unusable; empty where it is usable.
    #[serde(default)]
    pub unusable: Vec<Doubt>,
    /// In reading order: what makes the result unusable, peak, regimes, cause, warnings, what was not measured.
    pub findings: Vec<Finding>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelVerdict {
    pub index: u32,
    pub users: u32,
    /// Mean over the steady part of the window; over the whole window where no part is steady.
    pub transactions_per_s: f64,
    /// 95 %, within this one start of the server, autocorrelation respected. `None` where the
    /// window is too short to say, or no part of it is steady.
    pub transactions_per_s_ci95: Option<[f64; 2]>,
    pub steadiness: Steadiness,
    pub regime: Regime,
    /// False where the number says nothing about the server.
    pub valid: bool,
    /// Why it is not valid; empty where it is.
    pub invalid_why: String,
    /// Why a part of the users' time is in no response time; empty where that is not so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stuck: String,
    /// CPU of the machine in the window; `None` where it was not measured.
    #[serde(default)]
    pub cpu: Option<CpuUse>,
    /// CPUs that the server's process kept busy; `None` where it was not watched.
    #[serde(default)]
    pub server_cpus: Option<f64>,
    /// CPUs that the generator's threads kept busy.
    #[serde(default)]
    pub client_cpus: f64,
    /// What clients did that are neither the load nor whyso; `None` where they can't be told from the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_clients: Option<OtherClients>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Steadiness {
    Steady,
    /// From this moment on, in seconds from the window's begin, throughput was another.
    UnstableFrom {
        s: f64,
    },
    /// Throughput climbed or fell throughout: means of the first and of the last tenth of the window.
    Trend {
        from_per_s: f64,
        to_per_s: f64,
    },
    /// Too short to say, and the warm-up before it reached its bound before throughput was steady.
    StillWarming,
    #[default]
    TooShort,
}

impl Steadiness {
    /// `None` where the window is too short to say.
    pub fn is_steady(self) -> Option<bool> {
        match self {
            Steadiness::Steady => Some(true),
            Steadiness::UnstableFrom { .. } | Steadiness::Trend { .. } | Steadiness::StillWarming => {
                Some(false)
            }
            Steadiness::TooShort => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regime {
    RampingUp,
    Peak,
    Degrading,
    /// Invalid or unstable levels, or too few levels to tell.
    #[default]
    Unknown,
}

/// Lowest and highest number of users; `None`: no upper end is known.
pub type UsersInterval = (u32, Option<u32>);

/// "8 users", "3 to 7 users", "3 users or more".
pub fn users_words((low, high): UsersInterval) -> String {
    match high {
        Some(high) if high == low => crate::numbers::users(low),
        Some(high) => format!("{} to {}", crate::numbers::count(u64::from(low)), crate::numbers::users(high)),
        None => format!("{} or more", crate::numbers::users(low)),
    }
}

/// Something that makes a result unusable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doubt {
    /// "drift", "generator", "unsteady", "cut-short", "other-load", "steal" or "no-result".
    pub id: String,
    /// Begins in lower case and has no full stop.
    pub text: String,
}

/// Where throughput peaks: an interval of users, not a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Users of the level with the highest throughput.
    pub users: u32,
    /// Numbers of users that may have the highest throughput, tested or not: up to the tested neighbours that surely do less. The
    /// upper end is `None` where no level with more users is known to do less: the peak may lie beyond all that were tested.
    pub users_interval: UsersInterval,
    pub transactions_per_s: f64,
    /// Why the interval is what it is, in words.
    pub witnesses: Vec<String>,
}

/// Universal Scalability Law: X(N) = λN / (1 + σ(N−1) + κN(N−1)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UslFit {
    /// Transactions per second of one user.
    pub lambda: Estimate,
    /// Contention: the share that is serial.
    pub sigma: Estimate,
    /// Crosstalk (coherency).
    pub kappa: Estimate,
    /// Users at the fitted peak, √((1−σ)/κ); `None` where κ's interval contains 0: then the law needs no peak.
    pub peak_users: Option<f64>,
    /// Its 95 % interval; no upper end where the law needs no peak, or hardly one. `None` where nothing can be said.
    #[serde(default)]
    pub peak_users_ci95: Option<(f64, Option<f64>)>,
    pub r_squared: f64,
    /// Level indexes that the fit leaves outside its 95 % prediction band.
    pub outside: Vec<u32>,
    /// (users, transactions per second) for drawing.
    pub curve: Vec<[f64; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub low95: f64,
    pub high95: f64,
}

/// One quantity per transaction at the best level and at the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    pub series: SeriesName,
    pub unit: String,
    pub best_users: u32,
    pub last_users: u32,
    pub best_per_transaction: f64,
    pub last_per_transaction: f64,
    /// last ÷ best; `None` where best is 0.
    pub ratio: Option<f64>,
    /// Per-transaction value at every level of the sweep, same order as the levels.
    pub by_level: Vec<f64>,
    /// What the counter stands for in plain words, where known.
    pub meaning: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    pub users: u32,
    pub first_per_s: f64,
    pub repeat_per_s: f64,
    /// repeat ÷ first.
    pub ratio: f64,
    /// The intervals of the two do not overlap; without intervals, they differ by more than 15 %.
    pub significant: bool,
}

/// Throughput of the level in which something was done, before, during and after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionEffect {
    pub text: String,
    /// Index of the level that was measured at that time; `None` where none was.
    pub level: Option<u32>,
    /// `None` where the part is too short to say.
    pub before: Option<Estimate>,
    /// From its begin until throughput was steady again, or the window's end.
    pub during: Option<Estimate>,
    pub during_s: f64,
    pub after: Option<Estimate>,
}

/// One sentence that whyso stands for, and what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Stable and short, such as "peak", "regimes", "server-cpu-full", "generator-bottleneck".
    pub id: String,
    pub text: String,
    pub evidence: Vec<Evidence>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Evidence {
    /// A result of these levels (by index), such as "transactions_per_s", "cpu".
    Levels {
        quantity: String,
        levels: Vec<u32>,
    },
    Series {
        series: SeriesName,
        begin_ns: i64,
        end_ns: i64,
    },
    /// A fact of `run.json`, such as "server.variables.innodb_flush_log_at_trx_commit".
    Fact {
        path: String,
        value: String,
    },
}

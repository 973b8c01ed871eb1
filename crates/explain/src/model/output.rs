//! What comes out of an explanation.

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use whyso_inference::{Estimate, Steadiness, UslFit};

use super::{CpuUse, Evidence, FileWait, SeriesName};
use crate::budget::Budget;
use crate::nodes::NodeState;
use crate::requests::AccessLogTime;
use crate::suspects::{CpuGains, Limit, Possible, Suspect};
use crate::tiers::TierTime;
use crate::worker_memory::WorkerMemory;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
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
    /// What bounds throughput at that level; `None` where nothing was measured.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// Who is suspected at that level, the first suspect first.
    #[serde(default)]
    pub suspects: Vec<Suspect>,
    /// What may be the cause there by a setting, a version or a count, and was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub possible: Vec<Possible>,
    /// What other CPUs would give at that level.
    #[serde(default)]
    pub cpu_gains: CpuGains,
    /// What each node of the server's cluster did at that level; empty where it is in none that whyso knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeState>,
    /// Where the time of a request to each program went, and what it waited for in the programs and servers behind it. Those that no other one
    /// asks come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierTime>,
    /// What access logs got at that level, where some were followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_logs: Vec<AccessLogTime>,
    /// Recorded programs with several processes, and their memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerMemory>,
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct LevelVerdict {
    pub index: u32,
    pub users: u32,
    /// Mean over the steady part of the window; over the whole window where no part is steady.
    pub transactions_per_s: f64,
    /// 95 %, within this one start of the server, autocorrelation respected. `None` where the
    /// window is too short to say, or not steady.
    pub transactions_per_s_ci95: Option<[f64; 2]>,
    pub steadiness: Steadiness,
    pub regime: Regime,
    /// False where the number shows nothing about the server.
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
    /// What clients did that are neither the load nor whyso; `None` where nothing separates them from the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub other_clients: Option<OtherClients>,
}

/// What other clients did over a level's measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct OtherClients {
    /// Connections that had a request under way at some time of the window.
    pub connections: u64,
    /// Requests that were answered, per second.
    pub requests_per_s: f64,
    /// CPU time within their requests, as a share of the server's CPU time, 0 to 1.
    pub cpu_share: f64,
}

/// Where the time of all threads of the watched processes went in one window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct ProcessTime {
    /// Index of the level in the recording.
    pub level: u32,
    /// Length of the window.
    pub seconds: f64,
    /// Threads that lived, in the mean; `None` where they were not counted.
    pub threads: Option<f64>,
    /// Seconds by state, such as "kernel_lock", the most first. Together they are the threads' time.
    pub states: Vec<StateTime>,
    /// Waits by file, over all threads, the longest first; a folder's path ends in a slash.
    pub files: Vec<FileWait>,
}

/// Time in one state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct StateTime {
    pub state: String,
    pub s: f64,
}

impl ProcessTime {
    /// The time of all threads, in seconds.
    pub fn thread_s(&self) -> f64 {
        self.states.iter().map(|state| state.s).sum()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Regime {
    RampingUp,
    Peak,
    Degrading,
    /// Invalid or unstable levels, or too few levels to find out.
    #[default]
    Unknown,
}

/// Lowest and highest number of users; `None`: no upper end is known.
pub type UsersInterval = (u32, Option<u32>);

/// "8 users", "3 to 7 users", "3 users or more".
pub fn users_words((low, high): UsersInterval) -> String {
    match high {
        Some(high) if high == low => whyso_words::users(low),
        Some(high) => format!("{} to {}", whyso_words::whole(u64::from(low)), whyso_words::users(high)),
        None => format!("{} or more", whyso_words::users(low)),
    }
}

/// Something that makes a result unusable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Doubt {
    /// "drift", "generator", "unsteady", "cut-short", "other-load", "steal" or "no-result".
    pub id: String,
    /// Begins in lower case and has no full stop.
    pub text: String,
}

/// Where throughput peaks: an interval of users, not a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Peak {
    /// Users of the level with the highest throughput.
    pub users: u32,
    /// Numbers of users that may have the highest throughput, tested or not: up to the tested neighbours that surely do less. The
    /// upper end is `None` where no level with more users is known to do less: the peak may lie beyond all that were tested.
    pub users_interval: UsersInterval,
    pub transactions_per_s: f64,
    /// Why the interval is what it is, as text.
    pub witnesses: Vec<String>,
}

/// One quantity per transaction at the best level and at the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
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
    /// What the counter stands for as text; empty where that is not known.
    pub meaning: String,
    /// Place in [`Explanation::growth`] of a counter that counts the same and stands before this one. A table shows both in one row.
    /// `None` for the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub same_as: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct ActionEffect {
    pub text: String,
    /// Index of the level that was measured at that time; `None` where none was.
    pub level: Option<u32>,
    /// `None` where the part is too short to say, or not steady.
    pub before: Option<Estimate>,
    /// From its begin until throughput was steady again, or the window's end.
    pub during: Option<Estimate>,
    pub during_s: f64,
    pub after: Option<Estimate>,
}

/// One sentence of the result, with its evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Finding {
    /// Stable and short, such as "peak", "regimes", "server-cpu-full", "generator-bottleneck".
    pub id: String,
    pub text: String,
    pub evidence: Vec<Evidence>,
}

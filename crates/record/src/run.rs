//! `run.json`: what was run, on what, and how it went.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use whyso_clock::Anchor;

/// The whole of `run.json`. Times are monotonic nanoseconds, see [`whyso_clock`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    pub id: String,
    /// Version of whyso that wrote the recording.
    pub tool_version: String,
    /// The command line, with secrets masked.
    pub command: Vec<String>,
    /// The plan as it was asked for and as it was resolved (workload, users, seconds, CPU sets, …).
    pub spec: serde_json::Value,
    pub host: HostFacts,
    pub server: ServerFacts,
    /// First at the start, then one each minute, last at the end.
    pub anchors: Vec<Anchor>,
    pub levels: Vec<Level>,
    /// What was done to the server in mid-run, on request.
    #[serde(default)]
    pub actions: Vec<ActionRecord>,
    /// What was not measured, and why; in plain words.
    pub not_measured: Vec<String>,
    /// `None` while the run goes on, and after a crash.
    pub ended: Option<Ended>,
}

/// Facts about the machine that whyso runs on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    pub hostname: String,
    pub kernel: String,
    pub os: String,
    pub cpu_model: String,
    pub sockets: u32,
    pub cores: u32,
    pub logical_cpus: u32,
    pub memory_bytes: u64,
    /// `/sys/devices/system/clocksource/…/current_clocksource`.
    pub clocksource: String,
    /// "kvm", "none", …, as far as can be told.
    pub virtualization: String,
    /// File system and device that hold the server's data, where it is local.
    pub data_filesystem: String,
    /// Anything else worth a line, such as the CPU governor or transparent huge pages.
    pub other: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// As the server says it, such as "10.11.14-MariaDB-0+deb12u2".
    pub version: String,
    pub version_comment: String,
    /// "MariaDB" or "MySQL".
    pub flavor: String,
    /// Where it was reached, without the password.
    pub endpoint: String,
    pub throw_away: bool,
    pub pid: Option<u32>,
    /// CPUs that the server may run on, where it is local.
    pub cpus: Vec<u32>,
    /// Every global variable at the start, with the values of credentials masked.
    pub variables: BTreeMap<String, String>,
    /// Variables whose value at the end differs from the start: name → value at the end.
    pub variables_changed: BTreeMap<String, String>,
}

/// How a run or a level ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ended {
    Complete { at_ns: i64 },
    CutShort { at_ns: i64, why: String },
}

/// Something that was done in mid-run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// As it was asked for, such as "SET GLOBAL innodb_io_capacity = 2000".
    pub text: String,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Why it failed; empty where it did not.
    pub error: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub begin_ns: i64,
    pub end_ns: i64,
}

impl Window {
    pub fn seconds(&self) -> f64 {
        (self.end_ns - self.begin_ns) as f64 / 1e9
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A level of the sweep.
    Sweep,
    /// The best level once more, to see whether the server drifted.
    Repeat,
}

/// One level of load: a warm-up and a measured window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Position in the run, from 0.
    pub index: u32,
    pub users: u32,
    pub purpose: Purpose,
    pub warmup: Window,
    /// Whether the warm-up saw a steady throughput before its bound.
    pub warmup_steady: bool,
    /// The measured window; the result is of this alone.
    pub window: Window,
    pub result: LevelResult,
    pub ended: Ended,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    pub by_statement: Vec<StatementResult>,
    pub client: Client,
    /// Transactions that ended in each 100 ms of the window, in order.
    pub bins_100ms: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatementResult {
    /// Such as "point_select" or "commit".
    pub kind: String,
    pub count: u64,
    pub errors: u64,
    pub rows: u64,
    pub latency_ms: Latency,
}

/// What the load generator itself used during the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// User and system CPU of the threads that drive the load.
    pub cpu_s: f64,
    pub cpu_us_per_query: f64,
    /// Peak resident memory of the whole process so far.
    pub max_rss_kb: u64,
    /// The generator was the bottleneck.
    pub saturated: bool,
    /// Why it is held to be saturated; empty where it is not.
    pub saturated_why: String,
}

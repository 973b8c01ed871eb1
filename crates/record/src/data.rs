//! What goes into a recording during a run, and comes out of it afterwards.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;
use whyso_model::SeriesName;

/// Whether a series counts up (rates are derived when read) or is a level.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Cumulative and raw, as the source gives it; it may reset.
    Counter,
    Gauge,
}

/// What a series is. Two keys that differ in `kind` or `unit` alone are the same series.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
pub struct SeriesKey {
    /// Machine that the number is about: "client", "server", or a host name.
    pub host: String,
    /// Sampler that read it, such as "status", "innodb_metrics", "cpu", "load".
    pub source: String,
    /// The source's own name with the unit last where the name is ours, such as "Innodb_rows_read", "user_ns".
    pub metric: String,
    /// Which one of several, such as "cpu0", "sda", "point_select"; empty where there is one only.
    pub instance: String,
    pub kind: Kind,
    /// "ns", "bytes", "pages", "1" (a plain count), "ratio", …
    pub unit: String,
}

impl SeriesKey {
    /// Returns what names the series, without its kind and its unit.
    pub fn name(&self) -> SeriesName {
        SeriesName {
            host: self.host.clone(),
            source: self.source.clone(),
            metric: self.metric.clone(),
            instance: self.instance.clone(),
        }
    }
}

/// Number of a series within one recording, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeriesId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    Int(i64),
    Float(f64),
}

impl Value {
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    /// The source could not be read: a gap.
    Failed,
    /// The source was still busy with the reading before.
    Missed,
}

/// One reading of one source: everything it gave, and the window in which it was taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    pub source: String,
    pub begin_ns: i64,
    pub end_ns: i64,
    pub status: Status,
    pub values: Vec<(SeriesId, Value)>,
}

/// Something that happened; drawn on every chart.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(rename = "RunEvent")]
pub struct Event {
    pub t_ns: i64,
    pub host: String,
    /// "level_begin", "level_end", "error", "variable", "note", "action", "gap", …
    pub kind: String,
    pub text: String,
}

/// A table with text, read at one time: digests, a process list, InnoDB's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextRows {
    pub source: String,
    pub t_ns: i64,
    pub columns: Vec<String>,
    /// One inner vector per row, as long as `columns`.
    pub rows: Vec<Vec<Option<String>>>,
}

/// What the load did in one interval, for one statement kind ("transaction" for whole ones).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadInterval {
    pub begin_ns: i64,
    pub end_ns: i64,
    /// Index of the level in `run.json`.
    pub level: u32,
    pub measured: bool,
    pub statement: String,
    pub count: u64,
    pub rows: u64,
    /// ("1213 (40001)", count)
    pub errors: Vec<(String, u64)>,
    /// Exact sum of response times.
    pub response_sum_ns: u64,
    /// Exact sum of service times.
    pub service_sum_ns: u64,
    pub response_max_ns: u64,
    /// Non-empty buckets, (upper bound in ns, count), ascending.
    pub response: Vec<(u64, u64)>,
    pub service: Vec<(u64, u64)>,
}

/// How much of one kind the load did in one interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadCount {
    pub begin_ns: i64,
    pub end_ns: i64,
    /// As of [`LoadInterval`].
    pub statement: String,
    pub count: u64,
}

/// What the server's threads did between two snapshots of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatesInterval {
    pub begin_ns: i64,
    pub t_ns: i64,
    /// The states, in the order of [`ThreadStates::states_ms`].
    pub states: Vec<String>,
    pub threads: Vec<ThreadStates>,
}

/// One thread's time by state between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStates {
    pub tid: u32,
    /// When it was found first. Two threads that had one number differ in this.
    pub born_ns: i64,
    pub name: String,
    pub role: String,
    /// Whole milliseconds: a fraction counts in a later interval, so that sums over intervals are right to a millisecond.
    pub states_ms: Vec<u16>,
    /// Requests that it answered.
    pub requests: u32,
}

/// A thread was found on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSample {
    pub t_ns: i64,
    pub tid: u32,
    /// What the thread is there for, as in the table of threads.
    pub role: String,
    pub stack: u32,
    /// CPU time that the sample stands for.
    pub weight_ns: u64,
}

/// A program other than the server was found on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSample {
    pub t_ns: i64,
    /// The process; 0 of the kernel's threads.
    pub pid: u32,
    /// The name of the process. Of the kernel's threads, "[NAME]" without what follows a slash.
    pub program: String,
    /// "process"; "kernel" for a thread of the kernel; "observer" for whyso itself.
    pub origin: String,
    /// Number among the stacks of programs, which are apart from those of the server.
    pub stack: u32,
    /// CPU time that the sample stands for.
    pub weight_ns: u64,
}

/// A thread of a program other than the server waited, and the wait was chosen to be recorded with its stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramWait {
    /// When the thread was woken.
    pub t_ns: i64,
    pub tid: u32,
    /// As of [`ProgramSample`].
    pub program: String,
    /// What the thread was in: "lock", "kernel_lock", ….
    pub state: String,
    pub length_ns: u64,
    /// Time in such waits that this one stands for: its length, divided by the probability with which it was chosen.
    pub weight_ns: u64,
    /// Number among the stacks of programs.
    pub stack: u32,
}

/// A wait that was chosen to be recorded with its stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackWait {
    /// When the thread was woken.
    pub t_ns: i64,
    /// Number of the wait, within a recording.
    pub wait: u64,
    pub tid: u32,
    pub role: String,
    /// What the thread was in: "lock", "file_sync", ….
    pub state: String,
    pub length_ns: u64,
    /// Time in such waits that this one stands for: its length, divided by the probability with which it was chosen.
    pub weight_ns: u64,
    pub stack: u32,
    /// The thread that woke it; 0: none, such as the idle task.
    pub waker_tid: u32,
    pub waker_stack: Option<u32>,
    /// What the thread that woke it did meanwhile, up to `t_ns`, one after the other. Empty where that was not kept, and shorter
    /// than `length_ns` where it was not kept that long.
    pub waker_past: Vec<PastState>,
}

/// A state that a thread was in, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastState {
    /// "cpu", "file_sync", ….
    pub state: String,
    pub ns: u64,
}

/// One function of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFrame {
    pub stack: u32,
    /// 0: the innermost.
    pub depth: u32,
    pub function: String,
    /// The file that holds it, without its folder, or "[kernel]"; empty for what is no function: "[cut]", "[lost]", ….
    pub module: String,
    pub build_id: Option<String>,
    /// Of the code, as the module's file states it; of the kernel: as it was.
    pub address: u64,
    pub source_file: Option<String>,
    pub line: Option<u32>,
    /// The compiler put it into the function of the next depth.
    pub inlined: bool,
}

/// A command of a client, as the server worked on it. Times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientCommand {
    /// When the server had read it.
    pub t_ns: i64,
    pub tid: u32,
    /// Who sent it: "load", "own" for this program, "unknown".
    pub client: Cow<'static, str>,
    /// The protocol's name of it without COM_, such as "QUERY", "STMT_EXECUTE", "PING".
    pub command: Cow<'static, str>,
    /// From when it had been read to when its reply was sent.
    pub response_ns: u64,
    /// Where its thread was meanwhile; `None` where its thread was not accounted for.
    pub times: Option<CommandTimes>,
    /// Rows that were sent to the client; `None` where that is not known.
    pub rows_sent: Option<u64>,
    /// Rows that the server read for it, those of its temporary tables too; `None` where that is not known.
    pub rows_examined: Option<u64>,
    /// As the server's ROW_COUNT() gives it. `None` where that is not known, and where there is no such count, as of a SELECT.
    pub rows_affected: Option<u64>,
    /// Number of the error that it ended with, 0 of a success; `None` where that is not known.
    pub error: Option<u32>,
    /// The server's number of the connection; `None` where that is not known.
    pub connection: Option<u32>,
    /// What the client sent with it, in bytes.
    pub length: Option<u32>,
    /// Number of the prepared statement that it made or is about, within its connection.
    pub prepared: Option<u32>,
    /// Which statement it is; `None` where it has none, and where it was not seen.
    pub statement: Option<u32>,
    /// The statement as it was sent, where literals are kept.
    pub text: Option<Arc<str>>,
}

/// Of the time of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandTimes {
    pub cpu_ns: u64,
    /// Ready to run, and not running.
    pub runqueue_ns: u64,
    pub lock_ns: u64,
    /// Files: read, written, synced.
    pub io_ns: u64,
}

/// A statement without its literals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementText {
    pub statement: u32,
    pub text: String,
}

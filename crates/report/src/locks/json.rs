//! Lock waits as one object, for programs and for the page.

use serde::Serialize;
use serde_json::{Value, json};
use ts_rs::TS;
use whyso_explain::locks::{InstrumentWait, LockObject, Snapshots, TableWait};
use whyso_model::LockKind;

use super::{LocksOf, share_of_lock, snapshots};

const NS_PER_S: f64 = 1e9;

/// Lock waits in a window. Times are in seconds, shares from 0 to 1. The names are fixed: other programs rely on them.
#[derive(Serialize, TS)]
pub(super) struct LocksObject<'a> {
    window: &'a str,
    seconds: f64,
    /// Snapshots of who waits.
    looks: u64,
    snapshots: SnapshotsObject,
    /// By InnoDB; `None` where its counters were not read.
    row_locks_counted: Option<CountedRowLocks>,
    /// `None` where requests were not traced.
    requests_waited_s: Option<f64>,
    objects: Vec<ObjectWaits<'a>>,
    instruments: Vec<InstrumentWaits<'a>>,
    tables: Vec<TableWaits<'a>>,
    not_measured: &'a [String],
}

/// How well the lock tables were read.
#[derive(Serialize, TS)]
#[ts(rename = "LockSnapshots")]
struct SnapshotsObject {
    taken: u64,
    failed: u64,
    last_good_s_before_end: Option<f64>,
    last_took_ms: Option<f64>,
    are_good: bool,
    contradiction: Option<String>,
    /// Objections to the snapshots; empty where there are none.
    text: String,
}

/// Waits for row locks, and their time.
#[derive(Serialize, TS)]
struct CountedRowLocks {
    waits: f64,
    waited_s: f64,
}

/// Waits for locks on one object.
#[derive(Serialize, TS)]
#[ts(rename = "LockObject")]
struct ObjectWaits<'a> {
    lock: LockKind,
    object: &'a str,
    index: &'a str,
    mode: &'a str,
    samples: u64,
    share: f64,
    waited_s: Option<f64>,
    /// What those that waited executed most.
    statement: Option<&'a str>,
    held_by: LockHolder<'a>,
}

/// What those at the head of the queue executed most, and in which share of the samples.
#[derive(Serialize, TS)]
struct LockHolder<'a> {
    statement: Option<&'a str>,
    share: f64,
}

/// Waits that an instrument counted.
#[derive(Serialize, TS)]
struct InstrumentWaits<'a> {
    instrument: &'a str,
    count: f64,
    waited_s: Option<f64>,
    /// Share of the time that requests waited for locks.
    share_of_lock: Option<f64>,
}

/// Locks and rows of a table, as the SQL layer counts them.
#[derive(Serialize, TS)]
struct TableWaits<'a> {
    table: &'a str,
    locks: f64,
    locks_s: f64,
    rows: f64,
    rows_s: f64,
}

/// Returns the same as [`super::locks`] as one object.
pub fn locks_json(of: LocksOf) -> Value {
    json!(LocksObject::new(of))
}

impl<'a> LocksObject<'a> {
    pub(super) fn new(of: LocksOf<'a>) -> LocksObject<'a> {
        let instrument = |one: &'a InstrumentWait| InstrumentWaits {
            instrument: &one.name,
            count: one.count,
            waited_s: one.ns.map(|ns| ns / NS_PER_S),
            share_of_lock: share_of_lock(one, of.requests_waited_ns),
        };
        LocksObject {
            window: of.window,
            seconds: of.seconds,
            looks: of.snapshot_count,
            snapshots: SnapshotsObject::new(of.snapshots),
            row_locks_counted: of
                .row_locks_counted
                .map(|(waits, ns)| CountedRowLocks { waits, waited_s: ns / NS_PER_S }),
            requests_waited_s: of.requests_waited_ns.map(|ns| ns / NS_PER_S),
            objects: of.objects.iter().map(ObjectWaits::new).collect(),
            instruments: of.instruments.iter().map(instrument).collect(),
            tables: of.tables.iter().map(TableWaits::new).collect(),
            not_measured: of.not_measured,
        }
    }
}

impl SnapshotsObject {
    fn new(of: Snapshots) -> SnapshotsObject {
        SnapshotsObject {
            taken: of.count,
            failed: of.failed,
            last_good_s_before_end: of.last_good_s,
            last_took_ms: of.last_took_ms,
            are_good: of.are_good(),
            contradiction: of.contradiction(),
            text: snapshots(of).trim_start().to_string(),
        }
    }
}

impl<'a> ObjectWaits<'a> {
    fn new(of: &'a LockObject) -> ObjectWaits<'a> {
        ObjectWaits {
            lock: of.kind,
            object: &of.object,
            index: &of.index,
            mode: &of.mode,
            samples: of.samples,
            share: of.share,
            waited_s: of.waited_ns.map(|ns| ns / NS_PER_S),
            statement: of.statement.as_deref(),
            held_by: LockHolder { statement: of.blocking_statement.as_deref(), share: of.blocking_share },
        }
    }
}

impl<'a> TableWaits<'a> {
    fn new(of: &'a TableWait) -> TableWaits<'a> {
        TableWaits {
            table: &of.name,
            locks: of.lock_count,
            locks_s: of.lock_ns / NS_PER_S,
            rows: of.io_count,
            rows_s: of.io_ns / NS_PER_S,
        }
    }
}

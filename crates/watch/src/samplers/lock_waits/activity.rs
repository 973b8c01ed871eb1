//! Whether sessions wait for rows, by the counters of the status: reading the locks costs more than reading a counter.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use whyso_record::data::Value;

/// A reading of the status that is older shows nothing about now.
const FRESH_NS: i64 = 5_000_000_000;

/// A snapshot of who waits that is older than this shows nothing about now.
const SNAPSHOT_FRESH_NS: i64 = 1_200_000_000;

/// Written by the samplers of the status and of lock waits, read by those of lock waits and of sessions.
#[derive(Clone, Default)]
pub(crate) struct RowLockActivity {
    shared: Arc<ActivityState>,
}

#[derive(Default)]
struct ActivityState {
    /// When a status without any row-lock wait since the one before was read; 0: never, or there were some.
    quiet_since_ns: AtomicI64,
    /// Row lock waits that the status counted as under way, and when it was read; -1: it does not have that.
    current: AtomicI64,
    current_ns: AtomicI64,
    /// Connections that the last snapshot found waiting for rows, and when it was begun.
    waiting: Mutex<Option<(i64, BTreeSet<u64>)>>,
}

/// What is known of the connections that wait for rows now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowWaiters {
    These(BTreeSet<u64>),
    /// Only their number: the last snapshot of the lock tables is too old.
    Count(u64),
    Unknown,
}

/// The status's counters of row lock waits, at one reading.
#[derive(Default)]
pub(crate) struct RowLockCounts {
    waits: Option<f64>,
    current: Option<f64>,
}

impl RowLockCounts {
    pub(crate) fn note(&mut self, name: &str, value: Value) {
        match name {
            "Innodb_row_lock_waits" => self.waits = Some(value.as_f64()),
            "Innodb_row_lock_current_waits" => self.current = Some(value.as_f64()),
            _ => {}
        }
    }

    /// No row is waited for, and none was since the reading before.
    fn is_quiet_since(&self, before: &RowLockCounts) -> bool {
        self.current == Some(0.0) && self.waits.is_some() && self.waits == before.waits
    }
}

impl RowLockActivity {
    /// Notes a reading of the status; `before` is the reading before it.
    pub(crate) fn note_counts(&self, now: &RowLockCounts, before: &RowLockCounts, at_ns: i64) {
        let quiet_ns = if now.is_quiet_since(before) { at_ns } else { 0 };
        self.shared.quiet_since_ns.store(quiet_ns, Ordering::Relaxed);
        let current = now.current.map_or(-1, |current| current as i64);
        self.shared.current.store(current, Ordering::Relaxed);
        self.shared.current_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Takes the connections that a snapshot of the lock tables found waiting for rows.
    pub(crate) fn found_waiting(&self, begin_ns: i64, connections: BTreeSet<u64>) {
        let mut waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        *waiting = Some((begin_ns, connections));
    }

    /// Who waits for rows: by the last snapshot while it is fresh, else their number by the status.
    pub(crate) fn row_waiters(&self, now_ns: i64) -> RowWaiters {
        let waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((begin_ns, connections)) = &*waiting
            && now_ns.saturating_sub(*begin_ns) <= SNAPSHOT_FRESH_NS
        {
            return RowWaiters::These(connections.clone());
        }
        let age_ns = now_ns.saturating_sub(self.shared.current_ns.load(Ordering::Relaxed));
        match u64::try_from(self.shared.current.load(Ordering::Relaxed)) {
            Ok(current) if age_ns <= FRESH_NS => RowWaiters::Count(current),
            _ => RowWaiters::Unknown,
        }
    }

    /// Whether a snapshot of who waits is worth its cost: unless the status has just shown that nobody does.
    pub(crate) fn is_snapshot_worthwhile(&self, now_ns: i64) -> bool {
        let quiet_ns = self.shared.quiet_since_ns.load(Ordering::Relaxed);
        quiet_ns == 0 || now_ns.saturating_sub(quiet_ns) > FRESH_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(waits: i64, current: i64) -> RowLockCounts {
        let mut counted = RowLockCounts::default();
        counted.note("Innodb_row_lock_waits", Value::Int(waits));
        counted.note("Innodb_row_lock_current_waits", Value::Int(current));
        counted
    }

    #[test]
    fn a_snapshot_is_worthwhile_unless_the_status_has_just_shown_that_nobody_waits_or_waited() {
        let activity = RowLockActivity::default();
        assert!(activity.is_snapshot_worthwhile(10), "nothing is known yet");
        activity.note_counts(&counted(5, 0), &counted(5, 0), 1_000);
        assert!(!activity.is_snapshot_worthwhile(1_000 + FRESH_NS));
        assert!(activity.is_snapshot_worthwhile(1_001 + FRESH_NS), "an old reading");
        activity.note_counts(&counted(6, 0), &counted(5, 0), 2_000);
        assert!(activity.is_snapshot_worthwhile(2_001), "somebody waited");
        activity.note_counts(&counted(6, 1), &counted(6, 0), 3_000);
        assert!(activity.is_snapshot_worthwhile(3_001), "somebody waits");
        activity.note_counts(&RowLockCounts::default(), &RowLockCounts::default(), 4_000);
        assert!(activity.is_snapshot_worthwhile(4_001), "a server without these counters");
    }

    #[test]
    fn waiters_are_those_of_a_fresh_snapshot_else_as_many_as_the_status_counts() {
        let activity = RowLockActivity::default();
        activity.note_counts(&RowLockCounts::default(), &RowLockCounts::default(), 1_000);
        assert_eq!(activity.row_waiters(1_001), RowWaiters::Unknown);
        activity.note_counts(&counted(6, 3), &counted(5, 3), 2_000);
        assert_eq!(activity.row_waiters(2_001), RowWaiters::Count(3));
        activity.found_waiting(2_500, BTreeSet::from([7]));
        assert_eq!(activity.row_waiters(3_000), RowWaiters::These(BTreeSet::from([7])));
        assert_eq!(activity.row_waiters(2_501 + SNAPSHOT_FRESH_NS), RowWaiters::Count(3));
        assert_eq!(activity.row_waiters(2_001 + FRESH_NS), RowWaiters::Unknown);
    }
}

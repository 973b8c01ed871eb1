//! Whether rows are waited for, as the sampler of the status has read it: a look at the locks costs more than one at a counter.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use whyso_record::data::Value;

/// A word of the status that is older says nothing of now.
const FRESH_NS: i64 = 5_000_000_000;

/// Written by the sampler of the status, read by that of lock waits.
#[derive(Clone, Default)]
pub(crate) struct RowLockActivity {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// When a status without any row-lock wait since the one before was read; 0: never, or there were some.
    quiet_since_ns: AtomicI64,
}

/// The counters that tell it, as one reading of the status meets them.
#[derive(Default)]
pub(crate) struct Counted {
    waits: Option<f64>,
    current: Option<f64>,
}

impl Counted {
    pub(crate) fn meet(&mut self, name: &str, value: Value) {
        match name {
            "Innodb_row_lock_waits" => self.waits = Some(value.as_f64()),
            "Innodb_row_lock_current_waits" => self.current = Some(value.as_f64()),
            _ => {}
        }
    }

    /// No row is waited for, and none was since the reading before.
    fn is_quiet_since(&self, before: &Counted) -> bool {
        self.current == Some(0.0) && self.waits.is_some() && self.waits == before.waits
    }
}

impl RowLockActivity {
    /// Takes what a reading of the status told; `before` is what the one before had told.
    pub(crate) fn told(&self, now: &Counted, before: &Counted, at_ns: i64) {
        let quiet_ns = if now.is_quiet_since(before) { at_ns } else { 0 };
        self.shared.quiet_since_ns.store(quiet_ns, Ordering::Relaxed);
    }

    /// Whether it is worth looking for who waits: unless the status has just said that nobody does.
    pub(crate) fn is_worth_a_look(&self, now_ns: i64) -> bool {
        let quiet_ns = self.shared.quiet_since_ns.load(Ordering::Relaxed);
        quiet_ns == 0 || now_ns.saturating_sub(quiet_ns) > FRESH_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(waits: i64, current: i64) -> Counted {
        let mut counted = Counted::default();
        counted.meet("Innodb_row_lock_waits", Value::Int(waits));
        counted.meet("Innodb_row_lock_current_waits", Value::Int(current));
        counted
    }

    #[test]
    fn a_look_is_worth_it_unless_the_status_has_just_told_that_nobody_waits_or_waited() {
        let activity = RowLockActivity::default();
        assert!(activity.is_worth_a_look(10), "nothing is known yet");
        activity.told(&counted(5, 0), &counted(5, 0), 1_000);
        assert!(!activity.is_worth_a_look(1_000 + FRESH_NS));
        assert!(activity.is_worth_a_look(1_001 + FRESH_NS), "an old word");
        activity.told(&counted(6, 0), &counted(5, 0), 2_000);
        assert!(activity.is_worth_a_look(2_001), "somebody waited");
        activity.told(&counted(6, 1), &counted(6, 0), 3_000);
        assert!(activity.is_worth_a_look(3_001), "somebody waits");
        activity.told(&Counted::default(), &Counted::default(), 4_000);
        assert!(activity.is_worth_a_look(4_001), "a server that does not tell");
    }
}

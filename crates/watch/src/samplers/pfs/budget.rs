//! How much of its time the connection that reads the Performance Schema may spend on one view.
//!
//! Each view pays for itself: one that is dear, such as the waits of ten thousand tables, is read seldom, and delays no other. Most of a reading is
//! waiting where the server is busy, so that what it uses of a CPU there is far less.

use whyso_clock::monotonic_ns;

use super::views::Frequency;
use crate::schedule::Pace;

/// What is read at every reading of the run has one part in a hundred. All else has that while its readings are short, and less the longer they are, down
/// to one part in five hundred. So a level of seconds has its digests also where the machine is busy, and a view of ten thousand tables is read seldom.
const FACTOR: i64 = 100;
const FACTOR_MAX: i64 = 500;
/// Up to here a reading is short.
const SHORT_NS: i64 = 20_000_000;

/// The share of one view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pace: Pace,
    always: bool,
}

impl Share {
    pub(crate) fn of(frequency: Frequency) -> Share {
        Share { pace: Pace::default(), always: frequency == Frequency::Always }
    }

    /// Whether the last reading is paid for.
    pub(crate) fn allows(&self) -> bool {
        self.allows_at(monotonic_ns())
    }

    fn allows_at(&self, now_ns: i64) -> bool {
        self.pace.due(now_ns)
    }

    /// A reading that began at `begin_ns` is over.
    pub(crate) fn spend_since(&mut self, begin_ns: i64) {
        self.spend(begin_ns, monotonic_ns() - begin_ns);
    }

    /// Takes the expected time of a first reading from the budget, before it is taken.
    pub(crate) fn owe(&mut self, ns: i64) {
        self.spend(monotonic_ns(), ns);
    }

    /// For how long the next reading is put off, in seconds.
    pub(crate) fn rest_s(&self) -> f64 {
        self.pace.left_ns(monotonic_ns()) as f64 / 1e9
    }

    fn spend(&mut self, begin_ns: i64, ns: i64) {
        let ns = ns.max(0);
        let longer = FACTOR.saturating_mul(ns) / SHORT_NS;
        let factor = if self.always { FACTOR } else { longer.clamp(FACTOR, FACTOR_MAX) };
        self.pace.rest(begin_ns, ns, factor);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_dear_reading_is_paid_for_before_the_next() {
        let mut share = Share::of(Frequency::Always);
        assert!(share.allows_at(0));
        share.spend(0, 100_000_000);
        assert!(!share.allows_at(9_900_000_000));
        assert!(share.allows_at(10_000_000_000));
        let mut seldom = Share::of(Frequency::Seldom);
        seldom.spend(0, 100_000_000);
        assert!(!seldom.allows_at(49_000_000_000));
        let mut short = Share::of(Frequency::Seldom);
        short.spend(0, 20_000_000);
        assert!(!short.allows_at(1_900_000_000) && short.allows_at(2_000_000_000));
        short.spend(0, 40_000_000);
        assert!(!short.allows_at(7_900_000_000) && short.allows_at(8_000_000_000));
    }

    proptest! {
        #[test]
        fn the_share_is_kept_whatever_readings_take(costs in prop::collection::vec(0_i64..400_000_000, 1..400)) {
            let mut share = Share::of(Frequency::Always);
            let (mut now_ns, mut spent_ns, mut last_ns) = (0_i64, 0_i64, 0_i64);
            for cost in costs {
                if share.allows_at(now_ns) {
                    share.spend(now_ns, cost);
                    spent_ns += cost;
                    last_ns = cost;
                }
                now_ns += 100_000_000;
            }
            prop_assert!(spent_ns - last_ns <= now_ns / FACTOR);
        }
    }
}

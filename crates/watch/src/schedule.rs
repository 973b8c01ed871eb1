//! When a sampler reads: on a grid of absolute times, so that nothing drifts.

/// The grid of one sampler. Times are monotonic nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    next_ns: i64,
    interval_ns: i64,
}

/// Readings that were due while the one before was still running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissedReadings {
    /// When the first of them was due.
    pub(crate) first_ns: i64,
    pub(crate) count: u64,
}

impl Schedule {
    pub(crate) fn new(first_ns: i64, interval_ns: i64) -> Schedule {
        Schedule { next_ns: first_ns, interval_ns: interval_ns.max(1) }
    }

    /// Of what is never read again.
    pub(crate) fn over() -> Schedule {
        Schedule { next_ns: i64::MAX, interval_ns: 1 }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.next_ns == i64::MAX
    }

    pub(crate) fn next_ns(&self) -> i64 {
        self.next_ns
    }

    /// To be called when the reading that was due at `next_ns` has ended. Moves to the first
    /// time of the grid after `now_ns`.
    pub(crate) fn advance(&mut self, now_ns: i64) -> Option<MissedReadings> {
        let first_ns = self.next_ns + self.interval_ns;
        self.not_before(now_ns);
        let count = (self.next_ns - first_ns) / self.interval_ns;
        if count <= 0 {
            return None;
        }
        Some(MissedReadings { first_ns, count: count.unsigned_abs() })
    }

    /// Moves by at least one interval, to the first time of the grid after `t_ns`.
    pub(crate) fn not_before(&mut self, t_ns: i64) {
        let passed = (t_ns - self.next_ns).max(0) / self.interval_ns;
        self.next_ns += (passed + 1) * self.interval_ns;
    }
}

/// How soon to try again after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Trying costs nothing: a process that is gone, a refused connection.
    Quick,
    /// Trying loads the server or its log: it hangs, or it refuses our password.
    Slow,
}

const FIRST_DELAY_NS: i64 = 250_000_000;
const QUICK_DELAY_NS_MAX: i64 = 2_000_000_000;
const SLOW_DELAY_NS_MAX: i64 = 15_000_000_000;

/// Doubles from a quarter of a second up to two seconds, or up to fifteen.
pub(crate) fn back_off_ns(failures: u32, patience: Patience) -> i64 {
    let limit_ns = match patience {
        Patience::Quick => QUICK_DELAY_NS_MAX,
        Patience::Slow => SLOW_DELAY_NS_MAX,
    };
    let doublings = failures.saturating_sub(1).min(20);
    (FIRST_DELAY_NS << doublings).min(limit_ns)
}

/// Keeps an expensive part of a reading to a bounded share of one core, however short the interval
/// and however much there is to read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    next_ns: i64,
}

/// A part that took 1 ms is read again after 200 ms at the earliest: 0.5 % of a core.
const PACE_FACTOR: i64 = 200;

impl Pace {
    pub(crate) fn due(&self, now_ns: i64) -> bool {
        now_ns >= self.next_ns
    }

    /// Until it is due; 0 where it is.
    pub(crate) fn left_ns(&self, now_ns: i64) -> i64 {
        self.next_ns.saturating_sub(now_ns).max(0)
    }

    pub(crate) fn spent(&mut self, began_ns: i64, cost_ns: i64) {
        self.rest(began_ns, cost_ns, PACE_FACTOR);
    }

    /// The same with another factor.
    pub(crate) fn rest(&mut self, began_ns: i64, cost_ns: i64, factor: i64) {
        self.next_ns = began_ns + cost_ns.saturating_mul(factor);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_grid_does_not_drift() {
        let mut schedule = Schedule::new(1_000, 100);
        assert_eq!(schedule.advance(1_030), None);
        assert_eq!(schedule.next_ns(), 1_100);
        assert_eq!(schedule.advance(1_199), None);
        assert_eq!(schedule.next_ns(), 1_200);
    }

    #[test]
    fn readings_that_were_due_meanwhile_are_missed() {
        let mut schedule = Schedule::new(1_000, 100);
        let missed = schedule.advance(1_350).unwrap();
        assert_eq!(missed.first_ns, 1_100);
        assert_eq!(missed.count, 3);
        assert_eq!(schedule.next_ns(), 1_400);
    }

    #[test]
    fn back_off_doubles_up_to_its_limit() {
        assert_eq!(back_off_ns(1, Patience::Quick), 250_000_000);
        assert_eq!(back_off_ns(2, Patience::Quick), 500_000_000);
        assert_eq!(back_off_ns(99, Patience::Quick), 2_000_000_000);
        assert_eq!(back_off_ns(u32::MAX, Patience::Slow), 15_000_000_000);
    }

    #[test]
    fn a_pace_grows_with_the_cost() {
        let mut pace = Pace::default();
        assert!(pace.due(0));
        pace.spent(1_000, 10);
        assert!(!pace.due(2_999));
        assert!(pace.due(3_000));
    }

    proptest! {
        #[test]
        fn the_next_time_is_on_the_grid_and_after_now(
            interval in 1_i64..10_000,
            steps in proptest::collection::vec(0_i64..100_000, 1..50),
        ) {
            let mut schedule = Schedule::new(0, interval);
            let mut now = 0;
            for step in steps {
                now = now.max(schedule.next_ns()) + step;
                schedule.advance(now);
                prop_assert!(schedule.next_ns() > now);
                prop_assert!(schedule.next_ns() - now <= interval);
                prop_assert_eq!(schedule.next_ns() % interval, 0);
            }
        }
    }
}

//! How much of its time the connection that reads the Performance Schema may spend.

/// Time that may be spent on reading: a share of what has passed, of which so much can be saved up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    saved_ns: i64,
    at_ns: Option<i64>,
}

/// One part in twenty. Most of a reading is waiting where the server is busy, so that what it uses of a CPU there is far less.
const PARTS: i64 = 20;
/// A first round of all views, on a server with many tables.
const SAVED_NS_MAX: i64 = 500_000_000;

impl Default for Budget {
    fn default() -> Budget {
        Budget { saved_ns: SAVED_NS_MAX, at_ns: None }
    }
}

impl Budget {
    /// Whether anything is left at `now_ns`.
    pub(crate) fn allows(&mut self, now_ns: i64) -> bool {
        let passed_ns = now_ns.saturating_sub(self.at_ns.unwrap_or(now_ns)).max(0);
        self.at_ns = Some(now_ns);
        self.saved_ns = (self.saved_ns + passed_ns / PARTS).min(SAVED_NS_MAX);
        self.saved_ns > 0
    }

    /// One reading may overdraw it: those that are due next wait for it.
    pub(crate) fn spend(&mut self, ns: i64) {
        self.saved_ns = self.saved_ns.saturating_sub(ns.max(0));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_dear_reading_is_paid_for_before_the_next() {
        let mut budget = Budget::default();
        assert!(budget.allows(0));
        budget.spend(1_000_000_000);
        assert!(!budget.allows(9_000_000_000));
        assert!(budget.allows(10_100_000_000));
    }

    proptest! {
        #[test]
        fn the_share_is_kept_whatever_readings_take(costs in prop::collection::vec(0_i64..400_000_000, 1..400)) {
            let mut budget = Budget::default();
            let (mut now_ns, mut spent_ns, mut last_ns) = (0_i64, 0_i64, 0_i64);
            for cost in costs {
                if budget.allows(now_ns) {
                    budget.spend(cost);
                    spent_ns += cost;
                    last_ns = cost;
                }
                now_ns += 100_000_000;
            }
            prop_assert!(spent_ns - last_ns <= now_ns / PARTS + SAVED_NS_MAX);
        }
    }
}

//! Percentiles of what ended and of what was in flight together.

use crate::measure::histogram::Histogram;

/// Times of what ended, with the ages of what was in flight when the window ended.
///
/// A transaction in flight takes at least its age. So its age is a right-censored time, and a percentile is that of the
/// estimate of Kaplan and Meier (1958). There, what is in flight shares its weight among all that took longer than its
/// age. Without anything in flight that is the plain percentile. A percentile may lie among ages that are longer than
/// anything that ended. Then nobody knows it, and it is a lower bound.
#[derive(Clone, Copy, Debug)]
pub struct Times<'h> {
    pub ended: &'h Histogram,
    /// Ages when the window ended.
    pub in_flight: &'h Histogram,
}

/// A time, or a bound on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    pub ns: u64,
    /// The true value is this or more.
    pub is_lower_bound: bool,
}

impl Times<'_> {
    /// Whether there is nothing, neither ended nor in flight.
    pub fn is_empty(&self) -> bool {
        self.ended.count() == 0 && self.in_flight.count() == 0
    }

    /// The time that a share `quantile` (0 to 1) does not exceed, as precise as [`Histogram::quantile_ns`]; 0 where there
    /// is nothing.
    pub fn quantile(&self, quantile: f64) -> Time {
        let exact = |ns: u64| Time { ns, is_lower_bound: false };
        match self.unknown_above() {
            _ if self.in_flight.count() == 0 => exact(self.ended.quantile_ns(quantile)),
            Some(share) if quantile > share => self.lower_bound(quantile),
            _ => exact(self.estimate(quantile)),
        }
    }

    /// The largest time: a bound where something in flight is older.
    pub fn max(&self) -> Time {
        let (ended, oldest) = (self.ended.max_ns(), self.in_flight.max_ns());
        Time { ns: ended.max(oldest), is_lower_bound: oldest > ended }
    }

    /// The mean of what ended or, where that is larger, the mean with every age entered as it is: a lower bound.
    pub fn mean_ns(&self) -> (f64, bool) {
        let count = self.ended.count() + self.in_flight.count();
        let sum_ns = self.ended.sum_ns() as f64 + self.in_flight.sum_ns() as f64;
        let with_ages_ns = if count > 0 { sum_ns / count as f64 } else { 0.0 };
        let ended_ns = self.ended.mean_ns();
        if with_ages_ns > ended_ns { (with_ages_ns, true) } else { (ended_ns, false) }
    }

    /// The share (0 to 1) above which quantiles are lower bounds; `None` where nothing in flight is older than the longest
    /// that ended.
    pub fn unknown_above(&self) -> Option<f64> {
        if self.in_flight.max_ns() <= self.ended.max_ns() {
            return None;
        }
        let left = self.survival().filter(|step| step.ended > 0).last();
        Some(1.0 - left.map_or(1.0, |step| step.share_left))
    }

    fn estimate(&self, quantile: f64) -> u64 {
        // What the product of many shares loses to rounding must not move a rank.
        let wanted = 1.0 - quantile.clamp(0.0, 1.0) + 1e-12;
        let found = self.survival().find(|step| step.ended > 0 && step.share_left <= wanted);
        found.map_or(self.ended.max_ns(), |step| step.upper_ns.min(self.ended.max_ns()))
    }

    /// What the quantile would be if everything in flight ended now, and no less than the longest that ended.
    fn lower_bound(&self, quantile: f64) -> Time {
        let mut all = self.ended.clone();
        all.merge(self.in_flight);
        // A bucket's upper bound may exceed the age itself.
        let ns = all.quantile_ns(quantile).min(self.in_flight.max_ns()).max(self.ended.max_ns());
        Time { ns, is_lower_bound: true }
    }

    /// The buckets in ascending order, each with the share that takes longer.
    fn survival(&self) -> impl Iterator<Item = Step> + '_ {
        let mut ended = self.ended.buckets().peekable();
        let mut in_flight = self.in_flight.buckets().peekable();
        let mut at_risk = self.ended.count() + self.in_flight.count();
        let mut share_left = 1.0;
        std::iter::from_fn(move || {
            let next = [ended.peek(), in_flight.peek()].into_iter().flatten().map(|(upper_ns, _)| *upper_ns);
            let upper_ns = next.min()?;
            let count = |bucket: Option<(u64, u64)>| bucket.map_or(0, |(_, count)| count);
            let ended_here = count(ended.next_if(|(upper, _)| *upper == upper_ns));
            let in_flight_here = count(in_flight.next_if(|(upper, _)| *upper == upper_ns));
            share_left *= 1.0 - ended_here as f64 / at_risk as f64;
            at_risk -= ended_here + in_flight_here;
            Some(Step { upper_ns, ended: ended_here, share_left })
        })
    }
}

struct Step {
    upper_ns: u64,
    ended: u64,
    share_left: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn four_stuck_users_are_the_tail_of_many_short_transactions() {
        let (ended, in_flight) = (of(&vec![100; 1_000]), of(&[5_000; 4]));
        let times = Times { ended: &ended, in_flight: &in_flight };
        assert_eq!(times.quantile(0.99), Time { ns: 100, is_lower_bound: false });
        assert_eq!(times.quantile(0.999), Time { ns: 5_000, is_lower_bound: true });
        assert_eq!(times.max(), Time { ns: 5_000, is_lower_bound: true });
        let above = times.unknown_above().unwrap();
        assert!((above - 1_000.0 / 1_004.0).abs() < 1e-9, "{above}");
        assert_eq!(times.mean_ns(), (120_000.0 / 1_004.0, true));
    }

    #[test]
    fn ages_that_are_shorter_than_what_ended_bound_nothing() {
        let (ended, in_flight) = (of(&[10, 20, 30, 40]), of(&[5, 25]));
        let times = Times { ended: &ended, in_flight: &in_flight };
        // By hand: 1/5 of 1, then 1/4 of 4/5, then 1/2 of 3/5, then all: the age 25 shares its weight among 30 and 40.
        assert_eq!([0.2, 0.4, 0.7, 1.0].map(|share| times.quantile(share).ns), [10, 20, 30, 40]);
        assert_eq!(times.quantile(0.41).ns, 30);
        assert_eq!((times.unknown_above(), times.max().is_lower_bound), (None, false));
        assert_eq!(times.mean_ns(), (25.0, false));
    }

    #[test]
    fn where_nothing_ended_everything_is_a_bound_and_where_there_is_nothing_it_is_0() {
        let (empty, in_flight) = (Histogram::new(), of(&[100, 200]));
        let times = Times { ended: &empty, in_flight: &in_flight };
        assert_eq!(times.quantile(0.5), Time { ns: 100, is_lower_bound: true });
        assert_eq!((times.unknown_above(), times.mean_ns()), (Some(0.0), (150.0, true)));
        let nothing = Times { ended: &empty, in_flight: &empty };
        assert!(nothing.is_empty());
        assert_eq!((nothing.quantile(0.5), nothing.max()), (Time::default(), Time::default()));
    }

    proptest! {
        #[test]
        fn without_anything_in_flight_quantiles_are_those_of_the_histogram(
            values in prop::collection::vec(0u64..1_000_000, 1..200),
            quantile in 0.0f64..=1.0,
        ) {
            let (ended, empty) = (of(&values), Histogram::new());
            let times = Times { ended: &ended, in_flight: &empty };
            prop_assert_eq!(times.quantile(quantile).ns, ended.quantile_ns(quantile));
            prop_assert_eq!(times.estimate(quantile), ended.quantile_ns(quantile));
        }

        #[test]
        fn quantiles_ascend_and_end_with_the_max(
            ended in prop::collection::vec(0u64..10_000, 0..100),
            in_flight in prop::collection::vec(0u64..20_000, 0..20),
        ) {
            let (ended, in_flight) = (of(&ended), of(&in_flight));
            let times = Times { ended: &ended, in_flight: &in_flight };
            let shares = [0.0, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0];
            let found = shares.map(|share| times.quantile(share));
            prop_assert!(found.windows(2).all(|pair| pair[0].ns <= pair[1].ns), "{found:?}");
            prop_assert!(found.windows(2).all(|pair| pair[0].is_lower_bound <= pair[1].is_lower_bound));
            prop_assert_eq!(found[7], times.max());
        }
    }
}

//! Roll-ups: what a bucket of time held, in seven numbers.

use serde::{Deserialize, Serialize};

use crate::counter::{Step, growth, hidden_growth};

/// One bucket of one series.
///
/// Of a gauge, `min`, `max`, `sum` and `count` are of its readings. Of a counter, they are of the rates
/// a second between its readings, each counted in the bucket in which it ends. `first` and `last` are
/// raw readings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rollup {
    /// Begin of the bucket: a multiple of its length.
    pub t_ns: i64,
    pub min: f64,
    pub max: f64,
    pub sum: f64,
    /// 0 where a counter has a reading but no rate yet; `min` and `max` are then `NaN`.
    pub count: u32,
    pub first: f64,
    pub last: f64,
    /// Growth of a counter that resets and smaller falls hide, over the steps that end in the bucket: what it grew by, less the difference of
    /// its values. 0 where it only rose, and of a gauge. `NaN` in recordings that lack it.
    pub hidden_growth: f64,
}

impl Rollup {
    fn empty(t_ns: i64, first: f64) -> Rollup {
        Rollup {
            t_ns,
            min: f64::NAN,
            max: f64::NAN,
            sum: 0.0,
            count: 0,
            first,
            last: first,
            hidden_growth: 0.0,
        }
    }

    fn count(&mut self, value: f64) {
        // f64::min and max ignore a NaN on one side.
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += value;
        self.count += 1;
    }

    /// `sum ÷ count`, `None` where nothing was counted.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }

    /// What a counter grew by from the bucket's first reading to its last. `before` is the reading before the first, `None` where the roll-up
    /// was made without one.
    pub fn growth(&self, before: Option<f64>) -> f64 {
        let hidden_before_first = before.map_or(0.0, |before| hidden_growth(before, self.first));
        self.last - self.first + (self.hidden_growth - hidden_before_first)
    }
}

/// Roll-ups of a gauge in buckets of `bucket_ns`. Empty buckets are left out, gaps are not counted.
pub fn roll_up(t_ns: &[i64], value: &[f64], bucket_ns: i64) -> Vec<Rollup> {
    let mut buckets = Vec::new();
    for (&t, &v) in t_ns.iter().zip(value) {
        if v.is_finite() {
            let bucket = bucket_at(&mut buckets, t, bucket_ns, v);
            bucket.count(v);
            bucket.last = v;
        }
    }
    buckets
}

/// Roll-ups of a counter's rates per second. `before` is the reading before the first, where one is known.
pub fn roll_up_rates(t_ns: &[i64], value: &[f64], before: Option<(i64, f64)>, bucket_ns: i64) -> Vec<Rollup> {
    let mut buckets = Vec::new();
    let mut before = before;
    for (&t, &v) in t_ns.iter().zip(value) {
        if !v.is_finite() {
            continue;
        }
        let bucket = bucket_at(&mut buckets, t, bucket_ns, v);
        bucket.last = v;
        bucket.hidden_growth += before.map_or(0.0, |(_, then)| hidden_growth(then, v));
        let step = before.map(|(begin_ns, then)| Step { begin_ns, end_ns: t, amount: growth(then, v) });
        if let Some(rate) = step.and_then(|step| step.per_second()) {
            bucket.count(rate);
        }
        before = Some((t, v));
    }
    buckets
}

/// Merges roll-ups, in order of time, into buckets of `bucket_ns`, a multiple of theirs. Two roll-ups of
/// one bucket become one.
pub fn merge_rollups(rollups: &[Rollup], bucket_ns: i64) -> Vec<Rollup> {
    let mut buckets = Vec::new();
    for part in rollups {
        let bucket = bucket_at(&mut buckets, part.t_ns, bucket_ns, part.first);
        bucket.min = bucket.min.min(part.min);
        bucket.max = bucket.max.max(part.max);
        bucket.sum += part.sum;
        bucket.count += part.count;
        bucket.last = part.last;
        bucket.hidden_growth += part.hidden_growth;
    }
    buckets
}

fn bucket_at(buckets: &mut Vec<Rollup>, t_ns: i64, bucket_ns: i64, first: f64) -> &mut Rollup {
    let bucket_ns = bucket_ns.max(1);
    let begin_ns = t_ns.div_euclid(bucket_ns) * bucket_ns;
    if buckets.last().is_none_or(|bucket| bucket.t_ns != begin_ns) {
        buckets.push(Rollup::empty(begin_ns, first));
    }
    let last = buckets.len() - 1;
    &mut buckets[last]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_gauge_rolls_up() {
        let rolled = roll_up(&[1, 5, 11, 12], &[3.0, 1.0, f64::NAN, 7.0], 10);
        assert_eq!(rolled.len(), 2);
        assert_eq!(
            rolled[0],
            Rollup {
                t_ns: 0,
                min: 1.0,
                max: 3.0,
                sum: 4.0,
                count: 2,
                first: 3.0,
                last: 1.0,
                hidden_growth: 0.0
            }
        );
        assert_eq!(rolled[1].mean(), Some(7.0));
    }

    #[test]
    fn a_counter_rolls_up_its_rates_over_the_edge() {
        const S: i64 = 1_000_000_000;
        let rolled = roll_up_rates(&[9 * S, 10 * S, 11 * S], &[5.0, 6.0, 8.0], Some((8 * S, 1.0)), 10 * S);
        assert_eq!((rolled[0].max, rolled[0].last), (4.0, 5.0));
        assert_eq!((rolled[1].min, rolled[1].max, rolled[1].count), (1.0, 2.0, 2));
        let first_ever = roll_up_rates(&[S], &[5.0], None, 10 * S);
        assert_eq!((first_ever[0].count, first_ever[0].first), (0, 5.0));
        assert_eq!(first_ever[0].mean(), None);
    }

    #[test]
    fn what_falls_hide_is_known_however_roll_ups_are_merged() {
        const S: i64 = 1_000_000_000;
        let t: Vec<i64> = (0..6).map(|second| second * S).collect();
        // A reset to 4, a fall by 2 that is none, and a reset to 0.
        let values = [100.0, 4.0, 50.0, 48.0, 49.0, 0.0];
        let whole = roll_up_rates(&t, &values, Some((-S, 90.0)), 10 * S);
        assert_eq!((whole[0].hidden_growth, whole[0].growth(Some(90.0))), (100.0 + 2.0 + 49.0, 51.0));
        let mut parts = roll_up_rates(&t[..3], &values[..3], Some((-S, 90.0)), 10 * S);
        parts.extend(roll_up_rates(&t[3..], &values[3..], Some((2 * S, 50.0)), 10 * S));
        assert_eq!(parts[1].growth(Some(50.0)), 1.0);
        assert_eq!(merge_rollups(&parts, 10 * S)[0].growth(Some(90.0)), 51.0);
        let after_reset = roll_up_rates(&t[1..2], &values[1..2], Some((0, 100.0)), 10 * S);
        assert_eq!(after_reset[0].growth(Some(100.0)), 0.0);
    }

    proptest! {
        /// The growth of a roll-up is that of its readings.
        #[test]
        fn growth_is_that_of_the_readings(v in prop::collection::vec(0u32..1000, 1..40), before in prop::option::of(0u32..1000)) {
            let values: Vec<f64> = v.iter().map(|v| f64::from(*v)).collect();
            let t: Vec<i64> = (0..v.len() as i64).collect();
            let before = before.map(f64::from);
            let rolled = roll_up_rates(&t, &values, before.map(|before| (-1, before)), 1000);
            let grown: f64 = values.windows(2).map(|pair| growth(pair[0], pair[1])).sum();
            prop_assert_eq!(rolled[0].growth(before), grown);
        }

        /// Rolling up in two steps, or in two parts, gives what one step gives.
        #[test]
        fn merging_is_rolling_up(v in prop::collection::vec(0u32..1000, 1..80), cut in 0usize..80) {
            let values: Vec<f64> = v.iter().map(|v| f64::from(*v)).collect();
            let t: Vec<i64> = (0..v.len() as i64).map(|i| i * 3).collect();
            let whole = roll_up(&t, &values, 120);
            prop_assert_eq!(&merge_rollups(&roll_up(&t, &values, 10), 120), &whole);
            let cut = cut.min(v.len());
            let mut parts = roll_up(&t[..cut], &values[..cut], 120);
            parts.extend(roll_up(&t[cut..], &values[cut..], 120));
            prop_assert_eq!(merge_rollups(&parts, 120), whole);
        }
    }
}

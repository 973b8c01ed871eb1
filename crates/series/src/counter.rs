//! Counters: cumulative values that only grow, until they reset.

use serde::{Deserialize, Serialize};

use crate::Points;

/// What a counter did between two neighbouring readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub begin_ns: i64,
    pub end_ns: i64,
    /// What it grew by, 0 or more: see [`growth`] for values that fell.
    pub amount: f64,
}

impl Step {
    /// Growth a second. `None` for two readings at one time.
    pub fn per_second(&self) -> Option<f64> {
        let length_ns = self.end_ns - self.begin_ns;
        (length_ns > 0).then(|| self.amount * 1e9 / length_ns as f64)
    }
}

/// What a counter grew by over a window, and how much of the window was observed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Increase {
    /// In the counter's own unit, 0 or more.
    pub amount: f64,
    /// The part of the window that lies between readings, in nanoseconds.
    pub covered_ns: i64,
    /// Up to when it was observed within the window.
    pub until_ns: i64,
}

impl Increase {
    /// Nothing yet: steps are added to it.
    pub const NONE: Increase = Increase { amount: 0.0, covered_ns: 0, until_ns: i64::MIN };

    /// Adds a step. One that lies partly in the window counts in proportion to its overlap, as if it had grown evenly.
    pub fn add_step(&mut self, step: &Step, begin_ns: i64, end_ns: i64) {
        let overlap_ns = step.end_ns.min(end_ns) - step.begin_ns.max(begin_ns);
        if overlap_ns <= 0 {
            return;
        }
        let length_ns = step.end_ns - step.begin_ns;
        let whole = overlap_ns == length_ns;
        self.amount += if whole { step.amount } else { step.amount * overlap_ns as f64 / length_ns as f64 };
        self.covered_ns += overlap_ns;
        self.until_ns = self.until_ns.max(step.end_ns.min(end_ns));
    }

    /// `None` where no step overlaps the window.
    pub fn observed(self) -> Option<Increase> {
        (self.covered_ns > 0).then_some(self)
    }

    /// Growth over a whole window. Readings rarely fall on its edges: what was observed stands for the rest, too. With `begins_with_use`, the
    /// counter is there only from when it first counts: it did not grow before.
    pub fn over(&self, begin_ns: i64, end_ns: i64, begins_with_use: bool) -> f64 {
        let unobserved_ns = (end_ns - begin_ns - self.covered_ns).max(0);
        let after_ns = (end_ns - self.until_ns).clamp(0, unobserved_ns);
        let stood_for_ns = if begins_with_use { after_ns } else { unobserved_ns };
        self.amount * (self.covered_ns + stood_for_ns) as f64 / self.covered_ns as f64
    }

    /// Growth per second over the part that was observed.
    pub fn per_second(&self) -> f64 {
        self.amount * 1e9 / self.covered_ns as f64
    }
}

/// The steps between neighbouring readings. Gaps are stepped over: a step then spans the gap, since
/// what a counter grew by in the meantime is known all the same.
pub fn steps<'a>(t_ns: &'a [i64], value: &'a [f64]) -> impl Iterator<Item = Step> + 'a {
    let mut before: Option<(i64, f64)> = None;
    t_ns.iter().zip(value).filter_map(move |(&end_ns, &now)| {
        if !now.is_finite() {
            return None;
        }
        let step = before.map(|(begin_ns, then)| Step { begin_ns, end_ns, amount: growth(then, now) });
        before = Some((end_ns, now));
        step
    })
}

/// What a counter grew by in `[begin_ns, end_ns]`, across resets.
///
/// A step that lies partly in the window counts as [`Increase::add_step`] does. `None` where no step overlaps the window.
pub fn increase(t_ns: &[i64], value: &[f64], begin_ns: i64, end_ns: i64) -> Option<Increase> {
    let (t_ns, value) = around(t_ns, value, begin_ns, end_ns);
    let mut total = Increase::NONE;
    for step in steps(t_ns, value) {
        total.add_step(&step, begin_ns, end_ns);
    }
    total.observed()
}

/// Rates a second between neighbouring readings, each at the time of the later one. A missing reading
/// stays a gap; the rate after it is the mean over the gap.
pub fn rates(t_ns: &[i64], value: &[f64]) -> Points {
    let mut points = Points { t_ns: Vec::with_capacity(t_ns.len()), value: Vec::with_capacity(t_ns.len()) };
    let mut before: Option<(i64, f64)> = None;
    for (&end_ns, &now) in t_ns.iter().zip(value) {
        if !now.is_finite() {
            points.push(end_ns, f64::NAN);
            continue;
        }
        if let Some((begin_ns, then)) = before {
            let step = Step { begin_ns, end_ns, amount: growth(then, now) };
            points.push(end_ns, step.per_second().unwrap_or(f64::NAN));
        }
        before = Some((end_ns, now));
    }
    points
}

/// A counter that falls to this part of its value or less was reset.
const RESET_MAX: f64 = 0.5;

/// Returns what a counter grew by between two neighbouring readings, 0 or more.
///
/// A value that fell to half or less was reset, and what counts is the value after it. One that fell by less was read in the middle of
/// a change, and did not grow. The Performance Schema misses what a connection counted while that connection ends. To take such a fall
/// for a reset would count everything since the server's start once more.
pub fn growth(then: f64, now: f64) -> f64 {
    match now >= then {
        true => now - then,
        false if now <= RESET_MAX * then => now.max(0.0),
        false => 0.0,
    }
}

/// What a counter grew by between two readings, less their difference: 0 where it rose.
pub(crate) fn hidden_growth(then: f64, now: f64) -> f64 {
    growth(then, now) - (now - then)
}

/// Cuts a series down to the readings in a window and, on each side, those up to the first one that
/// is there.
pub(crate) fn around<'a>(
    t_ns: &'a [i64],
    value: &'a [f64],
    begin_ns: i64,
    end_ns: i64,
) -> (&'a [i64], &'a [f64]) {
    let length = t_ns.len().min(value.len());
    let (t_ns, value) = (&t_ns[..length], &value[..length]);
    let mut first = t_ns.partition_point(|&t| t < begin_ns);
    while first > 0 {
        first -= 1;
        if value[first].is_finite() {
            break;
        }
    }
    let mut last = t_ns.partition_point(|&t| t <= end_ns).max(first);
    while last < length {
        last += 1;
        if value[last - 1].is_finite() {
            break;
        }
    }
    (&t_ns[first..last], &value[first..last])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    #[test]
    fn a_reset_counts_from_zero() {
        let grown = increase(&[0, S, 2 * S], &[10.0, 4.0, 5.0], 0, 2 * S).unwrap();
        assert_eq!(grown.amount, 5.0);
        assert_eq!(grown.per_second(), 2.5);
    }

    /// `fixtures/growth.json` has what a counter grew by between two readings; the page's tests read it, too.
    #[test]
    fn growth_is_that_of_the_fixtures() {
        let fixtures: Vec<(f64, f64, f64)> =
            serde_json::from_str(include_str!("../fixtures/growth.json")).unwrap();
        assert!(fixtures.len() >= 8);
        for (then, now, grown) in fixtures {
            assert_eq!(growth(then, now), grown, "{then} to {now}");
        }
    }

    /// As MariaDB 10.11 counted updates while a connection of 300 ended.
    #[test]
    fn a_reading_in_the_middle_of_a_change_is_no_reset() {
        let grown = increase(&[0, S, 2 * S], &[98_000.0, 105_379.0, 105_090.0], 0, 2 * S).unwrap();
        assert_eq!(grown.amount, 7_379.0);
    }

    #[test]
    fn what_was_observed_stands_for_the_rest_but_not_for_before_a_counter_began() {
        // From second 4 to 8 of a window of ten.
        let grown = increase(&[4 * S, 6 * S, 8 * S], &[0.0, 10.0, 20.0], 0, 10 * S).unwrap();
        assert_eq!((grown.over(0, 10 * S, false), grown.over(0, 10 * S, true)), (50.0, 30.0));
    }

    #[test]
    fn a_window_between_readings_takes_its_share() {
        let grown = increase(&[0, 10 * S], &[0.0, 100.0], 2 * S, 5 * S).unwrap();
        assert_eq!((grown.amount, grown.covered_ns), (30.0, 3 * S));
    }

    #[test]
    fn what_grew_in_a_gap_counts_and_the_gap_stays_visible() {
        let t = [0, S, 2 * S, 3 * S];
        let v = [0.0, f64::NAN, 20.0, 30.0];
        assert_eq!(increase(&t, &v, S, 3 * S).unwrap().amount, 20.0);
        let rate = rates(&t, &v);
        assert!(rate.value[0].is_nan());
        assert_eq!(rate.value[1..], [10.0, 10.0]);
        assert_eq!(rate.t_ns, [S, 2 * S, 3 * S]);
    }

    #[test]
    fn nothing_seen_is_none() {
        assert_eq!(increase(&[0, S], &[1.0, 2.0], 5 * S, 6 * S), None);
        assert_eq!(increase(&[0], &[1.0], 0, S), None);
        assert_eq!(increase(&[], &[], 0, S), None);
    }

    proptest! {
        /// However a window is cut in two, the parts grow by what the whole grew by.
        #[test]
        fn parts_add_up(values in prop::collection::vec(prop_oneof![4 => (0u32..1000).prop_map(f64::from), 1 => Just(f64::NAN)], 0..40),
                        begin in 0i64..40, cut in 0i64..40, end in 0i64..40) {
            let t: Vec<i64> = (0..values.len() as i64).map(|i| i * 1000).collect();
            let mut edges = [begin * 1000 + 300, cut * 1000 + 500, end * 1000 + 900];
            edges.sort_unstable();
            let amount = |a, b| increase(&t, &values, a, b).map_or(0.0, |grown: Increase| grown.amount);
            let whole = amount(edges[0], edges[2]);
            let parts = amount(edges[0], edges[1]) + amount(edges[1], edges[2]);
            prop_assert!((whole - parts).abs() <= 1e-9 * (1.0 + whole));
            prop_assert!(whole >= 0.0);
        }

        /// Rates times their lengths are the increase.
        #[test]
        fn rates_and_increase_agree(increments in prop::collection::vec(0u32..10_000, 1..50)) {
            let mut total = 0.0;
            let mut values = vec![0.0];
            for increment in &increments { total += f64::from(*increment); values.push(total); }
            let t: Vec<i64> = (0..values.len() as i64).map(|i| i * S).collect();
            let rate = rates(&t, &values);
            prop_assert!((rate.value.iter().sum::<f64>() - total).abs() < 1e-6);
            prop_assert_eq!(increase(&t, &values, 0, *t.last().unwrap()).unwrap().amount, total);
        }
    }
}

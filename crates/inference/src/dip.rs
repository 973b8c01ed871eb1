//! A change under load: how deep throughput fell, and how long it took to come back.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Throughput is back when it reaches this share of its value before the change, or of its value at the end if that is less.
const BACK: f64 = 0.95;
/// The last part of the time after a change, whose mean is the value at the end.
const LATER: f64 = 0.25;
/// Moments whose mean is the value before the change.
const BEFORE: usize = 10;

/// What a change during a run did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Dip {
    /// Time of the change, in seconds.
    pub at_s: f64,
    /// Mean of the moments before it, ten at most.
    pub before: f64,
    /// The lowest value between the change and being back.
    pub lowest: f64,
    pub lowest_at_s: f64,
    /// Mean of the last quarter of the time after it.
    pub later: f64,
    /// First moment, from the lowest one on, that reached 95 % of `before`, or of `later` where that is less; `None` where none did.
    pub back_at_s: Option<f64>,
}

impl Dip {
    /// Returns how much of `before` was missing at the lowest, in per cent; 0 where nothing was.
    pub fn percent(&self) -> f64 {
        100.0 * (1.0 - self.lowest / self.before).max(0.0)
    }

    /// Returns the time from the change until it was back, in seconds; 0 where it never fell that far.
    pub fn recovery_s(&self) -> Option<f64> {
        if self.lowest >= BACK * self.before {
            return Some(0.0);
        }
        self.back_at_s.map(|back_at_s| back_at_s - self.at_s)
    }
}

/// Returns the dip from (seconds, value) of moments in order of time. `None` where there are none before it or after it, or nothing was done before.
pub fn dip(moments: &[(f64, f64)], at_s: f64) -> Option<Dip> {
    let split = moments.partition_point(|(t, _)| *t < at_s);
    let (before, after) = moments.split_at(split);
    let mean = |moments: &[(f64, f64)]| {
        (!moments.is_empty())
            .then(|| moments.iter().map(|(_, value)| value).sum::<f64>() / moments.len() as f64)
    };
    let before = mean(&before[before.len().saturating_sub(BEFORE)..]).filter(|mean| *mean > 0.0)?;
    let last = ((after.len() as f64 * LATER).ceil() as usize).max(1);
    let later = mean(&after[after.len().saturating_sub(last)..])?;
    let target = BACK * before.min(later);
    // The first stretch below the target is the dip; a spike much later is another story.
    let begin = after.iter().position(|(_, value)| *value < target).unwrap_or(0);
    let end = after[begin..].iter().position(|(_, value)| *value >= target).map(|end| begin + end);
    let stretch = &after[begin..end.unwrap_or(after.len()).max(begin + 1)];
    let lowest = stretch.iter().copied().min_by(|one, other| one.1.total_cmp(&other.1))?;
    Some(Dip {
        at_s,
        before,
        lowest: lowest.1,
        lowest_at_s: lowest.0,
        later,
        back_at_s: end.map(|end| after[end].0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f64]) -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect()
    }

    #[test]
    fn a_dip_has_a_depth_and_an_end() {
        let found =
            dip(&moments(&[100.0, 100.0, 100.0, 40.0, 20.0, 60.0, 96.0, 100.0, 100.0, 100.0]), 3.0).unwrap();
        assert_eq!((found.before, found.lowest, found.lowest_at_s, found.later), (100.0, 20.0, 4.0, 100.0));
        assert_eq!((found.percent(), found.recovery_s()), (80.0, Some(3.0)));
    }

    #[test]
    fn what_ends_better_is_back_where_it_was() {
        let found = dip(&moments(&[100.0, 100.0, 50.0, 97.0, 150.0, 200.0, 200.0, 200.0]), 2.0).unwrap();
        assert_eq!((found.recovery_s(), found.later), (Some(1.0), 200.0));
        // And what ends worse, where it ends.
        let worse = dip(&moments(&[100.0, 100.0, 10.0, 30.0, 50.0, 50.0, 50.0, 50.0]), 2.0).unwrap();
        assert_eq!((worse.later, worse.back_at_s), (50.0, Some(4.0)));
    }

    #[test]
    fn what_never_fell_recovered_at_once() {
        let found = dip(&moments(&[100.0, 100.0, 100.0, 99.0, 101.0]), 2.0).unwrap();
        assert_eq!((found.recovery_s(), found.percent()), (Some(0.0), 0.0));
        assert_eq!(dip(&moments(&[100.0]), 2.0), None);
        assert_eq!(dip(&moments(&[0.0, 0.0, 5.0]), 2.0), None, "nothing was done before");
    }
}

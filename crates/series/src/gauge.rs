//! Gauges: levels that were read now and then.

use crate::counter::around;
use crate::rollup::Rollup;

/// What a gauge did over a window, added up in order of time. Nothing is added for what lies next to a gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaugeTotal {
    /// Value times nanoseconds, over the part of the window that lies between readings.
    area: f64,
    covered_ns: i64,
    /// Of the readings in the window.
    sum: f64,
    count: u64,
    /// `NaN` where there is no reading.
    max: f64,
}

impl GaugeTotal {
    /// Nothing yet.
    pub const NONE: GaugeTotal = GaugeTotal { area: 0.0, covered_ns: 0, sum: 0.0, count: 0, max: f64::NAN };

    /// Adds the part in the window of the line between two neighbouring readings.
    pub fn add_line(&mut self, t_ns: [i64; 2], value: [f64; 2], begin_ns: i64, end_ns: i64) {
        let from_ns = t_ns[0].max(begin_ns);
        let to_ns = t_ns[1].min(end_ns);
        if to_ns <= from_ns || !value[0].is_finite() || !value[1].is_finite() {
            return;
        }
        let from = between(t_ns, value, from_ns);
        let to = between(t_ns, value, to_ns);
        self.area += (from + to) / 2.0 * (to_ns - from_ns) as f64;
        self.covered_ns += to_ns - from_ns;
    }

    /// Adds a reading, where it lies in the window.
    pub fn add_reading(&mut self, t_ns: i64, value: f64, begin_ns: i64, end_ns: i64) {
        if t_ns >= begin_ns && t_ns <= end_ns && value.is_finite() {
            self.sum += value;
            self.count += 1;
            self.max = self.max.max(value);
        }
    }

    /// Adds all readings of a roll-up, which lie in the window, from `first_ns` to `last_ns` without a gap. Its mean is that of readings at equal
    /// distances: exactly right where they are equal.
    pub fn add_rollup(&mut self, rollup: &Rollup, first_ns: i64, last_ns: i64) {
        self.sum += rollup.sum;
        self.count += u64::from(rollup.count);
        self.max = self.max.max(rollup.max);
        if rollup.count > 1 && last_ns > first_ns {
            let lines = rollup.sum - (rollup.first + rollup.last) / 2.0;
            self.area += lines / f64::from(rollup.count - 1) * (last_ns - first_ns) as f64;
            self.covered_ns += last_ns - first_ns;
        }
    }

    /// The mean weighted by time; without two neighbouring readings that of the readings. `None` where there is none.
    pub fn mean(&self) -> Option<f64> {
        if self.covered_ns > 0 {
            return Some(self.area / self.covered_ns as f64);
        }
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// The highest reading; where none lies in the window, the mean there.
    pub fn max(&self) -> Option<f64> {
        if self.count > 0 { Some(self.max) } else { self.mean() }
    }
}

/// Time-weighted mean over `[begin_ns, end_ns]`, the gauge taken to run straight from reading to
/// reading. What lies outside the readings, or next to a gap, has no weight. A window without two
/// neighbouring readings gives the mean of the readings that lie in it; `None` where there is none.
pub fn mean_over(t_ns: &[i64], value: &[f64], begin_ns: i64, end_ns: i64) -> Option<f64> {
    total_over(t_ns, value, begin_ns, end_ns).mean()
}

/// Highest reading in `[begin_ns, end_ns]`; where none lies in it, the mean there. `None` where nothing is known.
pub fn max_over(t_ns: &[i64], value: &[f64], begin_ns: i64, end_ns: i64) -> Option<f64> {
    total_over(t_ns, value, begin_ns, end_ns).max()
}

fn total_over(t_ns: &[i64], value: &[f64], begin_ns: i64, end_ns: i64) -> GaugeTotal {
    let (t_ns, value) = around(t_ns, value, begin_ns, end_ns);
    let mut total = GaugeTotal::NONE;
    for (t, v) in t_ns.windows(2).zip(value.windows(2)) {
        total.add_line([t[0], t[1]], [v[0], v[1]], begin_ns, end_ns);
    }
    for (t, v) in t_ns.iter().zip(value) {
        total.add_reading(*t, *v, begin_ns, end_ns);
    }
    total
}

/// Lowest reading in `[begin_ns, end_ns]`; where none lies in it, the mean there. `None` where nothing is known.
pub fn min_over(t_ns: &[i64], value: &[f64], begin_ns: i64, end_ns: i64) -> Option<f64> {
    let lowest = points_between(t_ns, value, begin_ns, end_ns).reduce(f64::min);
    lowest.or_else(|| mean_over(t_ns, value, begin_ns, end_ns))
}

fn points_between<'a>(
    t_ns: &'a [i64],
    value: &'a [f64],
    begin_ns: i64,
    end_ns: i64,
) -> impl Iterator<Item = f64> + 'a {
    let readings = t_ns.iter().zip(value);
    readings.filter(move |(t, v)| **t >= begin_ns && **t <= end_ns && v.is_finite()).map(|(_, v)| *v)
}

fn between(t: [i64; 2], v: [f64; 2], at_ns: i64) -> f64 {
    let share = (at_ns - t[0]) as f64 / (t[1] - t[0]) as f64;
    v[0] + (v[1] - v[0]) * share
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mean_weighs_by_time() {
        // 1 s at 10, then 9 s at 0 (with a steep fall between).
        let t = [0, 1_000, 1_001, 10_001];
        let v = [10.0, 10.0, 0.0, 0.0];
        let mean = mean_over(&t, &v, 0, 10_001).unwrap();
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn a_window_partly_covered_knows_only_its_part() {
        assert_eq!(mean_over(&[0, 10], &[5.0, 5.0], 5, 1000), Some(5.0));
        assert_eq!(mean_over(&[0, 10], &[0.0, 10.0], 2, 4), Some(3.0));
        assert_eq!(mean_over(&[0, 10], &[0.0, 10.0], 20, 30), None);
        assert_eq!(mean_over(&[5], &[7.0], 0, 10), Some(7.0));
    }

    #[test]
    fn a_gap_has_no_weight() {
        let t = [0, 10, 20, 30, 40];
        let v = [1.0, 1.0, f64::NAN, 3.0, 3.0];
        assert_eq!(mean_over(&t, &v, 0, 40), Some(2.0));
        assert_eq!(max_over(&t, &v, 0, 25), Some(1.0));
        assert_eq!(min_over(&t, &v, 25, 40), Some(3.0));
    }

    #[test]
    fn a_roll_up_of_equal_distances_is_its_readings() {
        let t: Vec<i64> = (0..12).map(|at| at * 5 + 3).collect();
        let v: Vec<f64> = t.iter().map(|t| (t * t % 17) as f64).collect();
        let [rolled] = crate::roll_up(&t, &v, 100)[..] else { panic!("one bucket") };
        let mut total = GaugeTotal::NONE;
        total.add_rollup(&rolled, t[0], t[11]);
        assert!((total.mean().unwrap() - mean_over(&t, &v, 0, 100).unwrap()).abs() < 1e-12);
        assert_eq!(total.max(), max_over(&t, &v, 0, 100));
    }

    proptest! {
        #[test]
        fn the_mean_lies_between_the_extremes(v in prop::collection::vec(-1e6f64..1e6, 1..50), a in 0i64..60_000, b in 0i64..60_000) {
            let t: Vec<i64> = (0..v.len() as i64).map(|i| i * 1000).collect();
            let (begin, end) = (a.min(b), a.max(b));
            if let Some(mean) = mean_over(&t, &v, begin, end) {
                let low = v.iter().copied().fold(f64::INFINITY, f64::min);
                let high = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                prop_assert!(mean >= low - 1e-6 && mean <= high + 1e-6);
            }
        }
    }
}

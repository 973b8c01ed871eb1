//! Gauges: levels that were read now and then.

use crate::counter::around;

/// Time-weighted mean over `[begin_ns, end_ns]`, the gauge taken to run straight from reading to
/// reading. What lies outside the readings, or next to a gap, has no weight. A window without two
/// neighbouring readings gives the mean of the readings that lie in it; `None` where there is none.
pub fn mean_over(t_ns: &[i64], value: &[f64], begin_ns: i64, end_ns: i64) -> Option<f64> {
    let (t_ns, value) = around(t_ns, value, begin_ns, end_ns);
    let mut area = 0.0;
    let mut covered_ns = 0i64;
    for (t, v) in t_ns.windows(2).zip(value.windows(2)) {
        let from_ns = t[0].max(begin_ns);
        let to_ns = t[1].min(end_ns);
        if to_ns <= from_ns || !v[0].is_finite() || !v[1].is_finite() {
            continue;
        }
        let from = between(t, v, from_ns);
        let to = between(t, v, to_ns);
        area += (from + to) / 2.0 * (to_ns - from_ns) as f64;
        covered_ns += to_ns - from_ns;
    }
    if covered_ns > 0 {
        return Some(area / covered_ns as f64);
    }
    let mut total = 0.0;
    let mut count = 0u32;
    for reading in points_between(t_ns, value, begin_ns, end_ns) {
        total += reading;
        count += 1;
    }
    (count > 0).then(|| total / f64::from(count))
}

/// Highest reading in `[begin_ns, end_ns]`; where none lies in it, the mean there. `None` where nothing is known.
pub fn max_over(t_ns: &[i64], value: &[f64], begin_ns: i64, end_ns: i64) -> Option<f64> {
    let highest = points_between(t_ns, value, begin_ns, end_ns).reduce(f64::max);
    highest.or_else(|| mean_over(t_ns, value, begin_ns, end_ns))
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

fn between(t: &[i64], v: &[f64], at_ns: i64) -> f64 {
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

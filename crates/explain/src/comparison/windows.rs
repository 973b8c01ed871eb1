//! Windows against each other, in place of starts.

use crate::study::Method;

use super::{Comparison, Metric, Of, Run, compare};

/// A window is cut into so many parts at most: more would follow each other more closely.
const PARTS_MAX: usize = 8;
/// A part is no shorter, in seconds, and holds so many readings at least.
const PART_S_MIN: f64 = 5.0;
const READINGS_A_PART_MIN: f64 = 2.0;

/// Into how many parts of one length a window is cut, 1 to 8; `interval_s`: between two readings. What follows closely is alike, so parts are long:
/// with a correlation of 0.3 from second to second, windows of 20 s and of 60 s that do not differ are told apart in 6 of 100 cases, with one
/// of 0.6 in 9, and windows of five minutes in 5.
pub fn parts_of_window(seconds: f64, interval_s: f64) -> usize {
    let least_s = PART_S_MIN.max(interval_s * READINGS_A_PART_MIN);
    ((seconds / least_s) as usize).clamp(1, PARTS_MAX)
}

/// Compares windows, or their parts: each is a [`Run`] with one level, which is nobody's.
pub fn compare_windows(
    first: &[Run],
    second: &[Run],
    of: Of,
    metric: Metric,
    matters_percent: f64,
) -> Comparison {
    let mut compared = compare(first, second, metric, matters_percent);
    compared.of = of;
    compared.first.dedup();
    compared.second.dedup();
    compared.why = match (of, compared.method) {
        (Of::Starts, _) => compared.why,
        (Of::Windows, Method::Paired) => format!(
            "The windows of both sides alternate in time, so each was paired with its neighbour ({} blocks): Student's t test of the logarithms of the \
             blocks' ratios.",
            first.len()
        ),
        (Of::Windows, Method::Welch) => "Each window is one value: Welch's t test of the logarithms. What drifted from the one side's windows to the \
                                         other's counts as a difference."
            .to_string(),
        (_, Method::Untested) => "A window is too short to be cut into parts: no interval is possible, and a ratio may be chance alone.".to_string(),
        (Of::Parts, _) => format!(
            "The windows were cut into {} and {} parts, each compared as one value: Welch's t test of the logarithms. It says what chance within these \
             windows would explain, and nothing of how another start of the server would differ.",
            first.len(),
            second.len()
        ),
    };
    compared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{At, Measured};
    use crate::testing::{Noise, ar1};

    /// A window's parts as runs, of one value a second.
    fn parts(id: &str, begin_s: i64, seconds: &[f64]) -> Vec<Run> {
        let count = parts_of_window(seconds.len() as f64, 1.0);
        let part = |(place, part): (usize, &[f64])| Run {
            id: id.to_string(),
            begin_ns: begin_s * 1_000_000_000 + place as i64,
            end_ns: begin_s * 1_000_000_000 + place as i64,
            levels: vec![Measured {
                at: At::default(),
                value: part.iter().sum::<f64>() / part.len() as f64,
                invalid_why: String::new(),
            }],
            ..Run::default()
        };
        seconds.chunks_exact(seconds.len() / count).take(count).enumerate().map(part).collect()
    }

    /// Seconds of a server that does 1,000 a second, give or take 5 %.
    fn noisy(noise: &mut Noise, seconds: usize, phi: f64) -> Vec<f64> {
        ar1(noise, seconds, phi).iter().map(|deviation| 1_000.0 * (1.0 + 0.05 * deviation)).collect()
    }

    #[test]
    fn windows_that_do_not_differ_are_seldom_told_apart() {
        for (seconds, phi, most) in
            [(20, 0.0, 0.07), (20, 0.3, 0.09), (60, 0.3, 0.08), (60, 0.6, 0.13), (300, 0.6, 0.08)]
        {
            let mut told = 0;
            for seed in 0..500 {
                let mut noise = Noise::new(seed);
                let one = parts("a", 10, &noisy(&mut noise, seconds, phi));
                let other = parts("a", 1_000, &noisy(&mut noise, seconds, phi));
                let compared = compare_windows(&one, &other, Of::Parts, Metric::TransactionsPerS, 3.0);
                let [low, high] = compared.rows[0].contrast.ci95.unwrap();
                told += u32::from(low > 1.0 || high < 1.0);
            }
            let share = f64::from(told) / 500.0;
            println!("{seconds} s, phi {phi}: {share}");
            assert!(share <= most, "{share} of windows of {seconds} s with phi {phi} are told apart");
        }
    }

    #[test]
    fn a_window_is_cut_where_it_is_long_enough() {
        let parts = |seconds, interval_s| parts_of_window(seconds, interval_s);
        assert_eq!([parts(4.0, 1.0), parts(12.0, 1.0), parts(40.0, 1.0), parts(1e6, 1.0)], [1, 2, 8, 8]);
        assert_eq!([parts(60.0, 10.0), parts(60.0, 0.1), parts(0.0, 1.0)], [3, 8, 1]);
    }

    #[test]
    fn the_words_say_what_was_compared() {
        let mut noise = Noise::new(1);
        let one = parts("a@0-20", 0, &noisy(&mut noise, 20, 0.0));
        let other = parts("a@30-50", 30, &noisy(&mut noise, 20, 0.0));
        let compared = compare_windows(&one, &other, Of::Parts, Metric::TransactionsPerS, 3.0);
        assert_eq!(
            (compared.first, compared.second),
            (vec!["a@0-20".to_string()], vec!["a@30-50".to_string()])
        );
        assert!(compared.why.contains("4 and 4 parts") && compared.method == Method::Welch);
        let short = compare_windows(&one[..1], &other[..1], Of::Parts, Metric::TransactionsPerS, 3.0);
        assert!(short.why.contains("too short") && short.rows[0].contrast.verdict.is_none());
    }
}

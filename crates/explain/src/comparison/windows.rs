//! Windows against each other, in place of starts.
//!
//! A window is cut into parts, and these are the values that are compared. Neighbouring seconds resemble each other, so parts do, too.
//! The spread of parts then understates how far the mean of a window may lie from the truth. So it is estimated how alike neighbouring
//! seconds are, and intervals are widened by what an autoregressive series of order 1 needs. Where that
//! is too much to be corrected, or a window is not steady, there is no interval.

use whyso_inference::Method;
use whyso_inference::trend;

use super::{Comparison, Metric, Of, Run, compare, compare_widened};

/// A window is cut into at most this many parts: more would follow each other more closely.
const PARTS_MAX: usize = 8;
/// A part is no shorter, in seconds, and holds at least this many readings.
const PART_S_MIN: f64 = 5.0;
const READINGS_A_PART_MIN: f64 = 2.0;

/// Correlation is estimated from this many readings at least.
const READINGS_MIN: usize = 10;
/// The estimate is raised by this many of its standard errors, and there are intervals up to this widening of variances. Both were
/// chosen by simulation, for windows of 20 s to 10 min with φ from 0 to 0.95. At most 5 % of comparisons have an interval that leaves out
/// the truth. For φ ≤ 0.6 and 30 s at least 90 % have one. The tests use other seeds.
const CORRELATION_ERRORS: f64 = 1.75;
const WIDENING_MAX: f64 = 5.5;
const CORRELATION_MAX: f64 = 0.98;

/// Why windows that were cut into parts have no interval, or what their variances are to be multiplied by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parts {
    /// A window is too short to be cut.
    TooShort,
    /// Throughput climbed or fell within a window.
    NotSteady,
    /// Neighbouring seconds are too much alike.
    TooCorrelated,
    /// Factors for the first and the second side.
    Widened([f64; 2]),
}

/// Into how many parts of one length a window is cut, 1 to 8; `interval_s`: between two readings.
pub fn parts_of_window(seconds: f64, interval_s: f64) -> usize {
    let least_s = PART_S_MIN.max(interval_s * READINGS_A_PART_MIN);
    ((seconds / least_s) as usize).clamp(1, PARTS_MAX)
}

/// What the parts of two sides are worth. A side has, for each of its windows, readings of one length in order of time. The number is that
/// of the parts that the window is cut into.
pub fn judge_parts(first: &[(Vec<f64>, usize)], second: &[(Vec<f64>, usize)]) -> Parts {
    let all: Vec<&(Vec<f64>, usize)> = first.iter().chain(second).collect();
    let is_short = |(readings, parts): &&(Vec<f64>, usize)| *parts < 2 || readings.len() < READINGS_MIN;
    if first.is_empty() || second.is_empty() || all.iter().any(is_short) {
        return Parts::TooShort;
    }
    let climbs = |readings: &[f64]| {
        trend::strongest(readings).is_some_and(|trend| trend.is_significant(readings.len(), 1.0))
    };
    if all.iter().any(|(readings, _)| climbs(readings)) {
        return Parts::NotSteady;
    }
    let phi = correlation(&all);
    // Of several windows on a side, the one that needs most stands for all.
    let of = |side: &[(Vec<f64>, usize)]| {
        side.iter().map(|(readings, parts)| widening(readings.len(), *parts, phi)).fold(1.0, f64::max)
    };
    let widening = [of(first), of(second)];
    if widening.iter().any(|factor| *factor > WIDENING_MAX || !factor.is_finite()) {
        return Parts::TooCorrelated;
    }
    Parts::Widened(widening)
}

/// Correlation of neighbouring readings within windows, on the safe side.
fn correlation(windows: &[&(Vec<f64>, usize)]) -> f64 {
    let (mut products, mut squares, mut count) = (0.0, 0.0, 0.0);
    for (readings, _) in windows {
        let mean = whyso_inference::bins::mean_of(readings);
        squares += readings.iter().map(|reading| (reading - mean).powi(2)).sum::<f64>();
        products += readings.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum::<f64>();
        count += readings.len() as f64;
    }
    if squares <= 0.0 {
        return 0.0;
    }
    let found = products / squares;
    // The correction of its bias, as in `interval`.
    let phi = found + (1.0 + 3.0 * found) * windows.len() as f64 / count;
    let error = ((1.0 - phi * phi).max(0.0) / count).sqrt();
    (phi.max(0.0) + CORRELATION_ERRORS * error).min(CORRELATION_MAX)
}

/// What the variance of a window's mean is, as a multiple of the one that follows from the spread of its parts.
fn widening(readings: usize, parts: usize, phi: f64) -> f64 {
    let parts_count = parts as f64;
    let in_part = (readings / parts).max(1) as f64;
    let of_part = variance_of_mean(in_part, phi);
    let of_window = variance_of_mean(in_part * parts_count, phi);
    of_window * (parts_count - 1.0) / (of_part - of_window)
}

/// Of the mean of this many values of an autoregressive series of order 1, as a multiple of the variance of one.
fn variance_of_mean(count: f64, phi: f64) -> f64 {
    let rest = 1.0 - phi;
    ((1.0 + phi) / rest - 2.0 * phi * (1.0 - phi.powf(count)) / (count * rest * rest)) / count
}

/// Compares windows, or their parts: each is a [`Run`] with one level, which is nobody's. `parts`: of parts, what they are worth; where
/// that is no interval, each side has one run for each of its windows.
pub fn compare_windows(
    first: &[Run],
    second: &[Run],
    of: Of,
    parts: Parts,
    metric: Metric,
    matters_percent: f64,
) -> Comparison {
    let mut compared = match (of, parts) {
        (Of::Parts, Parts::Widened(widening)) => {
            compare_widened(first, second, metric, matters_percent, Some(widening))
        }
        _ => compare(first, second, metric, matters_percent),
    };
    compared.of = of;
    compared.first.dedup();
    compared.second.dedup();
    compared.why = why(of, parts, compared.method, first.len(), second.len(), compared.why);
    compared
}

fn why(of: Of, parts: Parts, method: Method, first: usize, second: usize, of_starts: String) -> String {
    match (of, parts, method) {
        (Of::Starts, ..) => of_starts,
        (Of::Windows, _, Method::Paired) => format!(
            "The windows of both sides alternate in time, so each was paired with its neighbour ({first} blocks): Student's t test of the logarithms of the \
             blocks' ratios."
        ),
        (Of::Windows, _, Method::Welch) => "Each window is one value: Welch's t test of the logarithms. What drifted from the one side's windows to the \
                                            other's counts as a difference."
            .to_string(),
        (_, Parts::NotSteady, _) => "Throughput climbed or fell within a window: no interval holds there, and the ratio is that of the windows' means.".to_string(),
        (_, Parts::TooCorrelated, _) => "Neighbouring seconds of these windows are so much alike that no interval holds: a ratio may be chance. Compare longer \
                                         windows."
            .to_string(),
        (_, _, Method::Untested) | (_, Parts::TooShort, _) => {
            "A window is too short to be cut into parts: no interval is possible, and a ratio may be chance.".to_string()
        }
        (Of::Parts, Parts::Widened(_), _) => format!(
            "The windows were cut into {first} and {second} parts, each compared as one value: Welch's t test of the logarithms, widened for how much \
             neighbouring seconds are alike. It says what chance within these windows would explain, and nothing of how another start of the \
             server would differ."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::{At, LevelValue};
    use whyso_inference::bins::mean_of;
    use whyso_inference::{Sides, Verdict, contrast};
    use whyso_random::noise::{Noise, ar1};

    /// A window of one value per second, as the runs of its parts.
    fn runs(id: &str, begin_s: i64, seconds: &[f64], count: usize) -> Vec<Run> {
        let part = |(place, part): (usize, &[f64])| Run {
            id: id.to_string(),
            begin_ns: begin_s * 1_000_000_000 + place as i64,
            end_ns: begin_s * 1_000_000_000 + place as i64,
            levels: vec![LevelValue {
                at: At::default(),
                value: part.iter().sum::<f64>() / part.len() as f64,
                invalid_why: String::new(),
            }],
            ..Run::default()
        };
        seconds.chunks_exact(seconds.len() / count).take(count).enumerate().map(part).collect()
    }

    fn cut(seconds: &[f64]) -> (Vec<f64>, usize) {
        (seconds.to_vec(), parts_of_window(seconds.len() as f64, 1.0))
    }

    fn compared(one: &[f64], other: &[f64]) -> Comparison {
        let (first, second) = (cut(one), cut(other));
        let parts = judge_parts(std::slice::from_ref(&first), std::slice::from_ref(&second));
        let has_interval = matches!(parts, Parts::Widened(_));
        let count = |cut: &(Vec<f64>, usize)| if has_interval { cut.1 } else { 1 };
        let first = runs("a@0-20", 0, one, count(&first));
        let second = runs("a@30-50", 1_000_000, other, count(&second));
        compare_windows(&first, &second, Of::Parts, parts, Metric::TransactionsPerS, 3.0)
    }

    /// Seconds of a server that does 1,000 transactions per second, with a standard deviation of 5 %.
    fn noisy(noise: &mut Noise, seconds: usize, phi: f64) -> Vec<f64> {
        ar1(noise, seconds, phi).iter().map(|deviation| 1_000.0 * (1.0 + 0.05 * deviation)).collect()
    }

    /// Shares of pairs of windows that do not differ: those with an interval, and those whose interval shows a difference. None of the
    /// constants was chosen on these seeds.
    fn judged_and_wrong(seconds: [usize; 2], phi: f64) -> (f64, f64) {
        let (mut judged, mut wrong) = (0, 0);
        for seed in 200_000..201_000 {
            let mut noise = Noise::new(seed);
            let [one, other] = seconds.map(|seconds| noisy(&mut noise, seconds, phi));
            // As `compared`, without the smallest detectable difference, which takes most of the time.
            let (first, second) = (cut(&one), cut(&other));
            let parts = judge_parts(std::slice::from_ref(&first), std::slice::from_ref(&second));
            let Parts::Widened(widening) = parts else { continue };
            let means = |seconds: &[f64], count: usize| -> Vec<f64> {
                let part = seconds.len() / count;
                seconds.chunks_exact(part).take(count).map(mean_of).collect()
            };
            let (first, second) = (means(&one, first.1), means(&other, second.1));
            let found = contrast(&Sides::Correlated { first, second, widening });
            let [low, high] = found.and_then(|found| found.ci95).unwrap();
            judged += 1;
            wrong += u32::from(low > 1.0 || high < 1.0);
        }
        (f64::from(judged) / 1_000.0, f64::from(wrong) / 1_000.0)
    }

    #[test]
    fn windows_that_do_not_differ_are_seldom_found_to_differ_however_correlated() {
        for seconds in [[20, 20], [30, 30], [60, 60], [30, 300], [300, 300]] {
            for phi in [0.0, 0.3, 0.6, 0.8, 0.9] {
                let (judged, wrong) = judged_and_wrong(seconds, phi);
                println!("{seconds:?} s, phi {phi}: {judged} with an interval, {wrong} wrong");
                // 5 % of 1,000, and two standard errors.
                assert!(
                    wrong <= 0.064,
                    "{wrong} of windows of {seconds:?} s with phi {phi} are found to differ"
                );
                assert!(
                    judged >= 0.9 || phi > 0.6 || seconds[0] < 30,
                    "{judged} of {seconds:?} s with phi {phi}"
                );
            }
        }
    }

    #[test]
    fn there_is_no_interval_where_it_would_not_hold() {
        let mut noise = Noise::new(1);
        let walk = |noise: &mut Noise| noisy(noise, 30, 0.98);
        let judged = (0..50).filter(|_| {
            let [one, other] = [0, 1].map(|_| walk(&mut noise));
            compared(&one, &other).rows[0].contrast.ci95.is_some()
        });
        assert!(judged.count() <= 10);
        let ramp: Vec<f64> = (0..60).map(|second| 1_000.0 + 10.0 * f64::from(second)).collect();
        let flat = noisy(&mut noise, 60, 0.0);
        let found = compared(&ramp, &flat);
        assert!(found.why.starts_with("Throughput climbed or fell within a window"), "{}", found.why);
        assert_eq!((found.rows[0].contrast.ci95, found.rows[0].contrast.verdict), (None, None));
    }

    #[test]
    fn a_difference_is_still_found() {
        let found = (0..100).filter(|seed| {
            let mut noise = Noise::new(80_000 + seed);
            let one = noisy(&mut noise, 60, 0.3);
            let other: Vec<f64> = noisy(&mut noise, 60, 0.3).iter().map(|value| value * 1.1).collect();
            compared(&one, &other).rows[0].contrast.verdict == Some(Verdict::Faster)
        });
        assert!(found.count() >= 90);
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
        let [one, other] = [0, 1].map(|_| noisy(&mut noise, 20, 0.0));
        let found = compared(&one, &other);
        assert_eq!((found.first, found.second), (vec!["a@0-20".to_string()], vec!["a@30-50".to_string()]));
        assert!(found.why.contains("4 and 4 parts") && found.method == Method::Welch);
        let short = compared(&one[..4], &other[..4]);
        assert!(short.why.contains("too short") && short.rows[0].contrast.verdict.is_none());
    }
}

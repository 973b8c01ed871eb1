//! Two sides of fresh starts that nobody ordered into blocks beforehand: paired where they alternated in time, otherwise side by side.

use serde::{Deserialize, Serialize};

use crate::effect::tested;
use crate::equivalence::equivalence_p;
use crate::holm::holm;
use crate::interval::t_quantile_975;
use crate::student::{power, two_sided_p};
use crate::verdict::Verdict;

/// As in a study: found below this, and to be seen in four of five repetitions.
const ALPHA: f64 = 0.05;
const POWER: f64 = 0.8;

/// How two sides were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Student's t test of the logarithms of the ratios within blocks.
    Paired,
    /// Welch's t test of the logarithms.
    Welch,
    /// A side, or all pairs together, has but one start: nothing is known of how starts differ.
    Untested,
}

/// What was measured of two sides.
#[derive(Clone, Debug, PartialEq)]
pub enum Sides {
    /// Neighbours in time, which resemble each other: of each side, by how much the variance of its mean is larger than it seems.
    Correlated {
        first: Vec<f64>,
        second: Vec<f64>,
        widening: [f64; 2],
    },
    /// (first, second) of each block.
    Paired(Vec<(f64, f64)>),
    Apart {
        first: Vec<f64>,
        second: Vec<f64>,
    },
}

/// The second side as a multiple of the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    pub method: Method,
    /// Ratio of the geometric means.
    pub ratio: f64,
    /// 95 %, over the logarithms; `None` where the method is none.
    pub ci95: Option<[f64; 2]>,
    /// Degrees of freedom of the test.
    pub degrees: Option<f64>,
    /// Probability of a difference like this one or a greater where there is none; two-sided, not corrected for other comparisons.
    pub p: Option<f64>,
    /// The same, corrected for all comparisons of the report ([`judge`]).
    pub p_corrected: Option<f64>,
    /// Probability of a difference as small as this one where the true one matters, corrected likewise: below 5 % the sides are equivalent
    /// ([`judge`]).
    #[serde(default)]
    pub p_equivalence: Option<f64>,
    /// The smallest ratio above 1 that would be found in four of five repetitions, if both sides spread as they did. The test has the level that is
    /// left for one of all comparisons ([`judge`]).
    #[serde(rename = "smallest_seen")]
    pub smallest_detectable: Option<f64>,
    /// `None` where nothing was tested.
    pub verdict: Option<Verdict>,
}

/// Compares two sides, not yet judged. What is not above 0 is left out, in pairs with what it is paired with; `None` where a side has nothing left.
pub fn contrast(sides: &Sides) -> Option<Contrast> {
    match sides {
        Sides::Paired(pairs) => paired(pairs),
        Sides::Apart { first, second } => apart(&logs(first), &logs(second), [1.0; 2]),
        Sides::Correlated { first, second, widening } => apart(&logs(first), &logs(second), *widening),
    }
}

fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().filter(|value| value.is_finite() && **value > 0.0).map(|value| value.ln()).collect()
}

fn untested(ratio: f64) -> Contrast {
    Contrast {
        method: Method::Untested,
        ratio,
        ci95: None,
        degrees: None,
        p: None,
        p_corrected: None,
        p_equivalence: None,
        smallest_detectable: None,
        verdict: None,
    }
}

fn paired(pairs: &[(f64, f64)]) -> Option<Contrast> {
    let effect = tested(pairs)?;
    let (Some(ci95), Some(p)) = (effect.t95, effect.p) else {
        return Some(untested(effect.ratio));
    };
    Some(Contrast {
        method: Method::Paired,
        ci95: Some(ci95),
        degrees: Some(f64::from(effect.blocks - 1)),
        p: Some(p),
        ..untested(effect.ratio)
    })
}

/// B. L. Welch, "The generalization of 'Student's' problem when several different population variances are involved", Biometrika 34, 1947; the
/// degrees of freedom by F. E. Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2, 1946.
fn apart(first: &[f64], second: &[f64], widening: [f64; 2]) -> Option<Contrast> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let mean = |logs: &[f64]| logs.iter().sum::<f64>() / logs.len() as f64;
    let difference = mean(second) - mean(first);
    let untested = untested(difference.exp());
    if first.len() < 2 || second.len() < 2 {
        return Some(untested);
    }
    // Of a side: the variance of its mean, and its degrees of freedom.
    let of_mean = |logs: &[f64], widening: f64| {
        let (mean, degrees) = (mean(logs), logs.len() as f64 - 1.0);
        let squares: f64 = logs.iter().map(|log| (log - mean) * (log - mean)).sum();
        (widening * squares / degrees / logs.len() as f64, degrees)
    };
    let (first_variance, first_degrees) = of_mean(first, widening[0]);
    let (second_variance, second_degrees) = of_mean(second, widening[1]);
    let variance = first_variance + second_variance;
    let degrees = match variance * variance
        / (first_variance * first_variance / first_degrees
            + second_variance * second_variance / second_degrees)
    {
        degrees if degrees.is_finite() => degrees,
        // Neither side spreads at all.
        _ => first_degrees + second_degrees,
    };
    let error = variance.sqrt();
    let half = t_quantile_975(degrees) * error;
    Some(Contrast {
        method: Method::Welch,
        ci95: Some([(difference - half).exp(), (difference + half).exp()]),
        degrees: Some(degrees),
        p: Some(two_sided_p(difference, error, degrees)),
        ..untested
    })
}

/// Standard error of the logarithm of the ratio, and its degrees of freedom.
fn error(contrast: &Contrast) -> Option<(f64, f64)> {
    let ([low, high], degrees) = (contrast.ci95?, contrast.degrees?);
    Some(((high.ln() - low.ln()) / 2.0 / t_quantile_975(degrees), degrees))
}

/// The smallest ratio above 1 that is found in four of five repetitions, by the power of either t test.
fn smallest_detectable(contrast: &Contrast, alpha: f64) -> Option<f64> {
    let (error, degrees) = error(contrast)?;
    Some((errors_detectable(degrees, alpha) * error).exp()).filter(|ratio| ratio.is_finite())
}

/// Standard errors of a difference that a test at level `alpha` finds in four of five repetitions.
fn errors_detectable(degrees: f64, alpha: f64) -> f64 {
    let (mut low, mut high) = (0.0, 4.0);
    // One degree of freedom needs some 26 of them at 5 %, and ten times as many at a tenth of that.
    while power(degrees, high, alpha) < POWER && high < 1e5 {
        high *= 2.0;
    }
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if power(degrees, middle, alpha) < POWER { low = middle } else { high = middle }
    }
    high
}

/// Corrects the probabilities of all comparisons by Holm, and says what each means. `matters`: the smallest difference that is worth knowing, as
/// a ratio above 1. `more_is_faster`: false for times.
pub fn judge(contrasts: &mut [Contrast], matters: f64, more_is_faster: bool) {
    let mut of_tests: Vec<&mut Contrast> =
        contrasts.iter_mut().filter(|contrast| contrast.p.is_some()).collect();
    let corrected = holm(&of_tests.iter().filter_map(|contrast| contrast.p).collect::<Vec<f64>>());
    let small = of_tests.iter().map(|contrast| {
        error(contrast)
            .map_or(1.0, |(error, degrees)| equivalence_p(contrast.ratio.ln(), error, degrees, matters))
    });
    let small = holm(&small.collect::<Vec<f64>>());
    let alpha = ALPHA / of_tests.len().max(1) as f64;
    for ((contrast, p), p_equivalence) in of_tests.iter_mut().zip(corrected).zip(small) {
        contrast.p_corrected = Some(p);
        contrast.p_equivalence = Some(p_equivalence);
        contrast.smallest_detectable = smallest_detectable(contrast, alpha);
        contrast.verdict = Some(match p < ALPHA {
            true if (contrast.ratio > 1.0) == more_is_faster => Verdict::Faster,
            true => Verdict::Slower,
            false if p_equivalence < ALPHA => Verdict::NoDifferenceFound,
            false => Verdict::TooNoisyToSay,
        });
    }
}

/// Pairs of neighbours in time, as places in `first` and in `second`, from the moments at which their runs began. `None` unless the runs, in order, fall into two or more blocks of two, each
/// with one run of either side.
pub fn blocks_in_time(first: &[i64], second: &[i64]) -> Option<Vec<(usize, usize)>> {
    let of = |begins: &[i64], is_second: bool| -> Vec<(i64, bool, usize)> {
        begins.iter().enumerate().map(|(at, begin)| (*begin, is_second, at)).collect()
    };
    let mut all = of(first, false);
    all.extend(of(second, true));
    all.sort_unstable();
    let has_an_order = all.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if first.len() != second.len() || first.len() < 2 || !has_an_order {
        return None;
    }
    all.chunks(2)
        .map(|block| match block {
            [(_, false, one), (_, true, other)] | [(_, true, other), (_, false, one)] => Some((*one, *other)),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use whyso_random::noise::Noise;

    fn apart_of(first: &[f64], second: &[f64]) -> Contrast {
        contrast(&Sides::Apart { first: first.to_vec(), second: second.to_vec() }).unwrap()
    }

    /// By hand from the formulas.
    #[test]
    fn welchs_test_has_his_t_and_satterthwaites_degrees() {
        let first: Vec<f64> = [1.0, 2.0, 3.0, 4.0, 5.0].map(f64::exp).to_vec();
        let second: Vec<f64> = [4.0, 6.0, 8.0, 6.0].map(f64::exp).to_vec();
        let found = apart_of(&first, &second);
        // Variances 5/2 of five and 8/3 of four: 1/2 and 2/3 of the means.
        let (variance, degrees) =
            (0.5 + 2.0 / 3.0, (7.0_f64 / 6.0).powi(2) / (0.25 / 4.0 + (4.0 / 9.0) / 3.0));
        assert_eq!(found.method, Method::Welch);
        assert!((found.ratio.ln() - 3.0).abs() < 1e-9);
        assert!((found.degrees.unwrap() - degrees).abs() < 1e-9, "{found:?}");
        let [low, high] = found.ci95.unwrap().map(f64::ln);
        let half = t_quantile_975(degrees) * f64::sqrt(variance);
        assert!((high - 3.0 - half).abs() < 1e-9 && (3.0 - low - half).abs() < 1e-9);
    }

    /// B. L. Welch's test of data that R's documentation of t.test has: `sleep` (Student 1908), both drugs as independent groups. As R prints it: t = -1.8608, df = 17.776, p-value = 0.07939.
    #[test]
    fn it_gives_what_others_give() {
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0].map(f64::exp);
        let other = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4].map(f64::exp);
        let found = apart_of(&one, &other);
        assert!((found.degrees.unwrap() - 17.776).abs() < 1e-3, "{found:?}");
        assert!((found.p.unwrap() - 0.079_39).abs() < 1e-5, "{found:?}");
        let [low, high] = found.ci95.unwrap().map(f64::ln);
        assert!((low + 0.205_483).abs() < 1e-5 && (high - 3.365_483).abs() < 1e-5, "{low} {high}");
    }

    #[test]
    fn with_one_start_nothing_is_tested() {
        for sides in [
            Sides::Apart { first: vec![100.0], second: vec![110.0] },
            Sides::Apart { first: vec![100.0], second: vec![110.0, 0.0] },
            Sides::Paired(vec![(100.0, 110.0), (0.0, 7.0)]),
        ] {
            let mut found = [contrast(&sides).unwrap()];
            judge(&mut found, 1.03, true);
            assert!((found[0].ratio - 1.1).abs() < 1e-9);
            assert_eq!(
                (found[0].method, found[0].ci95, found[0].p_corrected, found[0].verdict),
                (Method::Untested, None, None, None)
            );
        }
        assert_eq!(contrast(&Sides::Apart { first: vec![f64::NAN], second: vec![1.0] }), None);
    }

    fn normal_logs(noise: &mut Noise, count: usize, mean: f64, sd: f64) -> Vec<f64> {
        (0..count).map(|_| (mean + sd * noise.normal()).exp()).collect()
    }

    #[test]
    fn where_sides_spread_differently_one_in_twenty_is_still_one_in_twenty() {
        let mut noise = Noise::new(3);
        let count = 4_000;
        let mut share_found = |difference: f64| {
            let is_found = (0..count).filter(|_| {
                let first = normal_logs(&mut noise, 4, 7.0, 0.01);
                let second = normal_logs(&mut noise, 8, 7.0 + difference, 0.04);
                apart_of(&first, &second).p.unwrap() < ALPHA
            });
            is_found.count() as f64 / f64::from(count)
        };
        let by_chance = share_found(0.0);
        assert!((0.035..=0.065).contains(&by_chance), "{by_chance}");
        // The true standard error, and degrees close to those of the noisier side.
        let error = (0.01_f64.powi(2) / 4.0 + 0.04_f64.powi(2) / 8.0).sqrt();
        let share = share_found(errors_detectable(8.6, ALPHA) * error);
        assert!((share - POWER).abs() < 0.03, "{share}");
    }

    #[test]
    fn verdicts_are_those_of_studies_and_for_times_more_is_slower() {
        let sides = |second: [f64; 4]| apart_of(&[100.0, 100.2, 99.8, 100.1], &second);
        let all = [
            sides([110.0, 110.3, 109.8, 110.0]),
            sides([100.1, 99.9, 100.2, 100.0]),
            sides([80.0, 140.0, 90.0, 120.0]),
        ];
        let verdicts = |more_is_faster: bool| {
            let mut all = all;
            judge(&mut all, 1.03, more_is_faster);
            all.map(|one| one.verdict.unwrap())
        };
        let rest = [Verdict::NoDifferenceFound, Verdict::TooNoisyToSay];
        assert_eq!(verdicts(true), [Verdict::Faster, rest[0], rest[1]]);
        assert_eq!(verdicts(false), [Verdict::Slower, rest[0], rest[1]]);
    }

    #[test]
    fn pairs_detect_what_a_study_of_them_detects() {
        let pairs = vec![(100.0, 104.0), (101.0, 103.0), (99.0, 104.5), (100.0, 102.0)];
        let of_study = crate::effect::effect(&pairs).unwrap();
        let mut found = [contrast(&Sides::Paired(pairs)).unwrap()];
        judge(&mut found, 1.03, true);
        let (detectable, expected) =
            (found[0].smallest_detectable.unwrap(), of_study.smallest_detectable.unwrap());
        assert!((detectable - expected).abs() < 1e-6, "{detectable}, not {expected}");
        assert_eq!((found[0].p, found[0].ci95), (of_study.p, of_study.t95));
    }

    #[test]
    fn only_neighbours_in_time_are_paired() {
        assert_eq!(blocks_in_time(&[1, 3], &[2, 4]), Some(vec![(0, 0), (1, 1)]), "A B A B");
        assert_eq!(blocks_in_time(&[2, 3], &[1, 4]), Some(vec![(0, 0), (1, 1)]), "B A A B");
        assert_eq!(
            blocks_in_time(&[9, 1], &[8, 2]),
            Some(vec![(1, 1), (0, 0)]),
            "in whichever order they are named"
        );
        assert_eq!(blocks_in_time(&[1, 2], &[3, 4]), None, "A A B B");
        assert_eq!(blocks_in_time(&[1, 4, 5], &[2, 3, 6]), Some(vec![(0, 0), (1, 1), (2, 2)]));
        assert_eq!(blocks_in_time(&[1, 3, 5], &[2, 4]), None, "A B A B A");
        assert_eq!(blocks_in_time(&[1], &[2]), None);
        assert_eq!(blocks_in_time(&[0, 0], &[0, 0]), None, "when they began is not known");
    }

    proptest! {
        #[test]
        fn turning_the_question_around_turns_the_answer_around(
            one in prop::collection::vec(1.0f64..1e6, 2..9),
            other in prop::collection::vec(1.0f64..1e6, 2..9),
        ) {
            let (there, back) = (apart_of(&one, &other), apart_of(&other, &one));
            prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert!((there.ci95.unwrap()[0].ln() + back.ci95.unwrap()[1].ln()).abs() < 1e-6);
            prop_assert!((there.p.unwrap() - back.p.unwrap()).abs() < 1e-9);
            let least = (one.len().min(other.len()) - 1) as f64;
            let degrees = there.degrees.unwrap();
            prop_assert!(degrees >= least - 1e-9 && degrees <= (one.len() + other.len() - 2) as f64 + 1e-9);
        }
    }
}

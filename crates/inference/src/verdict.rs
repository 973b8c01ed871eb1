//! What a comparison says, in a word.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::effect::{Effect, effect};
use crate::equivalence::equivalence_p;
use crate::holm::holm;
use crate::interval::t_quantile_975;
use crate::power::smallest_detectable;

/// Found where the corrected probability is below this.
const ALPHA: f64 = 0.05;
/// Where the baseline's own starts spread more than this (standard deviation of their logarithms), a difference from it means little.
const UNSTABLE_SD_LOG: f64 = 0.15;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Faster,
    Slower,
    /// None was found, and an equivalence test shows that it is smaller than what matters.
    NoDifferenceFound,
    /// None was found, and there may be one that matters.
    TooNoisyToSay,
}

impl Verdict {
    /// Returns the verdict for a measure that is better where it is lower.
    pub fn turned(self) -> Verdict {
        match self {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            other => other,
        }
    }

    /// Returns whether a difference was found.
    pub fn is_found(self) -> bool {
        matches!(self, Verdict::Faster | Verdict::Slower)
    }

    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifferenceFound => "no difference found",
            Verdict::TooNoisyToSay => "too noisy to say",
        }
    }
}

/// A comparison among others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantComparison {
    pub effect: Effect,
    /// `effect.p`, corrected for all comparisons of the study; `None` with fewer than two blocks.
    pub p_corrected: Option<f64>,
    /// Probability of a difference as small as this one where the true one matters, corrected likewise: below 5 % the two are equivalent.
    #[serde(default)]
    pub p_equivalence: Option<f64>,
    pub verdict: Verdict,
}

/// Compares variants with the baseline, each by (baseline, variant) of its blocks. `None` for a variant of which nothing was measured. `matters` is
/// the smallest difference that is worth knowing, as a ratio above 1.
pub fn compare(comparisons: &[Vec<(f64, f64)>], matters: f64) -> Vec<Option<VariantComparison>> {
    let effects: Vec<Option<Effect>> = comparisons.iter().map(|pairs| effect(pairs)).collect();
    let mut compared = judged(&effects, matters);
    let tests = compared.iter().flatten().filter(|comparison| comparison.p_corrected.is_some()).count();
    for VariantComparison { effect, .. } in compared.iter_mut().flatten() {
        effect.smallest_detectable =
            effect.sd_log.and_then(|sd_log| smallest_detectable(effect.blocks, sd_log, tests));
    }
    compared
}

/// Effects with their verdicts.
fn judged(effects: &[Option<Effect>], matters: f64) -> Vec<Option<VariantComparison>> {
    let different: Vec<f64> = effects.iter().flatten().filter_map(|effect| effect.p).collect();
    let small: Vec<f64> = effects.iter().flatten().filter_map(|effect| of_effect(effect, matters)).collect();
    let (mut different, mut small) = (holm(&different).into_iter(), holm(&small).into_iter());
    let mut compared = |effect: Effect| {
        let p_corrected = effect.p.and_then(|_| different.next());
        let p_equivalence = effect.p.and_then(|_| small.next());
        let is_equivalent = p_equivalence.is_some_and(|p| p < ALPHA);
        let verdict = match p_corrected {
            Some(p) if p < ALPHA && effect.ratio > 1.0 => Verdict::Faster,
            Some(p) if p < ALPHA => Verdict::Slower,
            _ if is_equivalent => Verdict::NoDifferenceFound,
            _ => Verdict::TooNoisyToSay,
        };
        VariantComparison { effect, p_corrected, p_equivalence, verdict }
    };
    let mut found = Vec::with_capacity(effects.len());
    for effect in effects {
        found.push(effect.map(&mut compared));
    }
    found
}

/// [`equivalence_p`] of an effect; `None` with fewer than two blocks, as for its `p`.
fn of_effect(effect: &Effect, matters: f64) -> Option<f64> {
    effect.p?;
    let blocks = f64::from(effect.blocks);
    let error = effect.sd_log.unwrap_or(f64::INFINITY) / blocks.sqrt();
    Some(equivalence_p(effect.ratio.ln(), error, blocks - 1.0, matters))
}

/// How much the starts of one cell differ from each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Geometric mean.
    pub mean: f64,
    /// Its 95 % interval by Student's t over the logarithms; `None` with one start.
    pub mean95: Option<[f64; 2]>,
    pub lowest: f64,
    pub highest: f64,
    /// Standard deviation of the logarithms; `None` with one start.
    pub sd_log: Option<f64>,
    pub starts: u32,
    /// They differ so much that a difference from them means little.
    pub unstable: bool,
}

/// Returns the spread of the throughputs of one cell's starts; `None` where none is above 0.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let logs: Vec<f64> =
        values.iter().filter(|value| value.is_finite() && **value > 0.0).map(|value| value.ln()).collect();
    if logs.is_empty() {
        return None;
    }
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let sd_log = (logs.len() > 1)
        .then(|| (logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (count - 1.0)).sqrt());
    let mean95 = sd_log.map(|sd| {
        let half = t_quantile_975(count - 1.0) * sd / count.sqrt();
        [(mean - half).exp(), (mean + half).exp()]
    });
    let extreme = |pick: fn(f64, f64) -> f64| logs.iter().copied().reduce(pick).map_or(0.0, f64::exp);
    Some(Spread {
        mean: mean.exp(),
        mean95,
        lowest: extreme(f64::min),
        highest: extreme(f64::max),
        sd_log,
        starts: logs.len() as u32,
        unstable: sd_log.is_some_and(|sd| sd > UNSTABLE_SD_LOG),
    })
}

#[cfg(test)]
mod tests {
    use whyso_random::SplitMix64;

    use super::*;
    use crate::effect::tested;

    /// A normal number, by G. E. P. Box and M. E. Muller (1958).
    fn normal(random: &mut SplitMix64) -> f64 {
        let (one, other) = (1.0 - random.unit_f64(), random.unit_f64());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    }

    fn blocks(count: usize, effect_log: f64, sd_log: f64, random: &mut SplitMix64) -> Vec<(f64, f64)> {
        (0..count)
            .map(|_| {
                // Whatever drifts meets both.
                let machine = 7.0 + 0.3 * normal(random);
                let half = sd_log / 2.0_f64.sqrt();
                let (baseline, variant) = (half * normal(random), half * normal(random));
                ((machine + baseline).exp(), (machine + variant + effect_log).exp())
            })
            .collect()
    }

    fn found_share(effect_log: f64) -> f64 {
        const STUDIES: u32 = 20_000;
        let mut random = SplitMix64::new(42);
        let found = (0..STUDIES).filter(|_| {
            let effect = tested(&blocks(6, effect_log, 0.02, &mut random)).unwrap();
            effect.p.unwrap() < ALPHA
        });
        found.count() as f64 / f64::from(STUDIES)
    }

    #[test]
    fn of_studies_without_a_difference_one_in_twenty_finds_one() {
        let share = found_share(0.0);
        assert!((0.045..=0.055).contains(&share), "{share}");
    }

    #[test]
    fn of_studies_with_one_as_many_find_it_as_theory_says() {
        for effect_log in [-0.01, -0.02, 0.03] {
            let (share, theory) = (found_share(effect_log), crate::power::power(6, effect_log, 0.02));
            assert!((share - theory).abs() < 0.03, "{effect_log}: {share}, and {theory} by theory");
        }
    }

    #[test]
    fn twenty_comparisons_without_a_difference_rarely_find_one() {
        let mut random = SplitMix64::new(7);
        let studies: u32 = 100;
        let wrong = (0..studies).filter(|_| {
            let all: Vec<_> = (0..20).map(|_| blocks(5, 0.0, 0.02, &mut random)).collect();
            let found = compare(&all, 1.05);
            found.iter().flatten().any(|one| matches!(one.verdict, Verdict::Faster | Verdict::Slower))
        });
        let share = wrong.count() as f64 / f64::from(studies);
        assert!(share < 0.09, "{share}");
    }

    /// Share of comparisons, and of studies of 20 of them, that call a true difference of this ratio none.
    fn called_none(ratio: f64, sd_log: f64, seed: u64) -> (f64, f64) {
        let mut random = SplitMix64::new(seed);
        let (studies, comparisons) = (500, 20);
        let (mut wrong, mut wrong_studies) = (0, 0);
        for _ in 0..studies {
            let effects: Vec<_> =
                (0..comparisons).map(|_| tested(&blocks(6, f64::ln(ratio), sd_log, &mut random))).collect();
            let is_none = |one: &&VariantComparison| one.verdict == Verdict::NoDifferenceFound;
            let found = judged(&effects, 1.03).iter().flatten().filter(is_none).count();
            wrong += found;
            wrong_studies += usize::from(found > 0);
        }
        let share = |count: usize, of: usize| count as f64 / of as f64;
        (share(wrong, studies * comparisons), share(wrong_studies, studies))
    }

    #[test]
    fn a_difference_that_matters_is_not_called_none_among_twenty_comparisons() {
        // What lies exactly on the margin is the hardest: of 500 studies, two standard errors above 5 % are 7 %.
        for (ratio, sd_log, seed) in
            [(1.03, 0.005, 11), (1.0 / 1.03, 0.02, 12), (0.97, 0.015, 13), (0.95, 0.03, 14)]
        {
            let (share, of_studies) = called_none(ratio, sd_log, seed);
            println!("x{ratio}, spread {sd_log}: {share} of comparisons, {of_studies} of studies");
            assert!(
                share <= 0.05 && of_studies <= 0.07,
                "{share} and {of_studies} with a true ratio of {ratio}"
            );
        }
    }

    #[test]
    fn what_is_equivalent_is_called_so_where_blocks_spread_little() {
        let mut random = SplitMix64::new(14);
        let all: Vec<_> = (0..20).map(|_| blocks(6, 0.0, 0.004, &mut random)).collect();
        let found = compare(&all, 1.03);
        let is_none = |one: &&VariantComparison| one.verdict == Verdict::NoDifferenceFound;
        let none = found.iter().flatten().filter(is_none).count();
        assert!(none >= 18, "{none} of 20");
        assert!(found.iter().flatten().all(|one| one.effect.smallest_detectable.unwrap() < 1.03));
    }

    #[test]
    fn an_equivalence_test_decides_between_no_difference_and_noise() {
        let same = [(100.0, 100.1), (101.0, 100.9), (99.0, 99.1), (100.0, 99.9)].to_vec();
        let noisy = [(100.0, 140.0), (101.0, 70.0), (99.0, 120.0), (100.0, 80.0)].to_vec();
        let found = compare(&[same, noisy, Vec::new()], 1.02);
        assert_eq!(found[0].unwrap().verdict, Verdict::NoDifferenceFound);
        assert_eq!(found[1].unwrap().verdict, Verdict::TooNoisyToSay);
        assert_eq!(found[2], None);
    }

    #[test]
    fn the_interval_of_a_mean_is_students() {
        // As in effect.rs: Student's own ten hours, here as logarithms of values.
        let hours: [f64; 10] = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let found = spread(&hours.map(f64::exp)).unwrap();
        let [low, high] = found.mean95.unwrap().map(f64::ln);
        assert!((low - 0.700_114).abs() < 1e-4 && (high - 2.459_886).abs() < 1e-4, "{low} {high}");
        assert_eq!(spread(&[5.0]).unwrap().mean95, None);
    }

    #[test]
    fn starts_that_differ_by_half_are_no_baseline() {
        let spread = |values: &[f64]| super::spread(values).unwrap();
        let unstable = spread(&[1000.0, 1500.0, 1100.0]);
        assert!(
            unstable.unstable
                && (unstable.lowest, unstable.highest.round()) == (1000.0_f64.ln().exp(), 1500.0)
        );
        assert!(!spread(&[1000.0, 1010.0, 990.0]).unstable && !spread(&[5.0]).unstable);
        assert_eq!(super::spread(&[0.0, f64::NAN]), None);
    }
}

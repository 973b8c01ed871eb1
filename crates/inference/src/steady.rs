//! Was a level steady? A change-point test and a trend test on bins of 100 ms.
//!
//! The trend test is in [`crate::trend`]; it finds ramps, warm-ups and staircases, which have no single change. What
//! follows is about the change-point test. Throughput is autocorrelated, so a plain test of two means sees changes everywhere. The test
//! here is self-normalised: X. Shao and X. Zhang, "Testing for change points in time series",
//! Journal of the American Statistical Association 105 (2010). Its statistic divides the jump by
//! how far the series wanders on either side of it. Waves that come and go (checkpoints) raise
//! both, and a lasting jump raises only one. Isolated stalls are set aside before the test by a
//! Hampel filter.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::bins::{BINS_MIN, BINS_PER_S, mean_of, median};
use crate::trend;

/// Blocks that the test needs; a block holds [`TRANSACTIONS_PER_BLOCK_MIN`] transactions on average.
const BLOCKS_MIN: usize = 12;
const BLOCKS_MAX: usize = 400;
const TRANSACTIONS_PER_BLOCK_MIN: f64 = 4.0;

/// The means before and after must differ by this share of the larger one. A smaller difference may
/// be significant, but does not matter.
const CHANGE_MIN: f64 = 0.10;

/// 0.1 % critical value of the statistic for a mean (table 1 of the paper): a run has
/// many levels, and short series of few blocks exceed the asymptotic values.
const CRITICAL: f64 = 121.9;

/// Both parts must last this long.
const PART_BINS_MIN: usize = 15;

/// Reach of the outlier filter to either side, in blocks.
const FILTER_REACH: usize = 5;

/// Throughput became another, and stayed so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// First bin of the part after.
    pub at_bin: usize,
    pub before_per_s: f64,
    pub after_per_s: f64,
}

/// Throughput climbed or fell throughout, so that no part of the level is steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Climb {
    /// Means of the first and of the last tenth.
    pub from_per_s: f64,
    pub to_per_s: f64,
}

/// What the warm-up before a level showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warmup {
    /// It ended because throughput was steady, or nobody waited for that.
    Unremarkable,
    /// It reached its bound before throughput was steady.
    NeverSteady,
}

/// Whether throughput stayed the same over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Steadiness {
    Steady,
    /// From this moment on, in seconds from the window's begin, throughput was another.
    UnstableFrom {
        s: f64,
    },
    /// Throughput climbed or fell throughout: means of the first and of the last tenth of the window.
    Trend {
        from_per_s: f64,
        to_per_s: f64,
    },
    /// Too short to say, and the warm-up before it reached its bound before throughput was steady.
    StillWarming,
    #[default]
    TooShort,
}

impl Steadiness {
    /// Returns whether it is steady. `None` where the window is too short to say.
    pub fn is_steady(self) -> Option<bool> {
        match self {
            Steadiness::Steady => Some(true),
            Steadiness::UnstableFrom { .. } | Steadiness::Trend { .. } | Steadiness::StillWarming => {
                Some(false)
            }
            Steadiness::TooShort => None,
        }
    }
}

/// The critical values of the tests are multiplied by this after a warm-up that never was steady, where a trend is to be
/// expected. 95 % of stationary series still pass.
const STRICTNESS_WHERE_EXPECTED: f64 = 0.8;
/// The same in the part before a change, where two tests came first.
const STRICTNESS_OF_PART: f64 = 1.6;

/// What [`check`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Steady,
    Changed(Change),
    Climbed(Climb),
    TooShort,
    /// Too short to test, and the warm-up before it never was steady.
    StillWarming,
}

impl Verdict {
    pub fn steadiness(self) -> Steadiness {
        match self {
            Verdict::Steady => Steadiness::Steady,
            Verdict::TooShort => Steadiness::TooShort,
            Verdict::StillWarming => Steadiness::StillWarming,
            Verdict::Climbed(Climb { from_per_s, to_per_s }) => Steadiness::Trend { from_per_s, to_per_s },
            Verdict::Changed(change) => Steadiness::UnstableFrom { s: change.at_bin as f64 / BINS_PER_S },
        }
    }
}

/// Tests for a lasting change and for a trend in `bins`, transactions in each 100 ms. After a warm-up that never was
/// steady, a trend is to be expected, so less evidence is enough.
pub fn check(bins: &[f64], warmup: Warmup) -> Verdict {
    let (strictness, if_too_short) = match warmup {
        Warmup::Unremarkable => (1.0, Verdict::TooShort),
        Warmup::NeverSteady => (STRICTNESS_WHERE_EXPECTED, Verdict::StillWarming),
    };
    check_at(bins, strictness).unwrap_or(if_too_short)
}

/// `None` where there is too little to test.
fn check_at(bins: &[f64], strictness: f64) -> Option<Verdict> {
    let (block, calm) = calm_blocks(bins)?;
    let trend = trend::strongest(&calm)
        .filter(|trend| trend.is_significant(calm.len(), strictness) && trend.change() >= CHANGE_MIN);
    let climb = Verdict::Climbed(climb(bins));
    let Some(at_block) = lasting_change(&calm, block, strictness) else {
        return Some(if trend.is_some() { climb } else { Verdict::Steady });
    };
    let squares_of_step = squares(&calm[..at_block]) + squares(&calm[at_block..]);
    if trend.is_some_and(|trend| trend.squares < squares_of_step) {
        return Some(climb);
    }
    let at_bin = at_block * block;
    // A staircase has several changes: then the part before the largest is not steady either.
    if !matches!(check_at(&bins[..at_bin], STRICTNESS_OF_PART), None | Some(Verdict::Steady)) {
        return Some(climb);
    }
    Some(Verdict::Changed(Change {
        at_bin,
        before_per_s: mean_of(&bins[..at_bin]) * BINS_PER_S,
        after_per_s: mean_of(&bins[at_bin..]) * BINS_PER_S,
    }))
}

/// Bins for each block, and the blocks without outliers; `None` where there is too little to test.
fn calm_blocks(bins: &[f64]) -> Option<(usize, Vec<f64>)> {
    let total: f64 = bins.iter().sum();
    if bins.len() < BINS_MIN || total <= 0.0 {
        return None;
    }
    let mean = total / bins.len() as f64;
    let block_for_counts = (TRANSACTIONS_PER_BLOCK_MIN / mean).ceil();
    if block_for_counts > bins.len() as f64 {
        return None;
    }
    let block = (block_for_counts as usize).max(bins.len().div_ceil(BLOCKS_MAX)).max(1);
    let blocks: Vec<f64> = bins.chunks_exact(block).map(|chunk| chunk.iter().sum()).collect();
    (blocks.len() >= BLOCKS_MIN).then(|| (block, without_outliers(&blocks)))
}

/// The first block of the part after a change that is large enough to matter. Its size is judged without the outliers.
fn lasting_change(calm: &[f64], block: usize, strictness: f64) -> Option<usize> {
    let part_min = PART_BINS_MIN.div_ceil(block).max(calm.len().div_ceil(10)).max(3);
    let at_block = change_point(calm, part_min, CRITICAL * strictness.max(1.0).powi(2))?;
    let (before, after) = (mean_of(&calm[..at_block]), mean_of(&calm[at_block..]));
    ((before - after).abs() >= CHANGE_MIN * before.max(after)).then_some(at_block)
}

fn climb(bins: &[f64]) -> Climb {
    let tenth = (bins.len() / 10).max(1);
    Climb {
        from_per_s: mean_of(&bins[..tenth]) * BINS_PER_S,
        to_per_s: mean_of(&bins[bins.len() - tenth..]) * BINS_PER_S,
    }
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean_of(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Returns the longest time in which less than a fifth of the usual was done: first bin and number of bins. `None` where it lasted less than a
/// second.
pub fn longest_stall(bins: &[f64]) -> Option<(usize, usize)> {
    let usual = median(bins);
    // With few transactions per bin, empty ones are ordinary.
    if usual < 5.0 {
        return None;
    }
    let mut longest = (0, 0);
    let mut begin = 0;
    for (at, &value) in bins.iter().enumerate() {
        if value >= usual / 5.0 {
            begin = at + 1;
            continue;
        }
        let length = at + 1 - begin;
        if length > longest.1 {
            longest = (begin, length);
        }
    }
    (longest.1 as f64 >= BINS_PER_S).then_some(longest)
}

/// Index of the first value of the second part, where the test says that there is one.
fn change_point(values: &[f64], part_min: usize, critical: f64) -> Option<usize> {
    let count = values.len();
    if count < 2 * part_min {
        return None;
    }
    let mean = mean_of(values);
    // Sums of the first k values, less the mean to keep the numbers small.
    let mut sums = vec![0.0];
    for &value in values {
        sums.push(sums[sums.len() - 1] + (value - mean));
    }
    let total = sums[count];

    let mut significant = false;
    let mut best = (0.0, 0);
    for at in part_min..=count - part_min {
        let left = at as f64;
        let right = (count - at) as f64;
        let jump = sums[at] - left / count as f64 * total;
        let least_squares = jump * jump / (left * right);
        if least_squares > best.0 {
            best = (least_squares, at);
        }
        if significant {
            continue;
        }
        let mut wandering = 0.0;
        for to in 1..=at {
            wandering += (sums[to] - to as f64 / left * sums[at]).powi(2);
        }
        for from in at..count {
            let rest = (total - sums[from]) - (count - from) as f64 / right * (total - sums[at]);
            wandering += rest * rest;
        }
        // The paper's T² / V, with its powers of n brought to one side.
        significant = jump * jump * count as f64 > critical * wandering;
    }
    (significant && best.0 > 0.0).then_some(best.1)
}

/// Replaces what lies far from the median of its neighbours by that median (Hampel's filter). A
/// part of half the reach or more keeps its level. At the edges the neighbours are those of one side, as many as elsewhere.
fn without_outliers(values: &[f64]) -> Vec<f64> {
    let width = (2 * FILTER_REACH + 1).min(values.len());
    let mut centres = Vec::with_capacity(values.len());
    for at in 0..values.len() {
        let from = at.saturating_sub(FILTER_REACH).min(values.len() - width);
        let neighbours = &values[from..from + width];
        let centre = median(neighbours);
        let distances: Vec<f64> = neighbours.iter().map(|other| (other - centre).abs()).collect();
        centres.push((centre, median(&distances)));
    }
    // The stall itself widens the spread of its neighbours: no more than twice that of all values counts.
    let distances: Vec<f64> =
        values.iter().zip(&centres).map(|(value, (centre, _))| (value - centre).abs()).collect();
    let spread_max = 2.0 * median(&distances);
    let mut calm = Vec::with_capacity(values.len());
    for (value, (centre, spread)) in values.iter().zip(centres) {
        // 1.4826 makes the median distance a standard deviation for normal noise; counts vary by
        // their square root at least.
        let scale = (1.4826 * spread.min(spread_max)).max(centre.sqrt()).max(1.0);
        let is_outlier = (value - centre).abs() > 4.0 * scale;
        calm.push(if is_outlier { centre } else { *value });
    }
    calm
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_random::noise::{Noise, ar1};

    /// Share of 200 seeded series that are held to be unstable.
    fn unstable_share(make: impl Fn(&mut Noise) -> Vec<f64>) -> f64 {
        let mut unstable = 0;
        for seed in 0..200 {
            let bins = make(&mut Noise::new(seed));
            if is_unsteady(check(&bins, Warmup::Unremarkable)) {
                unstable += 1;
            }
        }
        f64::from(unstable) / 200.0
    }

    fn is_unsteady(verdict: Verdict) -> bool {
        !matches!(verdict, Verdict::Steady | Verdict::TooShort)
    }

    fn noisy(noise: &mut Noise, length: usize, phi: f64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        ar1(noise, length, phi)
            .iter()
            .enumerate()
            .map(|(at, deviation)| (level(at) * (1.0 + 0.1 * deviation)).max(0.0).round())
            .collect()
    }

    #[test]
    fn ordinary_noise_is_steady_however_correlated() {
        for phi in [0.0, 0.3, 0.6, 0.8] {
            // Four seconds of strongly correlated noise hold few independent values.
            for (length, share_max) in [(40, 0.06), (100, 0.03), (300, 0.03)] {
                let share = unstable_share(|noise| noisy(noise, length, phi, |_| 120.0));
                assert!(share <= share_max, "{share} at phi {phi}, {length} bins");
            }
        }
    }

    #[test]
    fn a_collapse_and_a_jump_half_way_are_found_where_they_are() {
        for (before, after) in [(410.0, 90.0), (120.0, 0.0), (100.0, 150.0), (100.0, 75.0)] {
            for seed in 0..50 {
                let bins = noisy(&mut Noise::new(seed), 200, 0.3, |at| if at < 123 { before } else { after });
                let Verdict::Changed(change) = check(&bins, Warmup::Unremarkable) else {
                    panic!("{before} to {after} is missed with seed {seed}");
                };
                assert!(change.at_bin.abs_diff(123) <= 6, "{change:?} seed {seed}");
                assert!((change.before_per_s / (before * 10.0) - 1.0).abs() < 0.1);
            }
        }
    }

    /// Share of the cases whose series are unsteady. Neither the critical values nor any other number was chosen on these seeds.
    fn share_unsteady(cases: u64, make: impl Fn(&mut Noise) -> Vec<f64>) -> f64 {
        let seeds = 40_000..40_000 + cases;
        let unsteady =
            seeds.filter(|seed| is_unsteady(check(&make(&mut Noise::new(*seed)), Warmup::Unremarkable)));
        unsteady.count() as f64 / cases as f64
    }

    #[test]
    fn at_most_one_in_twenty_stationary_series_is_unsteady_from_8_s_to_10_min() {
        for length in [80, 150, 300, 600, 1_800, 6_000] {
            // The longest series take the most time.
            let cases = if length > 1_000 { 60 } else { 200 };
            for phi in [0.0, 0.4, 0.8] {
                for noise_share in [0.05, 0.15] {
                    let share = share_unsteady(cases, |noise| {
                        let deviations = ar1(noise, length, phi);
                        deviations
                            .iter()
                            .map(|one| (200.0 * (1.0 + noise_share * one)).max(0.0).round())
                            .collect()
                    });
                    println!("{length} bins, phi {phi}, noise {noise_share}: {share}");
                    assert!(
                        share <= 0.05,
                        "{share} of {length} bins with phi {phi} and noise of {noise_share}"
                    );
                }
            }
        }
    }

    /// Of the whole series, at a moment from 0 to 1, as a multiple of the first.
    type Course = fn(f64, f64) -> f64;

    const RAMP: Course = |at, factor| 1.0 + (factor - 1.0) * at;
    const WARMUP: Course = |at, factor| factor - (factor - 1.0) * (-at / 0.2).exp();
    const STAIRCASE: Course = |at, factor| 1.0 + (factor - 1.0) * (at * 5.0).floor().min(4.0) / 4.0;

    #[test]
    fn ramps_warmups_and_staircases_are_not_steady() {
        for length in [80, 300, 600] {
            for (name, course) in [("ramp", RAMP), ("warm-up", WARMUP), ("staircase", STAIRCASE)] {
                for factor in [1.2, 2.0, 10.0, 1.0 / 1.5] {
                    let share = share_unsteady(50, |noise| {
                        let of = |bin: usize| 200.0 * course(bin as f64 / length as f64, factor);
                        let white = |bin| of(bin) * (1.0 + 0.05 * noise.normal());
                        (0..length).map(white).map(|value: f64| value.max(0.0).round()).collect()
                    });
                    println!("{name} x{factor:.2} over {length} bins: {share}");
                    assert!(share >= 0.9, "{share} of {name}s by {factor} over {length} bins are found");
                }
            }
        }
    }

    #[test]
    fn a_staircase_has_no_steady_part() {
        for seed in 0..20 {
            let stairs = |bin: usize| [100.0, 130.0, 160.0, 400.0][bin / 50];
            let bins = noisy(&mut Noise::new(seed), 200, 0.3, stairs);
            let verdict = check(&bins, Warmup::Unremarkable);
            assert!(matches!(verdict, Verdict::Climbed(_)), "{verdict:?} with seed {seed}");
        }
    }

    #[test]
    fn after_a_warmup_that_never_was_steady_less_evidence_is_enough() {
        let unsteady_count = |warmup| {
            let climb = |bin: usize| 120.0 * (1.0 + 0.25 * bin as f64 / 80.0);
            let is_found =
                |seed: &u64| is_unsteady(check(&noisy(&mut Noise::new(*seed), 80, 0.5, climb), warmup));
            (0..200).filter(is_found).count()
        };
        let [usual, less] = [Warmup::Unremarkable, Warmup::NeverSteady].map(unsteady_count);
        assert!(less >= usual + 20, "{usual} and {less} of 200");
        let flat = |seed: &u64| {
            is_unsteady(check(&noisy(&mut Noise::new(*seed), 80, 0.8, |_| 120.0), Warmup::NeverSteady))
        };
        let by_chance = (40_000..40_400).filter(flat).count();
        assert!(by_chance <= 20, "{by_chance} of 400 flat series");
    }

    #[test]
    fn a_single_stall_of_300_ms_is_no_instability() {
        for length in [30, 60, 100] {
            for stall_at in [2, 10, 14, length - 16, length - 4] {
                let share = unstable_share(|noise| {
                    let mut bins = noisy(noise, length, 0.2, |_| 120.0);
                    bins[stall_at..stall_at + 3].fill(0.0);
                    bins
                });
                assert!(share <= 0.03, "{share} of {length} bins, stall at {stall_at}");
            }
        }
    }

    #[test]
    fn waves_of_checkpoints_are_no_instability() {
        for period in [10.0, 20.0, 33.0] {
            let share = unstable_share(|noise| {
                let phase = noise.uniform();
                noisy(noise, 100, 0.2, |at| {
                    let turn = (at as f64 / period + phase) * std::f64::consts::TAU;
                    120.0 * (1.0 + 0.3 * turn.sin())
                })
            });
            assert!(share <= 0.03, "{share} at a period of {period} bins");
        }
        let share = unstable_share(|noise| {
            let phase = (noise.uniform() * 40.0) as usize;
            noisy(noise, 200, 0.2, |at| if (at + phase) % 40 < 10 { 40.0 } else { 120.0 })
        });
        assert!(share <= 0.03, "{share} with a dip of 1 s every 4 s");
    }

    #[test]
    fn exact_numbers_are_handled() {
        assert_eq!(check(&[50.0; 100], Warmup::Unremarkable), Verdict::Steady);
        assert_eq!(check(&[50.0; 19], Warmup::Unremarkable), Verdict::TooShort);
        assert_eq!(check(&[0.0; 100], Warmup::Unremarkable), Verdict::TooShort);
        let mut bins = vec![50.0; 50];
        bins.extend([0.0; 50]);
        let expected = Change { at_bin: 50, before_per_s: 500.0, after_per_s: 0.0 };
        assert_eq!(check(&bins, Warmup::Unremarkable), Verdict::Changed(expected));
    }

    #[test]
    fn slow_transactions_are_counted_in_longer_blocks() {
        // One transaction per second for two minutes, then none for one.
        let mut bins = Vec::new();
        for second in 0..180 {
            bins.extend([0.0; 9]);
            bins.push(if second < 120 { 1.0 } else { 0.0 });
        }
        let Verdict::Changed(change) = check(&bins, Warmup::Unremarkable) else {
            panic!("the end of all work is missed");
        };
        assert!(change.at_bin.abs_diff(1200) <= 60, "{change:?}");
        assert_eq!(check(&bins[..100], Warmup::Unremarkable), Verdict::TooShort);
    }

    #[test]
    fn a_stall_is_found_from_a_second_on() {
        let mut bins = vec![100.0; 60];
        bins[20..29].fill(3.0);
        assert_eq!(longest_stall(&bins), None);
        bins[29] = 0.0;
        assert_eq!(longest_stall(&bins), Some((20, 10)));
    }
}

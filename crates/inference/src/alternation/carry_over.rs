//! What a window has from the window before it.
//!
//! The orders are random. So in half of the pairs, the first window follows one of the same variant, and in the rest one of the other. The second
//! window always follows the other variant. Let the logarithm of the metric be `a` higher in a window of the baseline after one of the variant. Let it
//! be `b` higher in a window of the variant after one of the baseline. Take the step from the last window of a pair to the first of the next pair. On
//! average it is
//!
//! | step | baseline first | variant first |
//! |---|---|---|
//! | the same variant before | `−a` | `−b` |
//! | the other variant before | `−m + a − b` | `m + b − a` |
//!
//! plus the drift in one window's time. So the mean of the lower row minus the mean of the upper row is `(a + b) / 2`: what any switch does. It
//! does not bias the ratio. The difference within the upper row is `b − a`, and three quarters of that are in the mean of the pairs: the bias.
//! One half of the baseline's windows are second and have `a`; of the other half, every second one has it. The same holds for the variant.
//!
//! Steps of the same variant are of both kinds in turn, however the orders fall. So the sum behind the bias is half a sum of the orders' signs times the
//! differences of neighbouring steps. Its error comes from these. That of the switch is the error of four cells with one spread. Both use Student's t. Source: B. Jones and M. Kenward, "Design and analysis of cross-over trials", 3rd
//! edition, 2014. Share of intervals that exclude 1, measured in 2,000 comparisons of 100 pairs with 2 % of noise:
//!
//! | noise | carried over | after a switch | bias |
//! |---|---|---|---|
//! | normal | nothing | 4.9 % | 5.8 % |
//! | correlated by 0.9 | nothing | 6.1 % | 5.2 % |
//! | Student's t, 2 degrees | nothing | 5.0 % | 5.3 % |
//! | periodic neighbour | nothing | 4.8 % | 5.5 % |
//! | bursts | nothing | 4.6 % | 4.6 % |
//! | normal | 5 % into both | 100 % | 5.8 % |
//! | normal | 5 % into the baseline | 99 % | 100 % |
//! | normal | 5 % up into one, down into the other | 4.9 % | 100 % |

use serde::{Deserialize, Serialize};

use super::Pair;
use crate::estimate::Estimate;
use crate::student::critical;

/// Fewer boundaries show too little of how they vary.
const BOUNDARIES_MIN: usize = 12;
/// Each of the four cells needs this many.
const CELL_MIN: f64 = 2.0;
/// Share of `b − a` that is in the mean of the pairs.
const BIAS_SHARE: f64 = 0.75;

/// The effect of the window before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CarryOver {
    /// The metric after a window of the other variant, as a multiple of that after one of the same variant. The mean of both variants.
    pub after_switch: Estimate,
    /// The factor by which carry-over changes the ratio of the pairs. Below 1, the ratio is too low by this. If both variants carry over alike, it is 1.
    pub bias: Estimate,
    /// Boundaries between two pairs that this is based on.
    pub boundaries: u32,
}

/// Returns what windows have from the window before, by pairs in order of time. Only neighbours of one start count. A pair without two values above 0
/// interrupts the row: so keep it in `pairs`. `None` with too few boundaries between pairs: twelve in all, two of each of the four kinds.
pub fn carry_over(pairs: &[Pair]) -> Option<CarryOver> {
    let steps = steps(pairs);
    let mut cells = [Cell::default(); 4];
    for step in &steps {
        cells[step.cell].count += 1.0;
        cells[step.cell].sum += step.log;
    }
    if steps.len() < BOUNDARIES_MIN || cells.iter().any(|cell| cell.count < CELL_MIN) {
        return None;
    }
    let degrees = (steps.len() - cells.len()) as f64;
    let residuals: Vec<f64> = steps.iter().map(|step| step.log - cells[step.cell].mean()).collect();
    let variance = residuals.iter().map(|residual| residual * residual).sum::<f64>() / degrees;
    let [baselines, variants, to_baseline, to_variant] = cells;
    let switch = (to_baseline.mean() + to_variant.mean() - baselines.mean() - variants.mean()) / 2.0;
    let switch_error = (variance * cells.iter().map(|cell| 0.25 / cell.count).sum::<f64>()).sqrt();

    let bias = BIAS_SHARE * (baselines.mean() - variants.mean());
    let roughness = roughness(&steps, &residuals) * steps.len() as f64 / degrees;
    let cell_count = 2.0 * baselines.count * variants.count / (baselines.count + variants.count);
    let bias_error = BIAS_SHARE * roughness.sqrt() / 2.0 / cell_count;

    let bound = critical(degrees, 0.05);
    let estimate = |value: f64, error: f64| {
        let [low95, high95] = [value - bound * error, value + bound * error].map(f64::exp);
        Estimate { value: value.exp(), low95, high95 }
    };
    Some(CarryOver {
        after_switch: estimate(switch, switch_error),
        bias: estimate(bias, bias_error),
        boundaries: steps.len() as u32,
    })
}

/// The step from one pair to the next.
struct Step {
    log: f64,
    /// 0 and 1: the same variant before, the baseline and the variant. 2 and 3: the other variant before.
    cell: usize,
    /// The step before it ends where this one's first pair begins.
    has_neighbour: bool,
}

fn steps(pairs: &[Pair]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut has_neighbour = false;
    for neighbours in pairs.windows(2) {
        let (before, after) = (&neighbours[0], &neighbours[1]);
        if before.start != after.start || before.log_ratio().is_none() || after.log_ratio().is_none() {
            has_neighbour = false;
            continue;
        }
        let last = if before.variant_first { before.baseline } else { before.variant };
        let first = if after.variant_first { after.variant } else { after.baseline };
        let is_same = before.variant_first != after.variant_first;
        let cell = 2 * usize::from(!is_same) + usize::from(after.variant_first);
        steps.push(Step { log: first.ln() - last.ln(), cell, has_neighbour });
        has_neighbour = true;
    }
    steps
}

/// The sum of squares of differences between neighbours; a residual without a neighbour differs from 0.
fn roughness(steps: &[Step], residuals: &[f64]) -> f64 {
    let (mut sum, mut before) = (0.0, 0.0);
    for (step, residual) in steps.iter().zip(residuals) {
        sum += if step.has_neighbour {
            (residual - before) * (residual - before)
        } else {
            before * before + residual * residual
        };
        before = *residual;
    }
    sum + before * before
}

/// Steps of one kind.
#[derive(Clone, Copy, Default)]
struct Cell {
    count: f64,
    sum: f64,
}

impl Cell {
    fn mean(&self) -> f64 {
        self.sum / self.count
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{KINDS, Kind, windows};
    use super::super::{Question, alternation};
    use super::*;
    use whyso_random::noise::Noise;

    /// Pairs of one start, in which a window after the other variant is `after_switch` higher; (baseline's, variant's).
    fn pairs(noise: &mut Noise, kind: Kind, count: usize, effect: f64, after_switch: [f64; 2]) -> Vec<Pair> {
        let logs = windows(noise, kind, 2 * count);
        let mut last = None;
        let mut pairs = Vec::new();
        for two in logs.chunks_exact(2) {
            let variant_first = noise.uniform() < 0.5;
            let mut values = [0.0; 2];
            for (log, variant) in two.iter().zip([usize::from(variant_first), usize::from(!variant_first)]) {
                let carried =
                    if last.is_some_and(|last| last != variant) { after_switch[variant] } else { 0.0 };
                values[variant] = (log + effect * variant as f64 + carried).exp();
                last = Some(variant);
            }
            pairs.push(Pair { start: 1, variant_first, baseline: values[0], variant: values[1] });
        }
        pairs
    }

    /// Shares of comparisons whose (after_switch, bias) exclude 1.
    fn shares(kind: Kind, rounds: u32, after_switch: [f64; 2]) -> [f64; 2] {
        let mut noise = Noise::new(21);
        let mut found = [0.0; 2];
        for _ in 0..rounds {
            let carry = carry_over(&pairs(&mut noise, kind, 100, 0.03, after_switch)).unwrap();
            for (share, estimate) in found.iter_mut().zip([carry.after_switch, carry.bias]) {
                let excludes = estimate.low95 > 1.0 || estimate.high95 < 1.0;
                *share += f64::from(u8::from(excludes)) / f64::from(rounds);
            }
        }
        found
    }

    #[test]
    fn where_nothing_is_carried_over_one_in_twenty_is_found() {
        for kind in KINDS {
            let found = shares(kind, 2_000, [0.0; 2]);
            println!("{kind:?}: {found:?}");
            assert!(found.iter().all(|share| (0.02..=0.07).contains(share)), "{kind:?}: {found:?}");
        }
    }

    #[test]
    fn five_per_cent_in_a_hundred_pairs_of_two_per_cent_of_noise_are_found() {
        let both = shares(Kind::Normal, 2_000, [-0.05, -0.05]);
        let one = shares(Kind::Normal, 2_000, [-0.05, 0.0]);
        let opposite = shares(Kind::Normal, 2_000, [0.05, -0.05]);
        println!("any switch {both:?}, into the baseline {one:?}, towards each other {opposite:?}");
        assert!(both[0] > 0.99 && one[0] > 0.95 && one[1] > 0.99 && opposite[1] > 0.99);
        assert!(both[1] < 0.07 && opposite[0] < 0.07);
    }

    #[test]
    fn the_bias_is_that_of_the_ratio() {
        let mut noise = Noise::new(22);
        let pairs = pairs(&mut noise, Kind::Normal, 20_000, 0.03, [0.02, -0.04]);
        let ratio = alternation(&pairs, &Question::default()).unwrap().ratio.value;
        let bias = carry_over(&pairs).unwrap().bias;
        assert!((bias.value.ln() + 0.045).abs() < 0.002, "{bias:?}");
        assert!((ratio.ln() - 0.03 - bias.value.ln()).abs() < 0.002, "{ratio} {bias:?}");
    }

    #[test]
    fn only_neighbours_of_one_start_count() {
        let mut noise = Noise::new(23);
        let mut pairs = pairs(&mut noise, Kind::Normal, 60, 0.0, [0.0; 2]);
        assert_eq!(carry_over(&pairs).unwrap().boundaries, 59);
        pairs[10].baseline = f64::NAN;
        assert_eq!(carry_over(&pairs).unwrap().boundaries, 57);
        pairs[30..].iter_mut().for_each(|pair| pair.start = 2);
        assert_eq!(carry_over(&pairs).unwrap().boundaries, 56);
        assert_eq!(carry_over(&pairs[..9]), None);
        assert_eq!(carry_over(&[]), None);
    }
}

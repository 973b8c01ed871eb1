//! The test by random signs: how often would the orders, drawn again, show a difference like this one?
//!
//! Source: R. A. Fisher, "The design of experiments", 1935, section 21. Where the variants do not differ, a pair's sign is the draw of its order.

use whyso_random::SplitMix64;

use super::centre::bound;

/// Up to this many pairs, all signs are tried.
const PAIRS_EXACT: usize = 13;
const DRAWS: u32 = 9_999;

/// Returns the probability of a sum of clipped logarithms that is this far from 0, or farther, if the signs are random.
pub(super) fn p(values: &[f64], seed: u64) -> f64 {
    let bound = bound(values, 0.0, &mut Vec::new());
    let clipped: Vec<f64> = values.iter().map(|value| value.clamp(-bound, bound)).collect();
    let total: f64 = clipped.iter().map(|value| value.abs()).sum();
    // Sums in another order of signs may differ in the last digit.
    let least = clipped.iter().sum::<f64>().abs() - total * 1e-12;
    if clipped.len() <= PAIRS_EXACT {
        let all = 1_u64 << clipped.len();
        let extreme = (0..all).filter(|signs| with_signs(&clipped, *signs).abs() >= least).count();
        return extreme as f64 / all as f64;
    }
    let mut random = SplitMix64::new(seed);
    let mut extreme = 1_u32;
    for _ in 0..DRAWS {
        let sum: f64 = clipped.chunks(64).map(|part| with_signs(part, random.next_u64())).sum();
        extreme += u32::from(sum.abs() >= least);
    }
    f64::from(extreme) / f64::from(DRAWS + 1)
}

/// The sum of at most 64 values, of which those with a set bit count negative.
fn with_signs(values: &[f64], signs: u64) -> f64 {
    let negative = |at: usize| (signs >> at) << 63;
    values.iter().enumerate().map(|(at, value)| f64::from_bits(value.to_bits() ^ negative(at))).sum()
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{KINDS, differences};
    use super::*;
    use whyso_random::noise::Noise;

    #[test]
    fn of_few_pairs_the_probability_is_that_of_all_signs() {
        assert_eq!(p(&[1.0, 2.0, 3.0], 1), 0.25, "+++ and ---");
        assert_eq!(p(&[1.0, 2.0, -3.0], 1), 1.0);
        assert_eq!(p(&[1.0, 2.0, 3.0, -1.0], 1), 0.375, "5, -5, twice each, and 7, -7");
        assert_eq!(p(&[0.0; 5], 1), 1.0);
        assert_eq!(p(&[0.0; 50], 1), 1.0);
    }

    #[test]
    fn where_nothing_differs_one_in_twenty_is_below_five_per_cent() {
        for kind in KINDS {
            let mut noise = Noise::new(41);
            let rounds = 1_000;
            let below = (0..rounds).filter(|seed| p(&differences(&mut noise, kind, 40, 0.0), *seed) < 0.05);
            let share = below.count() as f64 / rounds as f64;
            println!("{kind:?}: {share}");
            assert!((0.03..=0.07).contains(&share), "{kind:?}: {share}");
        }
    }
}

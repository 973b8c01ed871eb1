//! A variant's throughput as a multiple of the baseline's, from pairs of one block each.

use crate::interval::t_quantile_975;
use crate::power::smallest_detectable;
use crate::student::two_sided_p;
use serde::{Deserialize, Serialize};

/// How much one is of the other, and how sure that is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Geometric mean over the blocks of variant ÷ baseline.
    pub ratio: f64,
    /// 95 %, by Student's t over the logarithms; `None` with fewer than two blocks.
    pub t95: Option<[f64; 2]>,
    /// Probability of a difference like this one or a greater where there is none; two-sided t test, not corrected for other comparisons.
    pub p: Option<f64>,
    /// Standard deviation of the logarithms of the blocks' ratios.
    pub sd_log: Option<f64>,
    /// Blocks in which both were measured.
    pub blocks: u32,
    /// The smallest effect that this many blocks with this spread would show in four of five studies, as a ratio above 1. The test has the level
    /// that is left for one of all comparisons, once these are known ([`crate::compare`]).
    #[serde(rename = "smallest_seen")]
    pub smallest_detectable: Option<f64>,
}

/// Returns the effect from (baseline, variant) of each block. A block in which either is not above 0 shows nothing of the ratio, and is left out.
/// `None` where no block is left.
pub fn effect(pairs: &[(f64, f64)]) -> Option<Effect> {
    let mut effect = tested(pairs)?;
    effect.smallest_detectable =
        effect.sd_log.and_then(|sd_log| smallest_detectable(effect.blocks, sd_log, 1));
    Some(effect)
}

fn logs(pairs: &[(f64, f64)]) -> Vec<f64> {
    let is_positive = |value: f64| value.is_finite() && value > 0.0;
    let both = pairs.iter().filter(|(baseline, variant)| is_positive(*baseline) && is_positive(*variant));
    both.map(|(baseline, variant)| (variant / baseline).ln()).collect()
}

/// Returns an [`effect`] without its smallest detectable effect, which takes most of the time to compute.
pub fn tested(pairs: &[(f64, f64)]) -> Option<Effect> {
    let logs = logs(pairs);
    if logs.is_empty() {
        return None;
    }
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let mut effect = Effect {
        ratio: mean.exp(),
        t95: None,
        p: None,
        sd_log: None,
        blocks: logs.len() as u32,
        smallest_detectable: None,
    };
    if logs.len() < 2 {
        return Some(effect);
    }
    let degrees = count - 1.0;
    let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / degrees;
    let error = (variance / count).sqrt();
    let half = t_quantile_975(degrees) * error;
    effect.t95 = Some([(mean - half).exp(), (mean + half).exp()]);
    effect.sd_log = Some(variance.sqrt());
    effect.p = Some(two_sided_p(mean, error, degrees));
    Some(effect)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// W. S. Gosset ("Student"), "The probable error of a mean", Biometrika 6, 1908: additional hours of sleep by the second
    /// drug over the first, of ten patients. As published: mean 1.58, t 4.06, p 0.0028 (two-sided).
    #[test]
    fn students_own_data_give_his_t() {
        let more_sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let pairs: Vec<(f64, f64)> = more_sleep.iter().map(|hours: &f64| (1.0, hours.exp())).collect();
        let found = effect(&pairs).unwrap();
        assert!((found.ratio.ln() - 1.58).abs() < 1e-9);
        assert!((found.sd_log.unwrap() - 1.229_995).abs() < 1e-5);
        assert!((found.p.unwrap() - 0.002_833).abs() < 1e-5, "{found:?}");
        let [low, high] = found.t95.unwrap().map(f64::ln);
        assert!((low - 0.700_114).abs() < 1e-4 && (high - 2.459_886).abs() < 1e-4, "{low} {high}");
    }

    #[test]
    fn what_can_not_be_compared_is_left_out() {
        assert_eq!(effect(&[]), None);
        assert_eq!(effect(&[(0.0, 5.0), (f64::NAN, 1.0)]), None);
        let one = effect(&[(100.0, 90.0), (0.0, 1.0)]).unwrap();
        assert_eq!((one.blocks, one.t95, one.p), (1, None, None));
        assert!((one.ratio - 0.9).abs() < 1e-12);
        let same = effect(&[(100.0, 100.0), (50.0, 50.0)]).unwrap();
        assert_eq!((same.p, same.ratio), (Some(1.0), 1.0));
    }

    proptest! {
        #[test]
        fn turning_the_question_around_turns_the_answer_around(
            pairs in prop::collection::vec((1.0f64..1e6, 1.0f64..1e6), 2..12),
        ) {
            let turned: Vec<(f64, f64)> = pairs.iter().map(|(baseline, variant)| (*variant, *baseline)).collect();
            let (one, other) = (effect(&pairs).unwrap(), effect(&turned).unwrap());
            prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
            let ([low, _], [_, high]) = (one.t95.unwrap(), other.t95.unwrap());
            prop_assert!((low * high - 1.0).abs() < 1e-6);
            prop_assert!((one.p.unwrap() - other.p.unwrap()).abs() < 1e-9);
        }
    }
}

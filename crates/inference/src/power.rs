//! The smallest difference that a study can detect: the power of the paired t test.
//!
//! Let the true effect be δ standard deviations of a block's logarithm. Then the test's t follows the noncentral distribution with n − 1 degrees of
//! freedom and noncentrality δ√n. That is the ratio of a normal around δ√n and the root of an independent χ² divided by its degrees.

use crate::student;

/// Share of repetitions in which a study finds its smallest detectable difference.
const POWER: f64 = 0.8;

/// Level of a test where nothing else is compared.
const ALPHA: f64 = 0.05;

/// Returns the probability that a two-sided t test at 5 % over this many blocks finds an effect of `effect_log`, the logarithm of a ratio. The
/// blocks' logarithms have the standard deviation `sd_log`.
pub fn power(blocks: u32, effect_log: f64, sd_log: f64) -> f64 {
    power_at(ALPHA, blocks, effect_log, sd_log)
}

fn power_at(alpha: f64, blocks: u32, effect_log: f64, sd_log: f64) -> f64 {
    if blocks < 2 || !effect_log.is_finite() || !sd_log.is_finite() || sd_log < 0.0 {
        return 0.0;
    }
    if sd_log == 0.0 {
        return if effect_log == 0.0 { alpha } else { 1.0 };
    }
    student::power(f64::from(blocks - 1), effect_log.abs() / sd_log * f64::from(blocks).sqrt(), alpha)
}

/// Returns the smallest effect, as a ratio above 1, that this many blocks with this spread show in four of five studies. The test has the level that
/// is left for one of this many comparisons (at least 1). `None` for fewer than two blocks.
pub fn smallest_detectable(blocks: u32, sd_log: f64, comparisons: usize) -> Option<f64> {
    if blocks < 2 || !sd_log.is_finite() {
        return None;
    }
    if sd_log <= 0.0 {
        return Some(1.0);
    }
    let alpha = ALPHA / comparisons.max(1) as f64;
    let power = |effect_log: f64| power_at(alpha, blocks, effect_log, sd_log);
    let (mut low, mut high) = (0.0, sd_log);
    while power(high) < POWER {
        high *= 2.0;
        if high > 1e3 {
            return None;
        }
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if power(middle) < POWER { low = middle } else { high = middle }
    }
    Some(high.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J. Cohen, "Statistical power analysis for the behavioral sciences", 2nd edition, 1988; the same by R's power.t.test(type = "paired").
    #[test]
    fn powers_are_those_of_the_tables() {
        for (blocks, effect, expected) in
            [(10, 1.0, 0.803_1), (20, 0.5, 0.564_5), (34, 0.5, 0.807_8), (5, 1.0, 0.401_4)]
        {
            let found = power(blocks, effect, 1.0);
            assert!(
                (found - expected).abs() < 0.002,
                "{blocks} blocks, effect {effect}: {found}, not {expected}"
            );
        }
        assert!((power(7, 0.0, 0.3) - 0.05).abs() < 1e-3, "without an effect one in twenty is found");
    }

    #[test]
    fn more_blocks_detect_smaller_effects() {
        let effects: Vec<f64> =
            [2, 3, 5, 10, 40].map(|blocks| smallest_detectable(blocks, 0.05, 1).unwrap()).to_vec();
        assert!(effects.windows(2).all(|pair| pair[0] > pair[1]), "{effects:?}");
        assert!((power(10, smallest_detectable(10, 0.05, 1).unwrap().ln(), 0.05) - POWER).abs() < 1e-3);
        assert_eq!((smallest_detectable(1, 0.1, 1), smallest_detectable(4, 0.0, 1)), (None, Some(1.0)));
        let of_many = [1, 5, 20].map(|comparisons| smallest_detectable(6, 0.05, comparisons).unwrap());
        assert!(of_many[0] < of_many[1] && of_many[1] < of_many[2], "{of_many:?}");
    }
}

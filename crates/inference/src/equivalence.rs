//! Is a difference too small to matter? Two one-sided tests decide that.
//!
//! Source: D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for assessing the equivalence of average
//! bioavailability", Journal of Pharmacokinetics and Biopharmaceutics 15, 1987.
//!
//! A test that finds no difference does not show that there is none, however powerful it was meant to be. These tests do: the question is
//! turned around, and a difference of `matters` or more, either way, is what chance has to explain.

use crate::student::one_sided_p;

/// Returns the probability of a difference as small as this one if the true one is `matters` (a ratio above 1) either way. It is not corrected for
/// other comparisons. `log_difference`, `error`: the logarithm of a ratio, and its standard error.
pub(crate) fn equivalence_p(log_difference: f64, error: f64, degrees: f64, matters: f64) -> f64 {
    let room = matters.ln() - log_difference.abs();
    one_sided_p(room, error, degrees)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_on_the_margin_has_even_odds_and_what_lies_beyond_has_less() {
        let p = |ratio: f64| equivalence_p(ratio.ln(), 0.01, 5.0, 1.03);
        assert!((p(1.03) - 0.5).abs() < 1e-9 && (p(1.0 / 1.03) - 0.5).abs() < 1e-9);
        assert!(p(1.0) < 0.02 && p(1.05) > 0.9, "{} {}", p(1.0), p(1.05));
        assert_eq!(equivalence_p(0.01, 0.0, 5.0, 1.03), 0.0, "values that agree to the last digit");
        assert_eq!(equivalence_p(0.05, 0.0, 5.0, 1.03), 1.0);
    }
}

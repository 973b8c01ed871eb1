//! Student's t test, and its power, for any number of degrees of freedom.

use statrs::distribution::{ChiSquared, Continuous, ContinuousCDF, Normal, StudentsT};

/// Steps of the integral over χ².
const STEPS: u32 = 400;

/// Probability of a difference like this one or a greater where there is none; two-sided. `error`: standard error of the difference.
pub(crate) fn two_sided_p(difference: f64, error: f64, degrees: f64) -> f64 {
    if error == 0.0 {
        // Values that agree to the last digit: any difference is one.
        return if difference == 0.0 { 1.0 } else { 0.0 };
    }
    let t = (difference / error).abs();
    if !t.is_finite() {
        return 1.0;
    }
    StudentsT::new(0.0, 1.0, degrees).map_or(1.0, |distribution| (2.0 * distribution.cdf(-t)).clamp(0.0, 1.0))
}

/// Probability of a difference like this one or a greater, in its direction, where there is none.
pub(crate) fn one_sided_p(difference: f64, error: f64, degrees: f64) -> f64 {
    if error == 0.0 {
        return if difference > 0.0 { 0.0 } else { 1.0 };
    }
    let t = difference / error;
    if !t.is_finite() {
        return 1.0;
    }
    StudentsT::new(0.0, 1.0, degrees).map_or(1.0, |distribution| distribution.cdf(-t).clamp(0.0, 1.0))
}

/// The number that Student's t exceeds in size with probability `alpha`.
pub(crate) fn critical(degrees: f64, alpha: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| t.inverse_cdf(1.0 - alpha / 2.0))
}

/// Probability that a two-sided test at level `alpha` finds a difference of this many standard errors.
///
/// By the noncentral t distribution: the ratio of a normal around `errors` and the root of an independent χ² divided by its degrees.
pub(crate) fn power(degrees: f64, errors: f64, alpha: f64) -> f64 {
    let (Ok(normal), Ok(chi2)) = (Normal::new(0.0, 1.0), ChiSquared::new(degrees)) else { return 0.0 };
    let critical = critical(degrees, alpha);
    // Over the root of χ², whose density has no pole at 0 from one degree on.
    // Its standard deviation is below 1 for any degrees.
    let begin = (degrees.sqrt() - 8.0).max(0.0);
    let step = (degrees.sqrt() + 8.0 - begin) / f64::from(STEPS);
    let value = |at: u32| {
        let root = (begin + f64::from(at) * step).max(1e-9);
        let bound = critical * root / degrees.sqrt();
        let found = normal.cdf(errors - bound) + normal.cdf(-errors - bound);
        2.0 * root * chi2.ln_pdf(root * root).exp() * found
    };
    // Simpson's rule.
    let inner: f64 = (1..STEPS).map(|at| value(at) * if at % 2 == 1 { 4.0 } else { 2.0 }).sum();
    ((value(0) + inner + value(STEPS)) * step / 3.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_whole_degrees_the_power_lies_between_theirs() {
        let of = |degrees| power(degrees, 3.0, 0.05);
        assert!(of(4.0) < of(4.5) && of(4.5) < of(5.0), "{} {} {}", of(4.0), of(4.5), of(5.0));
    }

    /// A density that is computed as a quotient of powers overflows from 270 degrees on.
    #[test]
    fn with_many_degrees_the_power_is_that_of_a_normal_test() {
        for degrees in [100.0, 200.0, 250.0, 299.0, 310.0, 330.0, 1_000.0, 5_000.0, 100_000.0] {
            let (none, some) = (power(degrees, 0.0, 0.05), power(degrees, 2.801_6, 0.05));
            assert!((none - 0.05).abs() < 1e-3 && (some - 0.8).abs() < 8e-3, "{degrees}: {none} {some}");
        }
    }
}

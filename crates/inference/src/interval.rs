//! How sure is the mean throughput of a level, within this one start of the server?
//!
//! Bins of 100 ms are not independent: a checkpoint slows many of them. The variance of their mean
//! is therefore estimated at frequency zero, by the equal-weighted cosine estimator: E. Lazarus,
//! D. Lewis, J. Stock and M. Watson, "HAR inference: recommendations for practice", Journal of
//! Business and Economic Statistics 36 (2018). It averages the squared projections on the K slowest
//! cosines, and its ratio follows Student's t with K degrees of freedom.
//!
//! Where few seconds are strongly correlated, even the slowest cosines have less than the power at frequency zero. What they
//! lack is added as for an autoregressive series of order 1.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::bins::{BINS_MIN, BINS_PER_S, mean_of};

const COSINES_MIN: usize = 4;
const COSINES_MAX: usize = 64;

/// The estimate of the correlation is raised by this many of its standard errors. It is uncertain for short series, and an estimate that is
/// too low costs more than one that is too high. Chosen by simulation with other seeds than `bench/statistics` reports.
const CORRELATION_ERRORS: f64 = 1.5;
const CORRELATION_MAX: f64 = 0.99;

/// Returns half the width of the 95 % interval of the mean throughput, in transactions per second, from transactions in each 100 ms. `None` under two
/// seconds and where nothing was done.
pub fn half_width_per_s(bins: &[f64]) -> Option<f64> {
    if bins.len() < BINS_MIN || bins.iter().all(|&count| count == 0.0) {
        return None;
    }
    let count = bins.len() as f64;
    let mean = mean_of(bins);
    let phi = correlation(bins, mean);
    let cosines = cosines(count, phi);
    let mut power = 0.0;
    for order in 1..=cosines {
        let step = std::f64::consts::PI * order as f64 / count;
        let mut projection = 0.0;
        for (at, value) in bins.iter().enumerate() {
            projection += (value - mean) * (step * (at as f64 + 0.5)).cos();
        }
        power += projection * projection * 2.0 / count;
    }
    let share = SpectrumShare::of(count, cosines, phi);
    let variance_of_mean = power / cosines as f64 / count * share.widening;
    let half_width = t_quantile_975(share.degrees) * variance_of_mean.sqrt() * BINS_PER_S;

    // A count is exact only to the one transaction that the window's edges cut.
    let edge = BINS_PER_S / count;
    let wider = half_width.max(edge);
    wider.is_finite().then_some(wider)
}

/// Returns how many independent values would show as much about the mean, on the safe side. `bins` holds one at least.
pub fn independent_values(bins: &[f64]) -> f64 {
    let phi = correlation(bins, mean_of(bins));
    bins.len() as f64 * (1.0 - phi) / (1.0 + phi)
}

/// What the cosines have of the power of an autoregressive series of order 1, whose spectrum falls off within them.
struct SpectrumShare {
    /// The variance of the mean, as a multiple of the mean power of the cosines.
    widening: f64,
    /// Degrees of freedom of a sum of squares whose expectations differ (F. E. Satterthwaite, 1946).
    degrees: f64,
}

impl SpectrumShare {
    fn of(count: f64, cosines: usize, phi: f64) -> SpectrumShare {
        let (mut sum, mut squares) = (0.0, 0.0);
        for order in 1..=cosines {
            let step = std::f64::consts::PI * order as f64 / count;
            let share = (1.0 - phi).powi(2) / (1.0 - 2.0 * phi * step.cos() + phi * phi);
            sum += share;
            squares += share * share;
        }
        // Of few values, the variance of the mean is less than the spectrum at 0 says.
        let of_mean = 1.0 - 2.0 * phi * (1.0 - phi.powf(count)) / (count * (1.0 - phi * phi));
        SpectrumShare { widening: of_mean * cosines as f64 / sum, degrees: sum * sum / squares }
    }
}

/// Returns the number that Student's t with `degrees` (> 0) degrees of freedom exceeds with probability 2.5 %.
pub fn t_quantile_975(degrees: f64) -> f64 {
    // Parameters are valid by construction; the normal quantile is what t tends to.
    StudentsT::new(0.0, 1.0, degrees).map_or(1.96, |t| t.inverse_cdf(0.975))
}

/// How many cosines to average: 0.4 n^⅔ as the paper recommends, fewer where the series is so
/// correlated that its spectrum falls off within them. For an autoregressive series of order 1 the
/// spectrum is flat to a tenth up to K = 0.175 n (1−φ)/√φ.
fn cosines(count: f64, phi: f64) -> usize {
    let mut cosines = 0.4 * count.powf(2.0 / 3.0);
    if phi > 0.0 {
        cosines = cosines.min(0.175 * count * (1.0 - phi) / phi.sqrt());
    }
    (cosines as usize).clamp(COSINES_MIN, COSINES_MAX)
}

/// Correlation of neighbouring bins, with the correction of its bias, (1 + 3φ)/n, and raised to the safe side; from 0, and below 1.
fn correlation(bins: &[f64], mean: f64) -> f64 {
    let mut covariance = 0.0;
    let mut variance = 0.0;
    for (at, value) in bins.iter().enumerate() {
        variance += (value - mean) * (value - mean);
        if at > 0 {
            covariance += (value - mean) * (bins[at - 1] - mean);
        }
    }
    if variance <= 0.0 {
        return 0.0;
    }
    let phi = covariance / variance;
    let count = bins.len() as f64;
    let phi = phi + (1.0 + 3.0 * phi) / count;
    let error = ((1.0 - phi * phi).max(0.0) / count).sqrt();
    (phi.max(0.0) + CORRELATION_ERRORS * error).min(CORRELATION_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_random::noise::{Noise, ar1};

    /// Share of 1,000 seeded series whose interval holds the true mean.
    fn coverage(length: usize, phi: f64) -> f64 {
        let true_per_s = 1_000.0;
        let mut covered = 0;
        for seed in 0..1_000 {
            let bins: Vec<f64> = ar1(&mut Noise::new(seed), length, phi)
                .iter()
                .map(|deviation| 100.0 + 10.0 * deviation)
                .collect();
            let Some(half_width) = half_width_per_s(&bins) else {
                panic!("no interval for {length} bins");
            };
            let measured_per_s = mean_of(&bins) * BINS_PER_S;
            if (measured_per_s - true_per_s).abs() <= half_width {
                covered += 1;
            }
        }
        f64::from(covered) / 1_000.0
    }

    #[test]
    fn ninety_five_per_cent_means_about_that_however_correlated() {
        for length in [60, 100, 300] {
            for phi in [-0.3, 0.0, 0.3, 0.6, 0.8] {
                let share = coverage(length, phi);
                println!("{length} bins, phi {phi}: {share}");
                assert!((0.90..=0.98).contains(&share), "{share} for {length} bins, phi {phi}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (degrees, expected) in [(1.0, 12.706), (4.0, 2.776), (10.0, 2.228), (60.0, 2.000)] {
            assert!((t_quantile_975(degrees) - expected).abs() < 1e-3);
        }
    }

    #[test]
    fn constant_bins_are_exact_to_one_transaction_of_the_window() {
        assert_eq!(half_width_per_s(&[50.0; 100]), Some(0.1));
        assert_eq!(half_width_per_s(&[0.0; 100]), None);
        assert_eq!(half_width_per_s(&[50.0; 19]), None);
    }
}

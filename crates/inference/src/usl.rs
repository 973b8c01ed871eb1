//! The Universal Scalability Law: N. J. Gunther, "Guerrilla Capacity Planning", Springer 2007.
//!
//! X(N) = λN / (1 + σ(N−1) + κN(N−1)), fitted by weighted least squares with 0 ≤ σ < 1, κ ≥ 0. The fit starts
//! from a coarse grid, then follows Levenberg and Marquardt. Intervals are those of the linearised model. It is not known whether the
//! levels miss the law by like amounts. Noise may be a share of each level's throughput, or of the best. Intervals follow the less
//! certain of both readings.

use levenberg_marquardt::{LeastSquaresProblem, LevenbergMarquardt};
use nalgebra::storage::Owned;
use nalgebra::{DVector, Dyn, Matrix3, OMatrix, U3, Vector3};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::estimate::Estimate;
use crate::interval::t_quantile_975;

/// Levels that a fit of three parameters needs.
pub const POINTS_MIN: usize = 4;

/// A level is outside only if it is off by this share of the law's value, too. Otherwise a fit that is
/// nearly perfect would report trifles.
const OUTSIDE_MIN: f64 = 0.03;

/// Below these a parameter is 0.
const SIGMA_MIN: f64 = 1e-9;
const KAPPA_MIN: f64 = 1e-12;

const CURVE_POINTS: usize = 64;

/// By simulation of sweeps over eight levels: with 1 too few intervals hold the truth (92 %), with 2 too many (97 %).
const ROOM_POWER: f64 = 1.5;

/// Universal Scalability Law: X(N) = λN / (1 + σ(N−1) + κN(N−1)).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct UslFit {
    /// Transactions per second of one user.
    pub lambda: Estimate,
    /// Contention: the share that is serial.
    pub sigma: Estimate,
    /// Crosstalk (coherency).
    pub kappa: Estimate,
    /// Users at the fitted peak, √((1−σ)/κ); `None` where κ's interval contains 0: then the law needs no peak.
    pub peak_users: Option<f64>,
    /// Its 95 % interval; no upper end where the law needs no peak, or hardly one. `None` where it is not known.
    #[serde(default)]
    pub peak_users_ci95: Option<(f64, Option<f64>)>,
    pub r_squared: f64,
    /// Level indexes that the fit leaves outside its 95 % prediction band.
    pub outside: Vec<u32>,
    /// (users, transactions per second) for drawing.
    pub curve: Vec<[f64; 2]>,
}

/// One measured level.
#[derive(Clone, Debug)]
pub struct UslPoint {
    pub users: f64,
    pub per_s: f64,
    /// Relative weight of its squared residual, above 0.
    pub weight: f64,
    /// The level indexes that it stands for.
    pub indexes: Vec<u32>,
}

/// Fits the law. `left_out` names levels that are known not to follow it; they are listed as
/// outside. `None` with fewer than [`POINTS_MIN`] points, or where no fit converges.
pub fn fit(points: &[UslPoint], left_out: &[u32]) -> Option<UslFit> {
    if points.len() < POINTS_MIN {
        return None;
    }
    let scale = points.iter().map(|point| point.per_s).fold(0.0, f64::max);
    if scale <= 0.0 || !scale.is_finite() {
        return None;
    }
    let problem = Problem { points, scale, parameters: start(points, scale)? };
    let (fitted, report) = LevenbergMarquardt::new().with_patience(200).minimize(problem);
    if !report.objective_function.is_finite() {
        return None;
    }
    let law = Law::from_free(&fitted.parameters, scale);
    let quality = quality(points, law)?;
    let kappa = quality.estimate(2, law.kappa);

    let mut outside = left_out.to_vec();
    outside.extend(levels_outside(points, law, &quality));
    outside.sort_unstable();
    let needs_peak = kappa.low95 > 0.0;
    let users_max = points.iter().map(|point| point.users).fold(1.0, f64::max);
    let sigma = quality.estimate(1, law.sigma);
    let fit = UslFit {
        lambda: quality.estimate(0, law.lambda),
        sigma: Estimate { high95: sigma.high95.min(1.0), ..sigma },
        kappa,
        peak_users: Some(((1.0 - law.sigma) / law.kappa).sqrt())
            .filter(|users| needs_peak && users.is_finite() && *users > 0.0),
        peak_users_ci95: quality.peak_interval(law, needs_peak),
        r_squared: quality.r_squared,
        outside,
        curve: curve(law, users_max),
    };
    is_finite(&fit).then_some(fit)
}

#[derive(Clone, Copy, Debug)]
struct Law {
    lambda: f64,
    sigma: f64,
    kappa: f64,
}

impl Law {
    /// From the parameters that the fit is free to choose, which keep all three in range: ln λ, the
    /// root of σ/(1−σ), √κ.
    fn from_free(free: &Vector3<f64>, scale: f64) -> Law {
        let sigma = sigma(free[1]);
        let kappa = free[2] * free[2];
        Law {
            lambda: free[0].exp() * scale,
            sigma: if sigma < SIGMA_MIN { 0.0 } else { sigma },
            kappa: if kappa < KAPPA_MIN { 0.0 } else { kappa },
        }
    }

    fn per_s(self, users: f64) -> f64 {
        self.lambda * users / denominator(users, self.sigma, self.kappa)
    }

    /// Derivatives by λ, σ and κ.
    fn gradient(self, users: f64) -> Vector3<f64> {
        let below = denominator(users, self.sigma, self.kappa);
        let per_s = self.per_s(users);
        Vector3::new(users / below, -per_s * (users - 1.0) / below, -per_s * users * (users - 1.0) / below)
    }
}

/// σ, below 1, from the root of σ/(1−σ).
fn sigma(root_odds: f64) -> f64 {
    let odds = root_odds * root_odds;
    odds / (1.0 + odds)
}

fn denominator(users: f64, sigma: f64, kappa: f64) -> f64 {
    1.0 + sigma * (users - 1.0) + kappa * users * (users - 1.0)
}

struct Problem<'a> {
    points: &'a [UslPoint],
    /// Throughputs are divided by this.
    scale: f64,
    /// ln(λ / scale), √(σ/(1−σ)), √κ.
    parameters: Vector3<f64>,
}

impl LeastSquaresProblem<f64, Dyn, U3> for Problem<'_> {
    type ParameterStorage = Owned<f64, U3>;
    type ResidualStorage = Owned<f64, Dyn>;
    type JacobianStorage = Owned<f64, Dyn, U3>;

    fn set_params(&mut self, parameters: &Vector3<f64>) {
        self.parameters.copy_from(parameters);
    }

    fn params(&self) -> Vector3<f64> {
        self.parameters
    }

    fn residuals(&self) -> Option<DVector<f64>> {
        let [log_lambda, root_odds, root_kappa] =
            [self.parameters[0], self.parameters[1], self.parameters[2]];
        let residuals = self.points.iter().map(|point| {
            let below = denominator(point.users, sigma(root_odds), root_kappa * root_kappa);
            let predicted = log_lambda.exp() * point.users / below;
            point.weight.sqrt() * (predicted - point.per_s / self.scale)
        });
        Some(DVector::from_iterator(self.points.len(), residuals))
    }

    fn jacobian(&self) -> Option<OMatrix<f64, Dyn, U3>> {
        let [log_lambda, root_odds, root_kappa] =
            [self.parameters[0], self.parameters[1], self.parameters[2]];
        let sigma_by_root = 2.0 * root_odds / (1.0 + root_odds * root_odds).powi(2);
        let mut jacobian = OMatrix::<f64, Dyn, U3>::zeros(self.points.len());
        for (row, point) in self.points.iter().enumerate() {
            let users = point.users;
            let below = denominator(users, sigma(root_odds), root_kappa * root_kappa);
            let predicted = log_lambda.exp() * users / below;
            let root_weight = point.weight.sqrt();
            jacobian[(row, 0)] = root_weight * predicted;
            jacobian[(row, 1)] = -root_weight * predicted * sigma_by_root * (users - 1.0) / below;
            jacobian[(row, 2)] = -root_weight * predicted * 2.0 * root_kappa * users * (users - 1.0) / below;
        }
        Some(jacobian)
    }
}

/// The best of a coarse grid of σ and κ; λ is linear and follows from them.
fn start(points: &[UslPoint], scale: f64) -> Option<Vector3<f64>> {
    let mut best: Option<(f64, Vector3<f64>)> = None;
    for sigma_step in 0..12 {
        for kappa_step in 0..17 {
            let sigma = 10_f64.powf(-6.0 + 0.5 * f64::from(sigma_step));
            let kappa = 10_f64.powf(-9.0 + 0.5 * f64::from(kappa_step));
            let mut measured_by_shape = 0.0;
            let mut shape_by_shape = 0.0;
            for point in points {
                let shape = point.users / denominator(point.users, sigma, kappa);
                measured_by_shape += point.weight * shape * point.per_s / scale;
                shape_by_shape += point.weight * shape * shape;
            }
            let lambda = measured_by_shape / shape_by_shape;
            let mut squares = 0.0;
            for point in points {
                let predicted = lambda * point.users / denominator(point.users, sigma, kappa);
                squares += point.weight * (predicted - point.per_s / scale).powi(2);
            }
            let is_better = best.as_ref().is_none_or(|(least, _)| squares < *least);
            if lambda > 0.0 && squares.is_finite() && is_better {
                best =
                    Some((squares, Vector3::new(lambda.ln(), (sigma / (1.0 - sigma)).sqrt(), kappa.sqrt())));
            }
        }
    }
    best.map(|(_, parameters)| parameters)
}

/// How well the law fits, and what its parameters are known to.
struct Quality {
    r_squared: f64,
    degrees: f64,
    /// Weighted sum of squared residuals.
    squares: f64,
    /// (JᵀWJ)⁻¹
    inverse: Matrix3<f64>,
    /// Of the parameters' estimates: where levels miss the law alike, and where they don't.
    covariances: [Matrix3<f64>; 2],
}

impl Quality {
    fn estimate(&self, parameter: usize, value: f64) -> Estimate {
        let [alike, unlike] = self.covariances.map(|covariance| covariance[(parameter, parameter)]);
        let variance = alike.max(unlike);
        let half_width = t_quantile_975(self.degrees) * variance.max(0.0).sqrt();
        Estimate { value, low95: (value - half_width).max(0.0), high95: value + half_width }
    }
}

impl Quality {
    /// Returns the 95 % interval of the users at the peak: those N at which 1 − σ − κN² can't be distinguished from 0. That expression is linear in
    /// the parameters. `None` where every N can't.
    ///
    /// Source: E. C. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society B 16, 1954.
    fn peak_interval(&self, law: Law, needs_peak: bool) -> Option<(f64, Option<f64>)> {
        let scale = t_quantile_975(self.degrees).powi(2);
        let [alike, unlike] = &self.covariances;
        let covariance = if unlike[(2, 2)] > alike[(2, 2)] { unlike } else { alike };
        let [sigma_too, both, kappa_too] = [(1, 1), (1, 2), (2, 2)].map(|at| scale * covariance[at]);
        // (1−σ−κm)² ≤ t² (Vσσ + 2m Vσκ + m² Vκκ), with m for N²: a m² + b m + c ≤ 0.
        let rest = 1.0 - law.sigma;
        let a = law.kappa * law.kappa - kappa_too;
        let b = -2.0 * (law.kappa * rest + both);
        let c = rest * rest - sigma_too;
        let discriminant = b * b - 4.0 * a * c;
        // Where c is not above 0, σ may be 1, and no number of users is too low.
        let low = match () {
            _ if c <= 0.0 || discriminant < 0.0 => 1.0,
            // The smaller root above 0, in the form that does not cancel.
            _ => (2.0 * c / (-b + discriminant.sqrt())).max(0.0).sqrt().max(1.0),
        };
        let high =
            (a > 0.0 && needs_peak && discriminant >= 0.0).then(|| (-b + discriminant.sqrt()) / (2.0 * a));
        let high = high.filter(|high| high.is_finite() && *high > 0.0).map(|high| high.sqrt().max(low));
        low.is_finite().then_some((low, high))
    }
}

fn quality(points: &[UslPoint], law: Law) -> Option<Quality> {
    let weights: f64 = points.iter().map(|point| point.weight).sum();
    let mean = points.iter().map(|point| point.weight * point.per_s).sum::<f64>() / weights;
    let mut squares = 0.0;
    let mut squares_around_mean = 0.0;
    let mut normal = Matrix3::zeros();
    for point in points {
        squares += point.weight * (point.per_s - law.per_s(point.users)).powi(2);
        squares_around_mean += point.weight * (point.per_s - mean).powi(2);
        let gradient = law.gradient(point.users);
        normal += gradient * gradient.transpose() * point.weight;
    }
    // λ is in the thousands and κ in the millionths: brought to one scale before the inversion.
    let mut scaling = Matrix3::zeros();
    for parameter in 0..3 {
        let size = normal[(parameter, parameter)].sqrt();
        if size <= 0.0 || !size.is_finite() {
            return None;
        }
        scaling[(parameter, parameter)] = 1.0 / size;
    }
    let inverse = scaling * (scaling * normal * scaling).try_inverse()? * scaling;
    let r_squared = if squares_around_mean > 0.0 { 1.0 - squares / squares_around_mean } else { 0.0 };
    let degrees = (points.len() - 3) as f64;
    let covariances = [inverse * (squares / degrees), covariance_of_unlike(points, law, &inverse)];
    Some(Quality { r_squared, degrees, squares, inverse, covariances })
}

/// Returns the covariance of the parameters where levels may miss the law by unlike amounts. Squares of what a level misses it by are divided by
/// a power of the room that its leverage leaves. The power is [`ROOM_POWER`], between those of HC2 (1) and HC3 (2).
///
/// Source: J. G. MacKinnon and H. White, "Some heteroskedasticity-consistent covariance matrix estimators with improved finite sample properties",
/// Journal of Econometrics 29, 1985.
fn covariance_of_unlike(points: &[UslPoint], law: Law, inverse: &Matrix3<f64>) -> Matrix3<f64> {
    let mut middle = Matrix3::zeros();
    for point in points {
        let gradient = law.gradient(point.users);
        let room = 1.0 - point.weight * (gradient.transpose() * inverse * gradient)[(0, 0)];
        // A level that the fit passes through by itself shows nothing of what it misses the law by.
        if room < 1e-9 {
            continue;
        }
        let missed = point.weight * (point.per_s - law.per_s(point.users));
        middle += gradient * gradient.transpose() * (missed * missed / room.powf(ROOM_POWER));
    }
    inverse * middle * inverse
}

/// Levels that lie outside the 95 % prediction band of a fit without them, by their deleted
/// residuals (R. D. Cook and S. Weisberg, "Residuals and Influence in Regression", 1982, §2.2.1).
/// With four points nothing is left to judge the fifth by.
fn levels_outside(points: &[UslPoint], law: Law, quality: &Quality) -> Vec<u32> {
    let mut outside = Vec::new();
    let degrees_without = quality.degrees - 1.0;
    if degrees_without < 1.0 {
        return outside;
    }
    let limit = t_quantile_975(degrees_without);
    for point in points {
        let predicted = law.per_s(point.users);
        let residual = point.per_s - predicted;
        let gradient = law.gradient(point.users);
        let leverage = point.weight * (gradient.transpose() * quality.inverse * gradient)[(0, 0)];
        let room = 1.0 - leverage;
        if room < 1e-9 || residual.abs() < OUTSIDE_MIN * predicted {
            continue;
        }
        let squared = point.weight * residual * residual;
        let variance_without = ((quality.squares - squared / room) / degrees_without).max(0.0);
        if squared > limit * limit * variance_without * room {
            outside.extend(&point.indexes);
        }
    }
    outside
}

/// From one user to the most that were tried, evenly on a logarithmic axis.
fn curve(law: Law, users_max: f64) -> Vec<[f64; 2]> {
    let mut curve = Vec::with_capacity(CURVE_POINTS);
    for step in 0..CURVE_POINTS {
        let users = users_max.powf(step as f64 / (CURVE_POINTS - 1) as f64);
        curve.push([users, law.per_s(users)]);
    }
    curve
}

fn is_finite(fit: &UslFit) -> bool {
    let estimates = [fit.lambda, fit.sigma, fit.kappa];
    let all = estimates.iter().flat_map(|estimate| [estimate.value, estimate.low95, estimate.high95]);
    let peak = fit.peak_users_ci95.map_or(Vec::new(), |(low, high)| vec![low, high.unwrap_or(low)]);
    all.chain(fit.curve.iter().flatten().copied()).chain([fit.r_squared]).chain(peak).all(f64::is_finite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_random::noise::Noise;

    fn points(measured: &[(f64, f64)]) -> Vec<UslPoint> {
        let with_index = measured.iter().enumerate();
        with_index
            .map(|(index, &(users, per_s))| UslPoint {
                users,
                per_s,
                weight: 1.0,
                indexes: vec![index as u32],
            })
            .collect()
    }

    fn fitted(measured: &[(f64, f64)]) -> UslFit {
        match fit(&points(measured), &[]) {
            Some(fit) => fit,
            None => panic!("no fit of {measured:?}"),
        }
    }

    /// SPEC SDM91 on a Sun SPARCcenter 2000, as published by Gunther and in the vignette of R's
    /// package `usl`. Its least-squares fit is σ = 0.0277, κ = 0.000104, λ = 90.0, peak at 96.5.
    #[test]
    fn the_published_fit_of_spec_sdm91_comes_out() {
        let fit = fitted(&[
            (1.0, 64.9),
            (18.0, 995.9),
            (36.0, 1652.4),
            (72.0, 1853.2),
            (108.0, 1828.9),
            (144.0, 1775.0),
            (216.0, 1702.2),
        ]);
        println!("{fit:?}");
        assert!((fit.sigma.value - 0.0277).abs() < 0.0002, "{:?}", fit.sigma);
        assert!((fit.kappa.value - 0.000104).abs() < 0.000001, "{:?}", fit.kappa);
        assert!((fit.lambda.value - 90.0).abs() < 0.5, "{:?}", fit.lambda);
        assert!(fit.peak_users.is_some_and(|users| (users - 96.5).abs() < 0.5));
        assert!(fit.sigma.low95 < 0.0277 && fit.sigma.high95 > 0.0277);
        assert!(fit.r_squared > 0.98);
    }

    #[test]
    fn known_parameters_are_found_again_within_their_intervals() {
        let truth = Law { lambda: 800.0, sigma: 0.05, kappa: 0.0005 };
        let mut covered = [0; 3];
        for seed in 0..200 {
            let mut noise = Noise::new(seed);
            let measured: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
                .iter()
                .map(|&users| (users, truth.per_s(users) + 60.0 * noise.normal()))
                .collect();
            let fit = fitted(&measured);
            let with_truth = [(fit.lambda, truth.lambda), (fit.sigma, truth.sigma), (fit.kappa, truth.kappa)];
            for (count, (estimate, value)) in covered.iter_mut().zip(with_truth) {
                *count += usize::from(estimate.low95 <= value && value <= estimate.high95);
            }
        }
        // 95 % of 200 is 190; six standard errors below and it is not 95 %.
        assert!(covered.iter().all(|&count| count >= 172), "{covered:?} of 200");
    }

    /// Shares of 400 sweeps over 1 to 128 users whose law has a peak, and whose interval holds the true one.
    fn shares_with_peak_and_covered(truth: Law, noise_share: f64) -> (f64, f64) {
        let at_peak = ((1.0 - truth.sigma) / truth.kappa).sqrt();
        let (mut with_peak, mut covered) = (0, 0);
        for seed in 0..400 {
            let mut noise = Noise::new(90_000 + seed);
            let measured: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
                .iter()
                .map(|&users| {
                    (users, truth.per_s(users) + noise_share * truth.per_s(at_peak) * noise.normal())
                })
                .collect();
            let fit = fitted(&measured);
            with_peak += u32::from(fit.peak_users.is_some());
            let (low, high) = fit.peak_users_ci95.unwrap();
            covered += u32::from(low <= at_peak && high.is_none_or(|high| at_peak <= high));
        }
        (f64::from(with_peak) / 400.0, f64::from(covered) / 400.0)
    }

    #[test]
    fn the_interval_of_the_fitted_peak_holds_the_true_one() {
        for (sigma, kappa) in [(0.05, 0.0005), (0.02, 0.000_2), (0.2, 0.002), (0.1, 0.000_05)] {
            for noise_share in [0.01, 0.03] {
                let (with_peak, covered) =
                    shares_with_peak_and_covered(Law { lambda: 800.0, sigma, kappa }, noise_share);
                println!(
                    "sigma {sigma}, kappa {kappa}, noise {noise_share}: {with_peak} have a peak, {covered} cover it"
                );
                assert!(
                    covered >= 0.93,
                    "{covered} with sigma {sigma}, kappa {kappa}, noise of {noise_share}"
                );
            }
        }
    }

    #[test]
    fn without_crosstalk_no_peak_is_needed() {
        let truth = Law { lambda: 800.0, sigma: 0.05, kappa: 0.0 };
        let mut needed = 0;
        for seed in 0..100 {
            let mut noise = Noise::new(seed);
            let measured: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
                .iter()
                .map(|&users| (users, truth.per_s(users) + 300.0 * noise.normal()))
                .collect();
            let fit = fitted(&measured);
            needed += u32::from(fit.peak_users.is_some());
            let is_open = fit.peak_users_ci95.is_none_or(|(_, high)| high.is_none());
            assert_eq!(fit.peak_users.is_none(), fit.kappa.low95 <= 0.0);
            assert!(is_open || fit.peak_users.is_some(), "{fit:?}");
        }
        assert!(needed <= 5, "{needed} of 100");
    }

    #[test]
    fn linear_scaling_needs_neither_contention_nor_crosstalk() {
        let fit = fitted(&[(1.0, 100.0), (2.0, 200.0), (4.0, 400.0), (8.0, 800.0), (16.0, 1600.0)]);
        assert!(fit.sigma.value < 1e-4 && fit.kappa.value < 1e-5, "{fit:?}");
        assert!((fit.lambda.value - 100.0).abs() < 0.5);
    }

    #[test]
    fn faster_than_linear_stays_within_the_bounds() {
        let fit = fitted(&[(1.0, 100.0), (2.0, 220.0), (4.0, 500.0), (8.0, 1200.0)]);
        assert!(fit.sigma.value >= 0.0 && fit.kappa.value >= 0.0);
        assert!(fit.sigma.low95 >= 0.0 && fit.kappa.low95 >= 0.0);
    }

    #[test]
    fn no_more_than_all_work_is_serial() {
        let fit = fitted(&[(2.0, 1000.0), (4.0, 950.0), (8.0, 900.0), (16.0, 1010.0), (32.0, 980.0)]);
        assert!(fit.sigma.value <= 1.0 && fit.sigma.high95 <= 1.0, "{:?}", fit.sigma);
    }

    #[test]
    fn a_level_that_does_not_belong_is_outside() {
        let truth = Law { lambda: 500.0, sigma: 0.1, kappa: 0.001 };
        let mut noise = Noise::new(1);
        let mut measured: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0, 64.0]
            .iter()
            .map(|&users| (users, truth.per_s(users) * (1.0 + 0.005 * noise.normal())))
            .collect();
        assert_eq!(fitted(&measured).outside, Vec::<u32>::new());
        measured[5].1 *= 0.7;
        assert_eq!(fitted(&measured).outside, vec![5]);
    }

    #[test]
    fn three_levels_give_no_fit() {
        assert!(fit(&points(&[(1.0, 1.0), (2.0, 2.0), (4.0, 3.0)]), &[]).is_none());
    }
}

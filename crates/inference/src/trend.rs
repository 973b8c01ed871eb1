//! Does throughput climb or fall throughout a level?
//!
//! The series is regressed on a few shapes that never turn. One is a straight line. The others are curves that change fast at
//! the begin or at the end, as warm-ups, caches that fill and queues that build up do. The test is Student's ratio of the strongest shape, over
//! the long-run variance of what that shape leaves. This variance is the larger of two estimates. One is that of an
//! autoregressive series of order 1. The other averages projections on slow cosines (see [`crate::interval`]), and holds
//! for other kinds of correlation, such as waves of checkpoints.
//!
//! The critical values come from simulation, because the strongest of several correlated ratios has no table. The simulated
//! series have 12 to 400 values, independent and autocorrelated (φ 0 to 0.8). The tests of [`crate::steady`] use other
//! seeds than the simulation.

use crate::bins::mean_of;

/// The critical value for n values is the first number plus the second divided by n. At least 98 % of stationary series
/// stay below it, those with φ = 0.8 included.
const CRITICAL: (f64, f64) = (3.2, 110.0);

/// Time constants of the curves, as shares of the series.
const TIME_CONSTANTS: [f64; 3] = [0.4, 0.2, 0.08];

/// Cosines that the second estimate of the variance averages, at least and at most.
const COSINES_MIN: usize = 4;
const COSINES_MAX: usize = 16;

/// The strongest trend of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// The fitted shape's first and last value.
    pub from: f64,
    pub to: f64,
    /// Student's ratio.
    pub ratio: f64,
    /// Sum of the squares that the shape leaves.
    pub squares: f64,
}

impl Trend {
    /// Returns whether chance explains it badly, for a series of this many values. `strictness` multiplies the critical value.
    pub fn is_significant(&self, count: usize, strictness: f64) -> bool {
        self.ratio > strictness * (CRITICAL.0 + CRITICAL.1 / count as f64)
    }

    /// Returns the difference between the shape's ends, as a share of the larger.
    pub fn change(&self) -> f64 {
        let most = self.from.max(self.to);
        if most > 0.0 { (self.from - self.to).abs() / most } else { 0.0 }
    }
}

/// Fits every shape, and returns the one with the largest ratio; `None` for fewer than four values.
pub fn strongest(values: &[f64]) -> Option<Trend> {
    if values.len() < 4 {
        return None;
    }
    let mut strongest: Option<Trend> = None;
    for shape in shapes(values.len()) {
        let trend = fitted(values, &shape);
        if strongest.is_none_or(|best| trend.ratio > best.ratio) {
            strongest = Some(trend);
        }
    }
    strongest
}

/// Shapes that never turn, of mean 0 and length 1.
fn shapes(count: usize) -> Vec<Vec<f64>> {
    let place = |at: usize| (at as f64 + 0.5) / count as f64;
    let mut shapes = vec![normalised((0..count).map(place).collect())];
    for constant in TIME_CONSTANTS {
        shapes.push(normalised((0..count).map(|at| -(-place(at) / constant).exp()).collect()));
        shapes.push(normalised((0..count).map(|at| (-(1.0 - place(at)) / constant).exp()).collect()));
    }
    shapes
}

fn normalised(shape: Vec<f64>) -> Vec<f64> {
    let mean = mean_of(&shape);
    let length = shape.iter().map(|value| (value - mean).powi(2)).sum::<f64>().sqrt();
    shape.iter().map(|value| (value - mean) / length).collect()
}

fn fitted(values: &[f64], shape: &[f64]) -> Trend {
    let mean = mean_of(values);
    let size: f64 = values.iter().zip(shape).map(|(value, step)| (value - mean) * step).sum();
    let rest: Vec<f64> = values.iter().zip(shape).map(|(value, step)| value - mean - size * step).collect();
    let squares: f64 = rest.iter().map(|one| one * one).sum();
    let variance = by_autoregression(&rest, squares).max(by_cosines(&rest));
    // Counts are whole numbers: nothing is known better than to a fraction of one.
    let ratio = size.abs() / variance.max(1e-6 * mean * mean).max(1e-12).sqrt();
    let at = |place: usize| mean + size * shape[place];
    Trend { from: at(0), to: at(values.len() - 1), ratio, squares }
}

/// Long-run variance of an autoregressive series of order 1 that is no more than positively correlated. The correction is
/// that of residuals of a mean and a trend, (2 + 4φ)/n.
fn by_autoregression(rest: &[f64], squares: f64) -> f64 {
    if squares <= 0.0 {
        return 0.0;
    }
    let count = rest.len() as f64;
    let products: f64 = rest.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let found = products / squares;
    let phi = (found + (2.0 + 4.0 * found.max(0.0)) / count).clamp(0.0, 0.97);
    squares / (count - 2.0) * (1.0 + phi) / (1.0 - phi)
}

/// Mean squared projection on slow cosines. The slowest one is left out, because the shapes absorb it.
fn by_cosines(rest: &[f64]) -> f64 {
    let count = rest.len() as f64;
    let cosines = ((0.4 * count.powf(2.0 / 3.0)) as usize).clamp(COSINES_MIN, COSINES_MAX);
    let mut power = 0.0;
    for order in 2..=cosines + 1 {
        // cos((k + ½)·step) from the two before it, because each cosine by itself takes most of the time.
        let step = std::f64::consts::PI * order as f64 / count;
        let (twice, mut before, mut cosine) = (2.0 * step.cos(), (step / 2.0).cos(), (step / 2.0).cos());
        let mut projection = 0.0;
        for value in rest {
            projection += value * cosine;
            (before, cosine) = (cosine, twice * cosine - before);
        }
        power += projection * projection * 2.0 / count;
    }
    power / cosines as f64
}

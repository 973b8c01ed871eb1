//! Seeded noise, for simulations of series whose truth is known.

use crate::{GOLDEN_GAMMA, SplitMix64};

/// Noise that is the same on every machine.
pub struct Noise(SplitMix64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(SplitMix64::new(seed.wrapping_mul(GOLDEN_GAMMA) ^ 0xD1B5_4A32_D192_ED03))
    }

    /// In [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0.unit_f64()
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A stationary autoregressive series of order 1 with variance 1.
pub fn ar1(noise: &mut Noise, length: usize, phi: f64) -> Vec<f64> {
    let mut value = noise.normal();
    let step = (1.0 - phi * phi).sqrt();
    let mut series = Vec::with_capacity(length);
    for _ in 0..length {
        series.push(value);
        value = phi * value + step * noise.normal();
    }
    series
}

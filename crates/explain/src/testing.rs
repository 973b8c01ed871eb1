//! Seeded noise for the tests.

/// A small generator (SplitMix64, public domain constants), so that a test gives the same numbers
/// on every machine.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03)
    }

    /// In [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        (z >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A stationary autoregressive series of order 1 with variance 1.
pub(crate) fn ar1(noise: &mut Noise, length: usize, phi: f64) -> Vec<f64> {
    let mut value = noise.normal();
    let step = (1.0 - phi * phi).sqrt();
    let mut series = Vec::with_capacity(length);
    for _ in 0..length {
        series.push(value);
        value = phi * value + step * noise.normal();
    }
    series
}

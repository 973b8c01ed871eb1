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

/// Student's t with `degrees` (1 or more) degrees of freedom: the fewer, the more of its values are far away.
pub fn heavy(noise: &mut Noise, degrees: u32) -> f64 {
    let squares: f64 = (0..degrees.max(1)).map(|_| noise.normal().powi(2)).sum();
    noise.normal() / (squares / f64::from(degrees.max(1))).sqrt()
}

/// Share of each of `length` windows in which a neighbour works that comes every `every_s` seconds for `busy_s` seconds. When it comes first is random.
pub fn periodic(noise: &mut Noise, length: usize, window_s: f64, every_s: f64, busy_s: f64) -> Vec<f64> {
    let begin_s = -noise.uniform() * every_s;
    let mut shares = vec![0.0; length];
    let end_s = length as f64 * window_s;
    let mut round = 0.0;
    while begin_s + round * every_s < end_s && every_s > 0.0 {
        let at_s = begin_s + round * every_s;
        add_busy(&mut shares, window_s, at_s, at_s + busy_s);
        round += 1.0;
    }
    shares
}

/// Share of each of `length` windows in which a neighbour works that comes at random. Its pauses last `pause_s` seconds on average, and its bursts
/// `burst_s` seconds; both are exponential.
pub fn bursts(noise: &mut Noise, length: usize, window_s: f64, pause_s: f64, burst_s: f64) -> Vec<f64> {
    let mut shares = vec![0.0; length];
    let end_s = length as f64 * window_s;
    let mut at_s = 0.0;
    while at_s < end_s {
        at_s += pause_s.max(window_s / 1e3) * -(1.0 - noise.uniform()).ln();
        let until_s = at_s + burst_s * -(1.0 - noise.uniform()).ln();
        add_busy(&mut shares, window_s, at_s, until_s);
        at_s = until_s;
    }
    shares
}

/// Adds the time from `from_s` to `until_s` to the shares of the windows that it overlaps.
fn add_busy(shares: &mut [f64], window_s: f64, from_s: f64, until_s: f64) {
    let first = (from_s.max(0.0) / window_s) as usize;
    for (at, share) in shares.iter_mut().enumerate().skip(first) {
        let (begin_s, end_s) = (at as f64 * window_s, (at + 1) as f64 * window_s);
        if begin_s >= until_s {
            break;
        }
        *share += (end_s.min(until_s) - begin_s.max(from_s)).max(0.0) / window_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }

    #[test]
    fn a_neighbour_works_as_much_as_it_should() {
        let mut noise = Noise::new(1);
        let regular = periodic(&mut noise, 10_000, 1.0, 10.0, 3.0);
        assert!((mean(&regular) - 0.3).abs() < 1e-3, "{}", mean(&regular));
        let random = bursts(&mut noise, 100_000, 1.0, 30.0, 10.0);
        assert!((mean(&random) - 0.25).abs() < 0.02, "{}", mean(&random));
        assert!(regular.iter().chain(&random).all(|share| (0.0..=1.0 + 1e-9).contains(share)));
    }

    #[test]
    fn heavy_tails_are_heavier_with_fewer_degrees() {
        let mut noise = Noise::new(2);
        let mut far = |degrees| (0..20_000).filter(|_| heavy(&mut noise, degrees).abs() > 4.0).count();
        let (two, ten) = (far(2), far(10));
        // Of Student's t, 5.7 % and 0.25 % lie beyond 4.
        assert!((1_000..1_300).contains(&two) && (25..85).contains(&ten), "{two} {ten}");
    }
}

//! Where one more value lies, by values like it.

use crate::student::critical;

/// Fewer values say too little of how much starts differ.
const VALUES_MIN: usize = 4;

/// Interval in which one more value lies with probability `1 - alpha`, if it comes from where `values` come from; `None` with fewer than
/// four values, or where one is not above 0.
///
/// By the mean and the standard deviation of their logarithms, and Student's t with one degree less than values: exact where logarithms
/// are normal. Its coverage with other distributions is in this file's tests.
pub fn prediction(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    if values.len() < VALUES_MIN || values.iter().any(|value| !value.is_finite() || *value <= 0.0) {
        return None;
    }
    let n = values.len() as f64;
    let logarithms = || values.iter().map(|value| value.ln());
    let mean = logarithms().sum::<f64>() / n;
    let squares: f64 = logarithms().map(|value| (value - mean).powi(2)).sum();
    let half = critical(n - 1.0, alpha) * (squares / (n - 1.0) * (1.0 + 1.0 / n)).sqrt();
    Some(((mean - half).exp(), (mean + half).exp()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_random::noise::Noise;

    const ROUNDS: u32 = 4000;

    /// How often one more draw lies in the interval of those before it.
    fn coverage(noise: &mut Noise, values: usize, draw: impl Fn(&mut Noise) -> f64) -> f64 {
        let mut within = 0;
        for _ in 0..ROUNDS {
            let known: Vec<f64> = (0..values).map(|_| draw(noise)).collect();
            let (low, high) = prediction(&known, 0.05).unwrap();
            let next = draw(noise);
            within += u32::from(low <= next && next <= high);
        }
        f64::from(within) / f64::from(ROUNDS)
    }

    #[test]
    fn one_more_start_lies_in_the_interval_as_often_as_promised() {
        let mut noise = Noise::new(20_261_126);
        for values in [4, 6, 12] {
            let normal = coverage(&mut noise, values, |noise| 1000.0 * (0.03 * noise.normal()).exp());
            assert!((0.935..=0.965).contains(&normal), "{values}: {normal}");
            let flat = coverage(&mut noise, values, |noise| 1000.0 * (1.0 + 0.1 * noise.uniform()));
            assert!((0.93..=1.0).contains(&flat), "{values}: {flat}");
            // One start in ten is slower by a tenth, as where a neighbour works.
            let mixed = coverage(&mut noise, values, |noise| {
                let slow = if noise.uniform() < 0.1 { 0.9 } else { 1.0 };
                1000.0 * slow * (1.0 + 0.02 * noise.uniform())
            });
            assert!((0.88..=0.99).contains(&mixed), "{values}: {mixed}");
        }
    }

    #[test]
    fn too_few_values_give_no_interval() {
        assert_eq!(prediction(&[1.0, 2.0, 3.0], 0.05), None);
        assert_eq!(prediction(&[1.0, 2.0, 3.0, 0.0], 0.05), None);
        let (low, high) = prediction(&[100.0, 101.0, 99.0, 100.0], 0.05).unwrap();
        assert!(low > 96.0 && low < 98.0 && high > 102.0 && high < 104.0, "{low} {high}");
    }
}

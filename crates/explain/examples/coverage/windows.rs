//! Two windows of recordings against each other.

use whyso_explain::comparison::{Parts, judge_parts, parts_of_window};
use whyso_inference::{Sides, contrast};

use crate::simulate::{Seeds, Tally, ar1};

/// Readings of one per second, of two windows whose throughput is the same.
pub(crate) fn of_windows(seeds: Seeds, case: u64, seconds: usize, phi: f64, noise_share: f64) -> Tally {
    let mut tally = Tally::default();
    for series in 0..seeds.series(seconds) {
        let mut noise = seeds.noise(case, series);
        let [first, second] = [0, 1].map(|_| {
            let deviations = ar1(&mut noise, seconds, phi);
            deviations.iter().map(|deviation| 1_000.0 * (1.0 + noise_share * deviation)).collect::<Vec<f64>>()
        });
        tally.count(interval(&first, &second), 1.0);
    }
    tally
}

/// As the laboratory compares windows, one on each side.
fn interval(first: &[f64], second: &[f64]) -> Option<[f64; 2]> {
    let cut = |readings: &[f64]| (readings.to_vec(), parts_of_window(readings.len() as f64, 1.0));
    let (first, second) = (cut(first), cut(second));
    let Parts::Widened(widening) = judge_parts(std::slice::from_ref(&first), std::slice::from_ref(&second))
    else {
        return None;
    };
    let sides = Sides::Correlated { first: means(&first), second: means(&second), widening };
    contrast(&sides)?.ci95
}

fn means((readings, parts): &(Vec<f64>, usize)) -> Vec<f64> {
    let length = readings.len() / parts;
    let parts = readings.chunks_exact(length).take(*parts);
    parts.map(|part| part.iter().sum::<f64>() / length as f64).collect()
}

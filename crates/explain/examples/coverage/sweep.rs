//! A sweep over users: the Universal Scalability Law, and where throughput peaks.

use whyso_explain::model::{Estimate, LevelInput};

use crate::simulate::{BINS_PER_S, Noise, Seeds, Tally, bins, level};
use crate::throughput::explained;

const USERS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Spread of a level's throughput about the law, in addition to the noise within it: levels follow no law exactly.
const MISFIT: f64 = 0.02;

const SERIES: u32 = 1_000;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OfSweep {
    pub(crate) lambda: Tally,
    pub(crate) sigma: Tally,
    pub(crate) kappa: Tally,
    pub(crate) peak: Tally,
    /// Users at the peak between tested levels, which is not an interval of 95 %.
    pub(crate) users: Tally,
}

/// Laws whose peak lies within the sweep.
pub(crate) fn of_sweep(seeds: Seeds, case: u64, seconds: usize, phi: f64, rate: (f64, f64)) -> OfSweep {
    let mut found = OfSweep::default();
    for series in 0..SERIES / seeds.fewer {
        let mut noise = seeds.noise(case, series);
        let sigma = 0.01 + 0.1 * noise.uniform();
        let peak = 2.0_f64.powf(3.0 + 3.0 * noise.uniform());
        let kappa = (1.0 - sigma) / (peak * peak);
        let law = |users: f64| users / (1.0 + sigma * (users - 1.0) + kappa * users * (users - 1.0));
        // The rate is that of the best level.
        let lambda = rate.1 * BINS_PER_S as f64 / law(peak);
        let levels = USERS.iter().enumerate().map(|(index, &users)| {
            let share = law(f64::from(users)) / law(peak);
            of_users(&mut noise, index, users, seconds, phi, (rate.0, rate.1 * share))
        });
        let explanation = explained(levels.collect());
        if let Some(at) = &explanation.peak {
            let (low, high) = at.users_interval;
            found.users.count(Some([f64::from(low), high.map_or(f64::INFINITY, f64::from)]), peak);
        }
        let Some(usl) = &explanation.usl else { continue };
        let ends = |estimate: Estimate| Some([estimate.low95, estimate.high95]);
        found.lambda.count(ends(usl.lambda), lambda);
        found.sigma.count(ends(usl.sigma), sigma);
        found.kappa.count(ends(usl.kappa), kappa);
        let ends = usl.peak_users_ci95.map(|(low, high)| [low, high.unwrap_or(f64::INFINITY)]);
        found.peak.count(ends, peak);
    }
    found
}

fn of_users(
    noise: &mut Noise,
    index: usize,
    users: u32,
    seconds: usize,
    phi: f64,
    rate: (f64, f64),
) -> LevelInput {
    let off = 1.0 + MISFIT * noise.normal();
    let bins = bins(noise, seconds * BINS_PER_S, phi, rate, |_| off);
    level(index as u32, users, index as i64 * 1_000_000_000_000, bins)
}

//! Series whose truth is known, and what an interval did with them.

use serde::{Deserialize, Serialize};
use whyso_explain::model::LevelInput;

pub(crate) use whyso_random::noise::{Noise, ar1};

/// Correlation of neighbouring values of an autoregressive series of order 1.
pub(crate) const PHIS: [f64; 5] = [0.0, 0.3, 0.6, 0.8, 0.9];
pub(crate) const LENGTHS_S: [usize; 6] = [8, 15, 30, 60, 150, 600];
pub(crate) const BINS_PER_S: usize = 10;

/// Relative noise of a bin, and transactions in a bin: about as many as give this noise if they end independently of each other.
pub(crate) const RATES: [(f64, f64); 2] = [(0.05, 400.0), (0.15, 40.0)];

/// Which seeds a simulation uses. No constant of the product is chosen by the seeds that are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    pub(crate) first: u64,
    /// Divides the number of series of each case.
    pub(crate) fewer: u32,
}

impl Seeds {
    pub(crate) fn noise(self, case: u64, series: u32) -> Noise {
        Noise::new(self.first + case * 100_000 + u64::from(series))
    }

    /// Long series take the most time.
    pub(crate) fn series(self, seconds: usize) -> u32 {
        let count = if seconds > 150 { 1_000 } else { 2_000 };
        (count / self.fewer).max(20)
    }
}

/// How often there was an interval, and how often it left out the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) series: u32,
    /// Those with an interval.
    #[serde(rename = "given")]
    pub(crate) with_interval: u32,
    pub(crate) missed: u32,
}

impl Tally {
    pub(crate) fn count(&mut self, interval: Option<[f64; 2]>, truth: f64) {
        self.series += 1;
        let Some([low, high]) = interval else { return };
        self.with_interval += 1;
        self.missed += u32::from(!(low <= truth && truth <= high));
    }

    /// Of the intervals; 1 where there is none.
    pub(crate) fn covered_share(&self) -> f64 {
        1.0 - share(self.missed, self.with_interval)
    }

    /// Of all series, those without an interval included.
    pub(crate) fn missed_share(&self) -> f64 {
        share(self.missed, self.series)
    }
}

pub(crate) fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 0.0 } else { f64::from(part) / f64::from(whole) }
}

/// Transactions in each 100 ms of a server whose throughput is `course` times its mean, with noise of that course.
pub(crate) fn bins(
    noise: &mut Noise,
    count: usize,
    phi: f64,
    rate: (f64, f64),
    course: impl Fn(usize) -> f64,
) -> Vec<u32> {
    let (noise_share, per_bin) = rate;
    let deviations = ar1(noise, count, phi);
    deviations
        .iter()
        .enumerate()
        .map(|(at, deviation)| {
            (per_bin * course(at) * (1.0 + noise_share * deviation)).max(0.0).round() as u32
        })
        .collect()
}

/// A level of these bins.
pub(crate) fn level(index: u32, users: u32, begin_ns: i64, bins: Vec<u32>) -> LevelInput {
    LevelInput {
        index,
        users,
        begin_ns,
        end_ns: begin_ns + bins.len() as i64 * 100_000_000,
        transactions: bins.iter().map(|&bin| u64::from(bin)).sum(),
        bins_100ms: bins,
        ..LevelInput::default()
    }
}

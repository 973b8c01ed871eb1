//! Fresh starts of a server: comparisons, studies, and a history of recordings.

use whyso_explain::comparison::{At, LevelValue, Metric, Run, history};
use whyso_explain::versus::ratio_of_rounds;
use whyso_inference::{Sides, contrast, spread, tested};

use crate::simulate::{Noise, Seeds, Tally, ar1};

/// Starts on each side, or blocks.
pub(crate) const STARTS: [usize; 3] = [3, 5, 10];

/// What the second side does, as a multiple of the first.
const RATIO: f64 = 1.1;

/// Spread of the logarithm of a start's throughput, and of the machine's drift where there is one.
const SPREAD: f64 = 0.03;
const DRIFT: f64 = 0.05;

const SERIES: u32 = 4_000;

/// Which interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// Blocks of one start of each side: studies, and comparisons of recordings that alternate.
    Blocks,
    /// Rounds of `whyso load a.sql b.sql`.
    Rounds,
    /// Recordings of two sides that don't alternate.
    Apart,
    /// The mean of one side's starts.
    Mean,
}

/// `phi`: how much the machine's drift resembles itself from one start to the next.
pub(crate) fn of_starts(seeds: Seeds, case: u64, of: Of, starts: usize, phi: f64) -> Tally {
    let mut tally = Tally::default();
    for series in 0..SERIES / seeds.fewer {
        let mut noise = seeds.noise(case, series);
        let order = order(of, starts);
        let drift = ar1(&mut noise, order.len(), phi);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for (is_second, drift) in order.into_iter().zip(drift) {
            let log =
                1_000.0_f64.ln() + SPREAD * noise.normal() + if phi > 0.0 { DRIFT * drift } else { 0.0 };
            if is_second { second.push(log.exp() * RATIO) } else { first.push(log.exp()) }
        }
        let pairs: Vec<(f64, f64)> = first.iter().copied().zip(second.iter().copied()).collect();
        let (interval, truth) = match of {
            Of::Blocks => (tested(&pairs).and_then(|found| found.t95), RATIO),
            Of::Rounds => (ratio_of_rounds(&pairs).and_then(|found| found.ci95), RATIO),
            Of::Apart => {
                let sides = Sides::Apart { first, second };
                (contrast(&sides).and_then(|found| found.ci95), RATIO)
            }
            Of::Mean => (spread(&first).and_then(|found| found.mean95), 1_000.0),
        };
        tally.count(interval, truth);
    }
    tally
}

/// Whether each start in turn is of the second side. Blocks are A B B A …, sides that don't alternate A A … B B ….
fn order(of: Of, starts: usize) -> Vec<bool> {
    match of {
        Of::Blocks | Of::Rounds => (0..2 * starts).map(|at| matches!(at % 4, 1 | 2)).collect(),
        Of::Apart => (0..2 * starts).map(|at| at >= starts).collect(),
        Of::Mean => vec![false; starts],
    }
}

/// The size of a change that a history of 40 recordings found, planted after the 25th. A history that finds none has no interval.
pub(crate) fn of_history(seeds: Seeds, case: u64, percent: f64) -> Tally {
    let mut tally = Tally::default();
    for series in 0..2_000 / seeds.fewer {
        let mut noise = seeds.noise(case, series);
        let runs: Vec<Run> = (0..40).map(|at| run(at, &mut noise, percent)).collect();
        let found = history(&runs, None, Metric::TransactionsPerS, 0.0);
        let steps = found.groups.first().map_or(&[][..], |group| &group.steps);
        // A wrong second change divides a part; the change that was planted is the nearest.
        let step = steps.iter().min_by_key(|step| step.at.abs_diff(25));
        tally.count(step.and_then(|step| step.percent_ci95), percent);
    }
    tally
}

fn run(at: usize, noise: &mut Noise, percent: f64) -> Run {
    let factor = if at < 25 { 1.0 } else { 1.0 + percent / 100.0 };
    let begin_ns = at as i64 * 1_000_000_000;
    let value = 1_000.0 * factor * (SPREAD * noise.normal()).exp();
    let level = LevelValue { at: At { users: 8, rate_per_s: None }, value, invalid_why: String::new() };
    Run { id: at.to_string(), begin_ns, end_ns: begin_ns + 1, levels: vec![level], ..Run::default() }
}

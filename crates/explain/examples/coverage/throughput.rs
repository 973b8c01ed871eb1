//! A level's throughput, what an action did to it, and drift.

use whyso_explain::explain;
use whyso_explain::model::{ActionInput, Estimate, Explanation, Input, LevelInput};

use crate::simulate::{BINS_PER_S, Seeds, Tally, bins, level};

/// What a planted step or ramp multiplies throughput by.
pub(crate) const FACTORS: [f64; 3] = [1.2, 1.5, 2.0];

/// After an action throughput is this part of what it was, once a hole of two seconds is over.
const AFTER: f64 = 0.8;
const HOLE_S: usize = 2;

/// Explains a run of these levels.
pub(crate) fn explained(levels: Vec<LevelInput>) -> Explanation {
    explain(&Input { levels, ..Input::default() })
}

/// One level whose throughput does not change.
pub(crate) fn of_level(seeds: Seeds, case: u64, seconds: usize, phi: f64, rate: (f64, f64)) -> Tally {
    let mut tally = Tally::default();
    for series in 0..seeds.series(seconds) {
        let mut noise = seeds.noise(case, series);
        let bins = bins(&mut noise, seconds * BINS_PER_S, phi, rate, |_| 1.0);
        let explanation = explained(vec![level(0, 8, 0, bins)]);
        tally.count(explanation.levels[0].transactions_per_s_ci95, rate.1 * BINS_PER_S as f64);
    }
    tally
}

/// How throughput changes within a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// At one moment, from 10 % to 90 % of the level.
    Step,
    /// Throughout.
    Ramp,
}

/// Levels that are not steady: `with_interval` is the number with an interval all the same, `missed` of those not called unsteady.
pub(crate) fn of_unsteady(
    seeds: Seeds,
    case: u64,
    course: Course,
    factor: f64,
    seconds: usize,
    phi: f64,
    rate: (f64, f64),
) -> Tally {
    let mut tally = Tally::default();
    for series in 0..seeds.series(seconds) / 4 {
        let mut noise = seeds.noise(case, series);
        let count = seconds * BINS_PER_S;
        let at = 0.1 + 0.8 * noise.uniform();
        let is_down = noise.uniform() < 0.5;
        let of = |bin: usize| {
            let place = bin as f64 / count as f64;
            let part = match course {
                Course::Step => f64::from(u8::from(place >= at)),
                Course::Ramp => place,
            };
            1.0 + (factor - 1.0) * if is_down { 1.0 - part } else { part }
        };
        let bins = bins(&mut noise, count, phi, rate, of);
        let explanation = explained(vec![level(0, 8, 0, bins)]);
        let verdict = &explanation.levels[0];
        tally.series += 1;
        tally.with_interval += u32::from(verdict.transactions_per_s_ci95.is_some());
        tally.missed += u32::from(verdict.steadiness.is_steady() != Some(false));
    }
    tally
}

/// Throughput before and after an action, in parts of this length.
pub(crate) fn of_action(seeds: Seeds, case: u64, seconds: usize, phi: f64, rate: (f64, f64)) -> [Tally; 2] {
    let mut tallies = [Tally::default(); 2];
    let begin = seconds * BINS_PER_S;
    let back = begin + HOLE_S * BINS_PER_S;
    let course = |bin: usize| match bin {
        _ if bin < begin => 1.0,
        _ if bin < back => 0.1,
        _ => AFTER,
    };
    let per_s = rate.1 * BINS_PER_S as f64;
    let ends = |estimate: &Option<Estimate>| estimate.as_ref().map(|found| [found.low95, found.high95]);
    for series in 0..seeds.series(seconds) / 2 {
        let mut noise = seeds.noise(case, series);
        let bins = bins(&mut noise, begin + back, phi, rate, course);
        let action = ActionInput {
            text: "SET GLOBAL x=1".to_string(),
            begin_ns: seconds as i64 * 1_000_000_000,
            end_ns: seconds as i64 * 1_000_000_000 + 1_000_000,
            ..ActionInput::default()
        };
        let input = Input { levels: vec![level(0, 8, 0, bins)], actions: vec![action], ..Input::default() };
        let explanation = explain(&input);
        let effect = &explanation.actions[0];
        tallies[0].count(ends(&effect.before), per_s);
        tallies[1].count(ends(&effect.after), AFTER * per_s);
    }
    tallies
}

/// A level and its repeat that do the same: `missed` is the number of runs whose drift is called significant.
pub(crate) fn of_drift(seeds: Seeds, case: u64, seconds: usize, phi: f64, rate: (f64, f64)) -> Tally {
    let mut tally = Tally::default();
    for series in 0..seeds.series(seconds) / 2 {
        let mut noise = seeds.noise(case, series);
        let mut throughput = || bins(&mut noise, seconds * BINS_PER_S, phi, rate, |_| 1.0);
        let first = level(0, 8, 0, throughput());
        let repeat = LevelInput { repeat: true, ..level(1, 8, 1_000_000_000_000, throughput()) };
        let drift = explained(vec![first, repeat]).drift;
        tally.series += 1;
        tally.with_interval += u32::from(drift.is_some());
        tally.missed += u32::from(drift.is_some_and(|drift| drift.significant));
    }
    tally
}

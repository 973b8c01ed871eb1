//! Every interval that whyso prints, with what it is simulated over.

use serde::{Deserialize, Serialize};

use crate::shares;
use crate::simulate::{LENGTHS_S, PHIS, RATES, Seeds, Tally};
use crate::starts::{self, Of, STARTS};
use crate::sweep;
use crate::throughput::{self, Course, FACTORS};
use crate::windows;

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// 93 to 97 % of the intervals hold the truth.
    Covered,
    /// At most 7 % of all series have an interval that misses.
    FewMiss,
    /// None: the assumption that the interval is printed with does not hold here, or it is no interval of 95 %.
    Shown,
}

impl Target {
    fn of_series(seconds: usize, phi: f64) -> Target {
        if seconds >= 30 && phi <= 0.6 { Target::Covered } else { Target::FewMiss }
    }

    /// Whether a count of series is compatible with it, to three standard errors.
    pub(crate) fn holds(self, tally: &Tally) -> bool {
        let error = |share: f64, count: u32| 3.0 * (share * (1.0 - share) / f64::from(count.max(1))).sqrt();
        let few_miss = || tally.missed_share() <= 0.07 + error(0.07, tally.series);
        match self {
            Target::Covered if tally.with_interval == 0 => true,
            Target::Covered => {
                let covered = tally.covered_share();
                covered >= 0.93 - error(0.93, tally.with_interval)
                    && covered <= 0.97 + error(0.97, tally.with_interval)
            }
            Target::FewMiss => few_miss(),
            Target::Shown => true,
        }
    }
}

/// One case of one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) interval: String,
    /// Length of the series, number of starts and the like.
    pub(crate) size: String,
    pub(crate) phi: f64,
    /// Relative noise of a value; 0 where the case has its own.
    pub(crate) noise: f64,
    pub(crate) target: Target,
    #[serde(flatten)]
    pub(crate) tally: Tally,
}

/// Rows, and the number of the next case, by which its seeds differ from those of all others.
struct Rows {
    seeds: Seeds,
    case: u64,
    rows: Vec<Row>,
}

impl Rows {
    fn next(&mut self) -> u64 {
        self.case += 1;
        self.case
    }

    fn push(&mut self, interval: &str, size: String, phi: f64, noise: f64, target: Target, tally: Tally) {
        self.rows.push(Row { interval: interval.to_string(), size, phi, noise, target, tally });
    }
}

/// Simulates everything.
pub(crate) fn rows(seeds: Seeds) -> Vec<Row> {
    let mut rows = Rows { seeds, case: 0, rows: Vec::new() };
    of_throughput(&mut rows);
    of_unsteady(&mut rows);
    of_windows(&mut rows);
    of_starts(&mut rows);
    of_sweeps(&mut rows);
    of_shares(&mut rows);
    rows.rows
}

fn of_throughput(rows: &mut Rows) {
    let size = |seconds: usize| format!("{seconds} s");
    for rate in RATES {
        for seconds in LENGTHS_S {
            for phi in PHIS {
                let target = Target::of_series(seconds, phi);
                let tally = throughput::of_level(rows.seeds, rows.next(), seconds, phi, rate);
                rows.push("throughput of a level", size(seconds), phi, rate.0, target, tally);
            }
        }
    }
    for seconds in [8, 15, 30, 60, 150] {
        for phi in PHIS {
            let target = Target::of_series(seconds, phi);
            let [before, after] = throughput::of_action(rows.seeds, rows.next(), seconds, phi, RATES[0]);
            rows.push("throughput before an action", size(seconds), phi, RATES[0].0, target, before);
            rows.push("throughput after an action", size(seconds), phi, RATES[0].0, target, after);
        }
    }
    for seconds in [8, 30] {
        for phi in PHIS {
            let tally = throughput::of_drift(rows.seeds, rows.next(), seconds, phi, RATES[0]);
            rows.push("drift where there is none", size(seconds), phi, RATES[0].0, Target::FewMiss, tally);
        }
    }
}

fn of_unsteady(rows: &mut Rows) {
    for (course, name) in [(Course::Step, "step"), (Course::Ramp, "ramp")] {
        for factor in FACTORS {
            for seconds in LENGTHS_S {
                for phi in [0.0, 0.6, 0.9] {
                    for rate in RATES {
                        let case = rows.next();
                        let tally =
                            throughput::of_unsteady(rows.seeds, case, course, factor, seconds, phi, rate);
                        let name = format!("{name} by {factor}");
                        rows.push(&name, format!("{seconds} s"), phi, rate.0, Target::Shown, tally);
                    }
                }
            }
        }
    }
}

fn of_windows(rows: &mut Rows) {
    for (noise, _) in RATES {
        for seconds in [15, 30, 60, 150, 600] {
            for phi in PHIS {
                let target = Target::of_series(seconds, phi);
                let tally = windows::of_windows(rows.seeds, rows.next(), seconds, phi, noise);
                rows.push("ratio of two windows", format!("{seconds} s"), phi, noise, target, tally);
            }
        }
    }
}

fn of_starts(rows: &mut Rows) {
    let all = [
        (Of::Blocks, "ratio over blocks of starts"),
        (Of::Rounds, "ratio over rounds of two loads"),
        (Of::Apart, "ratio of starts that don't alternate"),
        (Of::Mean, "mean of starts"),
    ];
    for (of, name) in all {
        for starts in STARTS {
            for phi in PHIS {
                let is_assumed = phi == 0.0 || !matches!(of, Of::Apart | Of::Mean);
                let target = if is_assumed { Target::Covered } else { Target::Shown };
                let tally = starts::of_starts(rows.seeds, rows.next(), of, starts, phi);
                rows.push(name, format!("{starts} starts"), phi, 0.0, target, tally);
            }
        }
    }
    for percent in [-20.0, -10.0, -5.0] {
        let tally = starts::of_history(rows.seeds, rows.next(), percent);
        let size = format!("{percent} % in 40 runs");
        rows.push("size of a change in a history", size, 0.0, 0.0, Target::Covered, tally);
    }
}

fn of_sweeps(rows: &mut Rows) {
    for (rate, seconds) in [(RATES[0], 10), (RATES[0], 30), (RATES[1], 10), (RATES[1], 30)] {
        for phi in [0.0, 0.6, 0.9] {
            let found = sweep::of_sweep(rows.seeds, rows.next(), seconds, phi, rate);
            let size = || format!("8 levels of {seconds} s");
            let parts = [
                ("scalability law: λ", found.lambda),
                ("scalability law: σ", found.sigma),
                ("scalability law: κ", found.kappa),
                ("scalability law: users at the peak", found.peak),
            ];
            for (name, tally) in parts {
                let target = Target::of_series(seconds, phi);
                rows.push(name, size(), phi, rate.0, target, tally);
            }
            rows.push("users that may be the peak", size(), phi, rate.0, Target::FewMiss, found.users);
        }
    }
}

fn of_shares(rows: &mut Rows) {
    for snapshots in shares::SNAPSHOTS {
        for phi in PHIS {
            let target = if phi == 0.0 { Target::Covered } else { Target::Shown };
            let tally = shares::of_process_list(rows.seeds, rows.next(), snapshots, phi, 0.4);
            rows.push(
                "share of the process list's samples",
                format!("{snapshots} snapshots"),
                phi,
                0.0,
                target,
                tally,
            );
        }
    }
    for samples in [30, 300, 3_000] {
        for truth in [0.3, 0.9] {
            let tally = shares::of_cpu_split(rows.seeds, rows.next(), samples, truth);
            let size = format!("{samples} samples, {truth} of them");
            rows.push("share of CPU samples in the server's code", size, 0.0, 0.0, Target::Covered, tally);
        }
    }
}

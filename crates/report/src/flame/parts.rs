//! Which parts of a run have a flame graph each: its levels, or all of a recording in which none ended.

use whyso_record::run::{Level, Purpose, RunInfo, Window};

use super::{FlameColumn, FlameLevel};
use crate::source::Stacks;
use crate::text::level::level_name;

/// A part of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlamePart {
    pub(crate) window: Window,
    /// The level's index; `None` where no level of this run is meant.
    pub(crate) level: Option<u32>,
    /// Its name where it is no level of this run.
    pub(crate) name: Option<String>,
    /// Of the window; 0 where there are none that could be compared with this run's.
    pub(crate) transactions: u64,
}

impl FlamePart {
    pub(super) fn head(&self, columns: Vec<FlameColumn>) -> FlameLevel {
        FlameLevel {
            level: self.level,
            name: self.name.clone(),
            seconds: self.window.seconds(),
            transactions: self.transactions,
            block: 0,
            columns,
        }
    }
}

/// The parts of the run that a report is of.
pub(crate) fn parts(run: &RunInfo, stacks: &Stacks) -> Vec<FlamePart> {
    let part = |level: &Level| FlamePart {
        window: level.window,
        level: Some(level.index),
        name: None,
        transactions: level.result.transactions,
    };
    let whole = |window| FlamePart { window, level: None, name: None, transactions: 0 };
    match run.levels.as_slice() {
        [] => window_of(stacks).map(whole).into_iter().collect(),
        levels => levels.iter().filter(|level| level.purpose == Purpose::Sweep).map(part).collect(),
    }
}

/// The parts of another run, which it is compared with.
pub(crate) fn parts_of_other(run: &RunInfo, other: &RunInfo, stacks: &Stacks) -> Vec<FlamePart> {
    let is_recorded = |run: &RunInfo| run.levels.iter().any(|level| level.result.is_recorded());
    let is_alike = is_recorded(run) == is_recorded(other);
    let named = |mut part: FlamePart| {
        let level = part.level.and_then(|index| other.levels.iter().find(|level| level.index == index));
        part.name = Some(match level {
            Some(level) if level.users > 0 => format!("{} of run {}", level_name(other, level), other.id),
            _ => format!("run {}", other.id),
        });
        part.transactions = if is_alike { part.transactions } else { 0 };
        FlamePart { level: None, ..part }
    };
    parts(other, stacks).into_iter().map(named).collect()
}

/// From the first stack to the last.
fn window_of(stacks: &Stacks) -> Option<Window> {
    if let Some(buckets) = &stacks.buckets {
        return Some(buckets.window);
    }
    let samples = || stacks.samples.iter().chain(&stacks.observer_samples).map(|sample| sample.t_ns);
    let waits = || stacks.waits.iter().chain(&stacks.observer_waits).map(|wait| wait.t_ns);
    let times = || samples().chain(waits());
    Some(Window { begin_ns: times().min()?, end_ns: times().max()? + 1 })
}

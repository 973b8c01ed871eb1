//! The levels of a run, one after the other, each recorded.

use std::time::Duration;

use whyso_load::{Interval, LevelSpec};
use whyso_record::Recorder;
use whyso_record::run::{Level, Purpose, RunEnd};
use whyso_watch::Watcher;

use crate::Stop;
use crate::action_runner::ActionRunner;
use crate::engine::Engine;
use crate::level::{self, Cut, Job, Timing, Watch};
use crate::other_nodes::OtherNodes;
use crate::pacing;
use crate::progress::{Listener, News, Running};
use crate::recording::{record_event, record_interval};
use crate::result::LevelRequest;
use crate::{Error, Plan};
use whyso_tracing::Tracing;

/// What is needed to run levels.
pub(crate) struct Sweep<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) recorder: Recorder,
    pub(crate) watcher: &'a Watcher,
    pub(crate) others: &'a OtherNodes<'a>,
    /// `None` where the server's time can't be accounted for.
    pub(crate) tracing: Option<&'a Tracing>,
    pub(crate) listener: &'a dyn Listener,
    pub(crate) stop: &'a Stop,
    pub(crate) actions: ActionRunner,
    /// Levels that are still to come, the present one not counted.
    pub(crate) levels_left: u32,
    /// Measured time of the levels before this one.
    pub(crate) measured_before: Duration,
}

/// A level that is still to be run.
#[derive(Clone, Copy)]
pub(crate) struct PendingLevel {
    pub(crate) users: u32,
    /// Of an open loop.
    pub(crate) rate_per_s: Option<f64>,
    pub(crate) purpose: Purpose,
    /// Event loops, where it is not for the engine to choose.
    pub(crate) loops: Option<u32>,
}

/// Returns the levels of a sweep in order. Where the number of event loops falls from one to the next, the second is run
/// with that of the first too. This separates the generator's own step from the server's.
pub(crate) fn list_levels(
    sweep: &[(u32, Option<f64>)],
    loops: impl Fn(u32) -> Option<u32>,
) -> Vec<PendingLevel> {
    let mut todo = Vec::new();
    for (place, &(users, rate_per_s)) in sweep.iter().enumerate() {
        let swept = PendingLevel { users, rate_per_s, purpose: Purpose::Sweep, loops: None };
        todo.push(swept);
        let before = place.checked_sub(1).and_then(|before| loops(sweep[before].0));
        if let (Some(before), Some(here)) = (before, loops(users))
            && here < before
        {
            todo.push(PendingLevel { purpose: Purpose::Switch, loops: Some(before), ..swept });
        }
    }
    todo
}

impl Sweep<'_> {
    /// Runs one level to its end.
    pub(crate) fn level(
        &mut self,
        engine: &mut Engine,
        index: u32,
        PendingLevel { users, rate_per_s, purpose, loops }: PendingLevel,
    ) -> Result<(Level, Cut), Error> {
        let plan = self.plan;
        let spec = LevelSpec { loops, ..plan.level_spec(users, rate_per_s) };
        let pacing = pacing::recorded(&spec.pacing, None);
        let request = LevelRequest {
            workload: plan.source.name(),
            rate_per_s,
            pacing: &pacing,
            percentiles: &[],
            slo: &plan.slo,
            bounds_errors: false,
        };
        let timing = Timing {
            warmup_max: plan.warmup_max,
            measure: plan.measure,
            rest: (plan.warmup_max + plan.measure) * self.levels_left,
            ramp_down: None,
        };
        let job = Job { index, purpose, spec: &spec, timing, request: &request };
        let name = match rate_per_s.filter(|_| plan.rates_per_s.len() > 1) {
            Some(rate_per_s) => format!("{rate_per_s}/s"),
            None => format!("{users} users"),
        };
        record_event(&self.recorder, "level_begin", name.clone());
        let stop = self.stop;
        let mut looking_on = RecordedLevel { sweep: self, index, purpose, measured: Duration::ZERO };
        let (level, cut) = level::run(engine, &job, stop, &mut looking_on)?;
        let measured = looking_on.measured;
        if let Some(tracing) = self.tracing {
            tracing.between_levels();
        }
        self.measured_before += measured;
        record_event(&self.recorder, "level_end", name);
        self.listener.hear(News::LevelDone(&level));
        Ok((level, cut))
    }
}

/// Records a level while it runs, and starts what is due in it.
struct RecordedLevel<'s, 'a> {
    sweep: &'s mut Sweep<'a>,
    index: u32,
    purpose: Purpose,
    measured: Duration,
}

impl Watch for RecordedLevel<'_, '_> {
    fn interval(&mut self, interval: &Interval) {
        record_interval(&self.sweep.recorder, self.index, interval);
    }

    fn news(&mut self, running: Running) {
        self.sweep.listener.hear(News::Level(running));
        if let Some(busy) = self.sweep.tracing.and_then(Tracing::busy_functions) {
            self.sweep.listener.hear(News::Functions(&busy));
        }
    }

    fn window_edge(&mut self) {
        self.sweep.watcher.note_window_edge();
        if let Some(tracing) = self.sweep.tracing {
            tracing.mark();
        }
    }

    fn measuring(&mut self, so_far: Duration) {
        self.measured = so_far;
        let sweep = &mut *self.sweep;
        sweep.actions.start_due(sweep.measured_before + so_far, self.purpose, &sweep.recorder);
        if let Some(pid) = sweep.actions.take_new_pid() {
            sweep.watcher.server_pid_changed(Some(pid));
            if let Some(tracing) = sweep.tracing {
                tracing.server_pid_changed(pid);
            }
        }
        sweep.others.follow(sweep.watcher, sweep.tracing);
    }
}

/// The best level so far: the sweep's complete one with the highest throughput.
pub(crate) fn find_best(levels: &[Level]) -> Option<&Level> {
    let complete = levels.iter().filter(|level| matches!(level.ended, RunEnd::Complete { .. }));
    complete
        .filter(|level| level.purpose == Purpose::Sweep && level.result.transactions > 0)
        .max_by(|a, b| a.result.transactions_per_s.total_cmp(&b.result.transactions_per_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_run_twice_where_the_number_of_event_loops_falls() {
        let loops = |users: u32| Some(if users <= 4 { users.min(2) } else { 1 });
        let levels: Vec<(u32, Purpose, Option<u32>)> =
            list_levels(&[1, 2, 4, 8, 16].map(|users| (users, None)), loops)
                .iter()
                .map(|level| (level.users, level.purpose, level.loops))
                .collect();
        let sweep = |users| (users, Purpose::Sweep, None);
        let switch = (8, Purpose::Switch, Some(2));
        assert_eq!(levels, [sweep(1), sweep(2), sweep(4), sweep(8), switch, sweep(16)]);
        assert_eq!(list_levels(&[(4, None), (8, None)], |_| None).len(), 2);
    }
}

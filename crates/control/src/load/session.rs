//! The levels of a load, one after the other.

use std::time::Duration;

use whyso_load::{Interval, LoadSpec};
use whyso_record::run::{Level, Purpose};
use whyso_workload::Workload;

use super::outcome::LoadOutcome;
use super::plan::{LevelPlan, LoadPlan};
use crate::Error;
use crate::Stop;
use crate::engine::Engine;
use crate::level::{self, Cut, Job, Timing, Watch, silent_then_failed};
use crate::pacing;
use crate::progress::{IntervalNews, Listener, News, Running};
use crate::result::{LevelRequest, load_intervals};

/// A load whose servers are ready.
pub(super) struct Session<'a> {
    pub(super) plan: &'a LoadPlan,
    listener: &'a dyn Listener,
    pub(super) stop: &'a Stop,
    pub(super) outcome: LoadOutcome,
    /// Why the first level that met a server without answers is not complete.
    pub(super) silent: Option<String>,
}

impl<'a> Session<'a> {
    pub(super) fn new(plan: &'a LoadPlan, listener: &'a dyn Listener, stop: &'a Stop) -> Session<'a> {
        Session { plan, listener, stop, outcome: LoadOutcome::default(), silent: None }
    }

    /// Does what the plan asks for.
    ///
    /// # Errors
    /// Whatever keeps the first level from being run.
    pub(super) fn run(self, workloads: &[Workload], spec: &LoadSpec) -> Result<LoadOutcome, Error> {
        self.listener.hear(News::Step("connecting the users"));
        let mut engines = Vec::new();
        for workload in workloads {
            engines.push((Engine::open(spec, workload)?, workload.name.as_str()));
        }
        self.carry_out(engines)
    }

    /// Runs the plan on engines that are open, each with the name of what it sends.
    ///
    /// # Errors
    /// As [`run`](Session::run).
    pub(super) fn carry_out(mut self, mut engines: Vec<(Engine, &str)>) -> Result<LoadOutcome, Error> {
        let done = match &mut engines[..] {
            [a, b] => self.compare(a, b),
            [only, ..] if self.plan.find_capacity => self.find_capacity(only),
            [only, ..] => self.levels(only),
            [] => Ok(()),
        };
        if let Err(error) = done {
            if self.outcome.levels.is_empty() {
                return Err(error);
            }
            self.outcome.failure = Some(error.to_string());
        }
        self.outcome.failure = silent_then_failed(self.silent.take(), self.outcome.failure.take());
        self.outcome.interrupted = self.stop.is_asked();
        if self.outcome.levels.is_empty() {
            return Err(Error::Interrupted);
        }
        Ok(self.outcome)
    }

    fn levels(&mut self, engine: &mut (Engine, &str)) -> Result<(), Error> {
        let levels = self.plan.levels();
        for (number, level) in levels.iter().enumerate() {
            let rest = levels[number + 1..].iter().map(|level| level.warmup_max + level.measure).sum();
            if !self.level(engine, level, rest)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs a level and keeps its result; `rest`: longest that what comes after it may take. Returns whether the next level may begin.
    pub(super) fn level(
        &mut self,
        (engine, workload): &mut (Engine, &str),
        level: &LevelPlan,
        rest: Duration,
    ) -> Result<bool, Error> {
        if self.stop.is_asked() {
            return Ok(false);
        }
        let index = self.outcome.levels.len() as u32;
        let pacing = pacing::recorded(&level.spec.pacing, self.plan.stages.as_ref());
        let plan = self.plan;
        let rate_per_s = pacing::rate_per_s(&level.spec.pacing);
        let request = LevelRequest {
            workload,
            rate_per_s,
            pacing: &pacing,
            percentiles: &plan.percentiles,
            slo: &plan.slo,
            bounds_errors: plan.http.is_some(),
        };
        let timing = Timing { warmup_max: level.warmup_max, measure: level.measure, rest, ramp_down: None };
        let job = Job { index, purpose: Purpose::Sweep, spec: &level.spec, timing, request: &request };
        let mut looking_on =
            NewsForwarder { listener: self.listener, index, users: level.spec.users, workload };
        let (done, cut) = level::run(engine, &job, self.stop, &mut looking_on)?;
        self.listener.hear(News::LevelDone(&done));
        self.outcome.levels.push(done);
        match cut {
            Cut::No => Ok(true),
            Cut::ByUser => Ok(false),
            Cut::Silent(why) => {
                self.silent.get_or_insert(why);
                Ok(true)
            }
            Cut::Failed(why) => {
                self.outcome.failure = Some(why);
                Ok(false)
            }
        }
    }

    /// The level that has just ended.
    pub(super) fn last(&self) -> Option<&Level> {
        self.outcome.levels.last()
    }
}

/// Passes on what a level does while it runs.
struct NewsForwarder<'a> {
    listener: &'a dyn Listener,
    index: u32,
    users: u32,
    workload: &'a str,
}

impl Watch for NewsForwarder<'_> {
    fn interval(&mut self, interval: &Interval) {
        self.listener.hear(News::Interval(&IntervalNews {
            users: self.users,
            workload: self.workload.to_string(),
            backlog: interval.backlog,
            rows: load_intervals(self.index, interval),
        }));
    }

    fn news(&mut self, running: Running) {
        self.listener.hear(News::Level(running));
    }
}

//! The load's engine for a workload: of this process, or of several hosts.

use std::sync::Arc;

use whyso_load::{Interval, LevelOutcome, LevelSpec, Live, LoadSpec, NativeWork, Work};
use whyso_workload::Workload;

use crate::Error;
use crate::hosts::{Generators, HostsLevel};

/// Connections that are open and prepared, ready to run levels one after the other.
pub(crate) enum Engine {
    Own(Box<whyso_load::Engine>),
    /// Of the agents of other hosts.
    Hosts(Box<Generators>),
}

impl Engine {
    /// Opens every connection of a load.
    pub(crate) fn open(spec: &LoadSpec, workload: &Workload) -> Result<Engine, Error> {
        Engine::open_work(spec, Arc::new(NativeWork::for_users(workload, spec.seed, spec.users_max)))
    }

    /// The same for work of any kind.
    pub(crate) fn open_work(spec: &LoadSpec, work: Arc<dyn Work>) -> Result<Engine, Error> {
        Ok(Engine::Own(Box::new(whyso_load::Engine::open(spec, work)?)))
    }

    /// Returns the number of event loops that a level of this many users has by default. `None`: the engine has none, or other hosts
    /// choose.
    pub(crate) fn loops(&self, users: u32) -> Option<u32> {
        let Engine::Own(engine) = self else { return None };
        let has_loops = engine.engine() != whyso_load::EngineKind::Threads;
        has_loops.then(|| engine.loops(users))
    }

    /// Begins a level.
    pub(crate) fn begin(&mut self, level: &LevelSpec) -> Result<RunningLevel, Error> {
        Ok(match self {
            Engine::Own(engine) => RunningLevel::Own(Box::new(engine.level_with(level)?)),
            Engine::Hosts(generators) => RunningLevel::Hosts(Box::new(generators.begin(level)?)),
        })
    }
}

/// A level that runs. Dropping it stops it and forgets its result.
pub(crate) enum RunningLevel {
    Own(Box<whyso_load::Running>),
    Hosts(Box<HostsLevel>),
}

impl RunningLevel {
    /// As [`whyso_load::Running::begin_measuring`].
    pub(crate) fn begin_measuring(&mut self) {
        match self {
            RunningLevel::Own(running) => {
                running.begin_measuring();
            }
            RunningLevel::Hosts(running) => running.begin_measuring(),
        }
    }

    /// As [`whyso_load::Running::end_measuring`]. Levels of other hosts are measured to their end.
    pub(crate) fn end_measuring(&mut self) {
        if let RunningLevel::Own(running) = self {
            running.end_measuring();
        }
    }

    /// As [`whyso_load::Running::live`].
    pub(crate) fn live(&self) -> Live {
        match self {
            RunningLevel::Own(running) => running.live(),
            RunningLevel::Hosts(running) => running.live(),
        }
    }

    /// Whether the level has ended by itself, and is no use any more.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            RunningLevel::Own(running) => running.failure().is_some(),
            RunningLevel::Hosts(running) => running.has_failed(),
        }
    }

    /// As [`whyso_load::Running::is_over`].
    pub(crate) fn is_over(&self) -> bool {
        match self {
            RunningLevel::Own(running) => running.is_over(),
            RunningLevel::Hosts(running) => running.is_over(),
        }
    }

    /// The intervals that have ended since this was asked last.
    pub(crate) fn take_intervals(&mut self) -> Vec<Interval> {
        match self {
            RunningLevel::Own(running) => running.intervals().try_iter().collect(),
            RunningLevel::Hosts(running) => running.take_intervals(),
        }
    }

    /// As [`whyso_load::Running::break_transactions_off`]. Other hosts end each with its statement anyway, when they stop.
    pub(crate) fn break_transactions_off(&self) {
        if let RunningLevel::Own(running) = self {
            running.break_transactions_off();
        }
    }

    /// Ends the window and the level.
    pub(crate) fn stop(self) -> LevelOutcome {
        self.stop_with_intervals().0
    }

    /// The same, and the intervals that nobody has taken.
    pub(crate) fn stop_with_intervals(self) -> (LevelOutcome, Vec<Interval>) {
        match self {
            RunningLevel::Own(running) => running.stop_with_intervals(),
            RunningLevel::Hosts(running) => running.stop_with_intervals(),
        }
    }
}

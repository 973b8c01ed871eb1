//! The load's engine for a workload.

use std::sync::Arc;

use whyso_load::{LevelSpec, LoadSpec, NativeWork, Running};
use whyso_workload::Workload;

use crate::Error;

/// Connections that are open and prepared, ready to run levels one after the other.
pub(crate) struct Engine {
    engine: whyso_load::Engine,
}

impl Engine {
    /// Opens every connection of a load.
    pub(crate) fn open(spec: &LoadSpec, workload: &Workload) -> Result<Engine, Error> {
        let work = Arc::new(NativeWork::for_users(workload, spec.seed, spec.users_max));
        Ok(Engine { engine: whyso_load::Engine::open(spec, work)? })
    }

    /// Returns the number of event loops that a level of this many users has by default. `None`: the engine has none.
    pub(crate) fn loops(&self, users: u32) -> Option<u32> {
        let has_loops = self.engine.engine() != whyso_load::EngineKind::Threads;
        has_loops.then(|| self.engine.loops(users))
    }

    /// Begins a level.
    pub(crate) fn begin(&mut self, level: &LevelSpec) -> Result<Running, Error> {
        Ok(self.engine.level_with(level)?)
    }
}

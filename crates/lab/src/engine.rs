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

    /// Begins a level.
    pub(crate) fn begin(&mut self, level: &LevelSpec) -> Result<Running, Error> {
        Ok(self.engine.level_with(level)?)
    }
}

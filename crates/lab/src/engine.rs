//! The load's engine for a workload.

use whyso_load::{EngineKind, LevelSpec, LoadSpec, Pacing, Running, Think};
use whyso_workload::Workload;

use crate::Error;

/// Connections that are open and prepared, ready to run levels one after the other.
pub(crate) struct Engine {
    engine: whyso_load::Engine,
}

impl Engine {
    /// Opens every connection of a load.
    pub(crate) fn open(spec: &LoadSpec, workload: &Workload) -> Result<Engine, Error> {
        if !matches!(spec.engine, EngineKind::Auto | EngineKind::Threads) {
            return Err(Error::Plan(format!("--engine {}: only threads are there", spec.engine)));
        }
        let target = &spec.endpoints[0].target;
        let engine = whyso_load::Engine::connect_with(
            target,
            workload,
            spec.users_max,
            spec.seed,
            spec.cpus.clone(),
            spec.limits,
        )?;
        Ok(Engine { engine })
    }

    /// Begins a level.
    pub(crate) fn begin(&mut self, level: &LevelSpec) -> Result<Running, Error> {
        if level.pacing != (Pacing::Closed { think: Think::None, active: None }) {
            return Err(Error::Plan("only a closed loop without think time is there".to_string()));
        }
        Ok(self.engine.level(level.users)?)
    }
}

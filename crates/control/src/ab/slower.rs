//! What slows a side's server in its windows.

use tokio::runtime::Runtime;
use whyso_server::{Brake, CpuSet, SlowStorage};

use super::plan::AbSide;
use crate::Error;
use crate::facts::allowed_cpus;
use crate::server_plan::ServerPlan;
use crate::server_under_test::ServerUnderTest;

/// Everything that slows the server of one side, each to its per cent.
#[derive(Default)]
pub(super) struct Slower {
    cpus: Option<(Brake, u8)>,
    storage: Option<(SlowStorage, u8)>,
}

impl Slower {
    /// Nothing is slowed yet.
    ///
    /// # Errors
    /// CPUs can't be taken away here; the server's folder is gone.
    pub(super) fn prepare(
        side: &AbSide,
        tested: &ServerUnderTest,
        runtime: &Runtime,
    ) -> Result<Slower, Error> {
        let mut slower = Slower::default();
        if let Some(percent) = side.cpu_speed {
            let cpus = match &side.server {
                ServerPlan::ThrowAway { cpus: Some(cpus), .. } => CpuSet::resolve(cpus)?.cpus().to_vec(),
                _ => allowed_cpus(),
            };
            slower.cpus = Some((Brake::start(&cpus)?, percent));
        }
        if let (Some(percent), Some(server)) = (side.storage_speed, &tested.throw_away) {
            let storage = runtime.block_on(server.lock()).slow_storage()?;
            slower.storage = Some((storage, percent));
        }
        Ok(slower)
    }

    /// # Errors
    /// A process that takes CPUs has ended, or the server's folder is gone.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        self.slow(|percent| percent)
    }

    /// # Errors
    /// As [`Slower::begin`].
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.slow(|_| 100)
    }

    fn slow(&mut self, to: impl Fn(u8) -> u8) -> Result<(), Error> {
        if let Some((brake, percent)) = &mut self.cpus {
            brake.slow_to(to(*percent))?;
        }
        if let Some((storage, percent)) = &mut self.storage {
            storage.slow_to(to(*percent))?;
        }
        Ok(())
    }
}

//! What slows a side's server in its windows.

use tokio::runtime::Runtime;
use whyso_server::Slower;
use whyso_server::throwaway::SlowPart;

use super::plan::AbSide;
use crate::Error;
use crate::server_under_test::ServerUnderTest;

const FULL_SPEED: u8 = 100;

/// The parts of one side's server that are slowed, each to its per cent of its speed.
pub(super) struct SlowedServer {
    slower: Slower,
    parts: Vec<(SlowPart, u8)>,
}

impl SlowedServer {
    /// `None`: nothing of it is slowed. Otherwise nothing is slowed yet.
    ///
    /// # Errors
    /// The server's folder is gone.
    pub(super) fn prepare(
        side: &AbSide,
        tested: &ServerUnderTest,
        runtime: &Runtime,
    ) -> Result<Option<SlowedServer>, Error> {
        let work = side.cpu_speed.map(|percent| (SlowPart::Work, percent));
        let storage = side.storage_speed.map(|percent| (SlowPart::Storage, percent));
        let parts: Vec<_> = work.into_iter().chain(storage).collect();
        match &tested.throw_away {
            Some(server) if !parts.is_empty() => {
                let slower = runtime.block_on(server.lock()).slower()?;
                Ok(Some(SlowedServer { slower, parts }))
            }
            _ => Ok(None),
        }
    }

    /// # Errors
    /// The server's folder is gone.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        self.parts.iter().try_for_each(|(part, percent)| Ok(self.slower.slow_to(*part, *percent)?))
    }

    /// # Errors
    /// As [`SlowedServer::begin`].
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.parts.iter().try_for_each(|(part, _)| Ok(self.slower.slow_to(*part, FULL_SPEED)?))
    }
}

//! Programs of a cluster that are no servers themselves: management nodes, data nodes, proxies.

use super::kind::{ClusterKind, Role};
use crate::error::Result;
use crate::throwaway::{KeptServer, NdbPlace, Program};

/// A program of a cluster that runs, and is not kept yet.
pub(super) struct StartedProgram {
    pub(super) name: String,
    pub(super) kind: ClusterKind,
    pub(super) role: Role,
    /// Of a node of NDB.
    pub(super) place: Option<NdbPlace>,
    pub(super) program: Program,
    /// What it is, such as "MySQL Cluster 9.7.4".
    pub(super) server: String,
}

impl StartedProgram {
    /// As it would be kept: what it is for, its port, and the program. `None` where it has ended.
    pub(super) fn described(&self, cluster: &str) -> Option<(Role, u16, KeptServer)> {
        let of = (cluster, self.kind, self.role);
        let server = self.program.described(&self.name, self.server.clone(), of, self.place.as_ref())?;
        Some((self.role, self.port(), server))
    }

    /// Ends it, and starts it on its data.
    pub(super) async fn restart(&mut self) -> Result<()> {
        self.program.restart().await
    }

    /// Lets it live on: what it is for, its port, and the program.
    pub(super) fn keep(self, cluster: &str) -> Result<(Role, u16, KeptServer)> {
        let port = self.port();
        let StartedProgram { name, kind, role, place, program, server } = self;
        let server = program.keep(&name, server, (cluster, kind, role), place.as_ref())?;
        Ok((role, port, server))
    }

    /// That of the management node; 0 for what has none.
    fn port(&self) -> u16 {
        self.place.as_ref().map_or(0, |place| place.manager_port)
    }
}

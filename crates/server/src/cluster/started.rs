//! A cluster that was started: it ends with this program, unless it is kept.

use std::time::Duration;

use super::kind::{ClusterKind, Role};
use super::ndb::StartedProgram;
use super::node::{Node, wait_for_arbitrator};
use crate::error::{Error, Result};
use crate::throwaway::ThrowAway;

/// A node is given up on that is not back after this time.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(120);

/// A cluster that was started. Dropping it ends its nodes and removes their data; so does a watcher where this program is killed.
pub struct StartedCluster {
    name: String,
    kind: ClusterKind,
    // Dropped in this order: SQL nodes before the data nodes that they need.
    servers: Vec<(String, Role, ThrowAway)>,
    programs: Vec<StartedProgram>,
}

impl StartedCluster {
    pub(super) fn new(
        name: &str,
        kind: ClusterKind,
        servers: Vec<(String, Role, ThrowAway)>,
        programs: Vec<StartedProgram>,
    ) -> StartedCluster {
        StartedCluster { name: name.to_string(), kind, servers, programs }
    }

    /// Its nodes as they are now: those that take statements first.
    pub fn nodes(&self) -> Vec<Node> {
        let servers = self.servers.iter().map(|(name, role, server)| Node {
            role: *role,
            port: port_of(server),
            server: server.described(name, Some((self.name.clone(), self.kind, *role))),
        });
        let programs = self.programs.iter().skip(1).chain(self.programs.first());
        servers.chain(programs.filter_map(|program| node(program, &self.name))).collect()
    }

    /// Restarts the nodes one after the other, each once the one before takes part again. `goes_on`: asked before each node.
    ///
    /// # Errors
    /// A node does not end, or is not back within two minutes. [`Error::Build`] where it did not continue to the last one.
    pub async fn restart(&mut self, goes_on: &(dyn Fn() -> bool + Sync)) -> Result<()> {
        let broken_off = || Err(Error::Build("it was broken off before the last node".to_string()));
        let order = (0..self.programs.len().min(1)).chain((1..self.programs.len()).rev());
        for at in order {
            if !goes_on() {
                return broken_off();
            }
            let program = &mut self.programs[at];
            if let Some(node) = node(program, &self.name) {
                node.leave_cluster();
            }
            program.restart().await?;
            let back = node(program, &self.name);
            if let Some(node) = back {
                node.wait_until_it_takes_part(BACK_WITHIN).await?;
            }
            wait_for_arbitrator(&self.nodes(), BACK_WITHIN).await?;
        }
        for at in (0..self.servers.len()).rev() {
            if !goes_on() {
                return broken_off();
            }
            let (_, _, server) = &mut self.servers[at];
            server.stop_server().await?;
            server.start_server().await?;
            self.nodes()[at].wait_until_it_takes_part(BACK_WITHIN).await?;
        }
        Ok(())
    }

    /// Lets its nodes live on until they are stopped by name.
    ///
    /// # Errors
    /// What was started can't be written down.
    pub(super) fn keep(self) -> Result<Vec<Node>> {
        let mut nodes = Vec::new();
        for program in self.programs {
            let (role, port, server) = program.keep(&self.name)?;
            nodes.push(Node { role, port, server });
        }
        for (name, role, server) in self.servers {
            let port = port_of(&server);
            let server = server.keep(&name, Some((self.name.clone(), self.kind, role)))?;
            nodes.push(Node { role, port, server });
        }
        Ok(nodes)
    }
}

/// A program as a node; `None` where it has ended.
fn node(program: &StartedProgram, cluster: &str) -> Option<Node> {
    program.described(cluster).map(|(role, port, server)| Node { role, port, server })
}

fn port_of(server: &ThrowAway) -> u16 {
    server.spec().node.as_ref().map_or(0, |node| node.port)
}

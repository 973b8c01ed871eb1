//! A cluster that was started: it ends with this program, unless it is kept.

use std::time::Duration;

use super::kind::{ClusterKind, Role};
use super::node::{Node, set_of_data_nodes, wait_for_arbitrator};
use super::program::StartedProgram;
use crate::error::{Error, Result};
use crate::throwaway::ThrowAway;

/// A node is given up on that is not back after this time.
pub(super) const BACK_WITHIN: Duration = Duration::from_secs(120);

/// A cluster that was started. Dropping it ends its nodes and removes their data; so does a watcher where this program is killed.
pub struct StartedCluster {
    name: String,
    kind: ClusterKind,
    // Dropped in this order: the proxy before what stands behind it, and SQL nodes before the data nodes that they need.
    proxy: Option<StartedProgram>,
    servers: Vec<(String, Role, ThrowAway)>,
    programs: Vec<StartedProgram>,
}

impl StartedCluster {
    pub(super) fn new(
        name: &str,
        kind: ClusterKind,
        servers: Vec<(String, Role, ThrowAway)>,
        programs: Vec<StartedProgram>,
        proxy: Option<StartedProgram>,
    ) -> StartedCluster {
        StartedCluster { name: name.to_string(), kind, proxy, servers, programs }
    }

    /// Its nodes as they are now: those that take statements first.
    pub fn nodes(&self) -> Vec<Node> {
        let servers = self.servers.iter().map(|(name, role, server)| Node {
            role: *role,
            port: port_of(server),
            server: server.described(name, Some((self.name.clone(), self.kind, *role))),
        });
        let programs = self.programs.iter().skip(1).chain(self.programs.first()).chain(&self.proxy);
        servers.chain(programs.filter_map(|program| node(program, &self.name))).collect()
    }

    /// Restarts the nodes one after the other, each once the one before takes part again. `data_set`: parameters of the data nodes from then
    /// on; with them, SQL nodes are not restarted. `goes_on`: asked before each node.
    ///
    /// # Errors
    /// A parameter is none, or there are no data nodes. A node does not end, or is not back within two minutes. [`Error::Build`] where it did not continue to the last one.
    pub async fn restart(
        &mut self,
        data_set: &[(String, String)],
        goes_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<()> {
        set_of_data_nodes(&self.name, &self.nodes(), data_set)?;
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
        let servers = if data_set.is_empty() { self.servers.len() } else { 0 };
        for at in (0..servers).rev() {
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
        for program in self.programs.into_iter().chain(self.proxy) {
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

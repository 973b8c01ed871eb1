//! Servers after the first of a run or of a recording that has several. In a run, each gets the data, and a part of the load.

use whyso_server::Dsn;
use whyso_server::answers::log_out;
use whyso_workload::Workload;

use crate::cluster_node::{ClusterNode, SERVER};
use crate::login::AskPassword;
use crate::own_data::set_up;
use crate::process;
use crate::progress::Listener;
use crate::put_back::put_everything_back;
use crate::server_identity::server_identity;
use crate::server_plan::ServerPlan;
use crate::server_setup::{ServerNeeds, prepare_server};
use crate::server_under_test::ServerUnderTest;
use crate::{Error, Stop, login};
use tokio::runtime::Runtime;

/// What makes servers ready.
#[derive(Clone, Copy)]
pub(crate) struct Preparing<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) listener: &'a dyn Listener,
    pub(crate) stop: &'a Stop,
    pub(crate) ask_password: &'a AskPassword,
}

impl Preparing<'_> {
    /// Prepares each of these servers with what the first one needs.
    ///
    /// # Errors
    /// What keeps one from being loaded; then none is left changed.
    pub(crate) fn others(
        self,
        others: &[ServerPlan],
        needs: &ServerNeeds<'_>,
        workload: &Workload,
    ) -> Result<Vec<ServerUnderTest>, Error> {
        let mut servers = Vec::new();
        for server in others {
            match self.one(server, needs, workload) {
                Ok(tested) => servers.push(tested),
                Err(error) => {
                    put_back(servers, self.runtime, self.listener);
                    return Err(error);
                }
            }
        }
        Ok(servers)
    }

    fn one(
        self,
        server: &ServerPlan,
        needs: &ServerNeeds<'_>,
        workload: &Workload,
    ) -> Result<ServerUnderTest, Error> {
        let Preparing { runtime, listener, stop, ask_password } = self;
        let needs = ServerNeeds { server, dataset: needs.dataset.clone(), ..*needs };
        let tested = prepare_server(runtime, &needs, listener, stop, ask_password)?;
        match runtime.block_on(set_up(&tested, workload, listener)) {
            Ok(()) => Ok(tested),
            Err(error) => {
                runtime.block_on(put_everything_back(tested, listener));
                Err(error)
            }
        }
    }
}

/// Several servers as nodes, the first one first. Empty where it is the only one.
///
/// # Errors
/// Two of them are the same.
pub(crate) fn nodes(
    first: &ServerUnderTest,
    others: &[ServerUnderTest],
    runtime: &Runtime,
) -> Result<Vec<ClusterNode>, Error> {
    match others.is_empty() {
        true => Ok(Vec::new()),
        false => nodes_of(std::iter::once(first).chain(others).map(|tested| &tested.dsn), runtime),
    }
}

/// Servers that are recorded together, as nodes: the first one, which is reached already, and others.
///
/// # Errors
/// One can't be reached, or two of them are the same.
pub(crate) fn recorded_nodes(
    first: &Dsn,
    others: &[String],
    runtime: &Runtime,
    ask_password: &AskPassword,
) -> Result<Vec<ClusterNode>, Error> {
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let mut dsns = vec![first.clone()];
    for text in others {
        let mut dsn = login::neutral(text)?;
        runtime.block_on(async {
            log_out(login::log_in(&mut dsn, ask_password).await?).await;
            Ok::<_, Error>(())
        })?;
        dsns.push(dsn);
    }
    nodes_of(dsns.iter(), runtime)
}

fn nodes_of<'d>(dsns: impl Iterator<Item = &'d Dsn>, runtime: &Runtime) -> Result<Vec<ClusterNode>, Error> {
    let mut nodes: Vec<ClusterNode> = Vec::new();
    let mut identities = Vec::new();
    for dsn in dsns {
        let pid = runtime.block_on(process::of_server(dsn));
        let node = node(dsn, pid);
        let identity = runtime.block_on(server_identity(dsn))?;
        let is_known = nodes.iter().any(|other| other.name == node.name) || identities.contains(&identity);
        identities.push(identity);
        if is_known {
            return Err(Error::Plan(format!("{} is one server, and was named twice", node.name)));
        }
        nodes.push(node);
    }
    Ok(nodes)
}

pub(crate) fn node(dsn: &Dsn, pid: Option<u32>) -> ClusterNode {
    ClusterNode {
        name: dsn.endpoint(),
        role: SERVER,
        port: dsn.socket.is_none().then_some(dsn.port),
        dsn: Some(dsn.clone()),
        pid,
        is_loaded: true,
        entry: None,
        ndb_id: None,
        processes: None,
    }
}

/// Puts the settings of all of them back.
pub(crate) fn put_back(servers: Vec<ServerUnderTest>, runtime: &Runtime, listener: &dyn Listener) {
    for tested in servers {
        runtime.block_on(put_everything_back(tested, listener));
    }
}

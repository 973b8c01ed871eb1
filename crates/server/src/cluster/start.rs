//! Starts a cluster: its nodes one after the other, then what connects them.

use std::path::PathBuf;
use std::time::Duration;

use mysql_async::prelude::Queryable;

use super::kind::{ClusterKind, Role};
use super::ndb::{self, NdbSpec};
use super::node::{Node, wait_until_it_takes_part};
use super::program::StartedProgram;
use super::started::StartedCluster;
use super::steps::{NodePlan, quoted};
use super::{galera, proxy, replication};
use crate::answers::{answered, log_out};
use crate::builds::{self, check_name};
use crate::cpus::CpuSet;
use crate::error::{Error, Result, refused};
use crate::find::Binary;
use crate::throwaway::{KeptServer, StartSpec, ThrowAway, kept_servers};

const NODES_MAX: usize = 16;
/// Connections of whatever loads a node.
const CONNECTIONS: u32 = 2000;
const TAKES_PART_WITHIN: Duration = Duration::from_secs(120);

/// A cluster to be started.
#[derive(Clone, Debug)]
pub struct ClusterSpec {
    pub name: String,
    pub kind: ClusterKind,
    /// Servers: all of them, sources and replicas; of NDB the SQL nodes.
    pub nodes: usize,
    /// What else a cluster of NDB has.
    pub ndb: NdbSpec,
    /// Name or folder of the build; `None` for the one on the PATH.
    pub build: Option<PathBuf>,
    /// Settings of each node.
    pub set: Vec<(String, String)>,
    /// Settings of single nodes, which come after those: the node's number from 1, name and value.
    pub set_of_node: Vec<(usize, (String, String))>,
    /// Clients reach the nodes that take changes through a proxy.
    pub has_proxy: bool,
    /// CPUs of single nodes, by what their names have after the cluster's: "1", "data-2", "manager".
    pub cpus_of_node: Vec<(String, CpuSet)>,
}

impl ClusterSpec {
    /// Checks what can be checked without a server.
    fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        let least = if self.kind == ClusterKind::Ndb { 1 } else { 2 };
        if !(least..=NODES_MAX).contains(&self.nodes) {
            return Err(Error::BuildName(format!(
                "a cluster has {least} to {NODES_MAX} nodes, and {} are asked for",
                self.nodes
            )));
        }
        if self.kind == ClusterKind::Ndb {
            self.ndb.check(self.nodes)?;
        }
        if self.has_proxy {
            proxy::find()?;
        }
        if let Some((number, _)) =
            self.set_of_node.iter().find(|(number, _)| !(1..=self.nodes).contains(number))
        {
            return Err(Error::BuildName(format!(
                "a setting is for node {number}, and the cluster has the nodes 1 to {}",
                self.nodes
            )));
        }
        let names = self.names();
        let unknown =
            self.cpus_of_node.iter().find(|(name, _)| !names.contains(&format!("{}-{name}", self.name)));
        if let Some((unknown, _)) = unknown {
            return Err(Error::BuildName(format!(
                "CPUs are for node {unknown}, and the cluster has {}: give what stands after \"{}-\"",
                names.join(", "),
                self.name
            )));
        }
        Ok(())
    }

    /// The CPUs that a node may run on; `None` for all.
    fn cpus(&self, node: &str) -> Option<CpuSet> {
        let own = self.cpus_of_node.iter().rev().find(|(name, _)| format!("{}-{name}", self.name) == node);
        own.map(|(_, cpus)| cpus.clone())
    }

    /// Settings that the user wants of a server; of two with one name, the later counts.
    fn settings_of(&self, number: usize) -> impl Iterator<Item = &(String, String)> {
        let own = self.set_of_node.iter().filter(move |(of, _)| *of == number);
        self.set.iter().chain(own.map(|(_, setting)| setting))
    }

    /// Names of all nodes.
    fn names(&self) -> Vec<String> {
        let servers = (1..=self.nodes).map(|number| node_name(&self.name, number));
        let servers = servers.chain(self.has_proxy.then(|| proxy::name(&self.name)));
        match self.kind {
            ClusterKind::Ndb => servers.chain(ndb::names(&self.name, self.ndb.data_nodes)).collect(),
            ClusterKind::Replication | ClusterKind::Galera => servers.collect(),
        }
    }

    /// Refuses names that servers have already.
    fn check_names(&self) -> Result<()> {
        let kept = kept_servers()?;
        check_free(&self.name, &kept)?;
        self.names().iter().try_for_each(|name| check_free(name, &kept))
    }

    fn plan(&self, binary: &Binary) -> Result<Plan> {
        match self.kind {
            ClusterKind::Replication => Ok(Plan::Servers(replication::plan(binary, self.nodes)?)),
            ClusterKind::Galera => Ok(Plan::Servers(galera::plan(binary, &self.name, self.nodes)?)),
            ClusterKind::Ndb => Ok(Plan::Ndb(Box::new(self.ndb.plan(binary, self.nodes)?))),
        }
    }

    /// What each node would be started with.
    ///
    /// # Errors
    /// As [`start`], before anything is started.
    pub fn dry_run(&self) -> Result<DryRun> {
        self.check()?;
        self.check_names()?;
        let binary = builds::find(self.build.as_deref())?;
        let mut configs = Vec::new();
        let (mut nodes, servers) = match self.plan(&binary)? {
            Plan::Servers(servers) => (Vec::new(), servers),
            Plan::Ndb(plan) => {
                configs.push((ndb::CONFIG_FILE, plan.config_text()));
                (plan.lines(&self.name), plan.sql)
            }
        };
        if self.has_proxy {
            let folder = |name: &str| PathBuf::from(format!("FOLDER-OF-{name}/s.sock"));
            let behind: Vec<(String, PathBuf)> = servers
                .iter()
                .enumerate()
                .filter(|(_, plan)| plan.role.takes_changes())
                .map(|(at, _)| node_name(&self.name, at + 1))
                .map(|name| (name.clone(), folder(&name)))
                .collect();
            configs.push((proxy::CONFIG_FILE, proxy::config(&folder(&proxy::name(&self.name)), &behind)));
        }
        nodes.extend(servers.into_iter().enumerate().map(|(at, plan)| {
            let name = format!("{} ({})", node_name(&self.name, at + 1), plan.role.name());
            let port = format!("--port={}", plan.node.port);
            let set = self.settings_of(at + 1);
            let set = set.map(|(name, value)| format!("--{}={value}", name.replace('_', "-")));
            let own = plan.node.options.into_iter().chain(plan.node.first_options);
            (name, std::iter::once(port).chain(own).chain(set).collect())
        }));
        Ok(DryRun { nodes, configs })
    }
}

/// What would be started.
#[derive(Clone, Debug)]
pub struct DryRun {
    /// The name of each node, and the options that make it one.
    pub nodes: Vec<(String, Vec<String>)>,
    /// Files that configure nodes of NDB, or a proxy: name and text.
    pub configs: Vec<(&'static str, String)>,
}

enum Plan {
    Servers(Vec<NodePlan>),
    Ndb(Box<ndb::Plan>),
}

/// Starts the nodes of a cluster that stays until it is stopped. If one does not start, nothing stays. `hear`: what is being done.
///
/// # Errors
/// [`Error::BuildName`] for a name that is none or taken. What keeps a node from being started, or from taking part.
pub async fn start(spec: &ClusterSpec, hear: &dyn Fn(&str)) -> Result<Vec<Node>> {
    spec.check_names()?;
    start_until_dropped(spec, hear).await?.keep()
}

/// Starts the nodes of a cluster that ends with this program. If one does not start, nothing stays. `hear`: what is being done.
///
/// # Errors
/// What keeps a node from being started, or from taking part.
pub async fn start_until_dropped(spec: &ClusterSpec, hear: &dyn Fn(&str)) -> Result<StartedCluster> {
    spec.check()?;
    let binary = builds::find(spec.build.as_deref())?;
    let (plans, programs): (Vec<NodePlan>, Vec<StartedProgram>) = match spec.plan(&binary)? {
        Plan::Servers(servers) => (servers, Vec::new()),
        Plan::Ndb(mut plan) => {
            let programs = plan.start(&spec.name, &binary, &|node| spec.cpus(node), hear).await?;
            (plan.sql, programs)
        }
    };
    let mut servers: Vec<(String, Role, ThrowAway)> = Vec::new();
    for (at, plan) in plans.into_iter().enumerate() {
        let name = node_name(&spec.name, at + 1);
        hear(&format!("starting {name}, the {}", plan.role.name()));
        let mut start = StartSpec::new(binary.clone());
        start.set = spec.settings_of(at + 1).cloned().collect();
        start.cpus = spec.cpus(&name);
        start.connections = CONNECTIONS;
        start.node = Some(plan.node);
        let server = ThrowAway::start(start).await?;
        if plan.role == Role::Member {
            wait_until_it_takes_part(&name, &server.dsn(), plan.role, TAKES_PART_WITHIN).await?;
        }
        close_to_others(&server).await?;
        servers.push((name, plan.role, server));
    }
    hear("connecting the nodes");
    match spec.kind {
        ClusterKind::Replication => replication::connect(&servers).await?,
        // They have found each other.
        ClusterKind::Galera | ClusterKind::Ndb => {}
    }
    for (name, role, server) in &servers {
        wait_until_it_takes_part(name, &server.dsn(), *role, TAKES_PART_WITHIN).await?;
    }
    let proxy = match spec.has_proxy {
        true => {
            hear(&format!("starting {}, the {}", proxy::name(&spec.name), Role::Proxy.name()));
            let behind = servers.iter().filter(|(_, role, _)| role.takes_changes());
            let behind = behind.filter_map(|(name, _, server)| Some((name.clone(), server.dsn().socket?)));
            let behind: Vec<(String, PathBuf)> = behind.collect();
            Some(proxy::start((&spec.name, spec.kind), &behind, spec.cpus(&proxy::name(&spec.name))).await?)
        }
        false => None,
    };
    Ok(StartedCluster::new(&spec.name, spec.kind, servers, programs, proxy))
}

/// Removes accounts that others could use over the node's port: all but those of its socket.
async fn close_to_others(server: &ThrowAway) -> Result<()> {
    let dsn = server.dsn();
    let mut conn = dsn.connect_without_schema().await?;
    answered(&dsn, "removing accounts that others could use", async {
        conn.query_drop("SET SESSION sql_log_bin = 0").await.map_err(refused("keep its log as it is"))?;
        let others: Vec<(String, String)> = conn
            .query("SELECT user, host FROM mysql.user WHERE host <> 'localhost'")
            .await
            .map_err(refused("list its accounts"))?;
        for (user, host) in others {
            let drop = format!("DROP USER {}@{}", quoted(&user), quoted(&host));
            conn.query_drop(drop).await.map_err(refused("remove an account"))?;
        }
        Ok::<_, Error>(())
    })
    .await?;
    log_out(conn).await;
    Ok(())
}

/// Nodes are called NAME-1 and so on.
fn node_name(cluster: &str, number: usize) -> String {
    format!("{cluster}-{number}")
}

/// Whether a server's name would collide with those of others.
fn check_free(name: &str, kept: &[KeptServer]) -> Result<()> {
    let is_taken = |server: &&KeptServer| {
        server.name == name || server.node.as_ref().is_some_and(|node| node.cluster == name)
    };
    match kept.iter().find(is_taken) {
        Some(_) => Err(Error::BuildName(format!(
            "'{name}' was started already: stop it with `whyso server cluster stop {name}`, or choose another name with --as"
        ))),
        None => Ok(()),
    }
}

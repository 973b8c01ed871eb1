//! MySQL Cluster: a management node, data nodes that hold the tables, and SQL nodes through which clients reach them.

mod config;
mod programs;

use std::process::Command;
use std::time::{Duration, Instant};

use super::kind::{ClusterKind, Role};
use super::ports;
use super::program::StartedProgram;
use super::steps::NodePlan;
use crate::cpus::CpuSet;
use crate::error::{Error, Result};
use crate::find::Binary;
use crate::throwaway::{NdbPlace, NodeSpec, Program};
pub(super) use config::change as change_config;
use config::{Config, DataNode};
pub(super) use programs::stop_data_node;
use programs::{Programs, state};

/// Name of the file in the management node's folder that configures all nodes.
pub(super) const CONFIG_FILE: &str = "config.ini";
/// Number of the management node.
const MANAGER_ID: u32 = 1;
/// Numbers of data nodes end here, where those of SQL nodes begin.
const FIRST_SQL_ID: u32 = 50;
const LAST_ID: u32 = 255;
/// Numbers that stay free for other programs.
const SPARE_IDS: u32 = 4;
const DATA_NODES_MAX: usize = 16;
const STARTED: &str = "started";
/// Data nodes prepare their files at their first start.
const START_WITHIN: Duration = Duration::from_secs(180);
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// What a cluster of NDB has in addition to its SQL nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NdbSpec {
    pub data_nodes: usize,
    /// Connections of each SQL node to the data nodes.
    pub pool: u32,
    /// Parameters of the data nodes, such as DataMemory.
    pub set: Vec<(String, String)>,
}

impl Default for NdbSpec {
    fn default() -> NdbSpec {
        NdbSpec { data_nodes: 2, pool: 1, set: Vec::new() }
    }
}

/// The nodes that are to be started, with their ports and numbers.
pub(super) struct Plan {
    programs: Programs,
    config: Config,
    pub(super) sql: Vec<NodePlan>,
}

impl NdbSpec {
    pub(super) fn check(&self, sql_nodes: usize) -> Result<()> {
        let wrong = |why: String| Err(Error::BuildName(why));
        let is_pair = self.data_nodes == 1 || self.data_nodes.is_multiple_of(2);
        if !is_pair || !(1..=DATA_NODES_MAX).contains(&self.data_nodes) {
            return wrong(format!(
                "{} data nodes are asked for: give 1, or an even number up to {DATA_NODES_MAX}, since each part of the data lies on two of them",
                self.data_nodes
            ));
        }
        let free = LAST_ID - FIRST_SQL_ID + 1 - SPARE_IDS;
        let wanted = u64::from(self.pool) * sql_nodes as u64;
        if self.pool == 0 || wanted > u64::from(free) {
            return wrong(format!(
                "{sql_nodes} SQL nodes with {} connections each are asked for, and a cluster has 1 to {free} of all its SQL nodes",
                self.pool
            ));
        }
        self.set.iter().try_for_each(|(name, value)| config::check(name, value))
    }

    /// # Errors
    /// The build has no such programs, or no port is free.
    pub(super) fn plan(&self, binary: &Binary, sql_nodes: usize) -> Result<Plan> {
        let programs = Programs::of(binary)?;
        let all = ports::free(1 + self.data_nodes + sql_nodes)?;
        let (manager_port, others) = all.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        let (of_data, of_sql) = others.split_at(self.data_nodes);
        let data: Vec<DataNode> = of_data
            .iter()
            .enumerate()
            .map(|(at, port)| DataNode {
                id: MANAGER_ID + 1 + at as u32,
                port: *port,
                folder: Default::default(),
            })
            .collect();
        let sql_ids: Vec<Vec<u32>> = (0..sql_nodes as u32)
            .map(|at| (0..self.pool).map(|of_pool| FIRST_SQL_ID + at * self.pool + of_pool).collect())
            .collect();
        let sql = of_sql.iter().zip(&sql_ids).map(|(port, ids)| sql_plan(*port, manager_port, ids)).collect();
        let config = Config {
            manager: (MANAGER_ID, manager_port, Default::default()),
            data,
            sql_ids: sql_ids.into_iter().flatten().collect(),
            spare: SPARE_IDS,
            set: self.set.clone(),
        };
        Ok(Plan { programs, config, sql })
    }
}

fn sql_plan(port: u16, manager_port: u16, ids: &[u32]) -> NodePlan {
    let numbers: Vec<String> = ids.iter().map(u32::to_string).collect();
    let options = vec![
        "--ndbcluster".to_string(),
        format!("--ndb-connectstring=127.0.0.1:{manager_port}"),
        format!("--ndb-cluster-connection-pool={}", ids.len()),
        format!("--ndb-cluster-connection-pool-nodeids={}", numbers.join(",")),
    ];
    NodePlan { role: Role::Sql, node: NodeSpec { port, options, ..NodeSpec::default() } }
}

impl Plan {
    /// The configuration of all nodes. Folders are not known before it is started.
    pub(super) fn config_text(&self) -> String {
        self.config.text()
    }

    /// What the management node and the data nodes would be started with.
    pub(super) fn lines(&self, cluster: &str) -> Vec<(String, Vec<String>)> {
        let words = |command: Command| {
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let folder = std::path::Path::new("FOLDER");
        let manager = words(self.programs.manager(folder));
        let data = self.config.data.iter().enumerate().map(|(at, node)| {
            let name = format!("{} ({})", data_name(cluster, at + 1), Role::Data.name());
            (name, words(self.programs.data_node(node.id, self.config.manager.1)))
        });
        std::iter::once((format!("{} ({})", manager_name(cluster), Role::Manager.name()), manager))
            .chain(data)
            .collect()
    }

    /// Starts the management node and the data nodes, and waits until all data nodes hold their part. `cpus`: those of a node, by its name.
    ///
    /// # Errors
    /// One of them ends, or is not up within three minutes.
    pub(super) async fn start(
        &mut self,
        cluster: &str,
        binary: &Binary,
        cpus: &dyn Fn(&str) -> Option<CpuSet>,
        hear: &dyn Fn(&str),
    ) -> Result<Vec<StartedProgram>> {
        let manager_port = self.config.manager.1;
        let mut manager = Program::prepare(cpus(&manager_name(cluster)))?;
        let mut data: Vec<Program> = Vec::new();
        for (at, node) in self.config.data.iter_mut().enumerate() {
            let program = Program::prepare(cpus(&data_name(cluster, at + 1)))?;
            node.folder = program.data();
            data.push(program);
        }
        self.config.manager.2 = manager.data();
        let file = manager.folder().join(CONFIG_FILE);
        std::fs::write(&file, self.config.text()).map_err(crate::error::io("cannot write", &file))?;
        hear(&format!("starting {}, the {}", manager_name(cluster), Role::Manager.name()));
        let command = self.programs.manager(manager.folder());
        manager.start(command, &[])?;
        for (at, (node, program)) in self.config.data.iter().zip(&mut data).enumerate() {
            hear(&format!("starting {}, the {}", data_name(cluster, at + 1), Role::Data.name()));
            program.start(self.programs.data_node(node.id, manager_port), &["--initial"])?;
        }
        let client = self.programs.client(manager_port);
        let place = |id: u32| NdbPlace { id, manager_port, client: client.clone() };
        wait_until_started(&place(MANAGER_ID), &mut manager, &mut data, &self.config).await?;
        let server = format!("MySQL Cluster {}", binary.version);
        let started = |name: String, role: Role, id: u32, program: Program| StartedProgram {
            name,
            kind: ClusterKind::Ndb,
            role,
            place: Some(place(id)),
            program,
            server: server.clone(),
        };
        let ids: Vec<u32> = self.config.data.iter().map(|node| node.id).collect();
        let mut all = vec![started(manager_name(cluster), Role::Manager, MANAGER_ID, manager)];
        all.extend(
            data.into_iter()
                .zip(ids)
                .enumerate()
                .map(|(at, (program, id))| started(data_name(cluster, at + 1), Role::Data, id, program)),
        );
        Ok(all)
    }
}

/// Waits until each data node has started.
async fn wait_until_started(
    manager_place: &NdbPlace,
    manager: &mut Program,
    data: &mut [Program],
    config: &Config,
) -> Result<()> {
    let deadline = Instant::now() + START_WITHIN;
    loop {
        if let Some(why) = manager.why_ended() {
            return Err(Error::Build(format!("the management node did not start: {why}")));
        }
        for (program, node) in data.iter_mut().zip(&config.data) {
            if let Some(why) = program.why_ended() {
                return Err(Error::Build(format!(
                    "the data node with number {} did not start: {why}",
                    node.id
                )));
            }
        }
        let states: Vec<Result<String>> = config
            .data
            .iter()
            .map(|node| state(&NdbPlace { id: node.id, ..manager_place.clone() }))
            .collect();
        if states.iter().all(|state| state.as_ref().is_ok_and(|state| state.starts_with(STARTED))) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let last = states.into_iter().map(|state| state.unwrap_or_else(|error| error.to_string()));
            return Err(Error::Build(format!(
                "the data nodes were not up within {} s: {}",
                START_WITHIN.as_secs(),
                last.collect::<Vec<_>>().join("; ")
            )));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

/// Why a management node or a data node takes no part now; `None` where it does.
pub(super) fn why_not(role: Role, place: &NdbPlace) -> Result<Option<String>> {
    let now = state(place)?;
    let takes_part = role == Role::Manager || now.starts_with(STARTED);
    Ok((!takes_part).then(|| format!("its state is \"{now}\", not \"{STARTED}\"")))
}

fn manager_name(cluster: &str) -> String {
    format!("{cluster}-manager")
}

fn data_name(cluster: &str, number: usize) -> String {
    format!("{cluster}-data-{number}")
}

/// The names of the programs of a cluster.
pub(super) fn names(cluster: &str, data_nodes: usize) -> impl Iterator<Item = String> + '_ {
    std::iter::once(manager_name(cluster))
        .chain((1..=data_nodes).map(move |number| data_name(cluster, number)))
}

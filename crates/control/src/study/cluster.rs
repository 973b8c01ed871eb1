//! A start of a cell whose servers are a cluster, which is started for it alone.

use std::sync::Arc;

use whyso_server::CpuSet;
use whyso_server::cluster::{ClusterKind, ClusterSpec, NdbSpec, Role, start_until_dropped};
use whyso_study::{ClusterOf, ClusterSetup};

use crate::cluster_node::{ClusterNode, OwnCluster};
use crate::login::AskPassword;
use crate::progress::{Listener, News};
use crate::recording::Outcome;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::server_plan::ServerPlan;
use crate::server_setup::wait_for_stop;
use crate::server_under_test::shared;
use crate::{Error, Plan, Stop};

const REPLICAS: u32 = 2;
const GALERA_NODES: u32 = 3;
const SQL_NODES: u32 = 2;

/// Starts the cluster, and runs a plan over it.
pub(super) fn run(
    plan: &Plan,
    setup: &ClusterSetup,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Outcome, Error> {
    let runtime = runtime()?;
    let hear = |what: &str| listener.hear(News::Step(what));
    let spec = spec_of(plan, setup)?;
    let cluster = runtime.block_on(async {
        tokio::select! {
            started = start_until_dropped(&spec, &hear) => Ok(started?),
            () = wait_for_stop(stop) => Err(Error::Interrupted),
        }
    })?;
    let all_nodes = setup.all_nodes.unwrap_or(false) || setup.proxy.unwrap_or(false);
    let nodes = cluster.nodes();
    let place = |(at, node)| {
        let node: &whyso_server::cluster::Node = node;
        ClusterNode {
            is_loaded: at == 0 || (all_nodes && node.role.takes_changes()),
            entry: (all_nodes && node.role == Role::Proxy).then(|| node.server.dsn()),
            ..ClusterNode::from(node)
        }
    };
    let loaded = nodes.first().map(|node| node.server.dsn().display_masked()).unwrap_or_default();
    let over_nodes = Plan {
        server: ServerPlan::Dsn { dsn: loaded, set: Vec::new() },
        nodes: nodes.iter().enumerate().map(place).collect(),
        cluster: Some(OwnCluster { cell: shared(cluster), is_over: Arc::default() }),
        ..plan.clone()
    };
    let outcome = crate::run(&over_nodes, listener, stop, ask_password);
    hear("ending the cluster");
    drop(over_nodes);
    runtime.shutdown_timeout(GOODBYE_TIME_MAX);
    outcome
}

fn spec_of(plan: &Plan, setup: &ClusterSetup) -> Result<ClusterSpec, Error> {
    let (build, set) = match &plan.server {
        ServerPlan::ThrowAway { build, set, .. } => (build.clone(), set.clone()),
        ServerPlan::Dsn { set, .. } => (None, set.clone()),
    };
    let usual = NdbSpec::default();
    let (kind, nodes) = match setup.kind {
        Some(ClusterOf::Galera) => (ClusterKind::Galera, setup.nodes.unwrap_or(GALERA_NODES)),
        Some(ClusterOf::Ndb) => (ClusterKind::Ndb, setup.sql_nodes.unwrap_or(SQL_NODES)),
        Some(ClusterOf::Replication) | None => {
            (ClusterKind::Replication, setup.replicas.unwrap_or(REPLICAS).saturating_add(1))
        }
    };
    let set_of_node =
        setup.node_set.iter().filter_map(|(node, set)| Some((node.parse::<usize>().ok()?, set)));
    let set_of_node = set_of_node.flat_map(|(node, set)| {
        set.iter().map(move |(name, value)| (node, (name.clone(), value.to_string())))
    });
    let set_of_node = set_of_node.collect();
    let cpus =
        setup.node_cpus.iter().map(|(node, cpus)| Ok((node.clone(), CpuSet::resolve(&cpus.to_string())?)));
    Ok(ClusterSpec {
        name: kind.name().to_string(),
        kind,
        nodes: nodes as usize,
        ndb: NdbSpec {
            data_nodes: setup.data_nodes.map_or(usual.data_nodes, |count| count as usize),
            pool: setup.pool.unwrap_or(usual.pool),
            set: setup.data_set.iter().map(|(name, value)| (name.clone(), value.to_string())).collect(),
        },
        build,
        set,
        has_proxy: setup.proxy.unwrap_or(false),
        set_of_node,
        cpus_of_node: cpus.collect::<Result<_, Error>>()?,
    })
}

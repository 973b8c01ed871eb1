//! `whyso server cluster`: several servers that belong together.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Subcommand, ValueEnum};
use whyso_control::{ClusterNode, Error, parse_knob};
use whyso_server::CpuSet;
use whyso_server::cluster::{self, Cluster, ClusterKind, ClusterSpec, NdbSpec, Role};

/// The build that has the programs of ndb.
const NDB_BUILD: &str = "mysql-cluster";

#[derive(Subcommand, Debug)]
pub(crate) enum ClusterCommand {
    /// Start a cluster, which stays until `whyso server cluster stop`
    Start {
        kind: KindChoice,
        /// Number of replicas, in addition to the source, of a replication [default: 2]
        #[arg(long)]
        replicas: Option<usize>,
        /// Number of nodes of a Galera cluster [default: 3]
        #[arg(long, conflicts_with = "replicas")]
        nodes: Option<usize>,
        /// Number of nodes of ndb that take statements [default: 2]
        #[arg(long)]
        sql_nodes: Option<usize>,
        /// Number of nodes of ndb that hold the data: 1, or an even number [default: 2]
        #[arg(long)]
        data_nodes: Option<usize>,
        /// Connections of each SQL node of ndb to the data nodes [default: 1]
        #[arg(long)]
        pool: Option<u32>,
        /// Name of a build, or folder of an unpacked one [default: the server on the PATH]
        #[arg(long, value_name = "NAME")]
        server: Option<PathBuf>,
        /// Its name [default: that of its kind]
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
        /// Setting of each node; may be given more than once
        #[arg(long = "set", value_name = "KNOB=VALUE")]
        set: Vec<String>,
        /// Setting of one node, by its number from 1, in addition to those of each; may be given more than once
        #[arg(long = "node-set", value_name = "N:KNOB=VALUE")]
        node_set: Vec<String>,
        /// CPUs of one node, by what stands in its name after the cluster's: 1:0-3, data-2:4, manager:5; may be given more than once
        #[arg(long = "node-cpus", value_name = "NODE:CPUS")]
        node_cpus: Vec<String>,
        /// Parameter of the data nodes of ndb, such as DataMemory=512M; may be given more than once
        #[arg(long = "data-set", value_name = "NAME=VALUE")]
        data_set: Vec<String>,
        /// Let clients reach the nodes that take changes through HAProxy, which is watched as a node
        #[arg(long)]
        proxy: bool,
        /// Print the options of each node, and start nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// List the clusters that were started
    List {
        /// Print one JSON object on standard output, and nothing else there
        #[arg(long)]
        json: bool,
    },
    /// Show a cluster's nodes, and whether each takes part now
    Show { name: String },
    /// Restart the nodes one after the other, each once the one before takes part again
    Restart {
        name: String,
        /// One node at a time: the default
        #[arg(long)]
        rolling: bool,
        /// Give a parameter of the data nodes of ndb another value before; may be given more than once
        #[arg(long = "data-set", value_name = "NAME=VALUE")]
        data_set: Vec<String>,
    },
    /// Cut a node of Galera off from the others: a split
    Isolate {
        name: String,
        /// Its name, or its number
        node: String,
    },
    /// Let a node that was cut off come back, and wait until it takes part
    Rejoin {
        name: String,
        /// Its name, or its number
        node: String,
    },
    /// Stop a cluster, and remove its data
    Stop { name: String },
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum KindChoice {
    /// One source, whose changes its replicas apply
    Replication,
    /// Nodes that all take changes: MariaDB with Galera
    Galera,
    /// MySQL Cluster: data nodes that hold the tables, and SQL nodes before them
    Ndb,
}

impl KindChoice {
    /// How many of the nodes that only this kind has are asked for; refuses those of the others.
    fn kind_and_nodes(
        self,
        replicas: Option<usize>,
        nodes: Option<usize>,
        of_ndb: [Option<usize>; 3],
    ) -> Result<(ClusterKind, usize)> {
        let has_ndb = of_ndb.iter().any(Option::is_some);
        let wrong = |why: &str| bail!(Error::Plan(why.to_string()));
        match self {
            KindChoice::Replication if nodes.is_some() => wrong("--nodes is for galera: give --replicas"),
            KindChoice::Galera if replicas.is_some() => wrong("--replicas is for replication: give --nodes"),
            KindChoice::Ndb if nodes.is_some() || replicas.is_some() => {
                wrong("ndb has --sql-nodes and --data-nodes, and neither --nodes nor --replicas")
            }
            KindChoice::Replication | KindChoice::Galera if has_ndb => {
                wrong("--sql-nodes, --data-nodes, --pool and --data-set are for ndb")
            }
            KindChoice::Replication => {
                Ok((ClusterKind::Replication, replicas.unwrap_or(2).saturating_add(1)))
            }
            KindChoice::Galera => Ok((ClusterKind::Galera, nodes.unwrap_or(3))),
            KindChoice::Ndb => Ok((ClusterKind::Ndb, of_ndb[0].unwrap_or(2))),
        }
    }
}

pub(crate) fn run(command: ClusterCommand) -> Result<()> {
    match command {
        ClusterCommand::Start {
            kind,
            replicas,
            nodes,
            sql_nodes,
            data_nodes,
            pool,
            server,
            name,
            set,
            node_set,
            node_cpus,
            data_set,
            proxy,
            dry_run,
        } => {
            let data_set = knobs_of_data_nodes(&data_set)?;
            let settings = (!data_set.is_empty()).then_some(data_set.len());
            let of_ndb = [sql_nodes, data_nodes, pool.map(|pool| pool as usize).or(settings)];
            let (kind, nodes) = kind.kind_and_nodes(replicas, nodes, of_ndb)?;
            let usual = NdbSpec::default();
            let ndb = NdbSpec {
                data_nodes: data_nodes.unwrap_or(usual.data_nodes),
                pool: pool.unwrap_or(usual.pool),
                set: data_set,
            };
            let is_ndb = kind == ClusterKind::Ndb;
            let spec = ClusterSpec {
                name: name.unwrap_or_else(|| kind.name().to_string()),
                kind,
                nodes,
                ndb,
                build: server.or_else(|| is_ndb.then(|| PathBuf::from(NDB_BUILD))),
                set: set.iter().map(|knob| parse_knob(knob)).collect::<Result<_, _>>()?,
                has_proxy: proxy,
                set_of_node: node_set.iter().map(|typed| parse_node_set(typed)).collect::<Result<_>>()?,
                cpus_of_node: node_cpus.iter().map(|typed| parse_node_cpus(typed)).collect::<Result<_>>()?,
            };
            if dry_run { show_plan(&spec) } else { start(&spec) }
        }
        ClusterCommand::List { json } => list(json),
        ClusterCommand::Show { name } => show(&cluster::find(&name).map_err(Error::Server)?),
        ClusterCommand::Restart { name, data_set, rolling: _ } => {
            let cluster = cluster::find(&name).map_err(Error::Server)?;
            cluster.set_of_data_nodes(&knobs_of_data_nodes(&data_set)?).map_err(Error::Server)?;
            runtime()?.block_on(cluster.restart(&step)).map_err(Error::Server)?;
            print(&cluster::find(&name).map_err(Error::Server)?)
        }
        ClusterCommand::Isolate { name, node } => {
            let cluster = cluster::find(&name).map_err(Error::Server)?;
            runtime()?.block_on(cluster.isolate(&node)).map_err(Error::Server)?;
            show(&cluster)
        }
        ClusterCommand::Rejoin { name, node } => {
            let cluster = cluster::find(&name).map_err(Error::Server)?;
            runtime()?.block_on(cluster.rejoin(&node)).map_err(Error::Server)?;
            show(&cluster)
        }
        ClusterCommand::Stop { name } => {
            cluster::find(&name).and_then(|cluster| cluster.stop()).map_err(Error::Server)?;
            writeln!(crate::out::stdout(), "stopped {name}")?;
            Ok(())
        }
    }
}

/// The nodes of a cluster that is loaded.
pub(crate) struct LoadedCluster {
    pub(crate) kind: ClusterKind,
    /// Of the first one.
    pub(crate) dsn: String,
    /// The one that is loaded first.
    pub(crate) nodes: Vec<ClusterNode>,
}

/// Whether clients reach the nodes of this cluster through a proxy.
pub(crate) fn has_proxy(name: &str) -> Result<bool> {
    let cluster = cluster::find(name).map_err(Error::Server)?;
    Ok(cluster.nodes.iter().any(|node| node.role == Role::Proxy))
}

/// The cluster of this name. `loads_all`: every node that takes changes is loaded, and not the first one alone. Then the load goes through the
/// cluster's proxy, if it has one.
pub(crate) fn loaded(name: &str, loads_all: bool) -> Result<LoadedCluster> {
    let cluster = cluster::find(name).map_err(Error::Server)?;
    let Some(first) = cluster.nodes.first().filter(|node| node.role.takes_changes()) else {
        bail!(Error::Plan(format!(
            "no node of the cluster {name} takes changes: stop it, and start it again"
        )));
    };
    let nodes = cluster.nodes.iter().enumerate().map(|(place, node)| ClusterNode {
        is_loaded: place == 0 || (loads_all && node.role.takes_changes()),
        entry: (loads_all && node.role == Role::Proxy).then(|| node.server.dsn()),
        ..ClusterNode::from(node)
    });
    Ok(LoadedCluster { kind: cluster.kind, dsn: first.server.dsn().display_masked(), nodes: nodes.collect() })
}

/// The DSNs of its nodes that take changes, or of all servers.
pub(crate) fn dsns(name: &str, all: bool) -> Result<Vec<String>> {
    let cluster = cluster::find(name).map_err(Error::Server)?;
    let is_wanted = |role: Role| role.takes_changes() || (all && role.is_server());
    let wanted = cluster.nodes.iter().filter(|node| is_wanted(node.role));
    Ok(wanted.map(|node| node.server.dsn().display_masked()).collect())
}

fn knobs_of_data_nodes(typed: &[String]) -> Result<Vec<(String, String)>> {
    let parse = |typed: &String| match typed.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
        None => bail!(Error::Plan(format!(
            "--data-set {typed}: give a name and a value, such as DataMemory=512M"
        ))),
    };
    typed.iter().map(parse).collect()
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn step(what: &str) {
    print_stderr!("whyso: {what}");
}

fn show_plan(spec: &ClusterSpec) -> Result<()> {
    let plan = spec.dry_run().map_err(Error::Server)?;
    let mut out = crate::out::stdout();
    for (node, options) in plan.nodes {
        writeln!(out, "{node}: {}", options.join(" "))?;
    }
    for (name, config) in plan.configs {
        write!(out, "\n{name}:\n{config}")?;
    }
    Ok(())
}

fn start(spec: &ClusterSpec) -> Result<()> {
    runtime()?.block_on(cluster::start(spec, &step)).map_err(Error::Server)?;
    print(&cluster::find(&spec.name).map_err(Error::Server)?)
}

fn list(json: bool) -> Result<()> {
    let clusters = cluster::clusters().map_err(Error::Server)?;
    if json {
        let listed: Vec<_> = clusters.iter().map(object).collect();
        return crate::json::write(
            &mut crate::out::stdout(),
            "clusters",
            serde_json::json!({ "clusters": listed }),
        );
    }
    if clusters.is_empty() {
        writeln!(crate::out::stdout(), "no cluster was started")?;
    }
    clusters.iter().try_for_each(print)
}

fn print(cluster: &Cluster) -> Result<()> {
    let mut out = crate::out::stdout();
    writeln!(out, "{} ({})", cluster.name, cluster.kind.name())?;
    for node in &cluster.nodes {
        let process = node.server.pid.map_or("ended".to_string(), |pid| format!("process {pid}"));
        let dsn = match node.role.is_server() || node.role == Role::Proxy {
            true => format!("  --dsn '{}'", node.server.dsn().display_masked()),
            false => String::new(),
        };
        // A proxy has a socket only.
        let port = if node.port == 0 { String::new() } else { format!("port {}", node.port) };
        writeln!(
            out,
            "  {:16} {:9} {:32} {port:10}  {process:14}{dsn}",
            node.server.name,
            node.role.name(),
            node.server.server,
        )?;
    }
    Ok(())
}

/// "3:innodb_flush_log_at_trx_commit=1"
fn parse_node_set(typed: &str) -> Result<(usize, (String, String))> {
    let parts = typed.split_once(':').and_then(|(number, knob)| Some((number.parse().ok()?, knob)));
    let Some((number, knob)) = parts else {
        bail!(Error::Plan(format!(
            "--node-set {typed}: give the node's number, a colon and the setting, such as 2:sync_binlog=1"
        )));
    };
    Ok((number, parse_knob(knob)?))
}

/// "data-2:0,1"
fn parse_node_cpus(typed: &str) -> Result<(String, CpuSet)> {
    let Some((node, cpus)) = typed.split_once(':') else {
        bail!(Error::Plan(format!(
            "--node-cpus {typed}: give the node, a colon and its CPUs, such as 1:0-3 or data-2:4"
        )));
    };
    Ok((node.to_string(), CpuSet::resolve(cpus).map_err(Error::Server)?))
}

fn show(cluster: &Cluster) -> Result<()> {
    print(cluster)?;
    let runtime = runtime()?;
    for node in &cluster.nodes {
        let state = match runtime.block_on(node.why_not()) {
            None => "takes part".to_string(),
            Some(why) => format!("takes no part: {why}"),
        };
        writeln!(crate::out::stdout(), "  {}: {}", node.server.name, state)?;
    }
    Ok(())
}

fn object(cluster: &Cluster) -> serde_json::Value {
    let nodes: Vec<_> = cluster
        .nodes
        .iter()
        .map(|node| {
            serde_json::json!({
                "name": node.server.name,
                "role": node.role.name(),
                "server": node.server.server,
                "port": node.port,
                "pid": node.server.pid,
                "dsn": (node.role.is_server() || node.role == Role::Proxy).then(|| node.server.dsn().display_masked()),
            })
        })
        .collect();
    serde_json::json!({ "name": cluster.name, "kind": cluster.kind.name(), "nodes": nodes })
}

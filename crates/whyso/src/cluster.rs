//! `whyso server cluster`: several servers that belong together.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Subcommand, ValueEnum};
use whyso_control::{ClusterNode, Error, parse_knob};
use whyso_server::cluster::{self, Cluster, ClusterKind, ClusterSpec, Role};

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
    Restart { name: String },
    /// Stop a cluster, and remove its data
    Stop { name: String },
}

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum KindChoice {
    /// One source, whose changes its replicas apply
    Replication,
    /// Nodes that all take changes: MariaDB with Galera
    Galera,
}

pub(crate) fn run(command: ClusterCommand) -> Result<()> {
    match command {
        ClusterCommand::Start { kind, replicas, nodes, server, name, set, node_set, dry_run } => {
            let (kind, nodes) = match (kind, replicas, nodes) {
                (KindChoice::Replication, replicas, None) => {
                    (ClusterKind::Replication, replicas.unwrap_or(2).saturating_add(1))
                }
                (KindChoice::Galera, None, nodes) => (ClusterKind::Galera, nodes.unwrap_or(3)),
                (KindChoice::Replication, ..) => {
                    bail!(Error::Plan("--nodes is for galera: give --replicas".to_string()))
                }
                (KindChoice::Galera, ..) => {
                    bail!(Error::Plan("--replicas is for replication: give --nodes".to_string()))
                }
            };
            let spec = ClusterSpec {
                name: name.unwrap_or_else(|| kind.name().to_string()),
                kind,
                nodes,
                build: server,
                set: set.iter().map(|knob| parse_knob(knob)).collect::<Result<_, _>>()?,
                set_of_node: node_set.iter().map(|typed| parse_node_set(typed)).collect::<Result<_>>()?,
            };
            if dry_run { show_plan(&spec) } else { start(&spec) }
        }
        ClusterCommand::List { json } => list(json),
        ClusterCommand::Show { name } => show(&cluster::find(&name).map_err(Error::Server)?),
        ClusterCommand::Restart { name } => {
            let cluster = cluster::find(&name).map_err(Error::Server)?;
            runtime()?.block_on(cluster.restart(&step)).map_err(Error::Server)?;
            print(&cluster::find(&name).map_err(Error::Server)?)
        }
        ClusterCommand::Stop { name } => {
            cluster::find(&name).and_then(|cluster| cluster.stop()).map_err(Error::Server)?;
            writeln!(crate::out::stdout(), "stopped {name}")?;
            Ok(())
        }
    }
}

/// The nodes of the cluster of this name, the one that is loaded first. `loads_all`: every other one that takes changes is loaded, too.
pub(crate) fn nodes(name: &str, loads_all: bool) -> Result<Vec<ClusterNode>> {
    let cluster = cluster::find(name).map_err(Error::Server)?;
    let mut nodes: Vec<ClusterNode> = cluster.nodes.iter().map(ClusterNode::from).collect();
    for (place, node) in nodes.iter_mut().enumerate() {
        node.is_loaded = place == 0 || (loads_all && node.role != Role::Replica.name());
    }
    Ok(nodes)
}

/// The DSNs of its nodes that take changes, or of all.
pub(crate) fn dsns(name: &str, all: bool) -> Result<Vec<String>> {
    let nodes = nodes(name, false)?;
    let wanted = nodes.iter().filter(|node| all || node.role != Role::Replica.name());
    Ok(wanted.map(|node| node.dsn.display_masked()).collect())
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn step(what: &str) {
    print_stderr!("whyso: {what}");
}

fn show_plan(spec: &ClusterSpec) -> Result<()> {
    for (node, options) in spec.dry_run().map_err(Error::Server)? {
        writeln!(crate::out::stdout(), "{node}: {}", options.join(" "))?;
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
        writeln!(
            out,
            "  {:16} {:8} {:32} port {:5}  {process:14}  --dsn '{}'",
            node.server.name,
            node.role.name(),
            node.server.server,
            node.port,
            node.server.dsn().display_masked()
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
                "dsn": node.server.dsn().display_masked(),
            })
        })
        .collect();
    serde_json::json!({ "name": cluster.name, "kind": cluster.kind.name(), "nodes": nodes })
}

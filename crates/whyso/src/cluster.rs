//! `whyso server cluster`: several servers that belong together.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Subcommand, ValueEnum};
use whyso_control::{Error, parse_knob};
use whyso_server::cluster::{self, Cluster, ClusterKind, ClusterSpec};

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
        ClusterCommand::Start { kind, replicas, nodes, server, name, set, dry_run } => {
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
            };
            if dry_run { show_plan(&spec) } else { start(&spec) }
        }
        ClusterCommand::List { json } => list(json),
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

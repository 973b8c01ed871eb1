//! What follows `--versus`: how one side of a comparison differs from the other.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Parser;
use whyso_control::{Error, ServerPlan, SideChange, Source, parse_knob};
use whyso_server::Neighbour;

use crate::plan_args::source;

#[derive(Parser, Debug)]
#[command(name = "--versus", no_binary_name = true, disable_help_flag = true)]
struct VersusArgs {
    #[arg(long = "set")]
    set: Vec<String>,
    #[arg(long, conflicts_with = "workload")]
    query: Option<String>,
    #[arg(long)]
    workload: Option<String>,
    #[arg(long, conflicts_with = "dsn")]
    server: Option<PathBuf>,
    #[arg(long)]
    dsn: Option<String>,
    /// Its data, on a server of whyso's own.
    #[arg(long)]
    tables: Option<u32>,
    #[arg(long)]
    rows: Option<u64>,
    #[arg(long)]
    table_engine: Option<String>,
    #[arg(long)]
    users: Option<u32>,
    /// An option of the workload.
    #[arg(long = "option", short = 'O')]
    option: Vec<String>,
    /// A statement that prepares its server.
    #[arg(long)]
    sql: Vec<String>,
    /// A kind of statement that is not sent.
    #[arg(long)]
    leave_out: Vec<String>,
    /// CPUs of a server of whyso's own.
    #[arg(long, conflicts_with = "dsn")]
    server_cpus: Option<String>,
    /// A program of others that stands still in its windows.
    #[arg(long)]
    pause: Vec<String>,
    /// Per cent of the time for which the CPUs are left to a server of whyso's own.
    #[arg(long, conflicts_with = "dsn", value_parser = crate::values::whole_percent)]
    cpu_speed: Option<u8>,
    /// Per cent of its speed that the storage of a server of whyso's own has.
    #[arg(long, conflicts_with = "dsn", value_parser = crate::values::whole_percent)]
    storage_speed: Option<u8>,
}

/// Reads what follows `--versus`. `own_server`: a server of whyso's own, for builds.
pub(crate) fn change(arguments: &[OsString], own_server: &ServerPlan) -> Result<SideChange> {
    let versus = VersusArgs::try_parse_from(arguments).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string();
        Error::Plan(format!(
            "after --versus: {first}; only --set, --query, --workload, --option, --tables, --rows, --table-engine, --users, --sql, --leave-out, --pause, --server, --server-cpus, --cpu-speed, --storage-speed and --dsn may stand there: put the \
             others before it"
        ))
    })?;
    let mut options = Vec::new();
    for option in &versus.option {
        let Some((name, value)) = option.split_once('=') else {
            bail!(Error::Plan(format!("--option {option}: give NAME=VALUE, such as rand-type=uniform")));
        };
        options.push((name.to_string(), value.to_string()));
    }
    Ok(SideChange {
        server: match (versus.server, versus.dsn, versus.server_cpus) {
            (None, None, None) => None,
            (None, Some(dsn), _) => Some(ServerPlan::Dsn { dsn, set: Vec::new() }),
            (build, _, cpus) => Some(of_build(own_server, build.as_deref(), cpus)),
        },
        source: match (&versus.query, &versus.workload) {
            (Some(sql), _) => Some(query(sql)),
            (None, workload) => workload.as_deref().map(source).transpose()?,
        },
        options,
        tables: versus.tables,
        rows: versus.rows,
        table_engine: versus.table_engine,
        users: versus.users,
        set: versus.set.iter().map(|knob| parse_knob(knob)).collect::<Result<_, _>>()?,
        prepare: versus.sql,
        left_out: versus.leave_out,
        paused: neighbours(&versus.pause)?,
        cpu_speed: versus.cpu_speed,
        storage_speed: versus.storage_speed,
    })
}

/// Reads the values of `--pause`.
pub(crate) fn neighbours(pids: &[String]) -> Result<Vec<Neighbour>> {
    pids.iter().map(|pid| Ok(Neighbour::named(pid)?)).collect()
}

/// A server of whyso's own, of another build or on other CPUs.
pub(crate) fn of_build(
    own_server: &ServerPlan,
    other: Option<&Path>,
    other_cpus: Option<String>,
) -> ServerPlan {
    let mut server = own_server.clone();
    if let ServerPlan::ThrowAway { build, cpus, .. } = &mut server {
        *build = other.map(Path::to_path_buf).or_else(|| build.take());
        *cpus = other_cpus.or_else(|| cpus.take());
    }
    server
}

pub(crate) fn query(sql: &str) -> Source {
    Source::Query { name: "query".to_string(), sql: sql.to_string() }
}

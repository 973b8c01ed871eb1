//! What follows `--versus`: how one side of a comparison differs from the other.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Parser;
use whyso_control::{Error, ServerPlan, SideChange, Source, parse_knob};

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
    #[arg(long)]
    users: Option<u32>,
    /// An option of the workload.
    #[arg(long = "option", short = 'O')]
    option: Vec<String>,
    /// A statement that prepares its server.
    #[arg(long)]
    sql: Vec<String>,
}

/// Reads what follows `--versus`. `own_server`: a server of whyso's own, for builds.
pub(crate) fn change(arguments: &[OsString], own_server: &ServerPlan) -> Result<SideChange> {
    let versus = VersusArgs::try_parse_from(arguments).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_string();
        Error::Plan(format!(
            "after --versus: {first}; only --set, --query, --workload, --option, --users, --sql, --server and --dsn may stand there: put the \
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
        server: match (versus.server, versus.dsn) {
            (Some(build), _) => Some(of_build(own_server, &build)),
            (None, dsn) => dsn.map(|dsn| ServerPlan::Dsn { dsn, set: Vec::new() }),
        },
        source: match (&versus.query, &versus.workload) {
            (Some(sql), _) => Some(query(sql)),
            (None, workload) => workload.as_deref().map(source).transpose()?,
        },
        options,
        users: versus.users,
        set: versus.set.iter().map(|knob| parse_knob(knob)).collect::<Result<_, _>>()?,
        prepare: versus.sql,
    })
}

/// A server of whyso's own, of another build.
pub(crate) fn of_build(own_server: &ServerPlan, other: &Path) -> ServerPlan {
    let mut server = own_server.clone();
    if let ServerPlan::ThrowAway { build, .. } = &mut server {
        *build = Some(other.to_path_buf());
    }
    server
}

pub(crate) fn query(sql: &str) -> Source {
    Source::Query { name: "query".to_string(), sql: sql.to_string() }
}

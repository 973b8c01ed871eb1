//! `whyso stacks`: what every thread of a server, or of any process, does now.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use whyso_control::{Error, RecordTarget, stacks_now};

use crate::choice_args::WhoseArgs;
use crate::user::ask_password;

#[derive(Args, Debug)]
pub(crate) struct StacksArgs {
    /// A server on this machine
    #[arg(long, value_name = "DSN", required_unless_present = "process")]
    pub(crate) dsn: Option<String>,

    /// Processes of any kind, with all that they have started: a number, or the name that `ps -e` shows
    #[arg(long, value_name = "NAME|PID", conflicts_with = "dsn")]
    pub(crate) process: Option<String>,

    #[command(flatten)]
    pub(crate) whose: WhoseArgs,

    /// Group threads at the same place, the largest group first
    #[arg(long, conflicts_with = "json")]
    pub(crate) group: bool,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `--dsn` or `--process` names.
pub(crate) fn record_target(dsn: Option<&String>, process: Option<&String>) -> Result<RecordTarget> {
    match (dsn, process) {
        (Some(dsn), None) => Ok(RecordTarget::Server(dsn.clone())),
        (None, Some(process)) => Ok(RecordTarget::Processes(process.clone())),
        _ => bail!(Error::Plan("give a server with --dsn, or processes with --process".to_string())),
    }
}

pub(crate) fn stacks(args: &StacksArgs) -> Result<ExitCode> {
    let of = record_target(args.dsn.as_ref(), args.process.as_ref())?;
    let found = stacks_now(&of, &args.whose.filter(), &ask_password)?;
    let mut out = crate::out::stdout();
    if args.json {
        crate::json::write(&mut out, "stacks", whyso_report::stacks_json(&found))?;
    } else if args.group {
        write!(out, "{}", whyso_report::grouped_stacks(&found))?;
    } else {
        write!(out, "{}", whyso_report::stacks(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

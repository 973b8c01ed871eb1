//! `whyso setup-tracing`: tracing without root, for the members of one group.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use whyso_control::{
    DEFAULT_TRACED_PROGRAM, SetupTracing, TRACING_CAPABILITIES, set_up_tracing, undo_tracing_setup,
};

#[derive(Args, Debug)]
pub(crate) struct SetupTracingArgs {
    /// Group whose members may trace, by name or number; a name that does not exist is created
    #[arg(long, value_name = "NAME|GID", default_value = "whyso")]
    group: String,
    /// Path of the copy of this program that may trace
    #[arg(long, value_name = "PATH", default_value = DEFAULT_TRACED_PROGRAM)]
    to: PathBuf,
    /// Show each step, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Remove the copy, and the group if it was created for it
    #[arg(long)]
    undo: bool,
}

pub(crate) fn run(args: &SetupTracingArgs) -> Result<ExitCode> {
    let asked = SetupTracing { group: args.group.clone(), to: args.to.clone(), dry_run: args.dry_run };
    let steps = if args.undo { undo_tracing_setup(&asked)? } else { set_up_tracing(&asked)? };
    let mut out = crate::out::stdout();
    for step in steps {
        writeln!(out, "{} {step}", if args.dry_run { "would" } else { "done:" })?;
    }
    if !args.undo {
        writeln!(out, "Each capability has one reason:")?;
        for (name, reason) in TRACING_CAPABILITIES {
            writeln!(out, "  {name:15} {reason}")?;
        }
        let (group, to) = (&args.group, args.to.display());
        writeln!(
            out,
            "Who may trace: usermod -a -G {group} USER, who then logs in again and runs {to} instead of whyso."
        )?;
        writeln!(
            out,
            "Through it they see what every process of this machine does, and the statements of every client of a server here."
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

//! `whyso status`: what the server counted in a recorded run, as its own status variables have it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::recordings::open;

#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    run: PathBuf,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

pub(crate) fn status(args: &StatusArgs) -> Result<ExitCode> {
    let (recording, _) = open(&args.run, &args.runs)?;
    let input = whyso_query::input(&recording)?;
    write!(crate::out::stdout(), "{}", whyso_report::differences(&input))?;
    Ok(ExitCode::SUCCESS)
}

//! `whyso bisect`: what makes the difference between two recordings.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use whyso_control::{BisectPlan, bisect};

use crate::plan_args::source;
use crate::progress::Bars;
use crate::recordings::open;
use crate::user::{ask_password, handle_ctrl_c};
use crate::values::Length;

#[derive(Args, Debug)]
pub(crate) struct BisectArgs {
    /// The run whose server is the baseline: its folder, its id or the begin of it, or latest~N
    first: PathBuf,

    /// The run of the same load that was faster or slower
    second: PathBuf,

    /// No test begins after this time
    #[arg(long, value_name = "TIME", default_value = "15m")]
    budget: Length,

    /// The workload, where it was a file of SQL: the recordings do not hold it
    #[arg(long, value_name = "FILE.sql")]
    workload: Option<String>,

    /// Builds to search if settings and load do not make the difference, the oldest first: names of `whyso server list`, or folders
    #[arg(long, value_name = "BUILD,…", value_delimiter = ',')]
    builds: Vec<String>,

    /// A program that makes a build: it is called with a name of --builds, such as a commit, and prints the build's folder last
    #[arg(long, value_name = "PROGRAM", requires = "builds")]
    build_command: Option<String>,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

pub(crate) fn run(args: &BisectArgs) -> Result<ExitCode> {
    let (_, first) = open(&args.first, &args.runs)?;
    let (_, second) = open(&args.second, &args.runs)?;
    let plan = BisectPlan {
        first,
        second,
        budget: args.budget.0,
        builds: args.builds.clone(),
        build_command: args.build_command.clone(),
        source: args.workload.as_deref().map(source).transpose()?,
    };
    let bars = Bars::new();
    let stop = handle_ctrl_c()?;
    let found = bisect(&plan, &bars, stop, &ask_password);
    bars.clear();
    let found = found?;
    let mut out = crate::out::stdout();
    match args.json {
        true => crate::json::write(&mut out, "bisect", whyso_report::bisect::bisect_json(&found))?,
        false => write!(out, "{}", whyso_report::bisect::bisect_text(&found))?,
    }
    Ok(ExitCode::SUCCESS)
}

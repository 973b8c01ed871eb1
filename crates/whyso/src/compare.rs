//! `whyso compare` and `whyso history`: recordings against each other.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use whyso_explain::comparison::Metric;
use whyso_lab::{CompareBy, Error};
use whyso_record::Recording;

use crate::commands::open;

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// The first side: folders of runs, or ids under --runs; with two runs and no --with, the second is compared with the first
    #[arg(required = true, value_name = "RUN")]
    run: Vec<PathBuf>,
    /// The second side, which is compared with the first
    #[arg(long, num_args = 1.., value_name = "RUN")]
    with: Vec<PathBuf>,
    /// What is compared: transactions_per_s, queries_per_s, latency_mean_ms, latency_p95_ms or latency_p99_ms
    #[arg(long, default_value_t = Metric::default())]
    metric: Metric,
    /// Smallest difference that is worth knowing, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0)]
    matters: f64,
    /// Compare also runs of different workloads or data sets
    #[arg(long)]
    anyway: bool,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// As Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// Runs, by folder or id, or folders that hold runs [default: the folder of --runs]
    #[arg(value_name = "RUN|DIR")]
    run: Vec<PathBuf>,
    /// The levels of so many users alone [default: all]
    #[arg(long, value_name = "N")]
    users: Option<u32>,
    /// What is looked at: transactions_per_s, queries_per_s, latency_mean_ms, latency_p95_ms or latency_p99_ms
    #[arg(long, default_value_t = Metric::default())]
    metric: Metric,
    /// Smallest change that is told, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    matters: f64,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let (first, second) = match (&args.run[..], &args.with[..]) {
        ([one, other], []) => (vec![one.clone()], vec![other.clone()]),
        (_, []) => {
            bail!(Error::Plan("name two runs, or the runs of the second side after --with".to_string()))
        }
        (first, second) => (first.to_vec(), second.to_vec()),
    };
    let opened = |side: &[PathBuf]| -> Result<Vec<Recording>> {
        side.iter().map(|run| Ok(open(run, &args.runs)?.0)).collect()
    };
    let (first, second) = (opened(&first)?, opened(&second)?);
    for problem in first.iter().chain(&second).flat_map(Recording::problems) {
        eprintln!("whyso: warning: {problem}");
    }
    let by = CompareBy { metric: args.metric, matters_percent: args.matters, anyway: args.anyway };
    let compared = whyso_lab::compare(&first, &second, by)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&compared)?)?;
    } else if args.markdown {
        write!(out, "{}", whyso_report::compare_markdown(&compared))?;
    } else {
        write!(out, "{}", whyso_report::compare(&compared))?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn history(args: &HistoryArgs) -> Result<ExitCode> {
    let mut runs = Vec::new();
    let named = if args.run.is_empty() { vec![args.runs.clone()] } else { args.run.clone() };
    for path in named {
        let path = if path.is_dir() { path } else { args.runs.join(path) };
        if !path.is_dir() {
            bail!("there is no run and no folder {}: `whyso runs` lists the runs", path.display());
        }
        runs.extend(whyso_lab::runs_at(&path)?);
    }
    let found = whyso_lab::history(&runs, args.users, args.metric, args.matters)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?;
    } else {
        write!(out, "{}", whyso_report::history(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

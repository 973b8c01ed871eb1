//! `whyso compare` and `whyso history`: recordings against each other.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use whyso_control::Error;
use whyso_explain::comparison::Metric;
use whyso_query::{CompareBy, Stretch, compare_windows};
use whyso_record::{Recording, RunSummary};

use crate::choice_args::{Stretch as TypedStretch, WindowArgs, choose_part};
use crate::recordings::open;
use crate::text_format::{FormatArgs, TextFormat};

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// The first side: folders of runs, or ids under --runs, or windows of them such as RUN@10:05-10:20. With two and no --with, the second is
    /// compared with the first. Without any, the latest run and those with the same settings are compared with the last ones of the same
    /// workload that had others
    #[arg(value_name = "RUN[@A-B]")]
    run: Vec<String>,
    /// The second side, which is compared with the first
    #[arg(long, num_args = 1.., value_name = "RUN[@A-B]")]
    with: Vec<String>,
    /// What is compared: transactions_per_s, queries_per_s, latency_mean_ms, latency_p95_ms or latency_p99_ms
    #[arg(long, default_value_t = Metric::default())]
    metric: Metric,
    /// Smallest difference that is worth knowing, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0)]
    matters: f64,
    /// Compare also runs of different workloads or data sets
    #[arg(long)]
    anyway: bool,
    #[command(flatten)]
    format: FormatArgs,
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    /// Runs, by folder or id, or folders that hold runs [default: the folder of --runs]
    #[arg(value_name = "RUN|DIR")]
    run: Vec<PathBuf>,
    /// Only the levels of N users [default: all]
    #[arg(long, value_name = "N")]
    users: Option<u32>,
    /// What is followed: transactions_per_s, queries_per_s, latency_mean_ms, latency_p95_ms or latency_p99_ms
    #[arg(long, default_value_t = Metric::default())]
    metric: Metric,
    /// Smallest change that is reported, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    matters: f64,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

/// What is on one side.
struct Side {
    recordings: Vec<Recording>,
    /// Of each, in seconds of the run; `None`: all of it.
    windows: Vec<Option<TypedStretch>>,
}

impl Side {
    fn of(typed: &[String], runs: &Path) -> Result<Side> {
        let mut side = Side { recordings: Vec::new(), windows: Vec::new() };
        for text in typed {
            // The name of a folder may hold an @ of its own.
            let split = text.rsplit_once('@').and_then(|(run, window)| Some((run, window.parse().ok()?)));
            let (run, window) = split.map_or((text.as_str(), None), |(run, window)| (run, Some(window)));
            let recording = open(Path::new(run), runs)?.0;
            side.recordings.push(recording);
            side.windows.push(window);
        }
        Ok(side)
    }

    fn stretches(&self) -> Result<Vec<Stretch<'_>>> {
        let mut stretches = Vec::new();
        for (recording, window) in self.recordings.iter().zip(&self.windows) {
            let window = match window {
                Some(_) => {
                    choose_part(recording, &WindowArgs { users: None, level: None, window: *window })?.window
                }
                None => recording.window().unwrap_or_default(),
            };
            stretches.push(Stretch { recording, window });
        }
        Ok(stretches)
    }
}

/// Runs of the latest one's workload: those with the settings of the last that had others, and those with its own.
fn proposed_sides(runs: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let all = whyso_record::list_runs(runs)?;
    let is_comparable = |run: &&RunSummary| !run.live && run.facts.best.is_some();
    let Some(latest) = all.iter().rfind(is_comparable) else {
        bail!(Error::Plan(format!("no run in {} has a result: name two runs", runs.display())));
    };
    let of_same = |run: &&RunSummary| {
        let (one, other) = (&run.facts, &latest.facts);
        (&one.workload, &one.process, one.is_recorded) == (&other.workload, &other.process, other.is_recorded)
    };
    let same: Vec<&RunSummary> = all.iter().filter(is_comparable).filter(of_same).collect();
    let Some(other) = same.iter().rfind(|run| run.facts.set != latest.facts.set) else {
        bail!(Error::Plan(format!(
            "every run of {} in {} had the same settings: name two runs, or record one with --set",
            latest.facts.workload.as_deref().unwrap_or("this workload"),
            runs.display()
        )));
    };
    let with = |set: &[String]| -> Vec<String> {
        let chosen = same.iter().filter(|run| run.facts.set == set);
        chosen.map(|run| run.path.to_string_lossy().into_owned()).collect()
    };
    let words = |set: &[String]| if set.is_empty() { "nothing set".to_string() } else { set.join(" ") };
    let (first, second) = (with(&other.facts.set), with(&latest.facts.set));
    print_stderr!(
        "whyso: comparing {} ({}) with {} ({})",
        whyso_words::count(first.len() as u64, "run"),
        words(&other.facts.set),
        whyso_words::count(second.len() as u64, "run"),
        words(&latest.facts.set)
    );
    Ok((first, second))
}

pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    let (first, second) = match (&args.run[..], &args.with[..]) {
        ([], []) => proposed_sides(&args.runs)?,
        ([first, second], []) => (vec![first.clone()], vec![second.clone()]),
        (_, []) => {
            bail!(Error::Plan("name two runs, or the runs of the second side after --with".to_string()))
        }
        (first, second) => (first.to_vec(), second.to_vec()),
    };
    let by = CompareBy { metric: args.metric, matters_percent: args.matters, anyway: args.anyway };
    let (first, second) = (Side::of(&first, &args.runs)?, Side::of(&second, &args.runs)?);
    let compared = match first.windows.iter().chain(&second.windows).any(Option::is_some) {
        true => compare_windows(&first.stretches()?, &second.stretches()?, by)?,
        false => whyso_query::compare(&first.recordings, &second.recordings, by)?,
    };
    let mut out = crate::out::stdout();
    match args.format.chosen() {
        TextFormat::Json => crate::json::write(&mut out, "compare", &compared)?,
        TextFormat::Md => write!(out, "{}", whyso_report::compare_markdown(&compared))?,
        TextFormat::Text => write!(out, "{}", whyso_report::compare(&compared))?,
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
        for loaded in whyso_query::runs_at(&path)? {
            if let Some(problem) = loaded.summary.problem {
                print_stderr!("whyso: warning: {}: {problem}", loaded.summary.path.display());
            }
            runs.push(loaded.run);
        }
    }
    let found = whyso_query::history(&runs, args.users, args.metric, args.matters)?;
    let mut out = crate::out::stdout();
    if args.json {
        crate::json::write(&mut out, "history", &found)?;
    } else {
        write!(out, "{}", whyso_report::history(&found))?;
    }
    Ok(ExitCode::SUCCESS)
}

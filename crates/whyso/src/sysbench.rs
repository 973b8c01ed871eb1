//! `whyso sysbench`: all arguments go to the library that serves them; the lab records, and the report writes JSON.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use whyso_control::{DrivenLoad, LoadRecording};
use whyso_load::{Interval, LevelOutcome};
use whyso_record::run::RunEnd;
use whyso_report::load::{LoadResult, load_json};
use whyso_sysbench::{Recording, RecordingError, Run, Surroundings};

use crate::exit_codes::INTERRUPTED;

#[derive(Args, Debug)]
pub(crate) struct SysbenchArgs {
    /// Everything that sysbench takes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
}

const PASSWORD: &str = "--mysql-password";

pub(crate) fn run(args: &SysbenchArgs) -> Result<ExitCode> {
    ctrlc::set_handler(whyso_sysbench::interrupt).context("can't prepare for Ctrl-C")?;
    let status = whyso_sysbench::main(&args.arguments, &Whyso { command: command_line(&args.arguments) });
    Ok(ExitCode::from(if whyso_sysbench::was_interrupted() { INTERRUPTED } else { status }))
}

/// The password that an argument gives.
fn password(argument: &str) -> Option<&str> {
    let (name, value) = argument.split_once('=')?;
    (name.replace('_', "-") == PASSWORD).then_some(value)
}

/// As it was typed, without the password.
fn command_line(arguments: &[String]) -> Vec<String> {
    let mut line = vec!["whyso".to_string(), "sysbench".to_string()];
    for argument in arguments {
        line.push(password(argument).map_or(argument.clone(), |_| format!("{PASSWORD}=***")));
    }
    line
}

/// What this program does with a run.
struct Whyso {
    command: Vec<String>,
}

impl Surroundings for Whyso {
    fn record(&self, run: &Run, folder: &Path) -> Result<Box<dyn Recording>, RecordingError> {
        let hosts = run.hosts.as_deref().map(crate::hosts_file::read).transpose();
        let hosts = hosts.map_err(RecordingError::new)?;
        let begun = LoadRecording::begin(self.driven(run), folder, hosts.as_ref());
        let recording =
            begun.map_err(|error| RecordingError::new(format!("the run can't be recorded: {error}")))?;
        Ok(Box::new(RecordedLoad(recording)))
    }

    fn json(&self, run: &Run, outcome: &LevelOutcome) -> String {
        let level = self.driven(run).level(outcome, whyso_sysbench::was_interrupted());
        let cut_short = match &level.ended {
            RunEnd::Complete { .. } => None,
            RunEnd::CutShort { why, .. } => Some(why.clone()),
        };
        let verdict = whyso_query::judge_alone(&level);
        let result =
            LoadResult { levels: vec![(level, verdict)], capacity: None, comparison: None, cut_short };
        format!("{:#}", load_json(&result))
    }
}

impl Whyso {
    fn driven(&self, run: &Run) -> DrivenLoad {
        DrivenLoad {
            workload: run.test.clone(),
            targets: run.endpoints.iter().map(|endpoint| endpoint.target.clone()).collect(),
            users: run.threads,
            pacing: run.pacing.clone(),
            measure: run.time,
            warmup: run.warmup,
            seed: run.seed,
            engine: run.engine,
            options: run.options.clone(),
            percentiles: run.percentile.map(f64::from).into_iter().collect(),
            command: self.command.clone(),
        }
    }
}

struct RecordedLoad(LoadRecording);

impl Recording for RecordedLoad {
    fn interval(&mut self, interval: &Interval) {
        self.0.interval(interval);
    }

    fn window_edge(&mut self) {
        self.0.window_edge();
    }

    fn finish(self: Box<Self>, outcome: &LevelOutcome, interrupted: bool) -> Result<PathBuf, RecordingError> {
        self.0.finish(outcome, interrupted).map_err(RecordingError::new)
    }
}

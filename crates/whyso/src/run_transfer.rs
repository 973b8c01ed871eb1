//! `whyso runs push` and `whyso runs pull`: runs go to storage, and come from there.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use whyso_storage::{Bucket, Place};
use whyso_words::{bytes, count};

use crate::elsewhere::refuse_place;

/// What was typed after `whyso runs push`.
#[derive(Args, Debug)]
pub(crate) struct PushArgs {
    /// [default: every run that has ended]
    #[arg(value_name = "RUN")]
    pub(crate) run: Vec<PathBuf>,
    /// Where to, such as s3://lab/runs; keys and endpoint come from the AWS_ variables of the environment
    #[arg(long, value_name = "S3", value_parser = parse_place)]
    pub(crate) to: Place,
}

/// What was typed after `whyso runs pull`.
#[derive(Args, Debug)]
pub(crate) struct PullArgs {
    /// The whole ids of the runs
    #[arg(required = true, value_name = "RUN")]
    pub(crate) run: Vec<String>,
    /// Where from, such as s3://lab/runs; keys and endpoint come from the AWS_ variables of the environment
    #[arg(long, value_name = "S3", value_parser = parse_place)]
    pub(crate) from: Place,
    /// Refuse a run that is larger
    #[arg(long, value_name = "SIZE", default_value = "20GiB", value_parser = whyso_model::parse_size)]
    pub(crate) size: u64,
}

fn parse_place(text: &str) -> Result<Place, whyso_storage::Error> {
    Place::parse(text)
}

pub(crate) fn push(args: &PushArgs, runs: &Path, json: bool) -> Result<ExitCode> {
    let dirs = match &args.run[..] {
        [] => {
            let ended = whyso_record::list_runs(runs)?.into_iter().filter(|run| !run.live);
            ended.map(|run| run.path).collect()
        }
        named => {
            named.iter().map(|run| crate::recordings::path_of(run, runs)).collect::<Result<Vec<PathBuf>>>()?
        }
    };
    if dirs.is_empty() {
        bail!("there is no run to send in {}", runs.display());
    }
    let pushed = Bucket::open(&args.to)?.push(&dirs)?;
    let mut out = crate::out::stdout();
    if json {
        let object = serde_json::json!({
            "to": args.to.to_string(),
            "sent": pushed.sent,
            "there_already": pushed.there_already,
            "bytes": pushed.bytes,
        });
        crate::json::write(&mut out, "runs-push", object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let there = match pushed.there_already.len() {
        0 => String::new(),
        number => format!(", already there: {}", count(number as u64, "run")),
    };
    let sent = count(pushed.sent.len() as u64, "run");
    writeln!(out, "sent {sent} to {}, {}{there}", args.to, bytes(pushed.bytes as f64))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn pull(args: &PullArgs, runs: &Path, json: bool) -> Result<ExitCode> {
    refuse_place(runs)?;
    let bucket = Bucket::open(&args.from)?;
    let (mut pulled, mut there_already) = (Vec::new(), Vec::new());
    for id in &args.run {
        // As an import does: runs that are there already stay as they are.
        if runs.join(id).is_dir() {
            there_already.push(id.as_str());
            continue;
        }
        bucket.pull(id, runs, args.size)?;
        pulled.push(id.as_str());
    }
    let mut out = crate::out::stdout();
    if json {
        let object = serde_json::json!({
            "from": args.from.to_string(),
            "pulled": pulled,
            "there_already": there_already,
        });
        crate::json::write(&mut out, "runs-pull", object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let there = match there_already.len() {
        0 => String::new(),
        number => format!(", already there: {}", count(number as u64, "run")),
    };
    writeln!(out, "took in {} from {}{there}", count(pulled.len() as u64, "run"), args.from)?;
    Ok(ExitCode::SUCCESS)
}

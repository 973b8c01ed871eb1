//! `whyso plot`: series as a picture.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use whyso_serve::{Mode, PlotPlan};

use crate::choice_args::Stretch;
use crate::recordings::open;

#[derive(Args, Debug)]
pub(crate) struct PlotArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    run: PathBuf,
    /// What is drawn: METRIC, SOURCE/METRIC or SOURCE/METRIC/INSTANCE, such as Questions or disk/write_bytes
    #[arg(required = true, value_name = "METRIC")]
    metric: Vec<String>,
    /// Windows side by side on one scale, in time of the run: 10s-25s, 1:10-1:25 (minutes:seconds) or 1:02:00-1:02:30
    /// (hours:minutes:seconds). They count from when the load began, or the recording where no load is; not the time of
    /// day [default: all of the run]
    #[arg(long, value_name = "A-B,C-D", value_delimiter = ',')]
    window: Vec<Stretch>,
    /// What counters are drawn as
    #[arg(long, value_enum, default_value_t = ModeArg::Rate)]
    mode: ModeArg,
    /// Most instances of a metric that are drawn: the busiest
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
    top: u16,
    /// Draw one line per metric: the sum of its instances
    #[arg(long)]
    sum: bool,
    /// Where to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeArg {
    Rate,
    Raw,
    PerTransaction,
}

pub(crate) fn plot(args: &PlotArgs) -> Result<ExitCode> {
    let (_, path) = open(&args.run, &args.runs)?;
    let plan = PlotPlan {
        metrics: args.metric.clone(),
        windows: args.window.iter().map(|window| (window.begin_s, window.end_s)).collect(),
        mode: match args.mode {
            ModeArg::Rate => Mode::Rate,
            ModeArg::Raw => Mode::Raw,
            ModeArg::PerTransaction => Mode::PerTransaction,
        },
        top: usize::from(args.top),
        sum: args.sum,
    };
    let picture = whyso_serve::plot(&path, &plan)?;
    match &args.output {
        Some(path) => {
            std::fs::write(path, picture).with_context(|| format!("can't write {}", path.display()))?
        }
        None => crate::out::data().write_all(picture.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

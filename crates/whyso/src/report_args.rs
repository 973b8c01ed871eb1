//! What the commands take that work on recordings and snapshots. Syntax only.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use whyso_explain::hidden::Source;
use whyso_query::SourcePath;

use crate::choice_args::Stretch;
use crate::clock_time::ClockTime;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ReportFormat {
    Html,
    Md,
    Svg,
    Json,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    pub(crate) run: PathBuf,
    #[arg(long, value_enum, default_value_t = ReportFormat::Html)]
    pub(crate) format: ReportFormat,
    /// Only this part of the run, such as "10:00-20:00"; HTML needs a file to write to
    #[arg(long, value_name = "A-B")]
    pub(crate) window: Option<Stretch>,
    /// Another run with stacks: the page's flame graphs can be compared with its levels
    #[arg(long, value_name = "RUN")]
    pub(crate) against: Option<PathBuf>,
    /// Where the sources of the server are, whose lines the page shows: OLD=NEW for what begins with OLD in the build and with
    /// NEW here, or a folder to search; may be given more than once
    #[arg(long, value_name = "OLD=NEW|DIR")]
    pub(crate) source_path: Vec<SourcePath>,
    /// Where to write [default: report.html in the run's folder for HTML, standard output otherwise]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    pub(crate) runs: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct WhyArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    pub(crate) run: PathBuf,
    /// Explain the level of N users [default: the one where throughput stopped growing]
    #[arg(long, value_name = "N")]
    pub(crate) users: Option<u32>,
    /// Explain a part of a standing recording, by the clock: from 10:05, or from "2026-11-26 10:05", compared with as long a window before it
    #[arg(long, value_name = "TIME", conflicts_with_all = ["users", "without"])]
    pub(crate) from: Option<ClockTime>,
    /// The end of that part [default: the end of the recording]
    #[arg(long, value_name = "TIME", requires = "from")]
    pub(crate) to: Option<ClockTime>,
    /// Compare it with a window that begins then, and is as long, in place of the one before it
    #[arg(long, value_name = "TIME", requires = "from")]
    pub(crate) against: Option<ClockTime>,
    /// Hide sources, as if they had been absent: "tracer", "stacks", "waits" (the stacks of waits), "pfs"
    #[arg(long, value_name = "S,S,…", value_delimiter = ',')]
    pub(crate) without: Vec<Source>,
    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    pub(crate) runs: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct SnapshotsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SnapshotsCommand>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum SnapshotsCommand {
    /// List the snapshots with their size, the default
    List,
    /// Remove one snapshot, or all
    #[command(name = "rm", alias = "remove")]
    Remove {
        /// Name as `whyso snapshots list` prints it, or "all"
        name: String,
    },
}

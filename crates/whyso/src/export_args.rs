//! What was typed after `whyso export`. Syntax only.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::profile_args::{AgainstArgs, ProfileArgs};

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ExportFormat {
    Csv,
    Parquet,
}

#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    pub(crate) run: PathBuf,
    #[arg(long, value_enum, default_value_t = ExportFormat::Csv)]
    pub(crate) format: ExportFormat,
    /// Only this host, such as server or client
    #[arg(long)]
    pub(crate) host: Option<String>,
    /// Only this source, such as status or cpu
    #[arg(long)]
    pub(crate) source: Option<String>,
    /// Only this metric, such as Innodb_rows_read
    #[arg(long)]
    pub(crate) metric: Option<String>,
    /// Only this instance, such as cpu0 or sda
    #[arg(long)]
    pub(crate) instance: Option<String>,
    /// Where to write [default: standard output, except for Parquet]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write stacks instead of samples, in the first metric of --by, as flame graph programs read them: in microseconds; with
    /// --against two numbers, for differential flame graphs
    #[arg(long, conflicts_with_all = ["format", "host", "source", "metric", "instance"])]
    pub(crate) folded: bool,
    /// Write stacks instead of samples, in every metric of --by, as a file for pprof
    #[arg(long, conflicts_with_all = ["folded", "format", "host", "source", "metric", "instance", "against", "against_users"])]
    pub(crate) pprof: bool,
    #[command(flatten)]
    pub(crate) against: AgainstArgs,
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
}

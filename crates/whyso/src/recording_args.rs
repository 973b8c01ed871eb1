//! What `run` and `record` share in what is recorded, and where it goes. Syntax only.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use whyso_record::Labels;

use crate::sql_trace_args::SqlTraceArgs;
use crate::trace_args::TraceArgs;

/// What is recorded of the server.
#[derive(Args, Debug)]
pub(crate) struct RecordingArgs {
    /// Time between two readings of each sampler, in milliseconds, from 100
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    interval_ms: u64,

    #[command(flatten)]
    pub(crate) trace: TraceArgs,

    #[command(flatten)]
    pub(crate) sql: SqlTraceArgs,
}

impl RecordingArgs {
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_millis(self.interval_ms)
    }
}

impl RecordingOutputArgs {
    /// # Errors
    /// They can be none.
    pub(crate) fn labels(&self) -> Result<Labels, whyso_record::Error> {
        Labels::new(self.name.as_deref().unwrap_or_default(), self.tag.iter().cloned())
    }
}

/// Where the recording goes, what it is called, and what is printed of it.
#[derive(Args, Debug)]
pub(crate) struct RecordingOutputArgs {
    /// Folder that holds the recordings
    #[arg(long = "runs", alias = "out", value_name = "DIR", default_value = crate::config::runs(), value_parser = OsStringValueParser::new().try_map(crate::elsewhere::parse_folder))]
    pub(crate) out: PathBuf,

    /// What to call the run, such as "before the index"; `whyso runs label` changes it later
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// A tag of the run, such as shop; may be given more than once
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,

    /// Print all of it: the whole table of levels, and every finding
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) verbose: bool,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

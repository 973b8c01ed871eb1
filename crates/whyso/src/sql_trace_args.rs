//! Whether the commands of clients are followed.

use clap::Args;
use whyso_control::Literals;

/// Whether commands are followed during a run.
#[derive(Args, Debug)]
pub(crate) struct SqlTraceArgs {
    /// Follow every command that the server works on, by probes in its dispatcher (see `whyso statements`)
    ///
    /// Two probes per command cost some microseconds. The table of statements shows how much.
    #[arg(long, conflicts_with = "no_trace")]
    trace_sql: bool,

    /// Record statements as they are sent, with their literals; those that may hold a password never are
    #[arg(long, requires = "trace_sql")]
    keep_literals: bool,
}

impl SqlTraceArgs {
    pub(crate) fn literals(&self) -> Option<Literals> {
        self.trace_sql.then_some(if self.keep_literals { Literals::Kept } else { Literals::Replaced })
    }
}

//! What was typed after `whyso functions` and its like. Syntax only.

use std::path::PathBuf;

use clap::Args;
use whyso_query::SourcePath;

use crate::choice_args::{WhoseArgs, WindowArgs};

/// Which stacks count.
#[derive(Args, Debug)]
pub(crate) struct ProfileArgs {
    /// Metrics side by side: cpu, lock, io, runqueue (ready, without a CPU), or a state such as file_sync, kernel_lock or
    /// sleep; the first one sorts. Runs that were recorded without --stacks have only cpu [default: cpu,lock,io; of wakers lock]
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',')]
    pub(crate) by: Vec<String>,

    #[command(flatten)]
    pub(crate) part: WindowArgs,

    #[command(flatten)]
    pub(crate) whose: WhoseArgs,

    /// Only this program in place of the server: its name as `whyso programs` lists it. Of a run with --stacks-of all there is
    /// only the time on CPUs. Of programs that were recorded next to a first target with --stacks there are waits, too
    #[arg(long, value_name = "NAME", conflicts_with_all = ["role", "name", "thread", "connection", "statement"])]
    pub(crate) program: Option<String>,

    /// Show what whyso's own probes and questions took, too; it is hidden by default, and only its share is shown
    #[arg(long)]
    pub(crate) observer: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    pub(crate) runs: PathBuf,
}

/// How much is shown, and how.
#[derive(Args, Debug)]
pub(crate) struct ShownArgs {
    /// Lines that are shown
    #[arg(long, alias = "top", value_name = "N", default_value_t = 30)]
    pub(crate) limit: usize,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FunctionsArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    /// Sort by the time in a function and all that it called, not by its own
    #[arg(long)]
    pub(crate) inclusive: bool,

    #[command(flatten)]
    pub(crate) against: AgainstArgs,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// What is compared with.
#[derive(Args, Clone, Debug)]
pub(crate) struct AgainstArgs {
    /// Compare with another run, function by function: its level with as many users, or the level that you name
    #[arg(long, value_name = "RUN[:USERS]", group = "compared")]
    pub(crate) against: Option<String>,

    /// Compare with the level of N users of the same run
    #[arg(long, value_name = "N", group = "compared")]
    pub(crate) against_users: Option<u32>,

    /// Compare shares of each one's time rather than time per transaction
    #[arg(long, requires = "compared")]
    pub(crate) share: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SourceArgs {
    /// The run, recorded with --stacks: its folder, its id or the begin of it, or latest~N for the one N before the last
    pub(crate) run: PathBuf,

    /// The function: its name, or a part that no other has
    pub(crate) function: String,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    /// Where the sources are: OLD=NEW for what begins with OLD in the build and with NEW here, or a folder to search; may be
    /// given more than once
    #[arg(long, value_name = "OLD=NEW|DIR")]
    pub(crate) source_path: Vec<SourcePath>,

    /// Show the whole file, with the time of every function in it
    #[arg(long)]
    pub(crate) whole: bool,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct RelativesArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    pub(crate) run: PathBuf,

    /// The function: its name, or a part that no other has
    pub(crate) function: String,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

#[derive(Args, Debug)]
pub(crate) struct WakersArgs {
    /// The run, recorded with --stacks: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// The rules of wait classes.
#[derive(Args, Debug)]
pub(crate) struct RulesArgs {
    /// Your own rules, which come before the built-in ones: a class, a metric or *, and a function on each line
    #[arg(long = "rules", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ClassesArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

//! What was typed after `whyso functions`, `callers` and `callees`. Syntax only.

use std::path::PathBuf;

use clap::Args;

/// Which stacks are taken.
#[derive(Args, Debug)]
pub(crate) struct ProfileArgs {
    /// Metrics side by side: cpu, lock, io, or a state such as file_sync, kernel_lock or sleep; the first one sorts [default:
    /// cpu,lock,io; of wakers lock]
    #[arg(long, value_name = "METRIC,…", value_delimiter = ',')]
    pub(crate) by: Vec<String>,

    /// The level with so many users [default: the last]
    #[arg(long, value_name = "N")]
    pub(crate) users: Option<u32>,

    /// Threads of this role alone, such as connection or "page cleaner"; all for every thread [default: connection; of processes
    /// that are no server's all]
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) runs: PathBuf,
}

/// How much is shown, and how.
#[derive(Args, Debug)]
pub(crate) struct ShownArgs {
    /// Lines that are shown
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) limit: usize,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct FunctionsArgs {
    /// The run, recorded with --stacks: its folder, or its id under --runs
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    /// Sort by the time in a function and all that it called, not by its own
    #[arg(long)]
    pub(crate) inclusive: bool,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RelativesArgs {
    /// The run, recorded with --stacks: its folder, or its id under --runs
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
    /// The run, recorded with --stacks: its folder, or its id under --runs
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// What tells wait classes.
#[derive(Args, Debug)]
pub(crate) struct RulesArgs {
    /// Rules of your own, which come before the built-in ones: a class, a metric or *, and a function on each line
    #[arg(long = "rules", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ClassesArgs {
    /// The run, recorded with --stacks: its folder, or its id under --runs
    pub(crate) run: PathBuf,

    #[command(flatten)]
    pub(crate) profile: ProfileArgs,

    #[command(flatten)]
    pub(crate) rules: RulesArgs,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

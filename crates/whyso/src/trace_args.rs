//! What `run` and `record` share in how the server's threads are traced. Syntax only.

use clap::{Args, ValueEnum};
use whyso_control::{StackSampling, StacksOf};

#[derive(Args, Debug)]
pub(crate) struct TraceArgs {
    /// Do not account for the time of the server's threads and requests (see `whyso why`)
    #[arg(long)]
    no_trace: bool,

    /// Take stacks of the server's threads (see `whyso functions`); --stacks without LEVEL is full
    #[arg(
        long,
        value_enum,
        value_name = "LEVEL",
        num_args = 0..=1,
        require_equals = true,
        default_value = "light",
        default_missing_value = "full",
        conflicts_with = "no_trace"
    )]
    stacks: StacksLevel,

    /// Whose stacks to take: with all, those of every program on this machine, too (see `whyso programs`)
    #[arg(long, value_enum, value_name = "WHOSE", default_value = "server", conflicts_with = "no_trace")]
    stacks_of: StacksOfArg,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum StacksOfArg {
    /// Of the server, or of the processes that --process names
    Server,
    /// Of all other programs, too: of their threads on CPUs, named by symbols
    All,
}

impl From<StacksOfArg> for StacksOf {
    fn from(typed: StacksOfArg) -> StacksOf {
        match typed {
            StacksOfArg::Server => StacksOf::Server,
            StacksOfArg::All => StacksOf::All,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StacksLevel {
    /// No stacks
    None,
    /// Of threads on CPUs, 49 times per second on each CPU, named by symbols
    Light,
    /// Of threads on CPUs, 99 times per second on each CPU, and of waits with who ended them. Named with files and
    /// lines where the build has them
    Full,
}

impl TraceArgs {
    pub(crate) fn is_wanted(&self) -> bool {
        !self.no_trace
    }

    pub(crate) fn stacks_of(&self) -> StacksOf {
        self.stacks_of.into()
    }

    pub(crate) fn stacks(&self) -> StackSampling {
        match self.stacks {
            _ if self.no_trace => StackSampling::Off,
            StacksLevel::None => StackSampling::Off,
            StacksLevel::Light => StackSampling::Light,
            StacksLevel::Full => StackSampling::Full,
        }
    }
}

//! How densely stacks are sampled.

use crate::cost::SAMPLES_PER_S;

/// Samples per second on each CPU where few are taken: not a divisor of the rates at which kernels tick, either.
const LIGHT_SAMPLES_PER_S: u64 = 49;

/// How much is sampled of the stacks of a server's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackSampling {
    /// Nothing.
    #[default]
    Off,
    /// Threads on CPUs, 49 times per second on each CPU. No program runs at wake-ups, which cost most where there are many.
    Light,
    /// Threads on CPUs, 99 times per second on each CPU, and waits with the threads that ended them.
    Full,
}

/// Whose stacks are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StacksOf {
    /// The server's threads, or those of the processes that are recorded.
    #[default]
    Server,
    /// In addition, every other program on the machine that is found on a CPU. Their waits are not sampled.
    All,
}

impl StackSampling {
    /// Its name in `run.json` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            StackSampling::Off => "none",
            StackSampling::Light => "light",
            StackSampling::Full => "full",
        }
    }

    /// Whether the stacks of waits are taken, too.
    pub fn takes_waits(self) -> bool {
        self == StackSampling::Full
    }

    /// How often each CPU is sampled per second.
    pub fn samples_per_s(self) -> u64 {
        match self {
            StackSampling::Off => 0,
            StackSampling::Light => LIGHT_SAMPLES_PER_S,
            StackSampling::Full => SAMPLES_PER_S,
        }
    }
}

//! How the load's threads may wait and be scheduled, where the defaults, which were measured to be best for most loads, do not fit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::engine_kind::EngineKind;

/// Off where it is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tuning {
    /// Only of event loops over io_uring.
    pub min_complete: Option<MinComplete>,
    /// `None`: as the process was started.
    pub scheduling_policy: Option<SchedulingPolicy>,
    /// How long an event loop polls before it sleeps; zero: not at all. It is on a CPU meanwhile.
    pub busy_poll: Duration,
}

/// How many receives must have completed before an event loop continues: fewer wake-ups, and answers that wait for others.
/// io_uring's `min_complete`, with a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinComplete {
    /// At least 1, which is what loops wait for anyway. A loop with fewer connections waits for as many as it has.
    pub completions: u32,
    /// After this time it continues with what there is, and waits for the first where there is nothing.
    pub at_most: Duration,
}

/// How the kernel schedules the load's threads: sched(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SchedulingPolicy {
    /// SCHED_BATCH: a woken thread does not preempt the thread that runs.
    Batch,
    /// SCHED_IDLE: what nobody else wants.
    Idle,
    /// SCHED_FIFO with the lowest priority: before everything that is not real-time. Needs CAP_SYS_NICE.
    Fifo,
    /// SCHED_RR with the lowest priority. Needs CAP_SYS_NICE.
    RoundRobin,
}

/// Most completions that a loop may wait for, and the longest that it may wait for them, or poll.
const COMPLETIONS_MAX: u32 = 4096;
const AT_MOST_MAX: Duration = Duration::from_secs(1);

/// Why a [`Tuning`] can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TuningError {
    /// Completions to wait for, on another engine than io_uring.
    #[error("completions to wait for need io_uring: leave out --min-complete, or give --engine io-uring")]
    NeedsIoUring,
    /// Busy polling and completions to wait for.
    #[error(
        "an event loop either looks for the next completion or waits for several: give --busy-poll or --min-complete"
    )]
    PollsAndWaits,
    /// A number of completions, or a time, outside its range.
    #[error(
        "{completions} completions within {} µs can't be waited for: give 1 to {COMPLETIONS_MAX} completions, and up to 1 s",
        at_most.as_micros()
    )]
    Completions { completions: u32, at_most: Duration },
    /// Busy polling on threads.
    #[error("busy polling needs event loops: leave out --busy-poll or --engine threads")]
    NeedsEventLoops,
    /// Busy polling for more than a second.
    #[error("a loop that busy polls for more than 1 s never sleeps: give --busy-poll less, such as 50us")]
    PollsTooLong,
}

/// A text that is the name of no scheduling policy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{text}' is no scheduling policy: give batch, idle, fifo or rr")]
pub struct UnknownSchedulingPolicy {
    pub text: String,
}

impl Tuning {
    /// Checks it against the engine that was asked for.
    ///
    /// # Errors
    /// The first value that is outside its range, or that the engine or another value excludes.
    pub fn check(&self, engine: EngineKind) -> Result<(), TuningError> {
        let polls = !self.busy_poll.is_zero();
        if let Some(MinComplete { completions, at_most }) = self.min_complete {
            if matches!(engine, EngineKind::Threads | EngineKind::Epoll) {
                return Err(TuningError::NeedsIoUring);
            }
            if polls {
                return Err(TuningError::PollsAndWaits);
            }
            if !(1..=COMPLETIONS_MAX).contains(&completions) || at_most.is_zero() || at_most > AT_MOST_MAX {
                return Err(TuningError::Completions { completions, at_most });
            }
        }
        if polls && engine == EngineKind::Threads {
            return Err(TuningError::NeedsEventLoops);
        }
        if self.busy_poll > AT_MOST_MAX {
            return Err(TuningError::PollsTooLong);
        }
        Ok(())
    }
}

impl SchedulingPolicy {
    const ALL: [SchedulingPolicy; 4] = [
        SchedulingPolicy::Batch,
        SchedulingPolicy::Idle,
        SchedulingPolicy::Fifo,
        SchedulingPolicy::RoundRobin,
    ];

    /// Has the calling thread, and those that it will start, scheduled so.
    pub(crate) fn apply(self) -> std::io::Result<()> {
        let (policy, sched_priority) = match self {
            SchedulingPolicy::Batch => (libc::SCHED_BATCH, 0),
            SchedulingPolicy::Idle => (libc::SCHED_IDLE, 0),
            SchedulingPolicy::Fifo => (libc::SCHED_FIFO, 1),
            SchedulingPolicy::RoundRobin => (libc::SCHED_RR, 1),
        };
        let parameters = libc::sched_param { sched_priority };
        // SAFETY: the parameters live for the length of the call; 0 is the calling thread.
        match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    }
}

impl fmt::Display for SchedulingPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SchedulingPolicy::Batch => "batch",
            SchedulingPolicy::Idle => "idle",
            SchedulingPolicy::Fifo => "fifo",
            SchedulingPolicy::RoundRobin => "rr",
        })
    }
}

impl FromStr for SchedulingPolicy {
    type Err = UnknownSchedulingPolicy;

    fn from_str(text: &str) -> Result<SchedulingPolicy, UnknownSchedulingPolicy> {
        let policy = SchedulingPolicy::ALL.into_iter().find(|policy| policy.to_string() == text);
        policy.ok_or_else(|| UnknownSchedulingPolicy { text: text.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_what_the_kernel_then_reports_of_the_thread() {
        let policy = std::thread::spawn(|| {
            SchedulingPolicy::Batch.apply().unwrap();
            // SAFETY: 0 is the calling thread; the call has no memory effects.
            unsafe { libc::sched_getscheduler(0) }
        });
        assert_eq!(policy.join().unwrap(), libc::SCHED_BATCH);
    }

    #[test]
    fn policies_are_read_as_they_are_written() {
        for policy in SchedulingPolicy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("deadline".parse::<SchedulingPolicy>().unwrap_err().to_string().contains("give batch, idle"));
    }
}

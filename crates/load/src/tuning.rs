//! What the load's threads do beside what was measured to be best for most. Nothing, unless it is asked for.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::spec::EngineKind;

/// Off where it is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Of event loops over io_uring alone.
    pub min_complete: Option<MinComplete>,
    /// `None`: as the process was started.
    pub scheduling_policy: Option<SchedulingPolicy>,
    /// How long an event loop looks for news before it sleeps; zero: not at all. It is on a CPU meanwhile.
    pub busy_poll: Duration,
}

/// How many receives must have completed before an event loop goes on: fewer wake-ups, and answers that wait for others.
/// io_uring's `min_complete`, with a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinComplete {
    /// At least 1, which is what loops wait for anyway. A loop with fewer connections waits for as many as it has.
    pub completions: u32,
    /// After so long it goes on with what there is, and waits for the first where there is nothing.
    pub at_most: Duration,
}

/// How the kernel schedules the load's threads: sched(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulingPolicy {
    /// SCHED_BATCH: a woken thread does not preempt whoever runs.
    Batch,
    /// SCHED_IDLE: what nobody else wants.
    Idle,
    /// SCHED_FIFO with the lowest priority: before everything that is not real-time. Needs CAP_SYS_NICE.
    Fifo,
    /// SCHED_RR with the lowest priority. Needs CAP_SYS_NICE.
    RoundRobin,
}

/// Most completions that a loop may wait for, and the longest that it may wait for them, or look for news.
const COMPLETIONS_MAX: u32 = 4096;
const AT_MOST_MAX: Duration = Duration::from_secs(1);
/// Why completions to wait for are refused elsewhere.
pub(crate) const NEEDS_IO_URING: &str =
    "completions to wait for need io_uring: leave --min-complete out, or give --engine io-uring";

impl Tuning {
    /// Checks it against the engine that was asked for.
    ///
    /// # Errors
    /// One sentence on what can't be, or not together.
    pub fn check(&self, engine: EngineKind) -> Result<(), String> {
        let wrong = |why: &str| Err(why.to_string());
        let polls = !self.busy_poll.is_zero();
        if let Some(MinComplete { completions, at_most }) = self.min_complete {
            if matches!(engine, EngineKind::Threads | EngineKind::Epoll) {
                return wrong(NEEDS_IO_URING);
            }
            if polls {
                return wrong(
                    "an event loop either looks for the next completion or waits for several: give --busy-poll or \
                     --min-complete",
                );
            }
            if !(1..=COMPLETIONS_MAX).contains(&completions) || at_most.is_zero() || at_most > AT_MOST_MAX {
                return Err(format!(
                    "{completions} completions within {} µs can't be waited for: give 1 to {COMPLETIONS_MAX} completions, \
                     and up to 1 s",
                    at_most.as_micros()
                ));
            }
        }
        if polls && engine == EngineKind::Threads {
            return wrong("busy polling needs event loops: leave --busy-poll or --engine threads out");
        }
        if self.busy_poll > AT_MOST_MAX {
            return wrong(
                "a loop that busy polls for more than 1 s never sleeps: give --busy-poll less, such as 50us",
            );
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
    type Err = String;

    fn from_str(text: &str) -> Result<SchedulingPolicy, String> {
        let known = SchedulingPolicy::ALL.into_iter().find(|policy| policy.to_string() == text);
        known.ok_or_else(|| format!("'{text}' is no scheduling policy: give batch, idle, fifo or rr"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_what_the_kernel_then_says_of_the_thread() {
        let told = std::thread::spawn(|| {
            SchedulingPolicy::Batch.apply().unwrap();
            // SAFETY: 0 is the calling thread; the call has no memory effects.
            unsafe { libc::sched_getscheduler(0) }
        });
        assert_eq!(told.join().unwrap(), libc::SCHED_BATCH);
    }

    #[test]
    fn policies_are_read_as_they_are_written() {
        for policy in SchedulingPolicy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("deadline".parse::<SchedulingPolicy>().unwrap_err().contains("give batch, idle"));
    }
}

//! What the load's threads do beside what was measured to be best for most. Nothing, unless it is asked for.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

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

/// How many completions an event loop waits for at a time: fewer wake-ups, and answers that wait for others. io_uring's
/// `min_complete`, with a bound.
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

impl Tuning {
    /// Whether anything is other than the default.
    pub fn is_on(&self) -> bool {
        *self != Tuning::default()
    }
}

impl SchedulingPolicy {
    const ALL: [SchedulingPolicy; 4] =
        [SchedulingPolicy::Batch, SchedulingPolicy::Idle, SchedulingPolicy::Fifo, SchedulingPolicy::RoundRobin];

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

//! The one clock of a run.
//!
//! Every time in a recording is nanoseconds of `CLOCK_MONOTONIC`, which is also what the kernel's
//! tracing programs give. An [`Anchor`] ties it to wall time and to the boot that it counts from.
//!
//! This crate never sleeps and keeps no state.
//!
//! ```
//! let begin_ns = whyso_clock::monotonic_ns();
//! assert!(whyso_clock::monotonic_ns() >= begin_ns);
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod between;

pub use between::{ClockBetween, ClockLine, ClockQuestion};

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

const NS_PER_S: i64 = 1_000_000_000;

/// Nanoseconds of `CLOCK_MONOTONIC`: from 0 at boot, never going back.
#[inline]
pub fn monotonic_ns() -> i64 {
    to_ns(clock_gettime(ClockId::Monotonic))
}

/// What [`monotonic_ns`] shows more than the kernel's own clock, which its tracing programs read: 0 outside a time namespace.
pub fn namespace_offset_ns() -> i64 {
    let text = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    offset_in(&text).unwrap_or(0)
}

fn offset_in(text: &str) -> Option<i64> {
    let line = text.lines().find_map(|line| line.strip_prefix("monotonic"))?;
    let mut numbers = line.split_whitespace().map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(NS_PER_S)?.checked_add(ns)
}

/// Nanoseconds since 1970-01-01 UTC.
pub fn wall_ns() -> i64 {
    to_ns(clock_gettime(ClockId::Realtime))
}

/// CPU time that the calling thread has used, in nanoseconds.
#[inline]
pub fn thread_cpu_ns() -> i64 {
    to_ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// CPU time that this process has used in all its threads, in nanoseconds.
pub fn process_cpu_ns() -> i64 {
    to_ns(clock_gettime(ClockId::ProcessCPUTime))
}

/// One instant on both clocks, and the boot that the monotonic one belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Anchor {
    pub monotonic_ns: i64,
    pub wall_ns: i64,
    /// `/proc/sys/kernel/random/boot_id`, empty where it can't be read.
    pub boot_id: String,
}

impl Anchor {
    /// Reads both clocks now. The wall time is read between two monotonic readings. The middle of these is the
    /// monotonic time.
    pub fn now() -> Anchor {
        let before_ns = monotonic_ns();
        let wall_ns = wall_ns();
        let after_ns = monotonic_ns();
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Anchor {
            monotonic_ns: before_ns + (after_ns - before_ns) / 2,
            wall_ns,
            boot_id: boot_id.trim().to_string(),
        }
    }
}

#[inline]
fn to_ns(time: Timespec) -> i64 {
    time.tv_sec * NS_PER_S + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_of_a_time_namespace_is_read_with_its_sign() {
        assert_eq!(offset_in("monotonic           3600         7\nboottime 0 0\n"), Some(3_600_000_000_007));
        assert_eq!(offset_in("monotonic          -10         500000000\n"), Some(-9_500_000_000));
        assert_eq!((offset_in(""), offset_in("monotonic x 0")), (None, None));
    }
}

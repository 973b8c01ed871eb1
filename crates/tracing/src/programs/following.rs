//! Of which processes the modules are read and kept: memory and time for that are bounded.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Processes whose modules are kept at a time. Fewer than the layouts that [`whyso_stacks::Unwinding`] holds.
const FOLLOWED_MAX: usize = 48;
/// Processes that are counted before their modules are read.
const SEEN_MAX: usize = 4096;
/// Samples of a process before its modules are read: one that is found once may be gone already.
const SAMPLES_MIN: u32 = 2;
/// A process that was not found on a CPU for as long leaves its place to another.
const KEPT: Duration = Duration::from_secs(10);

/// Whether a sample's stack in user space is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// `has_just_begun`: its modules are read now. `gives_up`: the process that left its place.
    Followed { has_just_begun: bool, gives_up: Option<u32> },
    /// The process was found for the first time.
    FoundOnce,
    /// As many processes are followed as may be.
    TooMany,
    /// Reading modules has taken its share of the time.
    TooCostly,
}

#[derive(Clone, Copy, Debug)]
struct ProcessSighting {
    samples: u32,
    last: Instant,
    is_followed: bool,
}

/// The processes that were found on CPUs.
#[derive(Debug, Default)]
pub(super) struct Following {
    seen: HashMap<u32, ProcessSighting>,
    followed: usize,
}

impl Following {
    /// Decides on a sample of process `pid`. `may_begin`: there is time to read modules.
    pub(super) fn decide(&mut self, pid: u32, now: Instant, may_begin: bool) -> Decision {
        if self.seen.len() >= SEEN_MAX && !self.seen.contains_key(&pid) {
            self.seen.retain(|_, seen| seen.is_followed);
        }
        let seen =
            self.seen.entry(pid).or_insert(ProcessSighting { samples: 0, last: now, is_followed: false });
        seen.samples = seen.samples.saturating_add(1);
        seen.last = now;
        if seen.is_followed {
            return Decision::Followed { has_just_begun: false, gives_up: None };
        }
        if seen.samples < SAMPLES_MIN {
            return Decision::FoundOnce;
        }
        if !may_begin {
            return Decision::TooCostly;
        }
        let mut gives_up = None;
        if self.followed >= FOLLOWED_MAX {
            gives_up = self.idle_longest(now);
            let Some(idle) = gives_up else { return Decision::TooMany };
            self.seen.remove(&idle);
            self.followed -= 1;
        }
        if let Some(seen) = self.seen.get_mut(&pid) {
            seen.is_followed = true;
            self.followed += 1;
        }
        Decision::Followed { has_just_begun: true, gives_up }
    }

    /// The followed process that was not found for the longest time, if that is long enough.
    fn idle_longest(&self, now: Instant) -> Option<u32> {
        let followed = self.seen.iter().filter(|(_, seen)| seen.is_followed);
        let (pid, seen) = followed.min_by_key(|(_, seen)| seen.last)?;
        (now.saturating_duration_since(seen.last) >= KEPT).then_some(*pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_followed(decision: Decision) -> bool {
        matches!(decision, Decision::Followed { .. })
    }

    #[test]
    fn a_process_that_is_found_twice_is_followed_and_one_that_is_found_once_is_not() {
        let (mut following, now) = (Following::default(), Instant::now());
        assert_eq!(following.decide(7, now, true), Decision::FoundOnce);
        let begins = Decision::Followed { has_just_begun: true, gives_up: None };
        assert_eq!(following.decide(7, now, true), begins);
        let continues = Decision::Followed { has_just_begun: false, gives_up: None };
        assert_eq!(following.decide(7, now, false), continues, "only the begin takes time");
        following.decide(8, now, true);
        assert_eq!(following.decide(8, now, false), Decision::TooCostly);
        assert!(is_followed(following.decide(8, now, true)));
    }

    #[test]
    fn any_number_of_processes_is_bounded_and_one_that_is_idle_leaves_its_place() {
        let (mut following, begin) = (Following::default(), Instant::now());
        for pid in 0..10_000 {
            following.decide(pid, begin, true);
            following.decide(pid, begin, true);
        }
        assert_eq!(following.followed, FOLLOWED_MAX);
        assert!(following.seen.len() <= SEEN_MAX, "{}", following.seen.len());
        assert_eq!(following.decide(9_999, begin, true), Decision::TooMany);
        let later = begin + KEPT;
        for pid in 1..FOLLOWED_MAX as u32 {
            assert!(is_followed(following.decide(pid, later, true)));
        }
        let takes_place = Decision::Followed { has_just_begun: true, gives_up: Some(0) };
        assert_eq!(following.decide(9_999, later, true), takes_place);
        assert_eq!(following.decide(0, later, true), Decision::FoundOnce);
        assert_eq!(following.decide(0, later, true), Decision::TooMany);
    }
}

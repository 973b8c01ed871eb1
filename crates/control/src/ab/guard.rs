//! Ends an experiment that hurts the server, while a window of it runs.

use std::time::{Duration, Instant};

use whyso_load::Live;

use crate::Error;

/// More errors than this, and more than one in ten transactions, end an experiment.
const ERRORS_MAX: u64 = 20;
const ERROR_SHARE_MAX: f64 = 0.1;
/// The server may answer nothing for this long, or for as long as some transactions of the warm-up took.
const SILENCE_MAX: Duration = Duration::from_secs(1);
const TRANSACTIONS_OF_SILENCE: f64 = 20.0;
/// Share of the machine's memory that stays available.
const MEMORY_SHARE_MIN: f64 = 0.05;
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// What is watched in one window.
pub(super) struct Guard {
    silence_max: Duration,
    progress: Live,
    progressed_at: Instant,
    /// `None`: the server is on another machine.
    memory_checked_at: Option<Instant>,
}

impl Guard {
    /// `expected_per_s`: transactions per second in the warm-up, where there was one.
    pub(super) fn new(expected_per_s: Option<f64>, is_local: bool) -> Guard {
        let now = Instant::now();
        let few = expected_per_s.map_or(f64::INFINITY, |per_s| TRANSACTIONS_OF_SILENCE / per_s);
        // Before the first window, only the bounds of the load itself hold.
        let silence_max = Duration::try_from_secs_f64(few).map_or(Duration::MAX, |few| few.max(SILENCE_MAX));
        Guard {
            silence_max,
            progress: Live::default(),
            progressed_at: now,
            memory_checked_at: is_local.then_some(now),
        }
    }

    /// Looks at what was done since the window began.
    ///
    /// # Errors
    /// Why the experiment has to end now.
    pub(super) fn check(&mut self, live: Live) -> Result<(), Error> {
        if live.transactions != self.progress.transactions {
            self.progress = live;
            self.progressed_at = Instant::now();
        }
        let stopped = |why: String| Err(Error::Failed(format!("the experiment was stopped: {why}")));
        let all = (live.transactions + live.errors) as f64;
        if live.errors > ERRORS_MAX && live.errors as f64 > ERROR_SHARE_MAX * all {
            return stopped(format!(
                "{} errors in {} transactions of one window",
                live.errors, live.transactions
            ));
        }
        if self.progressed_at.elapsed() > self.silence_max {
            return stopped(format!(
                "no transaction ended for {}",
                whyso_words::seconds(self.silence_max.as_secs_f64())
            ));
        }
        if let Some(checked_at) = &mut self.memory_checked_at
            && checked_at.elapsed() >= MEMORY_CHECK_INTERVAL
        {
            *checked_at = Instant::now();
            if available_memory_share().is_some_and(|share| share < MEMORY_SHARE_MIN) {
                return stopped("less than 5 % of this machine's memory is available".to_string());
            }
        }
        Ok(())
    }
}

fn available_memory_share() -> Option<f64> {
    share_of(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// From the text of `/proc/meminfo`.
fn share_of(text: &str) -> Option<f64> {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some(value("MemAvailable")? / value("MemTotal").filter(|total| *total > 0.0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_silence_end_an_experiment() {
        let live = |transactions, errors| Live { transactions, errors, ..Live::default() };
        let mut guard = Guard::new(Some(1_000.0), false);
        assert!(guard.check(live(100, 20)).is_ok(), "a few errors");
        assert!(guard.check(live(1_000, 90)).is_ok(), "few among many");
        assert!(guard.check(live(100, 21)).unwrap_err().to_string().contains("21 errors in 100"));
        guard.progressed_at = Instant::now().checked_sub(Duration::from_millis(1_100)).unwrap();
        assert!(guard.check(live(100, 0)).unwrap_err().to_string().contains("no transaction ended for 1 s"));
        let mut slow = Guard::new(Some(4.0), false);
        slow.progressed_at = Instant::now().checked_sub(Duration::from_millis(1_100)).unwrap();
        assert!(slow.check(live(0, 0)).is_ok(), "a transaction may take seconds here");
    }

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        let text = "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:     40 kB\n";
        assert_eq!(share_of(text), Some(0.04));
        assert_eq!(share_of("MemTotal: 0 kB\nMemAvailable: 0 kB\n"), None);
        assert!(available_memory_share().is_some_and(|share| (0.0..=1.0).contains(&share)));
    }
}

//! Ends an experiment that hurts the server, while a window of it runs.

use std::time::{Duration, Instant};

use whyso_load::{Interval, Live};

use super::replicas::LagRise;
use crate::Error;

/// On a server of the user's, more errors than this end an experiment. They have to be more than one in ten transactions, and more than twice the
/// share that failed before. Some loads have deadlocks.
const ERRORS_MAX: u64 = 20;
const ERROR_SHARE_MAX: f64 = 0.1;
const ERROR_TIMES_MAX: f64 = 2.0;
/// A server of the user's may answer nothing for this long, or for as long as some transactions of the warm-up took. One of whyso's own may for longer.
const SILENCE_MAX: Duration = Duration::from_secs(1);
const TRANSACTIONS_OF_SILENCE: f64 = 20.0;
const SLOWEST_TIMES_OF_SILENCE: u32 = 3;
const OWN_SILENCE_MAX: Duration = Duration::from_secs(15);
/// Share of the machine's memory that stays available.
const MEMORY_SHARE_MIN: f64 = 0.05;
const MEMORY_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// On a server of the user's, the slowest 1 % of transactions may take this many times as long as before the experiment. The bound is never lower
/// than this time.
const P99_TIMES_MAX: f64 = 10.0;
const P99_MS_MIN: f64 = 100.0;
/// A quantile of fewer transactions says nothing.
const P99_TRANSACTIONS_MIN: u64 = 100;
/// Replicas may be this much further behind than at the start.
const LAG_RISE_S_MAX: u64 = 5;

/// What a window may do to a server of the user's. By default anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    pub(super) p99_ms_max: Option<f64>,
    /// Share of attempts that may fail.
    pub(super) error_share_max: Option<f64>,
    pub(super) lag: Option<LagRise>,
    /// The server is the user's.
    pub(super) is_users: bool,
}

impl Bounds {
    /// On a server of the user's, before anything is known of what usually fails there.
    pub(crate) fn of_users_server() -> Bounds {
        Bounds { error_share_max: Some(ERROR_SHARE_MAX), is_users: true, ..Bounds::default() }
    }

    /// `p99_ms`: response time that 99 % of transactions took no longer than, before anything was changed.
    pub(super) fn set_p99(&mut self, p99_ms: f64) {
        let bound = (P99_TIMES_MAX * p99_ms).max(P99_MS_MIN);
        self.p99_ms_max = Some(self.p99_ms_max.map_or(bound, |known| known.max(bound)));
    }

    /// What failed in a window before anything was changed.
    pub(super) fn set_errors(&mut self, errors: u64, transactions: u64) {
        let share = errors as f64 / (errors + transactions).max(1) as f64;
        let bound = (ERROR_TIMES_MAX * share).max(ERROR_SHARE_MAX);
        self.error_share_max = Some(self.error_share_max.map_or(bound, |known| known.max(bound)));
    }

    /// # Errors
    /// Too many transactions fail.
    fn check_errors(&self, live: Live) -> Result<(), Error> {
        let all = (live.transactions + live.errors) as f64;
        let is_over = |most: f64| live.errors > ERRORS_MAX && live.errors as f64 > most * all;
        match self.error_share_max.is_some_and(is_over) {
            false => Ok(()),
            true => Err(stopped(format!(
                "{} errors in {} transactions of one window",
                live.errors, live.transactions
            ))),
        }
    }

    /// # Errors
    /// Transactions take too long.
    pub(super) fn check_p99(&self, p99_ms: f64, transactions: u64) -> Result<(), Error> {
        match self.p99_ms_max {
            Some(bound_ms) if transactions >= P99_TRANSACTIONS_MIN && p99_ms > bound_ms => {
                Err(stopped(format!(
                    "one transaction in a hundred takes {} or longer, where {} was the bound",
                    whyso_words::milliseconds(p99_ms),
                    whyso_words::milliseconds(bound_ms)
                )))
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// Transactions of this second take too long.
    pub(super) fn check_interval(&self, interval: &Interval) -> Result<(), Error> {
        let Some(transactions) = interval.rows.first() else { return Ok(()) };
        let rank = (0.99 * transactions.count as f64).ceil() as u64;
        let mut count = 0;
        let reached = transactions.response.iter().find(|(_, more)| {
            count += more;
            count >= rank
        });
        reached.map_or(Ok(()), |(ns, _)| self.check_p99(*ns as f64 / 1e6, transactions.count))
    }
}

fn stopped(why: String) -> Error {
    Error::Failed(format!("the experiment was stopped: {why}"))
}

/// What is watched in one window.
pub(super) struct Guard {
    silence_max: Duration,
    progress: Live,
    progressed_at: Instant,
    /// `None`: the server is on another machine.
    memory_checked_at: Option<Instant>,
    bounds: Bounds,
}

impl Guard {
    /// `expected_per_s`: transactions per second in the warm-up, where there was one. `slowest`: how long a transaction is known to take.
    pub(super) fn new(
        expected_per_s: Option<f64>,
        slowest: Duration,
        is_local: bool,
        bounds: Bounds,
    ) -> Guard {
        let now = Instant::now();
        let few = expected_per_s.map_or(f64::INFINITY, |per_s| TRANSACTIONS_OF_SILENCE / per_s);
        // Before the first window, only the bounds of the load itself hold.
        let least = if bounds.is_users { SILENCE_MAX } else { OWN_SILENCE_MAX };
        let least = least.max(slowest * SLOWEST_TIMES_OF_SILENCE);
        let silence_max = match expected_per_s {
            None => Duration::MAX,
            Some(_) => Duration::try_from_secs_f64(few).map_or(least, |few| few.max(least)),
        };
        Guard {
            silence_max,
            progress: Live::default(),
            progressed_at: now,
            memory_checked_at: is_local.then_some(now),
            bounds,
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
        self.bounds.check_errors(live)?;
        if self.progressed_at.elapsed() > self.silence_max {
            return Err(stopped(format!(
                "no transaction ended for {}",
                whyso_words::seconds(self.silence_max.as_secs_f64())
            )));
        }
        if let Some(checked_at) = &mut self.memory_checked_at
            && checked_at.elapsed() >= MEMORY_CHECK_INTERVAL
        {
            *checked_at = Instant::now();
            if available_memory_share().is_some_and(|share| share < MEMORY_SHARE_MIN) {
                return Err(stopped("less than 5 % of this machine's memory is available".to_string()));
            }
        }
        if let Some(why) = self.bounds.lag.as_ref().and_then(|lag| lag.why_to_end(LAG_RISE_S_MAX)) {
            return Err(stopped(why));
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
    use whyso_load::IntervalRow;

    use super::*;

    #[test]
    fn errors_and_silence_end_an_experiment() {
        let live = |transactions, errors| Live { transactions, errors, ..Live::default() };
        assert!(
            Guard::new(None, Duration::ZERO, false, Bounds::default()).check(live(1, 900)).is_ok(),
            "whyso's own server"
        );
        let mut bounds = Bounds::of_users_server();
        bounds.set_errors(0, 1_000);
        let mut guard = Guard::new(Some(1_000.0), Duration::ZERO, false, bounds);
        assert!(guard.check(live(100, 20)).is_ok(), "a few errors");
        assert!(guard.check(live(1_000, 90)).is_ok(), "few among many");
        assert!(guard.check(live(100, 21)).unwrap_err().to_string().contains("21 errors in 100"));
        let mut bounds = Bounds::of_users_server();
        bounds.set_errors(30, 70);
        let mut deadlocks = Guard::new(Some(1_000.0), Duration::ZERO, false, bounds);
        assert!(deadlocks.check(live(100, 100)).is_ok(), "a third fails without the experiment, too");
        assert!(deadlocks.check(live(100, 160)).is_err());
        guard.progressed_at = Instant::now().checked_sub(Duration::from_millis(1_100)).unwrap();
        assert!(guard.check(live(100, 0)).unwrap_err().to_string().contains("no transaction ended for 1 s"));
        let mut slow = Guard::new(Some(4.0), Duration::ZERO, false, Bounds::of_users_server());
        slow.progressed_at = Instant::now().checked_sub(Duration::from_millis(1_100)).unwrap();
        assert!(slow.check(live(0, 0)).is_ok(), "a transaction may take seconds here");
    }

    #[test]
    fn slow_transactions_end_an_experiment_on_a_server_of_the_user() {
        let mut bounds = Bounds::default();
        assert!(bounds.check_p99(1e6, 1_000).is_ok(), "without a bound");
        bounds.set_p99(4.0);
        assert!(bounds.check_p99(99.0, 1_000).is_ok(), "none is below 100 ms");
        assert!(
            bounds
                .check_p99(101.0, 1_000)
                .unwrap_err()
                .to_string()
                .contains("101 ms or longer, where 100 ms")
        );
        assert!(bounds.check_p99(101.0, 99).is_ok(), "too few");
        bounds.set_p99(30.0);
        assert!(bounds.check_p99(299.0, 1_000).is_ok());
        let second = |response: Vec<(u64, u64)>| Interval {
            begin_ns: 0,
            end_ns: 1,
            measured: true,
            rows: vec![IntervalRow {
                statement: String::new(),
                count: response.iter().map(|(_, count)| count).sum(),
                rows: 0,
                errors: Vec::new(),
                response_sum_ns: 0,
                service_sum_ns: 0,
                response_max_ns: 0,
                response,
                service: Vec::new(),
            }],
            backlog: None,
        };
        let (fast, slow) = (5_000_000, 400_000_000);
        assert!(bounds.check_interval(&second(vec![(fast, 991), (slow, 9)])).is_ok());
        assert!(bounds.check_interval(&second(vec![(fast, 980), (slow, 20)])).is_err());
    }

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        let text = "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:     40 kB\n";
        assert_eq!(share_of(text), Some(0.04));
        assert_eq!(share_of("MemTotal: 0 kB\nMemAvailable: 0 kB\n"), None);
        assert!(available_memory_share().is_some_and(|share| (0.0..=1.0).contains(&share)));
    }
}

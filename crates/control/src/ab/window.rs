//! One window: a short level of one side, without what comes just after the switch.

use std::thread::sleep;
use std::time::{Duration, Instant};

use whyso_explain::ab::WindowResult;
use whyso_load::{Histogram, LevelSpec, Pacing, Think};
use whyso_watch::process_cpu_ns;

use super::guard::{Bounds, Guard};
use crate::engine::{Engine, RunningLevel};
use crate::{Error, Stop};

/// Slow transactions are those above this quantile.
const SLOW: f64 = 0.99;
/// How often a running window is looked at.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// What is the same for all windows of a side.
pub(crate) struct Side {
    pub(crate) engine: Engine,
    pub(crate) users: u32,
    pub(crate) think: Think,
    /// Transactions per second in its last window.
    pub(crate) rate_per_s: Option<f64>,
    /// How long slow transactions took in the slowest window so far: one in a hundred takes longer.
    pub(crate) slow: Duration,
    /// The server's process, where it runs on this machine.
    pub(crate) pid: Option<u32>,
    pub(crate) bounds: Bounds,
}

/// How long the parts of a window are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    /// After the switch, not measured.
    pub(crate) cut: Duration,
    pub(crate) measured: Duration,
    /// The users begin within this time, so that a load with a rhythm has another one in each window.
    pub(crate) begins_within: Duration,
}

impl Lengths {
    pub(crate) fn whole(self) -> Duration {
        self.cut + self.measured
    }

    /// Why there is nothing to compare: no transaction ended.
    pub(crate) fn too_short(self) -> Error {
        Error::Failed(format!(
            "no transaction ended in a window of {}: give a longer one with --window, or find out what the server waits for with whyso watch",
            whyso_words::seconds(self.measured.as_secs_f64())
        ))
    }
}

/// A window and its course.
pub(crate) struct Window {
    pub(crate) result: WindowResult,
    /// Transactions in each 100 ms.
    pub(crate) bins_100ms: Vec<u32>,
    pub(crate) queries: u64,
    /// Response times of its transactions.
    pub(crate) response: Histogram,
    /// Why it says more of the load generator than of the server.
    pub(crate) invalid_why: Option<String>,
}

/// Runs one window, in which no transaction may end. `None`: the user broke it off.
///
/// # Errors
/// The load failed, or the server answered nothing.
pub(crate) fn window(side: &mut Side, lengths: Lengths, stop: &Stop) -> Result<Option<Window>, Error> {
    let pacing = Pacing::Closed { think: side.think, active: None };
    let mut running = side.engine.begin(&LevelSpec {
        pacing,
        finishes_transactions: true,
        begins_within: lengths.begins_within,
        ..LevelSpec::users(side.users)
    })?;
    let begin = Instant::now();
    let mut guard = Guard::new(side.rate_per_s, side.slow, side.pid.is_some(), side.bounds.clone());
    let mut wait = |running: &mut RunningLevel, until: Duration| {
        while let Some(left) = until.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
            let checked = guard.check(running.live()).and_then(|()| {
                let intervals = running.take_intervals();
                intervals.iter().try_for_each(|interval| side.bounds.check_interval(interval))
            });
            if stop.is_asked() || checked.is_err() || running.has_failed() {
                running.break_transactions_off();
                checked?;
                return Ok(running.has_failed());
            }
            sleep(left.min(CHECK_INTERVAL));
        }
        Ok::<_, Error>(true)
    };
    if !wait(&mut running, lengths.cut)? {
        return Ok(None);
    }
    running.begin_measuring();
    let cpu_begin_ns = side.pid.and_then(process_cpu_ns);
    let is_whole = wait(&mut running, lengths.whole())?;
    let cpu_end_ns = side.pid.and_then(process_cpu_ns);
    let outcome = running.stop();
    if !is_whole {
        return Ok(None);
    }
    if let Some(failure) = outcome.failure {
        return Err(Error::Failed(failure.message));
    }
    side.slow = side.slow.max(match outcome.transactions {
        0 => lengths.measured,
        _ => Duration::from_nanos(outcome.response.quantile_ns(SLOW)),
    });
    side.rate_per_s = Some(outcome.transactions as f64 / lengths.measured.as_secs_f64());
    side.bounds.check_p99(outcome.response.quantile_ns(0.99) as f64 / 1e6, outcome.transactions)?;
    let quantile_ms = |quantile: f64| outcome.response.quantile_ns(quantile) as f64 / 1e6;
    let cpu_ns = cpu_begin_ns.zip(cpu_end_ns).map(|(begin_ns, end_ns)| end_ns.saturating_sub(begin_ns));
    Ok(Some(Window {
        result: WindowResult {
            seconds: (outcome.window_end_ns - outcome.window_begin_ns) as f64 / 1e9,
            transactions: outcome.transactions,
            errors: outcome.errors_by_code.values().sum(),
            p50_ms: quantile_ms(0.5),
            p95_ms: quantile_ms(0.95),
            p99_ms: quantile_ms(0.99),
            server_cpu_s: cpu_ns.map(|cpu_ns| cpu_ns as f64 / 1e9),
        },
        queries: outcome.queries,
        invalid_why: outcome.invalid_why(),
        response: outcome.response,
        bins_100ms: outcome.bins_100ms,
    }))
}

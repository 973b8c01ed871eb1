//! The thread that collects what the connections' threads write, publishes intervals, and watches over stalls.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use whyso_clock::monotonic_ns;

use crate::connection::connect;
use crate::engine::pace::Backlog;
use crate::engine::shared::LevelState;
use crate::measure::closing::WindowEnd;
use crate::measure::ledger::Stretch;
use crate::measure::tally::Tally;
use crate::outcome::Interval;

const TICK: Duration = Duration::from_millis(100);
/// How often an endpoint that is down is looked at.
const PROBE_EVERY_NS: i64 = 500_000_000;

/// What it has collected when the level is over.
pub(crate) struct LevelMeasures {
    /// Of the measured window.
    pub(crate) window: Tally,
    pub(crate) bins_100ms: Vec<u32>,
    pub(crate) closed: WindowEnd,
    pub(crate) intervals_lost: u64,
    /// Samples of an open loop's backlog: monotonic nanoseconds, and the number of transactions.
    pub(crate) backlog: Vec<(i64, u64)>,
}

pub(crate) struct Collector {
    shared: Arc<LevelState>,
    intervals: SyncSender<Interval>,
    window: Tally,
    intervals_lost: u64,
    watched: Vec<ProgressMark>,
    backlog: Option<Backlog>,
    backlogs: Vec<(i64, u64)>,
    probe: Option<JoinHandle<()>>,
    probed_ns: i64,
}

#[derive(Clone, Copy)]
struct ProgressMark {
    progress: u64,
    since_ns: i64,
}

impl Collector {
    pub(crate) fn new(shared: Arc<LevelState>, intervals: SyncSender<Interval>) -> Collector {
        let window = Tally::new(shared.sizes);
        let watched = vec![ProgressMark { progress: 0, since_ns: monotonic_ns() }; shared.rings.len()];
        let backlog = shared.schedule.backlog();
        Collector {
            shared,
            intervals,
            window,
            intervals_lost: 0,
            watched,
            backlog,
            backlogs: Vec::new(),
            probe: None,
            probed_ns: 0,
        }
    }

    /// Collects until `over` is closed: no thread reports anything any more then.
    pub(crate) fn run(mut self, over: Receiver<()>) -> LevelMeasures {
        loop {
            let is_over = !matches!(over.recv_timeout(TICK), Err(RecvTimeoutError::Timeout));
            for ring in &self.shared.rings {
                self.shared.drain(ring);
            }
            if is_over {
                return self.finish();
            }
            self.sample_backlog();
            self.publish_due();
            self.watch();
            self.probe();
        }
    }

    fn publish_due(&mut self) {
        let shared = self.shared.clone();
        let now_ns = monotonic_ns();
        shared.ledger().extend(now_ns);
        loop {
            let due = shared.ledger().take_due(now_ns);
            let Some(stretch) = due else { return };
            self.publish(&stretch);
            shared.ledger().give_back(stretch.tally);
        }
    }

    fn publish(&mut self, stretch: &Stretch) {
        if stretch.measured {
            self.window.merge(&stretch.tally);
        }
        if stretch.end_ns == stretch.begin_ns {
            return;
        }
        let interval = Interval {
            begin_ns: stretch.begin_ns,
            end_ns: stretch.end_ns,
            measured: stretch.measured,
            rows: stretch.tally.rows(self.shared.names()),
            backlog: self.backlog_at(stretch.end_ns),
        };
        if self.intervals.try_send(interval).is_err() {
            self.intervals_lost += 1;
        }
    }

    fn finish(mut self) -> LevelMeasures {
        let shared = self.shared.clone();
        let (stretches, late) = shared.ledger().take_all(monotonic_ns());
        for stretch in &stretches {
            self.publish(stretch);
        }
        self.window.merge(&late);
        let bins_100ms = shared.ledger().take_bins();
        let closed = shared.ledger().close();
        if let Some(probe) = self.probe {
            // It ends within one try of connecting.
            let _ = probe.join();
        }
        LevelMeasures {
            window: self.window,
            bins_100ms,
            closed,
            intervals_lost: self.intervals_lost,
            backlog: self.backlogs,
        }
    }

    fn sample_backlog(&mut self) {
        if let Some(backlog) = &mut self.backlog {
            let now_ns = monotonic_ns();
            self.backlogs.push((now_ns, backlog.unbegun(&self.shared.schedule, now_ns)));
        }
    }

    /// The backlog in the last sample before then; `None` in a closed loop.
    fn backlog_at(&self, time_ns: i64) -> Option<u64> {
        self.backlog.as_ref()?;
        let until_then = self.backlogs.partition_point(|(at_ns, _)| *at_ns <= time_ns);
        Some(until_then.checked_sub(1).map_or(0, |last| self.backlogs[last].1))
    }

    /// Probes endpoints that are down, one round at a time.
    fn probe(&mut self) {
        let now_ns = monotonic_ns();
        let is_due = now_ns - self.probed_ns >= PROBE_EVERY_NS
            && self.probe.as_ref().is_none_or(JoinHandle::is_finished);
        let down =
            if is_due && self.shared.endpoints.len() > 1 { self.shared.endpoints.down() } else { Vec::new() };
        if down.is_empty() {
            return;
        }
        self.probed_ns = now_ns;
        let (endpoints, limits) = (self.shared.endpoints.clone(), self.shared.limits);
        let probing =
            move || down.into_iter().for_each(|endpoint| connect::probe(&endpoints, endpoint, &limits));
        // If no thread can be started, the next call tries again.
        self.probe = std::thread::Builder::new().name("load-probe".to_string()).spawn(probing).ok();
    }

    /// Shuts down the socket of every thread's connection that has waited for too long; its thread then reports why.
    fn watch(&mut self) {
        let now_ns = monotonic_ns();
        let stall_ns = i64::try_from(self.shared.limits.stall.as_nanos()).unwrap_or(i64::MAX);
        for (user, (ring, watched)) in self.shared.rings.iter().zip(&mut self.watched).enumerate() {
            let progress = ring.progress();
            let is_idle = ring.finished.load(Acquire) || ring.at_rest.load(Relaxed);
            if progress != watched.progress || is_idle {
                *watched = ProgressMark { progress, since_ns: now_ns };
                continue;
            }
            if now_ns.saturating_sub(watched.since_ns) >= stall_ns && !ring.stalled.swap(true, Relaxed) {
                self.shared.shut_down(user);
            }
        }
    }
}

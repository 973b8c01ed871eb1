//! The thread that collects what the connections' threads tell, publishes intervals, and watches over stalls.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use whyso_clock::monotonic_ns;

use crate::ledger::Stretch;
use crate::outcome::Interval;
use crate::shared::Shared;
use crate::tally::Tally;

const TICK: Duration = Duration::from_millis(100);

/// What it has collected when the level is over.
pub(crate) struct Collected {
    /// Of the measured window.
    pub(crate) window: Tally,
    pub(crate) bins_100ms: Vec<u32>,
    pub(crate) intervals_lost: u64,
}

pub(crate) struct Collector {
    shared: Arc<Shared>,
    intervals: SyncSender<Interval>,
    window: Tally,
    intervals_lost: u64,
    watched: Vec<Watched>,
}

#[derive(Clone, Copy)]
struct Watched {
    progress: u64,
    since_ns: i64,
}

impl Collector {
    pub(crate) fn new(shared: Arc<Shared>, intervals: SyncSender<Interval>) -> Collector {
        let window = Tally::new(shared.plan.kinds().len());
        let watched = vec![Watched { progress: 0, since_ns: monotonic_ns() }; shared.rings.len()];
        Collector { shared, intervals, window, intervals_lost: 0, watched }
    }

    /// Collects until `over` is closed: no thread tells anything any more then.
    pub(crate) fn run(mut self, over: Receiver<()>) -> Collected {
        loop {
            let is_over = !matches!(over.recv_timeout(TICK), Err(RecvTimeoutError::Timeout));
            for ring in &self.shared.rings {
                self.shared.drain(ring);
            }
            if is_over {
                return self.finish();
            }
            self.publish_due();
            self.watch();
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
            rows: stretch.tally.rows(self.shared.plan.kinds()),
            backlog: None,
        };
        if self.intervals.try_send(interval).is_err() {
            self.intervals_lost += 1;
        }
    }

    fn finish(mut self) -> Collected {
        let shared = self.shared.clone();
        let (stretches, late) = shared.ledger().take_all(monotonic_ns());
        for stretch in &stretches {
            self.publish(stretch);
        }
        self.window.merge(&late);
        let bins_100ms = shared.ledger().take_bins();
        Collected { window: self.window, bins_100ms, intervals_lost: self.intervals_lost }
    }

    /// Shuts down the socket of every connection that has waited for too long; its thread then tells why.
    fn watch(&mut self) {
        let now_ns = monotonic_ns();
        let stall_ns = i64::try_from(self.shared.limits.stall.as_nanos()).unwrap_or(i64::MAX);
        for (user, (ring, watched)) in self.shared.rings.iter().zip(&mut self.watched).enumerate() {
            let progress = ring.progress();
            let is_idle = ring.finished.load(Acquire) || ring.reconnecting.load(Relaxed);
            if progress != watched.progress || is_idle {
                *watched = Watched { progress, since_ns: now_ns };
                continue;
            }
            if now_ns.saturating_sub(watched.since_ns) >= stall_ns && !ring.stalled.swap(true, Relaxed) {
                self.shared.shut_down(user);
            }
        }
    }
}

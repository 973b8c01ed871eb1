//! Signals to every sampler: to end, whether it sleeps in a thread or waits for a server, and to read at once.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;

/// Cheap to clone; all clones share the signals.
#[derive(Clone)]
pub(crate) struct Stop {
    shared: Arc<StopState>,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The time has come.
    Due,
    /// A window begins or ends.
    AtEdge,
    Stopped,
}

#[derive(Clone, Copy, Default)]
struct Signals {
    stopped: bool,
    /// Edges of windows up to now.
    edges: u64,
}

struct StopState {
    signals: Mutex<Signals>,
    changed: Condvar,
    async_stopped: watch::Sender<bool>,
}

impl Stop {
    pub(crate) fn new() -> Stop {
        Stop {
            shared: Arc::new(StopState {
                signals: Mutex::new(Signals::default()),
                changed: Condvar::new(),
                async_stopped: watch::Sender::new(false),
            }),
        }
    }

    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.shared.changed.notify_all();
        self.shared.async_stopped.send_replace(true);
    }

    /// A window begins or ends: what is read seldom is read once more, so that a window's counts are its own.
    pub(crate) fn note_edge(&self) {
        self.lock().edges += 1;
        self.shared.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Sleeps until `t_ns` (monotonic), or until a signal. `edges_seen`: the edges that were noted before, which it brings up to date.
    pub(crate) fn wait_until(&self, t_ns: i64, edges_seen: &mut u64) -> Woken {
        let mut signals = self.lock();
        loop {
            if signals.stopped {
                return Woken::Stopped;
            }
            if signals.edges != *edges_seen {
                *edges_seen = signals.edges;
                return Woken::AtEdge;
            }
            let left_ns = t_ns.saturating_sub(whyso_clock::monotonic_ns());
            if left_ns <= 0 {
                return Woken::Due;
            }
            let left = Duration::from_nanos(left_ns.unsigned_abs());
            signals = match self.shared.changed.wait_timeout(signals, left) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    pub(crate) async fn stopped(&self) {
        let mut receiver = self.shared.async_stopped.subscribe();
        // The sender lives in `self.shared`, so that an error can't come.
        let _ = receiver.wait_for(|stopped| *stopped).await;
    }

    fn lock(&self) -> MutexGuard<'_, Signals> {
        match self.shared.signals.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

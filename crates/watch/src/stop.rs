//! One signal that ends every sampler, whether it sleeps in a thread or waits for a server.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::watch;

/// Cheap to clone; all clones share the signal.
#[derive(Clone)]
pub(crate) struct Stop {
    shared: Arc<StopState>,
}

struct StopState {
    stopped: Mutex<bool>,
    changed: Condvar,
    async_stopped: watch::Sender<bool>,
}

impl Stop {
    pub(crate) fn new() -> Stop {
        Stop {
            shared: Arc::new(StopState {
                stopped: Mutex::new(false),
                changed: Condvar::new(),
                async_stopped: watch::Sender::new(false),
            }),
        }
    }

    pub(crate) fn stop(&self) {
        *self.lock() = true;
        self.shared.changed.notify_all();
        self.shared.async_stopped.send_replace(true);
    }

    /// Sleeps until `t_ns` (monotonic). True when the signal arrives first, or arrived before.
    pub(crate) fn wait_until(&self, t_ns: i64) -> bool {
        let mut stopped = self.lock();
        loop {
            if *stopped {
                return true;
            }
            let left_ns = t_ns.saturating_sub(whyso_clock::monotonic_ns());
            if left_ns <= 0 {
                return false;
            }
            let left = Duration::from_nanos(left_ns.unsigned_abs());
            stopped = match self.shared.changed.wait_timeout(stopped, left) {
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

    fn lock(&self) -> MutexGuard<'_, bool> {
        match self.shared.stopped.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

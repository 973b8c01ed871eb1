//! What the threads of a level share with the level.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use whyso_clock::monotonic_ns;

use crate::ledger::Ledger;
use crate::outcome::{Cause, Failure};
use crate::plan::Plan;
use crate::ring::Ring;
use crate::stream::Socket;
use crate::target::{Limits, Target};

pub(crate) struct Shared {
    pub(crate) target: Arc<Target>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) limits: Limits,
    pub(crate) rings: Vec<Ring>,
    /// Each connection's socket, to be shut down under it.
    sockets: Vec<Mutex<Arc<Socket>>>,
    ledger: Mutex<Ledger>,
    stop: AtomicBool,
    failure: Mutex<Option<Failure>>,
    pub(crate) reconnects: AtomicU64,
}

impl Shared {
    pub(crate) fn new(
        target: Arc<Target>,
        plan: Arc<Plan>,
        limits: Limits,
        sockets: Vec<Arc<Socket>>,
        begin_ns: i64,
    ) -> Shared {
        let kinds = plan.kinds().len();
        Shared {
            target,
            plan,
            limits,
            rings: sockets.iter().map(|_| Ring::new()).collect(),
            sockets: sockets.into_iter().map(Mutex::new).collect(),
            ledger: Mutex::new(Ledger::new(begin_ns, kinds)),
            stop: AtomicBool::new(false),
            failure: Mutex::new(None),
            reconnects: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Release);
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters what a ring holds, as soon as the ledger is free.
    pub(crate) fn drain(&self, ring: &Ring) {
        let mut ledger = self.ledger();
        ring.drain(|event| ledger.enter(event));
    }

    /// The same, but only if the ledger is free right now.
    pub(crate) fn try_drain(&self, ring: &Ring) {
        if let Ok(mut ledger) = self.ledger.try_lock() {
            ring.drain(|event| ledger.enter(event));
        }
    }

    /// Ends the level, and its window here and now. The first failure is the one that is told.
    pub(crate) fn fail(&self, cause: Cause, message: String) {
        // Several users may fail at once: whoever is told of, the level ended when the first of them ended its window.
        let (_, at_ns) = {
            let mut ledger = self.ledger();
            let now_ns = monotonic_ns();
            ledger.end_window(now_ns)
        };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() && !self.is_stopped() {
            *failure = Some(Failure { at_ns, cause, message });
        }
        self.stop();
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_socket(&self, user: usize, socket: Arc<Socket>) {
        *self.sockets[user].lock().unwrap_or_else(PoisonError::into_inner) = socket;
    }

    pub(crate) fn shut_down(&self, user: usize) {
        self.sockets[user].lock().unwrap_or_else(PoisonError::into_inner).shutdown();
    }
}

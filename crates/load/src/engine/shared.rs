//! What the loops, or threads, of a level share with the level.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use whyso_clock::monotonic_ns;

use crate::connection::endpoints::Endpoints;
use crate::connection::login::Wishes;
use crate::connection::stream::Socket;
use crate::driver::Work;
use crate::engine::pace::Schedule;
use crate::measure::ledger::Ledger;
use crate::measure::ring::{CAPACITY_OF_LOOP, CAPACITY_OF_ONE, Ring};
use crate::measure::tally::{Names, Sizes};
use crate::outcome::{CONNECT, Cause, Failure, TRANSACTION};
use crate::target::Limits;
use crate::tuning::Tuning;

pub(crate) struct LevelState {
    pub(crate) work: Arc<dyn Work>,
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) limits: Limits,
    pub(crate) wishes: Wishes,
    /// The work asks for pages over HTTP.
    pub(crate) is_http: bool,
    pub(crate) schedule: Schedule,
    pub(crate) reconnect_every: u32,
    /// Transactions that have begun go on when the level is stopped.
    finishes_transactions: AtomicBool,
    pub(crate) tuning: Tuning,
    /// "transaction", the work's own, "connect".
    pub(crate) kinds: Vec<String>,
    /// The work's kinds of transactions; empty where there is only one.
    pub(crate) transactions: Vec<String>,
    pub(crate) sizes: Sizes,
    /// One a loop, or thread.
    pub(crate) rings: Vec<Ring>,
    /// With threads: each one's socket, to be shut down under it.
    sockets: Vec<Mutex<Option<Arc<Socket>>>>,
    /// With event loops: one a loop, to end its wait.
    wakers: Vec<OwnedFd>,
    ledger: Mutex<Ledger>,
    stop: AtomicBool,
    /// The time that statements in flight get after the stop is over.
    pub(crate) stop_is_over: AtomicBool,
    failure: Mutex<Option<Failure>>,
    pub(crate) reconnects: AtomicU64,
    client_limit: Mutex<Option<String>>,
}

/// The parts of a level, for [`LevelState::new`].
pub(crate) struct Parts {
    pub(crate) work: Arc<dyn Work>,
    pub(crate) endpoints: Arc<Endpoints>,
    pub(crate) limits: Limits,
    pub(crate) wishes: Wishes,
    pub(crate) schedule: Schedule,
    pub(crate) reconnect_every: Option<u32>,
    pub(crate) finishes_transactions: bool,
    pub(crate) loops: u32,
    /// Event loops, and not threads.
    pub(crate) has_event_loops: bool,
    pub(crate) tuning: Tuning,
    pub(crate) begin_ns: i64,
    pub(crate) users: u32,
}

impl LevelState {
    pub(crate) fn new(parts: Parts) -> std::io::Result<LevelState> {
        let mut kinds = vec![TRANSACTION.to_string()];
        kinds.extend_from_slice(parts.work.kinds());
        kinds.push(CONNECT.to_string());
        let capacity = if parts.has_event_loops { CAPACITY_OF_LOOP } else { CAPACITY_OF_ONE };
        let transactions = parts.work.transactions().to_vec();
        let sizes =
            Sizes { kinds: kinds.len(), transactions: transactions.len(), endpoints: parts.endpoints.len() };
        let ledger = Ledger::new(parts.begin_ns, sizes, parts.users as usize);
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let wakers = if parts.has_event_loops { parts.loops } else { 0 };
        let wakers: Result<Vec<OwnedFd>, _> = (0..wakers).map(|_| eventfd(0, flags)).collect();
        let is_http = parts.work.body_bytes_max().is_some();
        Ok(LevelState {
            is_http,
            work: parts.work,
            endpoints: parts.endpoints,
            limits: parts.limits,
            wishes: parts.wishes,
            schedule: parts.schedule,
            reconnect_every: parts.reconnect_every.unwrap_or(u32::MAX),
            finishes_transactions: AtomicBool::new(parts.finishes_transactions),
            tuning: parts.tuning,
            kinds,
            transactions,
            sizes,
            rings: (0..parts.loops).map(|_| Ring::new(capacity)).collect(),
            sockets: (0..parts.loops).map(|_| Mutex::new(None)).collect(),
            wakers: wakers?,
            ledger: Mutex::new(ledger),
            stop: AtomicBool::new(false),
            stop_is_over: AtomicBool::new(false),
            failure: Mutex::new(None),
            reconnects: AtomicU64::new(0),
            client_limit: Mutex::new(None),
        })
    }

    pub(crate) fn names(&self) -> Names<'_> {
        Names { kinds: &self.kinds, transactions: &self.transactions }
    }

    /// Place of "connect" among the kinds.
    pub(crate) fn connect_kind(&self) -> u16 {
        (self.kinds.len() - 1) as u16
    }

    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Release);
        (0..self.wakers.len() as u32).for_each(|loop_number| self.wake(loop_number));
    }

    /// The eventfd that ends an event loop's wait.
    pub(crate) fn waker(&self, loop_number: u32) -> RawFd {
        self.wakers[loop_number as usize].as_raw_fd()
    }

    pub(crate) fn wake(&self, loop_number: u32) {
        // It fails only where the loop has been woken already and has not read it yet.
        let _ = rustix::io::write(&self.wakers[loop_number as usize], &1u64.to_ne_bytes());
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

    /// Ends the level, and its window here and now. The first failure is the one that is reported.
    pub(crate) fn fail(&self, cause: Cause, message: String) {
        // Several users may fail at once: whichever is reported, the level ended when the first of them ended its window.
        let (_, at_ns) = {
            let mut ledger = self.ledger();
            let now_ns = monotonic_ns();
            ledger.end_window(now_ns)
        };
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.is_none() && !self.is_stopped() {
            *failure = Some(Failure { at_ns, cause, message });
        }
        self.break_transactions_off();
        self.stop();
    }

    /// Whether the level is stopped, and transactions that have begun go on.
    pub(crate) fn finishes(&self) -> bool {
        self.finishes_transactions.load(Relaxed) && !self.stop_is_over.load(Relaxed)
    }

    /// From now on, a stop ends transactions with the statement in flight.
    pub(crate) fn break_transactions_off(&self) {
        self.finishes_transactions.store(false, Relaxed);
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a lost connection may be reopened.
    pub(crate) fn may_reconnect(&self) -> bool {
        !self.limits.reconnect.is_zero() || self.endpoints.fails_over()
    }

    /// Whether each connection that a user needs is tried once, and a failure is the driver's to hear.
    pub(crate) fn tries_once(&self) -> bool {
        self.is_http || self.work.connects_on_demand()
    }

    pub(crate) fn limited_by_client(&self, why: String) {
        self.client_limit.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    pub(crate) fn client_limit(&self) -> Option<String> {
        self.client_limit.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_socket(&self, thread: usize, socket: Option<Arc<Socket>>) {
        *self.sockets[thread].lock().unwrap_or_else(PoisonError::into_inner) = socket;
    }

    pub(crate) fn shut_down(&self, thread: usize) {
        if let Some(socket) = &*self.sockets[thread].lock().unwrap_or_else(PoisonError::into_inner) {
            socket.shutdown();
        }
    }
}

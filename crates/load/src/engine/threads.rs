//! One user on a thread of its own, which blocks while it waits.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use whyso_clock::monotonic_ns;

use crate::connection::connect::{self, RECEIVE_BYTES};
use crate::connection::exchange_error::ExchangeError;
use crate::connection::session::{Got, Session};
use crate::engine::shared::LevelState;
use crate::engine::user::answers::lost_between;
use crate::engine::user::{Do, EventWriter, Pace, User};
use crate::measure::ring::Ring;
use crate::measure::usage::run_delay_ns_of;
use crate::outcome::Cause;

/// Time between two checks whether the level is over, in a thread that waits for its time.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) struct Worker<'l> {
    at: EventWriter<'l>,
    user: User,
    home: u16,
    session: Option<Session>,
    received: Box<[u8]>,
}

/// Runs one user's transactions until the level is over. Returns the connection, where it can still be used.
pub(crate) fn run(shared: &Arc<LevelState>, number: u32, session: Option<Session>) -> Option<Session> {
    let ring = &shared.rings[number as usize];
    let thread_id = announce(ring);
    let drivers = shared.work.drivers(number, &[number]);
    let mut worker = match drivers.map(|mut drivers| drivers.pop()) {
        Ok(Some(driver)) => Worker {
            at: EventWriter { shared, ring },
            user: User::new(number, driver, shared.schedule.begin_ns()),
            home: shared.endpoints.home(number),
            session,
            received: vec![0; RECEIVE_BYTES].into_boxed_slice(),
        },
        Ok(None) => unreachable!("one driver was asked for"),
        Err(error) => {
            shared.fail(Cause::Driver, error.to_string());
            finish(ring, thread_id);
            return session;
        }
    };
    worker.transactions();
    shared.drain(ring);
    let departure = worker.user.departure(shared);
    shared.ledger().depart(departure);
    finish(ring, thread_id);
    worker.session
}

/// Reports to the level which thread this is.
pub(crate) fn announce(ring: &Ring) -> i32 {
    let thread_id = rustix::thread::gettid().as_raw_nonzero().get();
    // Waits for a time end within a microsecond of it, and not within the 50 that are usual. Where it can't be set they
    // are what they are, and the lateness is measured.
    // SAFETY: this option takes one number, and concerns the calling thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000u64) };
    ring.thread_id.store(thread_id, Release);
    thread_id
}

pub(crate) fn finish(ring: &Ring, thread_id: i32) {
    ring.cpu_ns.store(whyso_clock::thread_cpu_ns() as u64, Relaxed);
    ring.run_delay_ns.store(run_delay_ns_of(thread_id), Relaxed);
    ring.finished.store(true, Release);
}

impl Worker<'_> {
    fn transactions(&mut self) {
        // The end of one statement is the begin of the next: nothing but writing it into the buffer happens between.
        let mut now_ns = monotonic_ns();
        loop {
            match self.user.pace(&self.at, now_ns) {
                Pace::Begin => {}
                Pace::Wait { until_ns } => {
                    now_ns = self.rest_until(until_ns);
                    self.check_connection(now_ns);
                    continue;
                }
                Pace::Out => return,
            }
            if let Some(session) = &self.session
                && self.user.wants_another(&self.at, session, self.home, now_ns)
            {
                self.quit();
                now_ns = monotonic_ns();
            }
            if !self.transaction(&mut now_ns) {
                return;
            }
            if self.at.ring.wants_draining() {
                // Between transactions, and not within the time of any.
                self.at.shared.try_drain(self.at.ring);
                now_ns = monotonic_ns();
            }
        }
    }

    /// One transaction to its end. `false`: the user has no more to do.
    #[inline]
    fn transaction(&mut self, now_ns: &mut i64) -> bool {
        if self.session.is_none() && !self.connect(now_ns) {
            return false;
        }
        let Some(session) = &mut self.session else { return false };
        let mut next = self.user.go(&self.at, session, *now_ns);
        loop {
            next = match next {
                Do::Send if self.session.as_ref().is_some_and(Session::sends_more) => self.send_piece(now_ns),
                Do::Send => {
                    let Some(session) = &mut self.session else { return false };
                    let answer = session.exchange(&mut self.received);
                    *now_ns = monotonic_ns();
                    match answer {
                        // The end of a connection that was shut down for its stall is no end of an answer.
                        Ok(Some(Got::Page)) if self.at.ring.stalled.load(Relaxed) => {
                            self.failed(ExchangeError::TimedOut, *now_ns)
                        }
                        Ok(Some(got)) => self.user.got(&self.at, session, got, *now_ns),
                        Ok(None) => self.user.go(&self.at, session, *now_ns),
                        Err(error) => self.failed(error, *now_ns),
                    }
                }
                Do::Wait { until_ns } => {
                    *now_ns = self.rest_until(until_ns);
                    let Some(session) = &mut self.session else { return false };
                    self.user.go(&self.at, session, *now_ns)
                }
                Do::Reconnect => {
                    self.quit();
                    if !self.connect(now_ns) {
                        return false;
                    }
                    let Some(session) = &mut self.session else { return false };
                    self.user.go(&self.at, session, *now_ns)
                }
                Do::Ended => {
                    if !self.user.has_asked() {
                        *now_ns = monotonic_ns();
                    }
                    return true;
                }
                Do::Out => return false,
            };
        }
    }

    /// Sends a piece of a local file, and comes to the next.
    #[cold]
    fn send_piece(&mut self, now_ns: &mut i64) -> Do {
        let Some(session) = &mut self.session else { return Do::Out };
        let sent = session.send_all();
        *now_ns = monotonic_ns();
        self.at.ring.pieces.fetch_add(1, Relaxed);
        match sent {
            Ok(()) => self.user.send_piece(&self.at, session, *now_ns),
            Err(error) => self.failed(error.into(), *now_ns),
        }
    }

    #[cold]
    fn failed(&mut self, mut error: ExchangeError, now_ns: i64) -> Do {
        let Some(mut session) = self.session.take() else { return Do::Out };
        if self.at.shared.is_http && self.at.ring.stalled.swap(false, Relaxed) {
            error = ExchangeError::TimedOut;
        }
        if self.at.ring.stalled.load(Relaxed) && !self.at.shared.is_stopped() {
            self.user.stalled(self.at.shared);
            self.user.end();
            return Do::Out;
        }
        self.user.failed(&self.at, &mut session, error, now_ns)
    }

    /// After a rest: the server may have ended the connection, or sent what nobody had asked for.
    fn check_connection(&mut self, now_ns: i64) {
        let Some(error) = self.session.as_mut().and_then(Session::unrest) else { return };
        if let Some(session) = self.session.take() {
            lost_between(&self.at, Some(&mut self.user), session.endpoint, &error, now_ns);
        }
    }

    fn quit(&mut self) {
        if let Some(session) = self.session.take() {
            self.at.shared.set_socket(self.user.number as usize, None);
            session.quit();
        }
    }

    /// Makes a new connection. `false`: none is available.
    fn connect(&mut self, now_ns: &mut i64) -> bool {
        self.at.ring.at_rest.store(true, Relaxed);
        let opened = connect::open_in_level(self.at.shared, self.user.number);
        self.at.ring.at_rest.store(false, Relaxed);
        *now_ns = monotonic_ns();
        match opened {
            Ok(Some(mut session)) => {
                self.at.shared.set_socket(self.user.number as usize, Some(session.socket().clone()));
                self.user.connected(&self.at, &mut session, *now_ns);
                self.session = Some(session);
                true
            }
            Ok(None) => false,
            Err(error) if self.at.shared.tries_once() => {
                self.session = self.user.not_connected(&self.at, &error);
                self.session.is_some()
            }
            Err(error) => {
                self.at
                    .shared
                    .fail(Cause::ConnectionLost, format!("no connection could be opened again: {error}"));
                false
            }
        }
    }

    /// Waits for a time; gives the time at which the wait was over.
    fn rest_until(&self, until_ns: i64) -> i64 {
        self.at.ring.at_rest.store(true, Relaxed);
        self.at.shared.try_drain(self.at.ring);
        let mut now_ns = monotonic_ns();
        while now_ns < until_ns && !self.at.shared.is_stopped() {
            let rest = Duration::from_nanos((until_ns - now_ns) as u64);
            std::thread::sleep(rest.min(POLL_INTERVAL));
            now_ns = monotonic_ns();
        }
        self.at.ring.at_rest.store(false, Relaxed);
        now_ns
    }
}

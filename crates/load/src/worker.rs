//! One user: a thread that sends, waits, and takes the time.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_wire::RowFormat;

use crate::connection::{Connection, ExchangeError, Reply};
use crate::outcome::{Cause, ErrorCode};
use crate::plan::{Machine, Step};
use crate::ring::{Event, Ring};
use crate::shared::Shared;
use crate::target::Limits;
use crate::usage::run_delay_ns_of;

/// What a lost connection counts as: CR_SERVER_LOST.
const SERVER_LOST: ErrorCode = ErrorCode { errno: 2013, sqlstate: *b"HY000" };
/// Errors with which a server says that the connection ends: shutdown in progress (1053), connection killed (1927 in
/// MariaDB; 3169, 4031 in MySQL).
const CONNECTION_ENDS: [u16; 4] = [1053, 1927, 3169, 4031];
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
const RECONNECT_TRY: Duration = Duration::from_secs(2);

pub(crate) struct Worker {
    shared: Arc<Shared>,
    user: usize,
    machine: Machine,
    connection: Connection,
    connection_lives: bool,
    transactions: u64,
    queries: u64,
    errors: u64,
}

/// Whether the level goes on for this user.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    On,
    Out,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, user: usize, machine: Machine, connection: Connection) -> Worker {
        Worker {
            shared,
            user,
            machine,
            connection,
            connection_lives: true,
            transactions: 0,
            queries: 0,
            errors: 0,
        }
    }

    /// Runs transactions until the level is stopped. Gives the connection back, where it can still be used.
    pub(crate) fn run(mut self) -> Option<Connection> {
        let shared = self.shared.clone();
        let ring = &shared.rings[self.user];
        let thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        ring.thread_id.store(thread_id, Release);
        self.transactions(&shared, ring);
        self.leave();
        ring.cpu_ns.store(whyso_clock::thread_cpu_ns() as u64, Relaxed);
        ring.run_delay_ns.store(run_delay_ns_of(thread_id), Relaxed);
        ring.finished.store(true, Release);
        self.connection_lives.then_some(self.connection)
    }

    fn transactions(&mut self, shared: &Shared, ring: &Ring) {
        // The end of one statement is the begin of the next: nothing but writing it into the buffer happens between.
        let mut now_ns = monotonic_ns();
        let mut transaction_ns = now_ns;
        let mut attempt_ns = now_ns;
        while !shared.is_stopped() {
            match self.machine.next(&mut self.connection.handles, &mut self.connection.out) {
                Step::Send { kind, format } => {
                    let begin_ns = now_ns;
                    let reply = self.connection.exchange(format);
                    now_ns = monotonic_ns();
                    match reply {
                        Ok(Reply::Fine { rows }) => {
                            self.queries += 1;
                            let latency_ns = (now_ns - begin_ns) as u64;
                            let rows = u32::try_from(rows).unwrap_or(u32::MAX);
                            self.tell(ring, Event::Statement { end_ns: now_ns, kind, latency_ns, rows });
                            ring.totals.queries.store(self.queries, Relaxed);
                            let is_rollback = kind == shared.plan.rollback_kind();
                            if is_rollback {
                                attempt_ns = now_ns;
                            }
                        }
                        Ok(Reply::Error(code)) => {
                            if self.server_error(ring, kind, code, now_ns) == Goes::Out {
                                return;
                            }
                            now_ns = monotonic_ns();
                            attempt_ns = now_ns;
                        }
                        Err(error) => {
                            if self.no_answer(ring, kind, error, now_ns) == Goes::Out {
                                return;
                            }
                            now_ns = monotonic_ns();
                            attempt_ns = now_ns;
                        }
                    }
                }
                Step::Done => {
                    self.transactions += 1;
                    let response_ns = (now_ns - transaction_ns) as u64;
                    let was_retried = attempt_ns != transaction_ns;
                    let event = if was_retried {
                        let service_ns = (now_ns - attempt_ns) as u64;
                        Event::RetriedTransaction { end_ns: now_ns, response_ns, service_ns }
                    } else {
                        Event::Transaction { end_ns: now_ns, response_ns }
                    };
                    self.tell(ring, event);
                    ring.totals.transactions.store(self.transactions, Relaxed);
                    self.machine.begin_next();
                    if ring.wants_draining() {
                        // Between transactions, and not within the time of any.
                        shared.try_drain(ring);
                        now_ns = monotonic_ns();
                    }
                    transaction_ns = now_ns;
                    attempt_ns = now_ns;
                }
            }
        }
    }

    #[inline]
    fn tell(&self, ring: &Ring, event: Event) {
        if !ring.push(event) {
            self.shared.drain(ring);
            ring.push(event);
        }
    }

    fn tell_error(&mut self, ring: &Ring, kind: u16, code: ErrorCode, end_ns: i64, retried: bool) {
        self.errors += 1;
        self.tell(ring, Event::Error { end_ns, kind, code, retried });
        ring.totals.errors.store(self.errors, Relaxed);
    }

    /// Begins the transaction again, or ends the level.
    #[cold]
    fn server_error(&mut self, ring: &Ring, kind: u16, code: ErrorCode, now_ns: i64) -> Goes {
        let reconnects = !self.shared.limits.reconnect.is_zero() && CONNECTION_ENDS.contains(&code.errno);
        if reconnects {
            self.tell_error(ring, kind, code, now_ns, true);
            return self.reconnect(ring);
        }
        self.queries += 1;
        ring.totals.queries.store(self.queries, Relaxed);
        let is_rollback = kind == self.shared.plan.rollback_kind();
        let retried = self.shared.plan.is_retried(code.errno) && !is_rollback;
        self.tell_error(ring, kind, code, now_ns, retried);
        if retried {
            self.machine.begin_again(true);
            return Goes::On;
        }
        let statement = self.machine.last_statement();
        let message =
            format!("the server answered {statement} with error {code}: {}", self.connection.message());
        self.shared.fail(Cause::ServerError(code), message);
        Goes::Out
    }

    /// The connection gave no proper answer: makes a new one where that is wanted, or ends the level.
    #[cold]
    fn no_answer(&mut self, ring: &Ring, kind: u16, error: ExchangeError, now_ns: i64) -> Goes {
        self.connection_lives = false;
        if self.shared.is_stopped() {
            return Goes::Out;
        }
        let statement = self.machine.last_statement();
        if ring.stalled.load(Relaxed) {
            let stall_s = self.shared.limits.stall.as_secs_f64();
            let message = format!("the server did not answer {statement} for {stall_s} s");
            self.shared.fail(Cause::NoAnswer, message);
            return Goes::Out;
        }
        match error {
            ExchangeError::Io(error) => {
                self.tell_error(ring, kind, SERVER_LOST, now_ns, !self.shared.limits.reconnect.is_zero());
                if !self.shared.limits.reconnect.is_zero() {
                    return self.reconnect(ring);
                }
                let message = format!("the connection to the server was lost during {statement}: {error}");
                self.shared.fail(Cause::ConnectionLost, message);
            }
            ExchangeError::Protocol(error) => {
                let message = format!("the server's answer to {statement} breaks the protocol: {error}");
                self.shared.fail(Cause::Protocol, message);
            }
            ExchangeError::LocalInfile(_) => {
                self.shared.fail(Cause::Protocol, format!("at {statement} {error}"));
            }
        }
        Goes::Out
    }

    /// Makes a new connection, trying for as long as the limits say.
    fn reconnect(&mut self, ring: &Ring) -> Goes {
        self.connection_lives = false;
        ring.reconnecting.store(true, Relaxed);
        let deadline = Instant::now() + self.shared.limits.reconnect;
        let limits = Limits { connect: self.shared.limits.connect.min(RECONNECT_TRY), ..self.shared.limits };
        let goes = loop {
            if self.shared.is_stopped() {
                break Goes::Out;
            }
            match Connection::open(&self.shared.target, &self.shared.plan, &limits) {
                Ok(connection) => {
                    self.shared.set_socket(self.user, connection.socket().clone());
                    self.connection = connection;
                    self.connection_lives = true;
                    self.machine.begin_again(false);
                    self.shared.reconnects.fetch_add(1, Relaxed);
                    break Goes::On;
                }
                Err(error) if Instant::now() >= deadline => {
                    let within_s = self.shared.limits.reconnect.as_secs_f64();
                    let message = format!(
                        "the connection was lost, and none could be made again within {within_s} s: {error}"
                    );
                    self.shared.fail(Cause::ConnectionLost, message);
                    break Goes::Out;
                }
                Err(_) => std::thread::sleep(RECONNECT_PAUSE),
            }
        };
        ring.reconnecting.store(false, Relaxed);
        goes
    }

    /// Leaves no transaction open behind. Nothing of it is counted: the level is over.
    fn leave(&mut self) {
        if !self.connection_lives || !self.machine.is_inside() {
            return;
        }
        self.machine.begin_again(true);
        if !self.machine.rollback_is_due() {
            return;
        }
        self.machine.next(&mut self.connection.handles, &mut self.connection.out);
        if self.connection.exchange(RowFormat::Text).is_err() {
            self.connection_lives = false;
        }
    }
}

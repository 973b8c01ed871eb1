//! How a user takes answers and connections in, and what becomes of errors.

use std::io::ErrorKind;
use std::sync::atomic::Ordering::Relaxed;

use whyso_clock::monotonic_ns;
use whyso_http::{AnswerError, AnswerScanner};

use crate::connection::client_error::as_client_error;
use crate::connection::exchange_error::ExchangeError;
use crate::connection::session::{Got, Session, Sum};
use crate::driver::{Expects, Kind};
use crate::engine::command_result::CommandResult;
use crate::engine::turn::{Do, EventWriter};
use crate::engine::user::{Phase, User};
use crate::error::LoadError;
use crate::measure::ring::What;
use crate::outcome::{Cause, ErrorCode, HttpProblem};

/// What a lost connection counts as: CR_SERVER_LOST.
pub(crate) const SERVER_LOST: ErrorCode = ErrorCode { errno: 2013, sqlstate: *b"HY000" };

impl User {
    /// The whole answer is there.
    #[inline]
    pub(crate) fn got(&mut self, at: &EventWriter<'_>, session: &mut Session, got: Got, now_ns: i64) -> Do {
        session.command.clear();
        if self.phase == Phase::Leaving {
            self.phase = Phase::Out;
            return Do::Out;
        }
        self.awaits_answer = matches!(got, Got::LocalFile);
        let latency_ns = (now_ns - self.asked_ns).max(0) as u64;
        let queries = &at.ring.totals.queries;
        match got {
            Got::Fine => {
                queries.store(queries.load(Relaxed) + 1, Relaxed);
                let sum = session.sum();
                let kind = self.kind_of(&sum);
                let rows = u32::try_from(sum.rows).unwrap_or(u32::MAX);
                at.write(now_ns, session.endpoint, What::Statement { kind, latency_ns, rows });
                self.heard = CommandResult::Fine(sum);
            }
            Got::Prepared(prepared) => self.heard = CommandResult::Prepared(prepared),
            Got::Error(code) => {
                queries.store(queries.load(Relaxed) + 1, Relaxed);
                self.message = session.message(self.command.expects == Expects::Prepared);
                let kind = self.kind_of(&Sum::default());
                self.tell_error(at, session.endpoint, kind, code, latency_ns, now_ns);
                self.heard = CommandResult::Error(code);
            }
            Got::Page => {
                queries.store(queries.load(Relaxed) + 1, Relaxed);
                let kind = self.kind_of(&Sum::default());
                let judged = session.page().map_or(Ok(()), |page| self.driver.judge(page));
                match judged {
                    Ok(()) => {
                        at.write(now_ns, session.endpoint, What::Statement { kind, latency_ns, rows: 0 });
                        self.heard = CommandResult::Fine(session.sum());
                    }
                    Err(code) => {
                        self.message.clear();
                        self.tell_error(at, session.endpoint, kind, code, latency_ns, now_ns);
                        self.heard = CommandResult::Error(code);
                    }
                }
            }
            Got::LocalFile => return self.send_file(at, session, now_ns),
        }
        self.go(at, session, now_ns)
    }

    /// Begins to send the content for our own LOAD DATA LOCAL; where none was sent, refuses.
    #[cold]
    fn send_file(&mut self, at: &EventWriter<'_>, session: &mut Session, now_ns: i64) -> Do {
        if !at.shared.wishes.local_files {
            let refused = ExchangeError::LocalInfile(session.message(false));
            return self.failed(at, session, refused, now_ns);
        }
        session.begin_local_file();
        self.send_piece(at, session, now_ns)
    }

    /// The next piece of the local file: the one before is sent.
    #[cold]
    pub(crate) fn send_piece(&mut self, at: &EventWriter<'_>, session: &mut Session, now_ns: i64) -> Do {
        self.waits_since_ns = now_ns;
        self.piece.clear();
        let more = self.driver.local_file(&mut self.piece);
        match session.local_file_piece(&self.piece, !more || self.piece.is_empty()) {
            Ok(()) => Do::Send,
            Err(error) => self.failed(at, session, error, now_ns),
        }
    }

    #[inline]
    fn kind_of(&self, sum: &Sum) -> u16 {
        1 + match self.command.kind {
            Kind::One(kind) => kind,
            Kind::ByAnswer(first) if sum.result_sets > 0 => first,
            Kind::ByAnswer(first) if sum.affected_rows > 0 => first + 1,
            Kind::ByAnswer(first) => first + 2,
        }
    }

    fn tell_error(
        &self,
        at: &EventWriter<'_>,
        endpoint: u16,
        kind: u16,
        code: ErrorCode,
        latency_ns: u64,
        now_ns: i64,
    ) {
        at.write(now_ns, endpoint, What::Error { kind, latency_ns, code });
        let errors = &at.ring.totals.errors;
        errors.store(errors.load(Relaxed) + 1, Relaxed);
    }

    /// There is no proper answer, and the connection can't be used any more.
    #[cold]
    pub(crate) fn failed(
        &mut self,
        at: &EventWriter<'_>,
        session: &mut Session,
        error: ExchangeError,
        now_ns: i64,
    ) -> Do {
        session.command.clear();
        let was_leaving = self.phase == Phase::Leaving;
        if was_leaving || at.shared.is_stopped() || self.is_outside() {
            self.phase = Phase::Out;
            return Do::Out;
        }
        if at.shared.is_http {
            return self.page_failed(at, session, &error, now_ns);
        }
        match error {
            ExchangeError::Io(error) => {
                self.message = error.to_string();
                let latency_ns = (now_ns - self.asked_ns).max(0) as u64;
                let kind = self.kind_of(&Sum::default());
                self.awaits_answer = false;
                self.tell_error(at, session.endpoint, kind, SERVER_LOST, latency_ns, now_ns);
                if at.shared.may_reconnect() {
                    at.shared.endpoints.mark_down(session.endpoint, now_ns);
                }
                self.heard = CommandResult::Lost(SERVER_LOST);
                self.lost = Some(SERVER_LOST);
                // There is nothing that anything else could be sent on.
                if self.go(at, session, now_ns) == Do::Reconnect {
                    return Do::Reconnect;
                }
            }
            error => {
                let statement = self.driver.last_sent();
                let message = match error {
                    ExchangeError::LocalInfile(_) => format!("at {statement} {error}"),
                    error => format!("the server's answer to {statement} breaks the protocol: {error}"),
                };
                at.shared.fail(Cause::Protocol, message);
            }
        }
        self.phase = Phase::Out;
        Do::Out
    }

    /// A page has no proper answer. That is counted, and its driver decides what becomes of the transaction.
    #[cold]
    fn page_failed(
        &mut self,
        at: &EventWriter<'_>,
        session: &mut Session,
        error: &ExchangeError,
        now_ns: i64,
    ) -> Do {
        let code = ErrorCode::of_problem(http_problem(error, session.page()));
        self.message = error.to_string();
        let latency_ns = (now_ns - self.asked_ns).max(0) as u64;
        let kind = self.kind_of(&Sum::default());
        self.awaits_answer = false;
        self.tell_error(at, session.endpoint, kind, code, latency_ns, now_ns);
        self.heard = CommandResult::Lost(code);
        self.lost = Some(code);
        match self.go(at, session, now_ns) {
            next @ (Do::Reconnect | Do::Ended) => next,
            // There is nothing that anything else could be sent on.
            Do::Send | Do::Wait { .. } | Do::Out => {
                self.phase = Phase::Out;
                Do::Out
            }
        }
    }

    /// The new connection is there.
    pub(crate) fn connected(&mut self, at: &EventWriter<'_>, session: &mut Session, now_ns: i64) {
        // Where the server ended the one before between two transactions, nothing was asked for yet.
        let latency_ns = (now_ns - self.asked_ns.max(self.since_ns)).max(0) as u64;
        let kind = at.shared.connect_kind();
        at.write(now_ns, session.endpoint, What::Statement { kind, latency_ns, rows: 0 });
        let lost = self.lost.take();
        if lost.is_some() {
            at.shared.reconnects.fetch_add(1, Relaxed);
        }
        if self.phase == Phase::Inside {
            self.heard = CommandResult::Connected { lost };
        }
    }

    /// The connection that it asked for could not be opened, which its driver is to hear. Returns a session to nowhere,
    /// which replaces the connection.
    #[cold]
    pub(crate) fn not_connected(&mut self, at: &EventWriter<'_>, error: &LoadError) -> Option<Session> {
        let endpoint = at.shared.endpoints.home(self.number);
        match Session::nowhere(endpoint) {
            Ok(session) => {
                let (mut code, message) = as_client_error(error);
                if at.shared.is_http {
                    code = ErrorCode::of_problem(match error {
                        LoadError::Tls { .. } => HttpProblem::Tls,
                        _ => HttpProblem::NoConnection,
                    });
                    let now_ns = monotonic_ns();
                    let latency_ns = (now_ns - self.asked_ns.max(self.since_ns)).max(0) as u64;
                    self.tell_error(at, endpoint, at.shared.connect_kind(), code, latency_ns, now_ns);
                    if let LoadError::OutOfPorts { .. } = error {
                        at.shared.limited_by_client(error.to_string());
                    }
                }
                self.message = message;
                self.heard = CommandResult::Lost(code);
                Some(session)
            }
            Err(error) => {
                at.shared.fail(Cause::Driver, format!("no socket could be opened: {error}"));
                self.end();
                None
            }
        }
    }
}

/// What an answer that is none counts as. `page`: what was read of it.
fn http_problem(error: &ExchangeError, page: Option<&AnswerScanner>) -> HttpProblem {
    match error {
        ExchangeError::TimedOut => HttpProblem::TimedOut,
        ExchangeError::Io(error) if error.kind() == ErrorKind::InvalidData => HttpProblem::Tls,
        ExchangeError::Io(_) if page.is_some_and(|page| !page.is_begun()) => HttpProblem::ClosedBefore,
        ExchangeError::Io(_) | ExchangeError::Http(AnswerError::Cut) => HttpProblem::Cut,
        ExchangeError::Http(AnswerError::HeadTooLarge | AnswerError::BodyTooLarge { .. }) => {
            HttpProblem::TooLarge
        }
        _ => HttpProblem::NotUnderstood,
    }
}

/// A connection has ended, or can't be used any more, while nothing was under way on it.
#[cold]
pub(crate) fn lost_between(
    at: &EventWriter<'_>,
    user: Option<&mut User>,
    endpoint: u16,
    error: &ExchangeError,
    now_ns: i64,
) {
    let shared = at.shared;
    if shared.is_stopped() {
        return;
    }
    match error {
        // A server may end a connection that it has kept open, whenever nothing is under way on it.
        ExchangeError::Io(_) if shared.is_http => {}
        _ if shared.is_http => {
            if let Some(user) = user {
                let code = ErrorCode::of_problem(HttpProblem::NotUnderstood);
                user.tell_error(at, endpoint, shared.connect_kind(), code, 0, now_ns);
            }
        }
        ExchangeError::Io(_) if shared.may_reconnect() => {
            shared.endpoints.mark_down(endpoint, now_ns);
            if let Some(user) = user {
                user.tell_error(at, endpoint, shared.connect_kind(), SERVER_LOST, 0, now_ns);
                user.lost = Some(SERVER_LOST);
            }
        }
        ExchangeError::Io(error) => shared.fail(
            Cause::ConnectionLost,
            format!("the connection to the server was lost between two transactions: {error}"),
        ),
        _ => shared.fail(
            Cause::Protocol,
            "the server sent something between two transactions that nobody had asked for".to_string(),
        ),
    }
}

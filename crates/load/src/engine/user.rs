//! One user: walks through its driver's transactions, takes the times, and reports them. Reads and writes nothing itself,
//! so that threads and event loops drive it alike.

pub(crate) mod answers;

use std::sync::atomic::Ordering::Relaxed;

use whyso_clock::monotonic_ns;
use whyso_wire::encode;

use crate::connection::session::{Parts, Session};
use crate::driver::{Command, Driver, Expects, Kind, Next, Turn};
use crate::engine::command_result::CommandResult;
use crate::engine::pace::Ticket;
use crate::engine::shared::LevelState;
pub(crate) use crate::engine::turn::{Do, EventWriter, Pace};
use crate::measure::closing::Departure;
use crate::measure::ring::What;
use crate::outcome::{Cause, ErrorCode};

pub(crate) struct User {
    pub(crate) number: u32,
    driver: Box<dyn Driver>,
    phase: Phase,
    /// Transactions that it has begun, or waits for, in this level.
    done: u64,
    ticket: Ticket,
    /// The ticket's transaction has not ended.
    has_ticket: bool,
    /// Since when it is at its transaction, where that has begun; else since when it is between two.
    since_ns: i64,
    /// Begin and end of the pause that it is in, within a transaction.
    pause: Option<(i64, i64)>,
    /// When the present attempt began.
    attempt_ns: i64,
    was_retried: bool,
    /// When the command was handed over to be sent, or the connection to be opened.
    asked_ns: i64,
    /// The command was sent, and has no answer yet.
    awaits_answer: bool,
    /// When what it waits for last made progress that it knows of.
    waits_since_ns: i64,
    /// A piece of a local file.
    piece: Vec<u8>,
    command: Command,
    heard: CommandResult,
    /// The error by which the connection was lost, until there is a new one.
    lost: Option<ErrorCode>,
    /// The server's text with the last error.
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Between two transactions.
    Idle,
    /// The next one is known and not due yet.
    Waiting,
    Inside,
    /// Ends what may be open on the server; nothing of it is counted.
    Leaving,
    Out,
}

impl User {
    /// `begin_ns`: when the level began.
    pub(crate) fn new(number: u32, driver: Box<dyn Driver>, begin_ns: i64) -> User {
        User {
            number,
            driver,
            phase: Phase::Idle,
            done: 0,
            ticket: Ticket { number: 0, by_arrival: false, due_ns: 0 },
            has_ticket: false,
            since_ns: begin_ns,
            attempt_ns: 0,
            was_retried: false,
            pause: None,
            asked_ns: 0,
            awaits_answer: false,
            waits_since_ns: 0,
            piece: Vec::new(),
            command: Command { kind: Kind::One(0), expects: Expects::Nothing, captures: false },
            heard: CommandResult::Nothing,
            lost: None,
            message: String::new(),
        }
    }

    /// Whether its present attempt, or the last one, has asked for anything.
    #[inline]
    pub(crate) fn has_asked(&self) -> bool {
        self.asked_ns >= self.attempt_ns
    }

    pub(crate) fn is_out(&self) -> bool {
        self.phase == Phase::Out
    }

    /// Whether it is between two transactions.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self.phase, Phase::Idle | Phase::Waiting)
    }

    /// Since when it waits for an answer, or for a connection; each piece of a local file that was sent counts.
    pub(crate) fn waits_since_ns(&self) -> i64 {
        self.asked_ns.max(self.waits_since_ns)
    }

    /// Proceeds to the next transaction.
    #[inline]
    pub(crate) fn pace(&mut self, at: &EventWriter<'_>, now_ns: i64) -> Pace {
        // Within a transaction there may be something to end on the server.
        let is_amid = self.phase == Phase::Inside && self.attempt_ns != 0;
        if at.shared.is_stopped() && !is_amid {
            self.phase = Phase::Out;
            return Pace::Out;
        }
        let mut stood_ready = false;
        match self.phase {
            Phase::Idle => match at.shared.schedule.take(self.number, self.done, now_ns) {
                Some(mut ticket) => {
                    if !ticket.by_arrival
                        && self.done > 0
                        && let Some(due_ns) =
                            self.driver.due_ns(ticket.number, self.ticket.due_ns, self.since_ns)
                    {
                        ticket.due_ns = ticket.due_ns.max(due_ns);
                    }
                    self.ticket = ticket;
                    self.has_ticket = true;
                    self.done += 1;
                }
                None => {
                    self.phase = Phase::Out;
                    return Pace::Out;
                }
            },
            Phase::Waiting => stood_ready = true,
            Phase::Inside | Phase::Leaving => return Pace::Begin,
            Phase::Out => return Pace::Out,
        }
        if self.ticket.due_ns > now_ns {
            self.phase = Phase::Waiting;
            return Pace::Wait { until_ns: self.ticket.due_ns };
        }
        if stood_ready {
            at.write(now_ns, 0, What::Late { late_ns: (now_ns - self.ticket.due_ns) as u64 });
        }
        at.shared.schedule.begin(&self.ticket);
        if self.ticket.due_ns > self.since_ns {
            let outside_ns = (self.ticket.due_ns - self.since_ns) as u64;
            at.write(self.ticket.due_ns, 0, What::Outside { outside_ns });
            self.since_ns = self.ticket.due_ns;
        }
        self.phase = Phase::Inside;
        self.driver.begin(self.ticket.number, self.ticket.by_arrival);
        self.heard = CommandResult::Nothing;
        // Set when the first thing is asked for: the user may have to wait for a connection first.
        self.attempt_ns = 0;
        self.was_retried = false;
        Pace::Begin
    }

    /// Asks the driver what comes next.
    #[inline]
    pub(crate) fn go(&mut self, at: &EventWriter<'_>, session: &mut Session, now_ns: i64) -> Do {
        if self.attempt_ns == 0 {
            self.attempt_ns = now_ns;
        }
        if let Some((since_ns, until_ns)) = self.pause.take() {
            // The generator may be late: that is no part of the pause.
            let end_ns = until_ns.min(now_ns);
            let paused_ns = (end_ns - since_ns).max(0) as u64;
            at.write(end_ns, session.endpoint, What::Paused { paused_ns });
        }
        loop {
            if at.shared.is_stopped() && !(self.phase == Phase::Inside && at.shared.finishes()) {
                return self.finish_session(session);
            }
            let may_reconnect = at.shared.may_reconnect();
            let Parts { captured, prepared_columns, out, handles } = session.parts();
            let reply = self.heard.as_reply(&self.message, captured, prepared_columns);
            let next = self.driver.next(&mut Turn { reply, now_ns, out, handles, may_reconnect });
            let heard = std::mem::replace(&mut self.heard, CommandResult::Nothing);
            // What waited for nothing took the driver's own time.
            let is_unasked_end = matches!(next, Next::Done { .. }) && !self.has_asked();
            let now_ns = if is_unasked_end { monotonic_ns() } else { now_ns };
            match next {
                Next::Send(command) if command.expects == Expects::Nothing => {}
                Next::Send(command) => {
                    self.command = command;
                    self.asked_ns = now_ns;
                    self.awaits_answer = true;
                    return match session.begin(&self.command) {
                        Ok(()) => Do::Send,
                        Err(error) => self.failed(at, session, error, now_ns),
                    };
                }
                Next::Pause(pause) => {
                    let pause_ns = i64::try_from(pause.as_nanos()).unwrap_or(i64::MAX);
                    let until_ns = now_ns.saturating_add(pause_ns);
                    self.pause = Some((now_ns, until_ns));
                    return Do::Wait { until_ns };
                }
                Next::Again(code) => {
                    let lost_ns = (now_ns - self.attempt_ns) as u64;
                    at.write(now_ns, session.endpoint, What::GivenUp { code, lost_ns });
                    self.attempt_ns = now_ns;
                    self.was_retried = true;
                }
                Next::Done { transaction, counted } => {
                    self.write_end(at, session, counted.then_some(transaction), now_ns);
                    self.phase = Phase::Idle;
                    return Do::Ended;
                }
                Next::Reconnect => {
                    if let CommandResult::Lost(code) | CommandResult::Error(code) = heard {
                        self.lost = Some(code);
                    }
                    self.asked_ns = now_ns;
                    return Do::Reconnect;
                }
                Next::Leave => {
                    self.has_ticket = false;
                    self.phase = Phase::Out;
                    return Do::Out;
                }
                Next::Fail { cause, message } => {
                    at.shared.fail(cause, message);
                    return self.finish_session(session);
                }
            }
        }
    }

    /// The transaction has ended; `transaction`: its kind, where it counts.
    #[inline]
    fn write_end(
        &mut self,
        at: &EventWriter<'_>,
        session: &mut Session,
        transaction: Option<u16>,
        now_ns: i64,
    ) {
        let response_ns = (now_ns - self.ticket.due_ns).max(0) as u64;
        let user_ns = (now_ns - self.since_ns).max(0) as u64;
        self.has_ticket = false;
        self.since_ns = now_ns;
        let Some(transaction) = transaction else {
            at.write(now_ns, session.endpoint, What::Uncounted { response_ns, user_ns });
            return;
        };
        session.age = session.age.saturating_add(1);
        at.shared.endpoints.served(session.endpoint, now_ns);
        let service_ns = (now_ns - self.attempt_ns).max(0) as u64;
        let was_retried = self.was_retried;
        let what = What::Transaction { transaction, response_ns, service_ns, user_ns, was_retried };
        at.write(now_ns, session.endpoint, what);
        let transactions = &at.ring.totals.transactions;
        transactions.store(transactions.load(Relaxed) + 1, Relaxed);
    }

    /// It needs a new connection although the one that it has is open: it has carried enough, or is not at home.
    #[inline]
    pub(crate) fn wants_another(
        &mut self,
        at: &EventWriter<'_>,
        session: &Session,
        home: u16,
        now_ns: i64,
    ) -> bool {
        let is_away = session.endpoint != home && !at.shared.endpoints.is_down(home);
        let begins = self.attempt_ns == 0 || self.is_outside();
        let is_worn = session.is_used_up() || (at.shared.is_http && session.is_to_nowhere());
        let wants = begins && (is_worn || session.age >= at.shared.reconnect_every || is_away);
        if wants {
            self.asked_ns = now_ns;
        }
        wants
    }

    /// Ends what may be open on the server.
    #[cold]
    fn finish_session(&mut self, session: &mut Session) -> Do {
        if self.phase == Phase::Inside && self.lost.is_none() && self.driver.leaves_open() {
            self.phase = Phase::Leaving;
            session.command.clear();
            encode::query(&mut session.command, b"ROLLBACK");
            let results = Expects::Results(whyso_wire::RowFormat::Text);
            let command = Command { kind: Kind::One(0), expects: results, captures: false };
            if session.begin(&command).is_ok() {
                return Do::Send;
            }
        }
        self.phase = Phase::Out;
        Do::Out
    }

    /// No answer has come within the bound: the level ends.
    #[cold]
    pub(crate) fn stalled(&self, shared: &LevelState) {
        let (statement, stall_s) = (self.driver.last_sent(), shared.limits.stall.as_secs_f64());
        shared.fail(Cause::NoAnswer, format!("the server did not answer {statement} for {stall_s} s"));
    }

    /// What it is at, for the time when the level is over.
    pub(crate) fn departure(&self, shared: &LevelState) -> Departure {
        let Ticket { number, by_arrival, due_ns } = self.ticket;
        let user = (!by_arrival).then_some(self.number);
        let kind = || shared.work.transaction_kind(user, number);
        let statement = match self.command.kind {
            Kind::One(kind) if self.awaits_answer => Some((kind + 1, self.asked_ns)),
            _ => None,
        };
        Departure {
            since_ns: self.since_ns,
            due_ns: self.has_ticket.then_some(due_ns),
            transaction: if self.has_ticket { kind() } else { None },
            // What it waits for to begin is due later than it was free.
            has_begun: self.since_ns >= due_ns,
            statement,
        }
    }

    /// It ends here, whatever it was at.
    pub(crate) fn end(&mut self) {
        self.phase = Phase::Out;
    }
}

//! A user of a run, asked by the engine what comes next; its script runs in a [`Coroutine`].

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use whyso_load::{Cause, Command, Driver, ErrorCode, Expects, Kind, Next, Reply, Turn};
use whyso_wire::RowFormat;
use whyso_workload::Rng;

use crate::coroutine::{Coroutine, Resumption};
use crate::errand::Errand;
use crate::error::{ScriptError, ScriptFailure};
use crate::facts::Job;
use crate::interrupt::was_interrupted;
use crate::say::say_fatal;
use crate::state::{Body, State, Want};
use crate::user::{STATUS_FATAL, STATUS_IGNORABLE, STATUS_NONE, User, View};
use crate::watchdog::Watch;

/// Longest time for which a lost connection is reopened, and the pause between two tries.
const RECONNECT_MAX: Duration = Duration::from_secs(10);
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Time between two checks whether a shell command has ended.
const ERRAND_POLL_MIN: Duration = Duration::from_millis(1);
const ERRAND_POLL_MAX: Duration = Duration::from_millis(10);
/// `SB_CNT_RECONNECT`.
const COUNT_RECONNECT: usize = 5;
/// Time between two checks of a ready user whether the others are ready.
const READY_POLL: Duration = Duration::from_millis(1);
/// ER_LOCK_DEADLOCK: the server has rolled the transaction back.
const DEADLOCK: u16 = 1213;
/// Errors after which there is no connection any more.
pub(crate) const CONNECTION_LOST: [u16; 4] = [2006, 2011, 2013, 2055];

/// Where a user stands between two turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    /// Before its first turn.
    AtBegin,
    /// Ready, and waiting for the others.
    Ready,
    /// Before an event.
    BeforeEvent,
    /// Inside an event, or a command.
    Inside,
    /// A ROLLBACK is on its way; then the event is begun again because of this error.
    RollingBack(ErrorCode),
    /// The ROLLBACK met a lost connection, which is reopened; then as above.
    Reconnecting(ErrorCode),
    /// The event is to be begun again.
    ToBeginAgain,
    /// It has left.
    Gone,
}

pub(crate) struct ScriptDriver {
    state: Rc<State>,
    watch: Rc<Watch>,
    coroutine: Coroutine,
    number: u32,
    stands: Stands,
    last_error: Option<ErrorCode>,
    by_arrival: bool,
    /// For the report on how evenly users were served.
    event_begin_ns: i64,
    is_connected: bool,
    awaits: Awaits,
    /// A lost connection is reopened until then, in monotonic nanoseconds.
    seeks_until_ns: i64,
}

/// What a user within a turn of its script waits for, in addition to the server's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Nothing,
    /// The first connection: one try.
    Connection,
    /// A connection in place of one that was lost: tried for a while.
    Reconnection,
    /// The pause between two tries is over next.
    NextTry,
    /// A shell command, since this time.
    Errand {
        since_ns: i64,
    },
}

impl ScriptDriver {
    pub(crate) fn new(
        state: Rc<State>,
        watch: Rc<Watch>,
        number: u32,
        body: Body,
    ) -> Result<ScriptDriver, ScriptError> {
        let rng = Rng::for_transaction(state.facts.seed, u64::from(number), u64::MAX);
        let user = User::new(state.facts.clone(), state.samplers.clone(), rng, number);
        let coroutine = Coroutine::new(state.clone(), watch.clone(), user, number, body)?;
        Ok(ScriptDriver {
            state,
            watch,
            coroutine,
            number,
            stands: Stands::AtBegin,
            last_error: None,
            by_arrival: false,
            event_begin_ns: 0,
            is_connected: false,
            awaits: Awaits::Nothing,
            seeks_until_ns: 0,
        })
    }

    fn user(&mut self) -> &mut User {
        self.coroutine.user()
    }

    /// Notes what became of the coroutine's request. Returns what the coroutine is resumed with.
    fn take_reply(&mut self, reply: &Reply<'_>) -> Resumption {
        let view: &mut View = &mut self.user().view;
        view.status = STATUS_NONE;
        view.errno = 0;
        match reply {
            Reply::Nothing => {}
            Reply::Fine(fine) => {
                self.user().show_results(fine.captured);
                if self.user().view.has_rows != 0 {
                    return Resumption::WithRows;
                }
            }
            Reply::Prepared { statement_id, params, columns } => {
                view.statement_id = *statement_id;
                view.params = u32::from(*params);
                self.user().prepared_columns.clear();
                self.user().prepared_columns.extend_from_slice(columns);
            }
            Reply::Error { code, message, .. } => {
                self.take_error(*code, message, false);
                return Resumption::Failed;
            }
            Reply::Lost { code, message } => {
                self.is_connected = false;
                self.take_error(*code, message, true);
                return Resumption::Failed;
            }
            Reply::Connected { .. } => {
                self.is_connected = true;
                self.user().generation += 1;
                self.user().forget_results();
            }
        }
        Resumption::GoOn
    }

    fn take_error(&mut self, code: ErrorCode, message: &str, is_lost: bool) {
        let is_ignored = self.state.facts.ignore_errors.contains(code.errno);
        self.user().forget_results();
        let view = &mut self.user().view;
        view.status = if is_ignored { STATUS_IGNORABLE } else { STATUS_FATAL };
        view.errno = i32::from(code.errno);
        view.is_lost = u32::from(is_lost);
        self.user().sqlstate = code.sqlstate;
        self.user().message.clear();
        self.user().message.extend_from_slice(message.as_bytes());
        self.last_error = Some(code);
    }

    /// The connection was lost while the transaction was rolled back. The event is begun again on a new one, and the
    /// script gets the error of the loss.
    fn lost_in_rollback(&mut self, code: ErrorCode, lost: ErrorCode, message: &str) -> Next {
        self.take_error(lost, message, true);
        if self.user().view.status == STATUS_FATAL {
            return self.fail_without_connection(lost, message);
        }
        self.stands = Stands::Reconnecting(code);
        self.state.facts.count(self.number, COUNT_RECONNECT);
        Next::Reconnect
    }

    fn fail_without_connection(&self, lost: ErrorCode, message: &str) -> Next {
        let message = format!("the connection was lost at ROLLBACK: {message} ({lost})");
        self.state.facts.fail(ScriptFailure {
            function: "thread_run".to_string(),
            message: message.clone(),
            trace: String::new(),
        });
        Next::Fail { cause: Cause::ConnectionLost, message }
    }

    /// Before an event: whether there is to be one.
    fn prepare_event(&mut self, now_ns: i64) -> Resumption {
        self.event_begin_ns = now_ns;
        let facts = &self.state.facts;
        if facts.ending.load(Relaxed) || !facts.take_event() {
            return Resumption::NoMore;
        }
        facts.begin_event(self.number, now_ns);
        Resumption::GoOn
    }

    fn finish(&mut self) -> Next {
        self.stands = Stands::Gone;
        self.watch.user_left();
        self.state.facts.begin_event(self.number, 0);
        self.state.facts.left.fetch_add(1, Relaxed);
        Next::Leave
    }

    /// What follows a try to open a connection. Returns what the script is resumed with; as an error, the next try or
    /// the pause before it.
    fn seek_connection(&mut self, reply: &Reply<'_>, now_ns: i64) -> Result<Resumption, Next> {
        let sought = self.awaits;
        if sought == Awaits::NextTry {
            self.awaits = Awaits::Reconnection;
            return Err(Next::Reconnect);
        }
        self.awaits = Awaits::Nothing;
        let Reply::Lost { code, message } = reply else { return Ok(self.take_reply(reply)) };
        let is_over = self.state.facts.ending.load(Relaxed) || was_interrupted();
        if sought == Awaits::Reconnection && now_ns < self.seeks_until_ns && !is_over {
            self.awaits = Awaits::NextTry;
            return Err(Next::Pause(RECONNECT_PAUSE));
        }
        self.is_connected = false;
        self.print_not_connected(*code, message);
        Ok(self.take_reply(reply))
    }

    fn print_not_connected(&self, code: ErrorCode, message: &str) {
        let servers = &self.state.facts.servers;
        // The caller's users are counted from the end, and use the first server.
        let place = if self.number == u32::MAX { 0 } else { self.number as usize % servers.len().max(1) };
        let server = servers.get(place).map_or("", String::as_str);
        say_fatal(&format!("unable to connect to MySQL server on {server}, aborting..."));
        say_fatal(&format!("error {}: {message}", code.errno));
    }

    /// Checks whether the shell command has ended.
    fn await_errand(&mut self, since_ns: i64, now_ns: i64) -> Option<Next> {
        let ended = self.user().errand.as_ref().and_then(Errand::status);
        if let Some(status) = ended.or(was_interrupted().then_some(-1)) {
            self.user().errand_status = status;
            self.user().errand = None;
            self.awaits = Awaits::Nothing;
            return None;
        }
        self.awaits = Awaits::Errand { since_ns };
        let waited = Duration::from_nanos((now_ns - since_ns).max(0) as u64);
        Some(Next::Pause((waited / 8).clamp(ERRAND_POLL_MIN, ERRAND_POLL_MAX)))
    }

    fn send(&mut self, format: RowFormat) -> Next {
        Next::Send(Command { kind: Kind::ByAnswer(0), expects: Expects::Results(format), captures: true })
    }

    /// Runs the coroutine until it wants something that the engine does.
    fn go_on(&mut self, out: &mut Vec<u8>, mut resumption: Resumption, now_ns: i64) -> Next {
        loop {
            let (want, number) = self.coroutine.resume(out, resumption);
            match want {
                Want::Query => return self.send(RowFormat::Text),
                Want::Execute => return self.send(RowFormat::Binary),
                Want::Prepare => {
                    let kind = Kind::ByAnswer(0);
                    return Next::Send(Command { kind, expects: Expects::Prepared, captures: true });
                }
                Want::Nothing => {
                    self.user().keep_results();
                    let kind = Kind::ByAnswer(0);
                    return Next::Send(Command { kind, expects: Expects::Nothing, captures: false });
                }
                Want::Pause => {
                    self.user().keep_results();
                    return Next::Pause(Duration::from_nanos((number.max(0.0) * 1e3) as u64));
                }
                Want::Again => {
                    let code = match self.last_error {
                        Some(code) if f64::from(code.errno) == number => code,
                        _ => ErrorCode { errno: number as u16, sqlstate: *b"HY000" },
                    };
                    let is_undone = code.errno == DEADLOCK || CONNECTION_LOST.contains(&code.errno);
                    if is_undone || code.errno == 0 {
                        self.stands = Stands::ToBeginAgain;
                        return Next::Again(code);
                    }
                    // What the server has not undone itself would become part of the next transaction.
                    self.stands = Stands::RollingBack(code);
                    self.state.facts.rollbacks.fetch_add(1, Relaxed);
                    whyso_wire::encode::query(out, b"ROLLBACK");
                    return self.send(RowFormat::Text);
                }
                Want::Connect => {
                    self.awaits = Awaits::Connection;
                    return Next::Reconnect;
                }
                Want::Reconnect => {
                    self.awaits = Awaits::Reconnection;
                    self.seeks_until_ns = now_ns.saturating_add(RECONNECT_MAX.as_nanos() as i64);
                    self.state.facts.count(self.number, COUNT_RECONNECT);
                    return Next::Reconnect;
                }
                Want::Errand => {
                    self.user().keep_results();
                    match self.await_errand(now_ns, now_ns) {
                        Some(pause) => return pause,
                        None => resumption = Resumption::GoOn,
                    }
                }
                Want::Ready => {
                    // `thread_init` may leave results for the first event.
                    self.user().keep_results();
                    self.state.facts.ready.fetch_add(1, Relaxed);
                    if !self.by_arrival {
                        self.stands = Stands::Ready;
                        return Next::Pause(Duration::ZERO);
                    }
                    // An arrival is not to be lost: it is served now.
                    resumption = self.prepare_event(now_ns);
                }
                Want::Done => {
                    self.stands = Stands::BeforeEvent;
                    self.state.facts.count_event(self.number, now_ns - self.event_begin_ns);
                    return Next::Done { transaction: 0, counted: true };
                }
                Want::Finished => return self.finish(),
                Want::Failed => {
                    self.stands = Stands::Gone;
                    self.watch.user_left();
                    self.state.facts.left.fetch_add(1, Relaxed);
                    let failure = self.state.facts.failure();
                    let message = failure.map_or_else(String::new, |failure| failure.message);
                    let message = format!("user {}: {message}", self.number);
                    return Next::Fail { cause: Cause::Driver, message };
                }
            }
        }
    }
}

impl Driver for ScriptDriver {
    fn begin(&mut self, number: u64, by_arrival: bool) {
        self.by_arrival = by_arrival;
        // What an event draws depends on the seed and its place only, not on what was drawn before.
        let user = if by_arrival { u64::MAX } else { u64::from(self.number) };
        if self.state.facts.job == Job::Events {
            self.user().rng = Rng::for_transaction(self.state.facts.seed, user, number);
        }
    }

    fn next(&mut self, turn: &mut Turn<'_>) -> Next {
        let resumption = match self.stands {
            Stands::Gone => return Next::Leave,
            Stands::Inside if matches!(self.awaits, Awaits::Errand { .. }) => {
                let Awaits::Errand { since_ns } = self.awaits else { return Next::Leave };
                match self.await_errand(since_ns, turn.now_ns) {
                    Some(pause) => return pause,
                    None => Resumption::GoOn,
                }
            }
            Stands::Inside if self.awaits != Awaits::Nothing => {
                match self.seek_connection(&turn.reply, turn.now_ns) {
                    Ok(resumption) => resumption,
                    Err(next) => return next,
                }
            }
            Stands::AtBegin | Stands::Inside => self.take_reply(&turn.reply),
            Stands::Ready => {
                let facts = &self.state.facts;
                if !facts.go.load(Relaxed) && !facts.ending.load(Relaxed) {
                    return Next::Pause(READY_POLL);
                }
                self.stands = Stands::BeforeEvent;
                return Next::Done { transaction: 0, counted: false };
            }
            Stands::BeforeEvent => self.prepare_event(turn.now_ns),
            Stands::RollingBack(code) => {
                if let Reply::Lost { code: lost, message } = turn.reply {
                    return self.lost_in_rollback(code, lost, message);
                }
                self.stands = Stands::ToBeginAgain;
                return Next::Again(code);
            }
            Stands::Reconnecting(code) => {
                if let Reply::Lost { code: lost, message } = turn.reply {
                    return self.fail_without_connection(lost, message);
                }
                self.user().generation += 1;
                self.stands = Stands::ToBeginAgain;
                return Next::Again(code);
            }
            // When the run is over, what would have to be begun again is left.
            Stands::ToBeginAgain if self.state.facts.ending.load(Relaxed) => Resumption::NoMore,
            Stands::ToBeginAgain => Resumption::GoOn,
        };
        self.stands = Stands::Inside;
        let next = self.go_on(turn.out, resumption, turn.now_ns);
        if !matches!(next, Next::Pause(_) | Next::Send(Command { expects: Expects::Nothing, .. })) {
            // What was captured is the engine's again.
            self.user().captured = std::ptr::null();
        }
        next
    }

    fn leaves_open(&self) -> bool {
        self.stands == Stands::Inside && self.is_connected
    }
}

impl Drop for ScriptDriver {
    /// A user that stands before an event when the level ends has its `thread_done` called all the same; its connection
    /// is not there any more.
    fn drop(&mut self) {
        if self.stands == Stands::BeforeEvent && self.state.facts.failure().is_none() {
            self.user().forget_results();
            let mut out = Vec::new();
            // What it wants is not available; a script that asks once is not asked again.
            let _ = self.coroutine.resume(&raw mut out, Resumption::IsOver);
        }
    }
}

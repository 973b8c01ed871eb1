//! What a user does: the contract between an engine, which sends and measures times, and a driver, which decides what is sent.
//!
//! An engine asks a [`Driver`] what comes next, carries it out, and asks again with the [`Reply`]. A driver never waits,
//! reads no clock and knows no socket; it stays on the loop (or thread) that it was created on. Retries are a
//! driver's own decision: it alone knows what has to be rolled back and which parameters to send again.

use std::error;
use std::time::Duration;

use thiserror::Error;
use whyso_http::{AnswerScanner, Wish};
use whyso_wire::{ColumnType, ResultRows, RowFormat};

use crate::outcome::{Cause, ErrorCode};

/// What a level's users do. Shared by its loops.
pub trait Work: Send + Sync {
    /// The kinds of statements that results are grouped by. A [`Command`] names one by its place in this list.
    fn kinds(&self) -> &[String];

    /// The kinds of transactions that results are grouped by too, where there are several. [`Next::Done`] names one by
    /// its
    /// place in this list.
    fn transactions(&self) -> &[String] {
        &[]
    }

    /// Statements that are prepared on every connection before it is used; a driver finds their ids in
    /// [`Turn::handles`], in this order.
    fn preparations(&self) -> &[Preparation] {
        &[]
    }

    /// Statements that are run once on every connection, before its preparations: what they take is the connection's time,
    /// and no transaction's.
    fn session(&self) -> &[String] {
        &[]
    }

    /// Makes the drivers of these users, on the loop that will ask them. `loop_number` counts from 0.
    ///
    /// # Errors
    /// The reason of the work's own; the level does not begin.
    fn drivers(&self, loop_number: u32, users: &[u32]) -> Result<Vec<Box<dyn Driver>>, WorkError>;

    /// The kind of transaction `number` of a user or, without one, of arrival `number`: its place in
    /// [`transactions`](Work::transactions). `None`: there is only one kind, or only the driver knows.
    fn transaction_kind(&self, user: Option<u32>, number: u64) -> Option<u16> {
        let _ = (user, number);
        None
    }

    /// Whether its drivers send LOAD DATA LOCAL. Where they do not, a server that asks for a file is refused.
    fn sends_files(&self) -> bool {
        false
    }

    /// Whether its transactions make connections: an engine of threads then makes them all at once.
    fn connects(&self) -> bool {
        false
    }

    /// Whether users begin without a connection and ask for theirs by [`Next::Reconnect`]. Each such request is tried
    /// once, and a failure is answered by [`Reply::Lost`]: its message is what the C client would say.
    fn connects_on_demand(&self) -> bool {
        false
    }

    /// Whether it asks for pages over HTTP, and then the longest body that counts as an answer, in bytes. A connection has neither a
    /// login nor statements then. A request without an answer in time, or with a wrong one, is counted and does not end the level.
    /// Each connection in mid-level is tried once, as for [`connects_on_demand`](Work::connects_on_demand).
    fn body_bytes_max(&self) -> Option<u64> {
        None
    }
}

/// Work that is never done: for connections that are only held, or looked at.
pub(crate) struct Nothing;

impl Work for Nothing {
    fn kinds(&self) -> &[String] {
        &[]
    }

    fn drivers(&self, _loop_number: u32, _users: &[u32]) -> Result<Vec<Box<dyn Driver>>, WorkError> {
        Ok(Vec::new())
    }
}

/// Why a [`Work`] could not make its drivers. It holds the error of the crate that implements the work.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct WorkError(Box<dyn error::Error + Send + Sync>);

impl WorkError {
    pub fn new(error: impl Into<Box<dyn error::Error + Send + Sync>>) -> WorkError {
        WorkError(error.into())
    }
}

/// A statement to be prepared on every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// For messages.
    pub kind: String,
    pub sql: String,
    /// Whether a server that can't prepare it (error 1295) is no failure: then [`Handles::execute`] gives no id, and
    /// the driver sends it as text.
    pub or_as_text: bool,
}

/// One user.
pub trait Driver {
    /// Stands before a transaction. In a closed loop `number` counts this user's own. In an open loop it is the number
    /// of the arrival, and `by_arrival` is set. Then the transaction is a function of the seed and `number` only.
    fn begin(&mut self, number: u64, by_arrival: bool);

    /// Says what comes next. `turn.reply` shows what became of what was asked for before.
    fn next(&mut self, turn: &mut Turn<'_>) -> Next;

    /// Appends the next piece of the file that the server asked for in answer to our own LOAD DATA LOCAL to `content`,
    /// which is empty. Returns whether more is to come; no content is the end. It is called again once the piece is
    /// sent. Nothing that the server names is ever read.
    fn local_file(&mut self, content: &mut Vec<u8>) -> bool {
        let _ = content;
        false
    }

    /// Judges the whole answer to a page, and takes from it what later requests need.
    ///
    /// # Errors
    /// What the answer counts as, where it is not good. [`Reply::Error`] follows.
    fn judge(&mut self, answer: &AnswerScanner) -> Result<(), ErrorCode> {
        let _ = answer;
        Ok(())
    }

    /// In a closed loop, when transaction `number` is due at the earliest, by the times at which the one before was due and ended.
    /// `None`: as the level's pacing says. The later of both counts.
    fn due_ns(&self, number: u64, before_due_ns: i64, ended_ns: i64) -> Option<i64> {
        let _ = (number, before_due_ns, ended_ns);
        None
    }

    /// What was sent last, for messages: its kind and text.
    fn last_sent(&self) -> String {
        "a statement".to_string()
    }

    /// The level is over for this user and nothing more will be asked. Whether a transaction may be open on the server,
    /// which a ROLLBACK then ends.
    fn leaves_open(&self) -> bool {
        false
    }
}

/// What a driver decides by what comes next.
pub struct Turn<'a> {
    pub reply: Reply<'a>,
    /// When the engine had the reply, or the transaction began, in monotonic nanoseconds: for what a driver reports, not
    /// for what it decides.
    pub now_ns: i64,
    /// The command's bytes go here, encoded by `whyso_wire::encode`; it is empty.
    pub out: &'a mut Vec<u8>,
    /// Statements that are prepared on this connection.
    pub handles: &'a mut Handles,
    /// Whether a lost connection may be reopened ([`Next::Reconnect`]) within the load's limits.
    pub may_reconnect: bool,
}

/// What became of the thing asked for before.
#[derive(Clone, Copy, Debug)]
pub enum Reply<'a> {
    /// Nothing was: a transaction begins, or a pause is over.
    Nothing,
    /// The server did it.
    Fine(Fine<'a>),
    /// The server refused it. With several results, those before the error are in `captured`.
    Error { code: ErrorCode, message: &'a str, captured: &'a ResultRows },
    Prepared {
        statement_id: u32,
        params: u16,
        /// Types of the columns of its rows; empty where it gives none, or the command did not ask to capture. Servers may
        /// leave them out of the answers to its executions.
        columns: &'a [ColumnType],
    },
    /// The new connection that was asked for is there; nothing of the old one is left. `lost`: what the old one ended
    /// with, where it was not closed by us.
    Connected { lost: Option<ErrorCode> },
    /// The connection is lost, and what was asked with it: [`Next::Reconnect`] or [`Next::Fail`]. Where work
    /// [connects on demand](Work::connects_on_demand), also: the connection that was asked for could not be opened.
    Lost { code: ErrorCode, message: &'a str },
}

/// The sum over every result of the command.
#[derive(Clone, Copy, Debug)]
pub struct Fine<'a> {
    /// Result sets, empty ones included.
    pub result_sets: u32,
    pub rows: u64,
    pub affected_rows: u64,
    /// Empty unless the command asked to capture.
    pub captured: &'a ResultRows,
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// Send what was written to `turn.out` and wait for its whole answer.
    Send(Command),
    /// Send nothing for this long; it counts as the transaction's time.
    Pause(Duration),
    /// The attempt is given up because of this error, and the transaction begins again: service time counts from here.
    /// Asked again at once.
    Again(ErrorCode),
    /// The transaction has ended: well and counted, or neither. `transaction`: its place in [`Work::transactions`],
    /// where there are any. [`Driver::begin`] follows, unless the level is over.
    Done { transaction: u16, counted: bool },
    /// Close the connection and make a new one, prepared as at the begin. Answered by [`Reply::Connected`]; where none can be made within
    /// the limits, the level ends.
    Reconnect,
    /// This user has no more to do.
    Leave,
    /// The level can't continue. `message` gives the reason in one sentence.
    Fail { cause: Cause, message: String },
}

/// How a command's answer is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Place in [`Work::kinds`].
    pub kind: Kind,
    pub expects: Expects,
    /// Keep column definitions and rows for [`Fine::captured`], and of a preparation the columns for [`Reply::Prepared`].
    pub captures: bool,
}

/// What a command counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    One(u16),
    /// By what the server answers, as sysbench counts. A result set counts at this place, affected rows at the next
    /// one, anything else (errors too) at the one after that.
    ByAnswer(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expects {
    /// Results, their rows in this form.
    Results(RowFormat),
    /// The answer to a `COM_STMT_PREPARE`.
    Prepared,
    /// A page over HTTP. Without `keeps_connection`, the connection carries no further request.
    Page { wish: Wish, keeps_connection: bool },
    /// Nothing, as after `COM_STMT_CLOSE`: asked again at once with [`Reply::Nothing`].
    Nothing,
}

/// What one connection knows of the statements that were prepared on it by [`Work::preparations`].
#[derive(Clone, Debug, Default)]
pub struct Handles {
    /// None where the server can't prepare the statement.
    statement_ids: Vec<Option<u32>>,
    /// The statement was executed before on this connection, so that the server knows its parameters' types.
    types_known: Vec<bool>,
}

impl Handles {
    pub(crate) fn push(&mut self, statement_id: Option<u32>) {
        self.statement_ids.push(statement_id);
        self.types_known.push(false);
    }

    /// Id of a statement, none where it is to be sent as text, and whether it was executed before; from now on it was.
    #[inline]
    pub fn execute(&mut self, place: usize) -> (Option<u32>, bool) {
        (self.statement_ids[place], std::mem::replace(&mut self.types_known[place], true))
    }
}

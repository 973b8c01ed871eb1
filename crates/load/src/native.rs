//! The workload's own programs as drivers.

use std::sync::Arc;

use thiserror::Error;
use whyso_wire::{CapturedResult, ExecuteTemplate, ParamType, QueryTemplate, ResultRows, RowFormat, encode};
use whyso_workload::Turn as Step;
use whyso_workload::{
    ARRIVALS_USER, Call, Capture, Cursor, Param, Program, Protocol, Scalar, SqlText, Statement, Stuck, Value,
    ValueType, Workload,
};

use crate::connection::session::TAKES_NO_PART;
use crate::driver::{
    Command, Driver, Expects, Fine, Handles, Kind, Next, Preparation, Reply, Turn, Work, WorkError,
};
use crate::outcome::{Cause, ErrorCode, ROLLBACK};

/// Errors with which a server says that the connection ends: shutdown in progress (1053), connection killed (1927 in
/// MariaDB; 3169, 4031 in MySQL), a node of Galera that takes no part in its cluster.
const CONNECTION_ENDS: [u16; 5] = [1053, 1927, 3169, 4031, TAKES_NO_PART];

/// A [`Workload`] with everything worked out that sending it needs.
pub struct NativeWork {
    plan: Arc<Plan>,
    preparations: Vec<Preparation>,
    session: Vec<String>,
    seed: u64,
}

struct Plan {
    program: Program,
    encoders: Vec<Encoder>,
    /// The workload's own in order, then "rollback".
    kinds: Vec<String>,
    /// Those transactions that are ever drawn; empty where that is one alone.
    transactions: Vec<String>,
    /// By the workload's transactions: the place among these.
    transaction_places: Vec<u16>,
    /// By statement: its place among the preparations, and whether every table has one.
    places: Vec<(usize, bool)>,
    retry_errors: Vec<u16>,
    opens_transaction: bool,
}

struct Encoder {
    kind: u16,
    form: Form,
}

enum Form {
    Prepared {
        template: ExecuteTemplate,
        /// Where it has neither parameters nor a table's name: what is sent where the server can't prepare it.
        text: Vec<u8>,
    },
    /// One for each table, or a single one where the text names none.
    Text(Vec<QueryTemplate>),
    /// With values of every type, and such that are a part of the text.
    Composed(SqlText),
}

impl NativeWork {
    /// Works out what sending this workload needs. Transaction k of user u is a function of (`seed`, u, k) and the
    /// server's answers only. A workload that takes unique values needs [`for_users`](NativeWork::for_users).
    pub fn new(workload: &Workload, seed: u64) -> NativeWork {
        NativeWork::for_users(workload, seed, 1)
    }

    /// The same; `users` is the largest number of users of any level, among which unique values are shared out.
    pub fn for_users(workload: &Workload, seed: u64, users: u32) -> NativeWork {
        let mut kinds: Vec<String> = Vec::new();
        let mut encoders = Vec::new();
        for statement in workload.statements() {
            let place = kinds.iter().position(|kind| *kind == statement.kind);
            let kind = place.unwrap_or_else(|| {
                kinds.push(statement.kind.clone());
                kinds.len() - 1
            });
            encoders.push(Encoder { kind: kind as u16, form: form_of(statement, workload) });
        }
        kinds.push(ROLLBACK.to_string());
        let program = Program::new(workload, users);
        let mut preparations = Vec::new();
        let mut places = Vec::new();
        for statement in program.statements() {
            places.push((preparations.len(), statement.is_per_table()));
            if statement.protocol != Protocol::Prepared {
                continue;
            }
            let last_table = if statement.is_per_table() { program.tables() } else { 1 };
            for table in 1..=last_table {
                let sql = statement.sql_for_table(table);
                let or_as_text = can_be_text(statement);
                preparations.push(Preparation { kind: statement.kind.clone(), sql, or_as_text });
            }
        }
        let plan = Plan {
            program,
            encoders,
            kinds,
            transactions: workload.transaction_kinds().into_iter().map(str::to_string).collect(),
            transaction_places: transaction_places(workload),
            places,
            retry_errors: workload.retry_errors.clone(),
            opens_transaction: workload.opens_transaction(),
        };
        NativeWork { plan: Arc::new(plan), preparations, session: workload.session.clone(), seed }
    }
}

impl Work for NativeWork {
    fn kinds(&self) -> &[String] {
        &self.plan.kinds
    }

    fn transactions(&self) -> &[String] {
        &self.plan.transactions
    }

    fn transaction_kind(&self, user: Option<u32>, number: u64) -> Option<u16> {
        let user = user.map_or(ARRIVALS_USER, u64::from);
        let transaction = self.plan.program.transaction_of(self.seed, user, number);
        self.plan.transaction_places.get(transaction).copied().filter(|_| !self.plan.transactions.is_empty())
    }

    fn preparations(&self) -> &[Preparation] {
        &self.preparations
    }

    fn session(&self) -> &[String] {
        &self.session
    }

    fn connects(&self) -> bool {
        self.plan.program.reconnects()
    }

    fn sends_files(&self) -> bool {
        self.plan.program.statements().iter().any(|statement| statement.local_rows.is_some())
    }

    fn drivers(&self, _loop_number: u32, users: &[u32]) -> Result<Vec<Box<dyn Driver>>, WorkError> {
        let users_known = self.plan.program.users();
        if self.plan.program.takes_unique_values()
            && let Some(user) = users.iter().find(|user| **user >= users_known)
        {
            return Err(WorkError::new(NotUnique { user: *user, users: users_known }));
        }
        let driver = |user: &u32| -> Box<dyn Driver> {
            Box::new(NativeDriver::new(self.plan.clone(), self.seed, u64::from(*user)))
        };
        Ok(users.iter().map(driver).collect())
    }
}

/// Users for which there are no values of their own.
#[derive(Debug, Error)]
#[error("user {user} would take values that another takes: unique_from has values for {users} users")]
struct NotUnique {
    user: u32,
    users: u32,
}

/// An answer from which `\gset` can't set its variables. `kind`: that of the statement.
#[derive(Debug, Error)]
#[error("\\gset can't keep what {kind} answered: {problem}")]
struct GsetError {
    kind: String,
    problem: CaptureError,
}

#[derive(Debug, Error)]
enum CaptureError {
    #[error("it returned no rows")]
    NoRows,
    #[error("its column '{column}' has the name of a variable that \\set gives; give \\gset a prefix")]
    HiddenVariable { column: String },
    #[error("it has no column '{column}'; its columns are {columns}")]
    NoColumn { column: String, columns: String },
}

/// By the workload's transactions: the place of each among those that are ever drawn.
fn transaction_places(workload: &Workload) -> Vec<u16> {
    let mut drawn = 0;
    let mut places = Vec::new();
    for transaction in &workload.transactions {
        places.push(drawn);
        drawn += u16::from(transaction.weight > 0);
    }
    places
}

fn form_of(statement: &Statement, workload: &Workload) -> Form {
    let is_composed = |param: &Param| matches!(param, Param::Variable(_) | Param::Inline(_));
    match statement.protocol {
        Protocol::Text if statement.params.iter().any(is_composed) => {
            Form::Composed(SqlText::new(&statement.sql))
        }
        Protocol::Text => {
            let last_table = if statement.is_per_table() { workload.tables.max(1) } else { 1 };
            let texts = (1..=last_table).map(|table| statement.sql_for_table(table));
            Form::Text(texts.map(|sql| QueryTemplate::new(&sql)).collect())
        }
        Protocol::Prepared => {
            let types: Vec<ParamType> =
                statement.params.iter().map(|param| type_of(param, workload)).collect();
            let text = if can_be_text(statement) { statement.sql.clone().into_bytes() } else { Vec::new() };
            Form::Prepared { template: ExecuteTemplate::new(&types), text }
        }
    }
}

/// Whether a prepared statement can be sent as it stands.
fn can_be_text(statement: &Statement) -> bool {
    statement.params.is_empty() && !statement.is_per_table()
}

fn type_of(param: &Param, workload: &Workload) -> ParamType {
    match param {
        Param::Drawn { .. } | Param::Int(_) => ParamType::Int32,
        Param::Digits { .. } => ParamType::Text,
        Param::Inline(_) => ParamType::Int64,
        Param::Variable(place) => match workload.variables.get(usize::from(*place)).map(|v| v.value_type) {
            Some(ValueType::Int) => ParamType::Int64,
            Some(ValueType::Double) => ParamType::Double,
            Some(ValueType::Text) | None => ParamType::Text,
        },
    }
}

/// Walks one user through its transactions.
struct NativeDriver {
    plan: Arc<Plan>,
    cursor: Cursor,
    seed: u64,
    user: u64,
    /// Whose transaction it is, and which: see [`Cursor::start`].
    transaction: (u64, u64),
    /// The error after which a rollback is under way.
    rolling_back: Option<ErrorCode>,
    /// Statement and table that were sent last.
    last: Option<(usize, u32)>,
    /// The transaction itself asked for a new connection.
    reconnecting: bool,
    /// Why the lines of a LOAD DATA LOCAL could not be generated.
    stuck: Option<Stuck>,
    /// The text of a composed statement.
    composed: Vec<u8>,
}

impl NativeDriver {
    fn new(plan: Arc<Plan>, seed: u64, user: u64) -> NativeDriver {
        NativeDriver {
            plan,
            cursor: Cursor::new(seed, user, 0),
            seed,
            user,
            transaction: (user, 0),
            rolling_back: None,
            last: None,
            reconnecting: false,
            stuck: None,
            composed: Vec::new(),
        }
    }

    fn start(&mut self) {
        self.cursor.start(self.seed, self.transaction.0, self.transaction.1);
        self.rolling_back = None;
        self.last = None;
        self.reconnecting = false;
    }

    /// Encodes the next statement of the transaction, or ends it.
    #[inline]
    fn step(&mut self, handles: &mut Handles, out: &mut Vec<u8>) -> Next {
        match self.cursor.next(&self.plan.program) {
            Ok(Step::Send(call)) => {
                self.last = Some((call.statement, call.table));
                statement(&self.plan, &mut self.cursor, call, handles, &mut self.composed, out)
            }
            Ok(Step::End) => {
                self.last = None;
                let transaction = self.plan.transaction_places.get(self.cursor.transaction()).copied();
                Next::Done { transaction: transaction.unwrap_or(0), counted: true }
            }
            Ok(Step::Pause(time)) => Next::Pause(time),
            Ok(Step::Reconnect) => {
                self.reconnecting = true;
                self.last = None;
                Next::Reconnect
            }
            Err(stuck) => give_up(stuck),
        }
    }

    /// Hands to the cursor what the server answered to the statement that was sent last.
    #[inline]
    fn answered(&mut self, fine: &Fine<'_>) -> Result<(), GsetError> {
        let Some((statement, _)) = self.last else { return Ok(()) };
        self.cursor.answered(fine.rows, fine.affected_rows);
        let statement = &self.plan.program.statements()[statement];
        match &statement.capture {
            Some(capture) => keep(&mut self.cursor, capture, fine.captured)
                .map_err(|problem| GsetError { kind: statement.kind.clone(), problem }),
            None => Ok(()),
        }
    }

    #[cold]
    fn error(&mut self, code: ErrorCode, message: &str, turn: &mut Turn<'_>) -> Next {
        if turn.may_reconnect && CONNECTION_ENDS.contains(&code.errno) {
            return Next::Reconnect;
        }
        let is_retried = self.plan.retry_errors.contains(&code.errno);
        if self.rolling_back.is_some() || !is_retried {
            let statement = self.last_sent();
            let message = format!("the server answered {statement} with error {code}: {message}");
            return Next::Fail { cause: Cause::ServerError(code), message };
        }
        if !self.plan.opens_transaction {
            self.start();
            return Next::Again(code);
        }
        self.rolling_back = Some(code);
        self.last = None;
        encode::query(turn.out, b"ROLLBACK");
        send((self.plan.kinds.len() - 1) as u16, RowFormat::Text, false)
    }
}

#[inline]
fn statement(
    plan: &Plan,
    cursor: &mut Cursor,
    call: Call<'_>,
    handles: &mut Handles,
    composed: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Next {
    let encoder = &plan.encoders[call.statement];
    let captures = plan.program.statements()[call.statement].capture.is_some();
    let format = match &encoder.form {
        Form::Prepared { template, text } => {
            let (first, is_per_table) = plan.places[call.statement];
            let place = if is_per_table { first + call.table as usize - 1 } else { first };
            let (statement_id, types_known) = handles.execute(place);
            let Some(statement_id) = statement_id else {
                encode::query(out, text);
                return send(encoder.kind, RowFormat::Text, captures);
            };
            let mut writer = template.begin(out, statement_id, types_known);
            for (place, param) in call.params.iter().enumerate() {
                match cursor.value(&plan.program, *param) {
                    Value::Int(value) => writer.int32(value),
                    Value::Int64(value) => writer.int64(value),
                    Value::Double(value) => writer.double(value),
                    Value::Text(text) => writer.text(text),
                    Value::Null => writer.null(place),
                }
            }
            writer.finish();
            RowFormat::Binary
        }
        Form::Text(templates) => {
            let template = &templates[(call.table as usize - 1).min(templates.len() - 1)];
            let mut writer = template.begin(out);
            for param in call.params {
                match cursor.value(&plan.program, *param) {
                    Value::Int(value) => writer.int32(value),
                    Value::Text(text) => writer.text(text),
                    // Statements with variables are composed.
                    Value::Int64(_) | Value::Double(_) | Value::Null => {}
                }
            }
            writer.finish();
            RowFormat::Text
        }
        Form::Composed(text) => {
            composed.clear();
            text.write(&plan.program, cursor, call.params, composed);
            encode::query(out, composed);
            RowFormat::Text
        }
    };
    send(encoder.kind, format, captures)
}

#[cold]
fn give_up(stuck: Stuck) -> Next {
    match stuck {
        Stuck::UsedUp { .. } => Next::Leave,
        other => Next::Fail { cause: Cause::Driver, message: other.to_string() },
    }
}

fn send(kind: u16, format: RowFormat, captures: bool) -> Next {
    Next::Send(Command { kind: Kind::One(kind), expects: Expects::Results(format), captures })
}

/// Puts the first row of the first result set into variables; NULLs where it has none.
fn keep(cursor: &mut Cursor, capture: &Capture, captured: &ResultRows) -> Result<(), CaptureError> {
    let set = captured.results().find_map(|result| match result {
        CapturedResult::Rows(set) => Some(set),
        CapturedResult::Done { .. } => None,
    });
    let Some(set) = set else { return Err(CaptureError::NoRows) };
    let names =
        || set.names().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>().join(", ");
    if let Some(hidden) = capture.reserved.iter().find(|name| set.names().any(|n| n == name.as_bytes())) {
        return Err(CaptureError::HiddenVariable { column: hidden.clone() });
    }
    for (column, variable) in &capture.columns {
        let Some(place) = set.names().position(|name| name == column.as_bytes()) else {
            return Err(CaptureError::NoColumn { column: column.clone(), columns: names() });
        };
        let value = set.row(0).and_then(|row| row.fields().nth(place)).flatten();
        cursor.keep(*variable, value.map_or(Scalar::Null, Scalar::Text));
    }
    Ok(())
}

impl Driver for NativeDriver {
    #[inline]
    fn begin(&mut self, number: u64, by_arrival: bool) {
        self.transaction = (if by_arrival { ARRIVALS_USER } else { self.user }, number);
        self.start();
    }

    #[inline]
    fn next(&mut self, turn: &mut Turn<'_>) -> Next {
        match turn.reply {
            Reply::Nothing | Reply::Prepared { .. } => {}
            Reply::Fine(fine) => {
                if let Some(stuck) = self.stuck.take() {
                    return give_up(stuck);
                }
                if let Err(error) = self.answered(&fine) {
                    return Next::Fail { cause: Cause::Driver, message: error.to_string() };
                }
            }
            Reply::Error { code, message, .. } => return self.error(code, message, turn),
            Reply::Lost { .. } if turn.may_reconnect => return Next::Reconnect,
            Reply::Lost { message, .. } => {
                let statement = self.last_sent();
                let message = format!("the connection to the server was lost during {statement}: {message}");
                return Next::Fail { cause: Cause::ConnectionLost, message };
            }
            Reply::Connected { lost: None } if self.reconnecting => self.reconnecting = false,
            Reply::Connected { lost } => {
                self.start();
                if let Some(code) = lost {
                    return Next::Again(code);
                }
            }
        }
        if let Some(code) = self.rolling_back {
            self.start();
            return Next::Again(code);
        }
        self.step(turn.handles, turn.out)
    }

    fn local_file(&mut self, content: &mut Vec<u8>) -> bool {
        let Some((statement, _)) = self.last else { return false };
        let program = &self.plan.program;
        let Some(local) = &program.statements()[statement].local_rows else { return false };
        match self.cursor.local_lines(program, local, content) {
            Ok(more) => more,
            Err(stuck) => {
                self.stuck = Some(stuck);
                false
            }
        }
    }

    fn last_sent(&self) -> String {
        match self.last {
            Some((number, table)) => {
                let statement = &self.plan.program.statements()[number];
                format!("{} ({})", statement.kind, statement.sql_for_table(table))
            }
            None => ROLLBACK.to_string(),
        }
    }

    fn leaves_open(&self) -> bool {
        self.plan.opens_transaction && (self.last.is_some() || self.rolling_back.is_some())
    }
}

//! The workload's own programs as drivers.

use std::sync::Arc;

use whyso_wire::{ExecuteTemplate, ParamType, QueryTemplate, RowFormat, encode};
use whyso_workload::{Call, Cursor, Param, Program, Protocol, Statement, Value, Workload};

use crate::driver::{Command, Driver, Expects, Handles, Kind, Next, Preparation, Reply, Turn, Work};
use crate::outcome::{Cause, ErrorCode, ROLLBACK};

/// Errors with which a server says that the connection ends: shutdown in progress (1053), connection killed (1927 in
/// MariaDB; 3169, 4031 in MySQL).
const CONNECTION_ENDS: [u16; 4] = [1053, 1927, 3169, 4031];
/// The number that an open loop's arrivals are drawn under, whichever user takes them.
const ARRIVALS: u64 = u64::MAX;

/// A [`Workload`] with everything worked out that sending it needs.
pub struct NativeWork {
    plan: Arc<Plan>,
    preparations: Vec<Preparation>,
    seed: u64,
}

struct Plan {
    program: Program,
    encoders: Vec<Encoder>,
    /// The workload's own in order, then "rollback".
    kinds: Vec<String>,
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
    Prepared(ExecuteTemplate),
    /// One for each table, or a single one where the text names none.
    Text(Vec<QueryTemplate>),
}

impl NativeWork {
    /// Works out what sending this workload needs. Transaction k of user u is a function of (`seed`, u, k) alone.
    pub fn new(workload: &Workload, seed: u64) -> NativeWork {
        let mut kinds: Vec<String> = Vec::new();
        let mut encoders = Vec::new();
        for statement in workload.statements() {
            let known = kinds.iter().position(|kind| *kind == statement.kind);
            let kind = known.unwrap_or_else(|| {
                kinds.push(statement.kind.clone());
                kinds.len() - 1
            });
            encoders.push(Encoder { kind: kind as u16, form: form_of(statement, workload.tables) });
        }
        kinds.push(ROLLBACK.to_string());
        let program = Program::new(workload);
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
                preparations.push(Preparation { kind: statement.kind.clone(), sql });
            }
        }
        let plan = Plan {
            program,
            encoders,
            kinds,
            places,
            retry_errors: workload.retry_errors.clone(),
            opens_transaction: workload.opens_transaction(),
        };
        NativeWork { plan: Arc::new(plan), preparations, seed }
    }
}

impl Work for NativeWork {
    fn kinds(&self) -> &[String] {
        &self.plan.kinds
    }

    fn preparations(&self) -> &[Preparation] {
        &self.preparations
    }

    fn drivers(&self, _loop_number: u32, users: &[u32]) -> Result<Vec<Box<dyn Driver>>, String> {
        let driver = |user: &u32| -> Box<dyn Driver> {
            Box::new(NativeDriver::new(self.plan.clone(), self.seed, u64::from(*user)))
        };
        Ok(users.iter().map(driver).collect())
    }
}

fn form_of(statement: &Statement, tables: u32) -> Form {
    match statement.protocol {
        Protocol::Text => {
            let last_table = if statement.is_per_table() { tables.max(1) } else { 1 };
            let texts = (1..=last_table).map(|table| statement.sql_for_table(table));
            Form::Text(texts.map(|sql| QueryTemplate::new(&sql)).collect())
        }
        Protocol::Prepared => {
            let types: Vec<ParamType> = statement.params.iter().map(type_of).collect();
            Form::Prepared(ExecuteTemplate::new(&types))
        }
    }
}

fn type_of(param: &Param) -> ParamType {
    match param {
        Param::Drawn { .. } | Param::Int(_) => ParamType::Int32,
        Param::Digits { .. } => ParamType::Text,
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
}

impl NativeDriver {
    fn new(plan: Arc<Plan>, seed: u64, user: u64) -> NativeDriver {
        let cursor = Cursor::new(seed, user, 0);
        NativeDriver { plan, cursor, seed, user, transaction: (user, 0), rolling_back: None, last: None }
    }

    fn start(&mut self) {
        self.cursor.start(self.seed, self.transaction.0, self.transaction.1);
        self.rolling_back = None;
        self.last = None;
    }

    /// Encodes the next statement of the transaction, or ends it.
    #[inline]
    fn statement(&mut self, handles: &mut Handles, out: &mut Vec<u8>) -> Next {
        let Some(call) = self.cursor.next(&self.plan.program) else {
            self.last = None;
            return Next::Done { counted: true };
        };
        self.last = Some((call.statement, call.table));
        let encoder = &self.plan.encoders[call.statement];
        let format = match &encoder.form {
            Form::Prepared(template) => {
                let (first, is_per_table) = self.plan.places[call.statement];
                let place = if is_per_table { first + call.table as usize - 1 } else { first };
                let (statement_id, types_known) = handles.execute(place);
                let mut writer = template.begin(out, statement_id, types_known);
                write_values(&mut self.cursor, &call, |value| match value {
                    Value::Int(value) => writer.int32(value),
                    Value::Text(text) => writer.text(text),
                });
                writer.finish();
                RowFormat::Binary
            }
            Form::Text(templates) => {
                let template = &templates[(call.table as usize - 1).min(templates.len() - 1)];
                let mut writer = template.begin(out);
                write_values(&mut self.cursor, &call, |value| match value {
                    Value::Int(value) => writer.int32(value),
                    Value::Text(text) => writer.text(text),
                });
                writer.finish();
                RowFormat::Text
            }
        };
        send(encoder.kind, format)
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
        send((self.plan.kinds.len() - 1) as u16, RowFormat::Text)
    }
}

fn send(kind: u16, format: RowFormat) -> Next {
    Next::Send(Command { kind: Kind::One(kind), expects: Expects::Results(format), captures: false })
}

impl Driver for NativeDriver {
    #[inline]
    fn begin(&mut self, number: u64, by_arrival: bool) {
        self.transaction = (if by_arrival { ARRIVALS } else { self.user }, number);
        self.start();
    }

    #[inline]
    fn next(&mut self, turn: &mut Turn<'_>) -> Next {
        match turn.reply {
            Reply::Nothing | Reply::Fine(_) | Reply::Prepared { .. } => {}
            Reply::Error { code, message, .. } => return self.error(code, message, turn),
            Reply::Lost { .. } if turn.may_reconnect => return Next::Reconnect,
            Reply::Lost { message, .. } => {
                let statement = self.last_sent();
                let message = format!("the connection to the server was lost during {statement}: {message}");
                return Next::Fail { cause: Cause::ConnectionLost, message };
            }
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
        self.statement(turn.handles, turn.out)
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

#[inline]
fn write_values(cursor: &mut Cursor, call: &Call<'_>, mut write: impl FnMut(Value<'_>)) {
    for param in call.params {
        write(cursor.value(*param));
    }
}

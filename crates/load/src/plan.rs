//! A workload with everything worked out that sending it needs, and the machine that walks through it.
//!
//! Nothing in here reads or writes a socket, so that any engine can use it.

use std::sync::Arc;

use whyso_wire::{ExecuteTemplate, ParamType, QueryTemplate, RowFormat, encode};
use whyso_workload::{Call, Cursor, Param, Program, Protocol, Statement, Value, Workload};

use crate::outcome::{ROLLBACK, TRANSACTION};

pub(crate) struct Plan {
    program: Program,
    encoders: Vec<Encoder>,
    /// Name of each kind: "transaction", the workload's own in order, "rollback".
    kinds: Vec<String>,
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

impl Plan {
    pub(crate) fn new(workload: &Workload) -> Plan {
        let mut kinds = vec![TRANSACTION.to_string()];
        let mut encoders = Vec::new();
        for statement in workload.statements() {
            let known = kinds.iter().skip(1).position(|kind| *kind == statement.kind);
            let kind = match known {
                Some(position) => position + 1,
                None => {
                    kinds.push(statement.kind.clone());
                    kinds.len() - 1
                }
            };
            encoders.push(Encoder { kind: kind as u16, form: form_of(statement, workload.tables) });
        }
        kinds.push(ROLLBACK.to_string());
        Plan {
            program: Program::new(workload),
            encoders,
            kinds,
            retry_errors: workload.retry_errors.clone(),
            opens_transaction: workload.opens_transaction(),
        }
    }

    pub(crate) fn kinds(&self) -> &[String] {
        &self.kinds
    }

    pub(crate) fn rollback_kind(&self) -> u16 {
        (self.kinds.len() - 1) as u16
    }

    /// Whether a transaction is begun again after this error.
    pub(crate) fn is_retried(&self, errno: u16) -> bool {
        self.retry_errors.contains(&errno)
    }

    /// Everything to be prepared on a connection: where it stands among its [`Handles`], its kind and text.
    pub(crate) fn preparations(&self) -> Vec<(usize, &str, String)> {
        let tables = self.program.tables();
        let mut preparations = Vec::new();
        for (number, statement) in self.program.statements().iter().enumerate() {
            if statement.protocol != Protocol::Prepared {
                continue;
            }
            let last_table = if statement.is_per_table() { tables } else { 1 };
            for table in 1..=last_table {
                let sql = statement.sql_for_table(table);
                preparations.push((self.handle(number, table), statement.kind.as_str(), sql));
            }
        }
        preparations
    }

    pub(crate) fn handles(&self) -> usize {
        self.program.statements().len() * self.program.tables() as usize
    }

    fn handle(&self, statement: usize, table: u32) -> usize {
        let statement_names_table = self.program.statements()[statement].is_per_table();
        let table = if statement_names_table { table - 1 } else { 0 };
        statement * self.program.tables() as usize + table as usize
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

/// What one connection knows of its prepared statements.
pub(crate) struct Handles {
    statement_ids: Vec<u32>,
    /// The statement was executed before on this connection, so that the server knows its parameters' types.
    types_known: Vec<bool>,
}

impl Handles {
    pub(crate) fn new(plan: &Plan) -> Handles {
        let count = plan.handles();
        Handles { statement_ids: vec![0; count], types_known: vec![false; count] }
    }

    pub(crate) fn set(&mut self, handle: usize, statement_id: u32) {
        self.statement_ids[handle] = statement_id;
        self.types_known[handle] = false;
    }
}

/// The next thing to do for one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send what was encoded, and scan the answer in this format.
    Send { kind: u16, format: RowFormat },
    /// The transaction has ended well; [`Machine::begin_next`] goes on.
    Done,
}

/// Walks one user through its transactions.
pub(crate) struct Machine {
    plan: Arc<Plan>,
    cursor: Cursor,
    seed: u64,
    user: u64,
    transaction: u64,
    rollback_due: bool,
    /// Statement and table that were sent last.
    last: Option<(usize, u32)>,
}

impl Machine {
    /// Stands before the user's transaction number `transaction`.
    pub(crate) fn new(plan: Arc<Plan>, seed: u64, user: u64, transaction: u64) -> Machine {
        let cursor = Cursor::new(seed, user, transaction);
        Machine { plan, cursor, seed, user, transaction, rollback_due: false, last: None }
    }

    /// Encodes the next command into `out`, whose content is replaced.
    #[inline]
    pub(crate) fn next(&mut self, handles: &mut Handles, out: &mut Vec<u8>) -> Step {
        if self.rollback_due {
            self.rollback_due = false;
            self.last = None;
            out.clear();
            encode::query(out, b"ROLLBACK");
            return Step::Send { kind: self.plan.rollback_kind(), format: RowFormat::Text };
        }
        let Some(call) = self.cursor.next(&self.plan.program) else {
            return Step::Done;
        };
        self.last = Some((call.statement, call.table));
        out.clear();
        let encoder = &self.plan.encoders[call.statement];
        let format = match &encoder.form {
            Form::Prepared(template) => {
                let handle = self.plan.handle(call.statement, call.table);
                let types_known = std::mem::replace(&mut handles.types_known[handle], true);
                let mut writer = template.begin(out, handles.statement_ids[handle], types_known);
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
        Step::Send { kind: encoder.kind, format }
    }

    /// Goes on to the user's next transaction.
    #[inline]
    pub(crate) fn begin_next(&mut self) {
        self.transaction += 1;
        self.cursor.start(self.seed, self.user, self.transaction);
        self.last = None;
    }

    /// Begins the same transaction again, with the same parameters; `connection_lives`: after a rollback, where the
    /// transaction may be open on the server.
    pub(crate) fn begin_again(&mut self, connection_lives: bool) {
        self.cursor.start(self.seed, self.user, self.transaction);
        self.rollback_due = connection_lives && self.plan.opens_transaction;
        self.last = None;
    }

    /// Whether the next thing to be sent is a rollback.
    pub(crate) fn rollback_is_due(&self) -> bool {
        self.rollback_due
    }

    /// Whether a statement of the transaction has been sent.
    pub(crate) fn is_inside(&self) -> bool {
        self.last.is_some()
    }

    /// Kind and text of the statement that was sent last, for messages.
    pub(crate) fn last_statement(&self) -> String {
        match self.last {
            Some((number, table)) => {
                let statement = &self.plan.program.statements()[number];
                format!("{} ({})", statement.kind, statement.sql_for_table(table))
            }
            None => ROLLBACK.to_string(),
        }
    }
}

#[inline]
fn write_values(cursor: &mut Cursor, call: &Call<'_>, mut write: impl FnMut(Value<'_>)) {
    for param in call.params {
        write(cursor.value(*param));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_workload::Options;

    fn machine(name: &str, tables: u32, user: u64, transaction: u64) -> (Machine, Handles) {
        let options = Options { tables, ..Options::default() };
        let plan = Arc::new(Plan::new(&Workload::builtin(name, &options).unwrap()));
        let mut handles = Handles::new(&plan);
        for (handle, _, _) in plan.preparations() {
            handles.set(handle, handle as u32 + 100);
        }
        (Machine::new(plan, 1, user, transaction), handles)
    }

    /// Everything that is sent up to the end of the transaction.
    fn sent(machine: &mut Machine, handles: &mut Handles) -> Vec<Vec<u8>> {
        let mut out = Vec::new();
        let mut sent = Vec::new();
        while machine.next(handles, &mut out) != Step::Done {
            sent.push(out.clone());
        }
        sent
    }

    #[test]
    fn every_statement_and_table_is_prepared_once() {
        let (machine, _) = machine("oltp-read-write", 3, 0, 0);
        let preparations = machine.plan.preparations();
        assert_eq!(preparations.len(), 9 * 3 + 2);
        let mut handles: Vec<usize> = preparations.iter().map(|(handle, ..)| *handle).collect();
        handles.dedup();
        assert_eq!(handles.len(), preparations.len());
        assert_eq!(preparations.last().unwrap().2, "COMMIT");
    }

    #[test]
    fn a_transaction_that_is_begun_again_rolls_back_and_sends_the_same_bytes() {
        let (mut machine, mut handles) = machine("oltp-read-write", 1, 7, 9);
        sent(&mut machine, &mut handles);
        machine.begin_again(true);
        let first = sent(&mut machine, &mut handles);
        machine.begin_again(true);
        let second = sent(&mut machine, &mut handles);
        assert_eq!(first, second);
        assert_eq!(first.len(), 21);
        assert_eq!(&first[0][5..], b"ROLLBACK");
        machine.begin_next();
        assert_ne!(sent(&mut machine, &mut handles)[1..], first[2..]);
    }

    #[test]
    fn without_a_transaction_nothing_is_rolled_back() {
        let (mut machine, mut handles) = machine("oltp-update-index", 1, 0, 0);
        sent(&mut machine, &mut handles);
        machine.begin_again(true);
        assert_eq!(sent(&mut machine, &mut handles).len(), 1);
    }

    #[test]
    fn types_are_told_at_the_first_execution_only() {
        let (mut machine, mut handles) = machine("oltp-point-select", 1, 0, 0);
        let first = sent(&mut machine, &mut handles);
        machine.begin_next();
        let second = sent(&mut machine, &mut handles);
        assert_eq!((first[0].len(), second[0].len()), (22, 20));
    }

    #[test]
    fn an_insert_goes_out_as_text_for_its_table() {
        let (mut machine, mut handles) = machine("oltp-insert", 2, 0, 0);
        let sent = sent(&mut machine, &mut handles);
        let text = std::str::from_utf8(&sent[0][5..]).unwrap();
        let begins_well = text.starts_with("INSERT INTO sbtest1 (id, k, c, pad) VALUES (0, ")
            || text.starts_with("INSERT INTO sbtest2 (id, k, c, pad) VALUES (0, ");
        assert!(begins_well && text.ends_with("')"), "{text}");
    }
}

//! The texts of commands: each statement once, and the text of each prepared statement's number.

use std::collections::HashMap;
use std::sync::Arc;

use whyso_record::data::StatementText;
use whyso_trace::{
    COM_CHANGE_USER, COM_INIT_DB, COM_QUIT, COM_RESET_CONNECTION, COM_STMT_CLOSE, COM_STMT_PREPARE, Command,
    StatementRef,
};
use whyso_watch::{digest, may_be_recorded};

use super::shape::write_shape;
use crate::literals::Literals;

/// Different statements of a run, without their literals: what is new after that has no text, and is counted.
const STATEMENTS_MAX: usize = 20_000;
/// Shapes that are kept: a statement of another one is read as a whole. Each has 1 KiB at most, as the texts have.
const SHAPES_MAX: usize = 4_096;
/// Prepared statements of all connections together: an execution of others is one of an unknown statement.
const PREPARED_MAX: usize = 200_000;

/// The text of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandText {
    /// The prepared statement that it is about, within its connection.
    pub(super) prepared: Option<u32>,
    /// Number of its statement.
    pub(super) statement: Option<u32>,
    /// As it was sent.
    pub(super) text: Option<Arc<str>>,
}

pub(super) struct StatementTexts {
    literals: Literals,
    statements: HashMap<String, u32>,
    /// What is known of statements by their shape.
    shapes: HashMap<Vec<u8>, ReadStatement>,
    /// Where a shape is written.
    shape: Vec<u8>,
    fresh: Vec<StatementText>,
    connections: HashMap<u64, Connection>,
    /// Of all connections.
    prepared: usize,
    /// Commands whose statement found no place.
    pub(super) full: u64,
}

/// What reading a statement shows.
#[derive(Clone, Copy)]
struct ReadStatement {
    /// Its digest's; `None` where that found no place.
    number: Option<u32>,
    /// Whether it may be recorded as it was sent.
    may_be_recorded: bool,
}

/// The prepared statements of a connection.
#[derive(Default)]
struct Connection {
    by_number: HashMap<u32, CommandText>,
    last: Option<u32>,
}

impl StatementTexts {
    pub(super) fn new(literals: Literals) -> StatementTexts {
        StatementTexts {
            literals,
            statements: HashMap::new(),
            shapes: HashMap::new(),
            shape: Vec::new(),
            fresh: Vec::new(),
            connections: HashMap::new(),
            prepared: 0,
            full: 0,
        }
    }

    /// Returns the text of a command. To be called for every command, each connection's in the order in which they ended.
    pub(super) fn of(&mut self, command: &Command<'_>) -> CommandText {
        match command.number {
            COM_QUIT | COM_CHANGE_USER | COM_RESET_CONNECTION => {
                self.forget(command.connection);
                CommandText::default()
            }
            COM_STMT_PREPARE => self.prepare(command),
            _ if command.prepared.is_some() => self.about_prepared(command),
            _ => self.read_text(command),
        }
    }

    /// Returns the statements that are new since the last call.
    pub(super) fn take_fresh(&mut self) -> Vec<StatementText> {
        std::mem::take(&mut self.fresh)
    }

    /// Forgets all connections.
    pub(super) fn forget_connections(&mut self) {
        self.connections.clear();
        self.prepared = 0;
    }

    fn forget(&mut self, connection: u64) {
        let gone = self.connections.remove(&connection).unwrap_or_default();
        self.prepared -= gone.by_number.len();
    }

    fn prepare(&mut self, command: &Command<'_>) -> CommandText {
        let mut text_of_command = self.read_text(command);
        let Some(StatementRef::Number(number)) = command.prepared else { return text_of_command };
        text_of_command.prepared = Some(number);
        // Numbers of one connection only grow: this is another, which the server keeps where that one was.
        let last = self.connections.get(&command.connection).and_then(|connection| connection.last);
        if last.is_some_and(|last| number <= last) {
            self.forget(command.connection);
        }
        let connection = self.connections.entry(command.connection).or_default();
        connection.last = Some(number);
        if self.prepared < PREPARED_MAX {
            connection.by_number.insert(number, text_of_command.clone());
            self.prepared += 1;
        }
        text_of_command
    }

    fn about_prepared(&mut self, command: &Command<'_>) -> CommandText {
        let connection = self.connections.get_mut(&command.connection);
        let number = match command.prepared {
            Some(StatementRef::Number(number)) => Some(number),
            _ => connection.as_ref().and_then(|connection| connection.last),
        };
        let unknown = CommandText { prepared: number, ..CommandText::default() };
        let (Some(connection), Some(number)) = (connection, number) else { return unknown };
        if command.number != COM_STMT_CLOSE {
            return connection.by_number.get(&number).cloned().unwrap_or(unknown);
        }
        let closed = connection.by_number.remove(&number);
        self.prepared -= usize::from(closed.is_some());
        closed.unwrap_or(unknown)
    }

    fn read_text(&mut self, command: &Command<'_>) -> CommandText {
        let Some(bytes) = command.text else { return CommandText::default() };
        let is_cut = command.length.is_some_and(|length| length as usize > bytes.len());
        // The name of a schema is no statement.
        if command.number == COM_INIT_DB {
            let name = String::from_utf8_lossy(bytes).into_owned();
            return CommandText { statement: self.number(name), ..CommandText::default() };
        }
        let read = self.read_statement(bytes, is_cut);
        let keeps = self.literals == Literals::Kept && read.may_be_recorded;
        CommandText {
            prepared: None,
            statement: read.number,
            text: keeps.then(|| Arc::from(String::from_utf8_lossy(bytes).as_ref())),
        }
    }

    /// Reads a statement, unless it differs from one before only in its literals.
    fn read_statement(&mut self, bytes: &[u8], is_cut: bool) -> ReadStatement {
        let has_shape = !is_cut && write_shape(bytes, &mut self.shape);
        if has_shape && let Some(known) = self.shapes.get(self.shape.as_slice()) {
            return *known;
        }
        let text = String::from_utf8_lossy(bytes);
        let mut digested = digest(&text);
        if is_cut {
            digested.push_str(" …");
        }
        let may_be_recorded = self.literals == Literals::Kept && may_be_recorded(&text);
        let read = ReadStatement { number: self.number(digested), may_be_recorded };
        if has_shape && self.shapes.len() < SHAPES_MAX && read.number.is_some() {
            self.shapes.insert(self.shape.clone(), read);
        }
        read
    }

    fn number(&mut self, text: String) -> Option<u32> {
        if let Some(number) = self.statements.get(&text) {
            return Some(*number);
        }
        if self.statements.len() >= STATEMENTS_MAX {
            self.full += 1;
            return None;
        }
        let statement = self.statements.len() as u32;
        self.fresh.push(StatementText { statement, text: text.clone() });
        self.statements.insert(text, statement);
        Some(statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_trace::{COM_QUERY, Client, CommandCounts};

    const COM_STMT_EXECUTE: u8 = 23;

    fn command(connection: u64, number: u8, prepared: Option<u32>, text: Option<&str>) -> Command<'_> {
        Command {
            begin_ns: 0,
            end_ns: 1,
            tid: 1,
            connection,
            number,
            client: Client::Load,
            times: None,
            counts: CommandCounts::default(),
            length: text.map(|text| text.len() as u32),
            prepared: prepared.map(StatementRef::Number),
            text: text.map(str::as_bytes),
        }
    }

    fn prepare(texts: &mut StatementTexts, connection: u64, number: u32, text: &str) -> CommandText {
        texts.of(&command(connection, COM_STMT_PREPARE, Some(number), Some(text)))
    }

    fn execute(texts: &mut StatementTexts, connection: u64, number: u32) -> Option<u32> {
        texts.of(&command(connection, COM_STMT_EXECUTE, Some(number), None)).statement
    }

    #[test]
    fn an_execution_has_the_statement_that_was_prepared_in_its_connection() {
        let mut texts = StatementTexts::new(Literals::Replaced);
        let first = prepare(&mut texts, 1, 1, "SELECT ?").statement;
        let second = prepare(&mut texts, 2, 1, "DELETE FROM t").statement;
        assert!(first.is_some() && second.is_some() && first != second);
        assert_eq!((execute(&mut texts, 1, 1), execute(&mut texts, 2, 1)), (first, second));
        assert_eq!(execute(&mut texts, 1, 2), None, "prepared before the trace began");
        let mut last = command(1, COM_STMT_EXECUTE, None, None);
        last.prepared = Some(StatementRef::Last);
        assert_eq!(texts.of(&last), CommandText { prepared: Some(1), statement: first, text: None });
        let texts: Vec<String> = texts.take_fresh().into_iter().map(|statement| statement.text).collect();
        assert_eq!(texts, ["SELECT ?", "DELETE FROM t"]);
    }

    #[test]
    fn a_statement_is_forgotten_when_it_is_closed_and_when_its_connection_ends() {
        let mut texts = StatementTexts::new(Literals::Replaced);
        for number in 1..=3 {
            prepare(&mut texts, 1, number, "SELECT ?");
        }
        let closed = texts.of(&command(1, COM_STMT_CLOSE, Some(2), None));
        assert!(closed.statement.is_some());
        assert_eq!(execute(&mut texts, 1, 2), None);
        assert!(execute(&mut texts, 1, 3).is_some());
        texts.of(&command(1, COM_RESET_CONNECTION, None, None));
        assert_eq!(execute(&mut texts, 1, 3), None);
        // The connection broke without a word, and another is where it was.
        prepare(&mut texts, 1, 5, "SELECT ?");
        prepare(&mut texts, 1, 6, "SELECT ?");
        prepare(&mut texts, 1, 1, "DELETE FROM t");
        assert_eq!(execute(&mut texts, 1, 6), None);
        assert_eq!(texts.prepared, 1);
        texts.of(&command(1, COM_QUIT, None, None));
        assert_eq!(texts.prepared, 0);
    }

    #[test]
    fn literals_are_kept_only_where_that_is_wanted_and_never_those_of_accounts() {
        let query =
            |texts: &mut StatementTexts, text: &str| texts.of(&command(1, COM_QUERY, None, Some(text)));
        let mut texts = StatementTexts::new(Literals::Replaced);
        assert_eq!(query(&mut texts, "SELECT 'a'").text, None);
        let mut texts = StatementTexts::new(Literals::Kept);
        assert_eq!(query(&mut texts, "SELECT 'a'").text.as_deref(), Some("SELECT 'a'"));
        assert_eq!(query(&mut texts, "CREATE USER u IDENTIFIED BY 'a'").text, None);
        let texts: Vec<String> = texts.take_fresh().into_iter().map(|statement| statement.text).collect();
        assert_eq!(texts, ["SELECT ?", "CREATE USER …"]);
    }

    #[test]
    fn a_statement_of_a_shape_that_was_read_before_has_its_number_and_its_own_text() {
        let mut texts = StatementTexts::new(Literals::Kept);
        let mut query = |text: &str| texts.of(&command(1, COM_QUERY, None, Some(text)));
        let (first, second) = (query("SELECT c FROM t1 WHERE id=5"), query("SELECT c FROM t1 WHERE id=49"));
        assert_eq!(
            (second.statement, second.text.as_deref()),
            (first.statement, Some("SELECT c FROM t1 WHERE id=49"))
        );
        assert_ne!(query("SELECT c FROM t2 WHERE id=5").statement, first.statement);
        let secret = query("SET PASSWORD FOR u = 'a'");
        assert_eq!(query("SET PASSWORD FOR u = 'b'"), secret);
        assert_eq!(secret.text, None);
    }

    #[test]
    fn a_statement_that_was_cut_is_marked() {
        let mut texts = StatementTexts::new(Literals::Replaced);
        let mut long = command(1, COM_QUERY, None, Some("SELECT 'a"));
        long.length = Some(5000);
        texts.of(&long);
        assert_eq!(texts.take_fresh()[0].text, "SELECT ? …");
    }
}

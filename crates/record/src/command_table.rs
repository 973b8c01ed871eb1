//! Columns of the streams of commands, and the way from our types to Arrow's and back.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};

use crate::data::{ClientCommand, CommandTimes, StatementText};
use crate::error::Result;
use crate::run::Window;
use crate::table::{batch, longs, strings};

pub(crate) fn commands_batch(commands: &[ClientCommand]) -> Result<RecordBatch> {
    let times = |of: fn(&CommandTimes) -> u64| {
        Arc::new(commands.iter().map(|command| command.times.as_ref().map(of)).collect::<UInt64Array>())
    };
    let ints =
        |of: fn(&ClientCommand) -> Option<u32>| Arc::new(commands.iter().map(of).collect::<UInt32Array>());
    let rows =
        |of: fn(&ClientCommand) -> Option<u64>| Arc::new(commands.iter().map(of).collect::<UInt64Array>());
    let response_ns = commands.iter().map(|command| command.response_ns);
    let text = commands.iter().map(|command| command.text.as_deref());
    batch(vec![
        ("t_ns", false, longs(commands.iter().map(|command| command.t_ns))),
        ("tid", false, ints(|command| Some(command.tid))),
        ("client", false, strings(commands.iter().map(|command| command.client.as_ref()))),
        ("command", false, strings(commands.iter().map(|command| command.command.as_ref()))),
        ("response_ns", false, Arc::new(UInt64Array::from_iter_values(response_ns))),
        ("cpu_ns", true, times(|times| times.cpu_ns)),
        ("runqueue_ns", true, times(|times| times.runqueue_ns)),
        ("lock_ns", true, times(|times| times.lock_ns)),
        ("io_ns", true, times(|times| times.io_ns)),
        ("rows_sent", true, rows(|command| command.rows_sent)),
        ("rows_examined", true, rows(|command| command.rows_examined)),
        ("rows_affected", true, rows(|command| command.rows_affected)),
        ("error", true, ints(|command| command.error)),
        ("connection", true, ints(|command| command.connection)),
        ("length", true, ints(|command| command.length)),
        ("prepared", true, ints(|command| command.prepared)),
        ("statement", true, ints(|command| command.statement)),
        ("text", true, Arc::new(text.collect::<StringArray>())),
    ])
}

/// Those that begin within a window, its end excluded.
pub(crate) fn commands_of(batch: &RecordBatch, window: Window) -> Option<Vec<ClientCommand>> {
    let t_ns = batch.column_by_name("t_ns")?.as_primitive_opt::<Int64Type>()?;
    let int = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>();
    let count = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>();
    let strings = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
    let (tid, length, prepared, statement) =
        (int("tid")?, int("length")?, int("prepared")?, int("statement")?);
    let (client, command, text) = (strings("client")?, strings("command")?, strings("text")?);
    let (response_ns, cpu_ns, runqueue_ns) = (count("response_ns")?, count("cpu_ns")?, count("runqueue_ns")?);
    let (lock_ns, io_ns) = (count("lock_ns")?, count("io_ns")?);
    let maybe = |column: &UInt32Array, row| column.is_valid(row).then(|| column.value(row));
    // An older recording has none of these.
    let (rows_sent, rows_examined) = (count("rows_sent"), count("rows_examined"));
    let (rows_affected, error, connection) = (count("rows_affected"), int("error"), int("connection"));
    let rows = |column: Option<&UInt64Array>, row| {
        column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
    };
    let row = |row: usize| ClientCommand {
        t_ns: t_ns.value(row),
        tid: tid.value(row),
        client: Cow::Owned(client.value(row).to_string()),
        command: Cow::Owned(command.value(row).to_string()),
        response_ns: response_ns.value(row),
        times: cpu_ns.is_valid(row).then(|| CommandTimes {
            cpu_ns: cpu_ns.value(row),
            runqueue_ns: runqueue_ns.value(row),
            lock_ns: lock_ns.value(row),
            io_ns: io_ns.value(row),
        }),
        rows_sent: rows(rows_sent, row),
        rows_examined: rows(rows_examined, row),
        rows_affected: rows(rows_affected, row),
        error: error.and_then(|column| maybe(column, row)),
        connection: connection.and_then(|column| maybe(column, row)),
        length: maybe(length, row),
        prepared: maybe(prepared, row),
        statement: maybe(statement, row),
        text: text.is_valid(row).then(|| Arc::from(text.value(row))),
    };
    let is_within = |row: &usize| (window.begin_ns..window.end_ns).contains(&t_ns.value(*row));
    Some((0..batch.num_rows()).filter(is_within).map(row).collect())
}

pub(crate) fn statements_batch(statements: &[StatementText]) -> Result<RecordBatch> {
    let numbers = statements.iter().map(|statement| statement.statement);
    batch(vec![
        ("statement", false, Arc::new(UInt32Array::from_iter_values(numbers))),
        ("text", false, strings(statements.iter().map(|statement| statement.text.as_str()))),
    ])
}

pub(crate) fn statements_of(batch: &RecordBatch) -> Option<Vec<StatementText>> {
    let statement = batch.column_by_name("statement")?.as_primitive_opt::<UInt32Type>()?;
    let text = batch.column_by_name("text")?.as_string_opt::<i32>()?;
    let row =
        |row: usize| StatementText { statement: statement.value(row), text: text.value(row).to_string() };
    Some((0..batch.num_rows()).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_back_as_they_were_written_and_only_those_of_a_window() {
        let whole = ClientCommand {
            t_ns: 5,
            tid: 7,
            client: "load".into(),
            command: "STMT_EXECUTE".into(),
            response_ns: 300,
            times: Some(CommandTimes { cpu_ns: 100, runqueue_ns: 20, lock_ns: 3, io_ns: 4 }),
            rows_sent: Some(9),
            rows_examined: Some(1 << 40),
            rows_affected: Some(0),
            error: Some(1213),
            connection: Some(17),
            length: Some(12),
            prepared: Some(1),
            statement: Some(0),
            text: Some("SELECT 'x'".into()),
        };
        let bare = ClientCommand { t_ns: 9, command: "PING".into(), ..ClientCommand::default() };
        let commands = vec![whole, bare];
        let batch = commands_batch(&commands).unwrap();
        let all = Window { begin_ns: i64::MIN, end_ns: i64::MAX };
        assert_eq!(commands_of(&batch, all).unwrap(), commands);
        let later = Window { begin_ns: 6, end_ns: 10 };
        assert_eq!(commands_of(&batch, later).unwrap(), commands[1..]);
        let before = Window { begin_ns: 0, end_ns: 9 };
        assert_eq!(commands_of(&batch, before).unwrap(), commands[..1]);
        let newer = ["rows_sent", "rows_examined", "rows_affected", "error", "connection"];
        let other_columns: Vec<usize> = (0..batch.num_columns())
            .filter(|column| !newer.contains(&batch.schema().field(*column).name().as_str()))
            .collect();
        let read = commands_of(&batch.project(&other_columns).unwrap(), all).unwrap();
        assert_eq!((read[0].rows_sent, read[0].error, read[0].length), (None, None, Some(12)));
    }

    #[test]
    fn statements_come_back_as_they_were_written() {
        let statements = [0, 1].map(|statement| StatementText { statement, text: "SELECT ?".to_string() });
        assert_eq!(statements_of(&statements_batch(&statements).unwrap()).unwrap(), statements);
    }
}

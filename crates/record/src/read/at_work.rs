//! When a thread is known to have worked for a connection, or to have executed a statement.
//!
//! The server is asked every few seconds which thread works for which connection, and what it executes. A thread that worked for the same
//! connection in two snapshots, one after the other, worked for it all the time between them. The server does not use a connection's
//! number again. Of a statement, a snapshot has when it had begun at the latest. So it is known from then to the snapshot, and no longer.
//!
//! A recording with a trace of the commands does not need the snapshots: each command has its thread, its begin and its end.

use std::collections::HashMap;
use std::sync::Arc;

use whyso_series::{KnownBy, Span, Spans};

use super::Recording;
use crate::data::{ClientCommand, TextRows};
use crate::error::Result;
use crate::run::Window;

/// The text tables with the server's list of its threads.
const SOURCE: &str = "connections";
/// The server's variable for how connections get their threads, and its value where each has one of its own.
const THREAD_HANDLING: &str = "thread_handling";
const OWN_THREAD: &str = "one-thread-per-connection";
/// The column of tables that list every thread.
const WHOLE: &str = "whole";
/// How far around a window the list of threads is read: every thread is listed every minute at least.
const REACH_NS: i64 = 130_000_000_000;
/// What threads worked on last is looked for in parts of a window of this length, from its end on.
const LOOKED_BACK_NS: i64 = 300_000_000_000;
/// A command that began so long before a window is not looked for in it.
const COMMAND_NS_MAX: i64 = 600_000_000_000;

/// A thread as the server lists it.
#[derive(Clone, Debug, PartialEq)]
struct ThreadFacts {
    tid: u32,
    connection: u64,
    statement: Option<String>,
    /// When it had begun to execute the statement, at the latest.
    since_ns: Option<i64>,
}

/// All threads as the server lists them, at one time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Snapshot {
    t_ns: i64,
    /// Whether it lists every thread. One that does not lists those whose connection is new, and those that execute a statement.
    is_whole: bool,
    threads: Vec<ThreadFacts>,
}

impl Recording {
    /// Which connection each thread worked for, in a window or in all of the run. A pool's thread is known to work for one only
    /// while it executes a statement.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn connections_at_work(&self, window: Option<Window>) -> Result<Spans<u64>> {
        let handling = self.run().server.variables.get(THREAD_HANDLING);
        let has_own_thread = handling.is_none_or(|handling| handling == OWN_THREAD);
        let commands = commands(self, window)?;
        if commands.iter().any(|command| command.connection.is_some()) {
            let spans = connections_of(&commands, has_own_thread);
            return Ok(Spans::new(KnownBy::SqlTrace, spans.into_iter()));
        }
        let snapshots = snapshots(self, window)?;
        Ok(if has_own_thread {
            Spans::new(KnownBy::Snapshots, connection_spans(&snapshots).into_iter())
        } else {
            Spans::new(
                KnownBy::Snapshots,
                snapshots.iter().flat_map(|snapshot| executing(snapshot, |thread| thread.connection)),
            )
        })
    }

    /// Which statement each thread executed, without its literals, in a window or in all of the run. `None` where the recording
    /// has statements, and not since when they ran.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn statements_at_work(&self, window: Option<Window>) -> Result<Option<Spans<Arc<str>>>> {
        let commands = commands(self, window)?;
        if !commands.is_empty() {
            let texts = self.statements()?.into_iter().map(|(id, text)| (id, Arc::from(text))).collect();
            return Ok(Some(Spans::new(KnownBy::SqlTrace, statements_of(&commands, &texts).into_iter())));
        }
        let snapshots = snapshots(self, window)?;
        let has_statements =
            |snapshot: &Snapshot| snapshot.threads.iter().any(|thread| thread.statement.is_some());
        let has_begins =
            |snapshot: &Snapshot| snapshot.threads.iter().any(|thread| thread.since_ns.is_some());
        if snapshots.iter().any(has_statements) && !snapshots.iter().any(has_begins) {
            return Ok(None);
        }
        let statement = |thread: &ThreadFacts| Arc::from(thread.statement.as_deref().unwrap_or_default());
        let spans = snapshots.iter().flat_map(|snapshot| executing(snapshot, statement));
        Ok(Some(Spans::new(KnownBy::Snapshots, spans)))
    }

    /// The connection and the statement with which each thread was last listed in a window. Of a long window with many threads only its
    /// end is read: some `rows_max` lines of the list.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn last_work(&self, window: Window, rows_max: usize) -> Result<HashMap<u32, LastWork>> {
        let mut last: HashMap<u32, LastWork> = HashMap::new();
        let (mut end_ns, mut rows) = (window.end_ns, 0);
        while end_ns >= window.begin_ns && rows < rows_max {
            let begin_ns = window.begin_ns.max(end_ns.saturating_sub(LOOKED_BACK_NS));
            let mut part: Vec<Snapshot> = Vec::new();
            self.each_table(SOURCE, Some(Window { begin_ns, end_ns }), |table| part.push(snapshot(&table)))?;
            part.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.t_ns));
            for thread in part.into_iter().flat_map(|snapshot| snapshot.threads) {
                let work = last.entry(thread.tid).or_default();
                work.connection = work.connection.or(Some(thread.connection));
                if work.statement.is_none() {
                    work.statement = thread.statement;
                }
                rows += 1;
            }
            end_ns = begin_ns - 1;
        }
        Ok(last)
    }
}

/// What the server listed of a thread last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastWork {
    pub connection: Option<u64>,
    /// What it was last found executing, without its literals.
    pub statement: Option<String>,
}

/// The commands that may have been in progress in a window, ascending in time; none where they were not followed.
fn commands(recording: &Recording, window: Option<Window>) -> Result<Vec<ClientCommand>> {
    let begins = window.map(|window| {
        let begin_ns = window.begin_ns.saturating_sub(COMMAND_NS_MAX);
        Window { begin_ns, ..window }
    });
    let mut commands = recording.commands(begins)?;
    commands.retain(|command| window.is_none_or(|window| end_ns(command) >= window.begin_ns));
    commands.sort_by_key(|command| command.t_ns);
    Ok(commands)
}

fn end_ns(command: &ClientCommand) -> i64 {
    command.t_ns.saturating_add_unsigned(command.response_ns)
}

/// Of a thread that serves one connection, what lies between two commands of it is of it, too.
fn connections_of(commands: &[ClientCommand], has_own_thread: bool) -> Vec<(u32, Span<u64>)> {
    let mut spans: Vec<(u32, Span<u64>)> = Vec::new();
    let mut last: HashMap<u32, usize> = HashMap::new();
    for command in commands {
        let Some(connection) = command.connection.map(u64::from) else { continue };
        let same = last.get(&command.tid).filter(|place| has_own_thread && spans[**place].1.of == connection);
        match same {
            Some(place) => spans[*place].1.end_ns = end_ns(command),
            None => {
                last.insert(command.tid, spans.len());
                spans.push((
                    command.tid,
                    Span { begin_ns: command.t_ns, end_ns: end_ns(command), of: connection },
                ));
            }
        }
    }
    spans
}

fn statements_of(commands: &[ClientCommand], texts: &HashMap<u32, Arc<str>>) -> Vec<(u32, Span<Arc<str>>)> {
    let span = |command: &ClientCommand| {
        let of = Arc::clone(texts.get(&command.statement?)?);
        Some((command.tid, Span { begin_ns: command.t_ns, end_ns: end_ns(command), of }))
    };
    commands.iter().filter_map(span).collect()
}

/// The snapshots of a window and those next to it, ascending in time.
fn snapshots(recording: &Recording, window: Option<Window>) -> Result<Vec<Snapshot>> {
    let reach = window.map(|window| Window {
        begin_ns: window.begin_ns.saturating_sub(REACH_NS),
        end_ns: window.end_ns.saturating_add(REACH_NS),
    });
    let mut snapshots: Vec<Snapshot> = Vec::new();
    recording.each_table(SOURCE, reach, |table| snapshots.push(snapshot(&table)))?;
    snapshots.sort_by_key(|snapshot| snapshot.t_ns);
    Ok(snapshots)
}

fn snapshot(rows: &TextRows) -> Snapshot {
    let place = |name: &str| rows.columns.iter().position(|column| column == name);
    let [tid, connection, statement, since_ns] = ["tid", "connection", "statement", "since_ns"].map(place);
    let thread = |row: &Vec<Option<String>>| {
        let text = |place: Option<usize>| row.get(place?)?.as_deref();
        Some(ThreadFacts {
            tid: text(tid)?.parse().ok()?,
            connection: text(connection)?.parse().ok()?,
            statement: text(statement).map(str::to_string),
            since_ns: text(since_ns).and_then(|text| text.parse().ok()),
        })
    };
    Snapshot {
        t_ns: rows.t_ns,
        is_whole: is_whole_list(rows),
        threads: rows.rows.iter().filter_map(thread).collect(),
    }
}

/// Whether a table of the server's connections lists all of them. Recordings before format 3 have no others.
pub fn is_whole_list(rows: &TextRows) -> bool {
    let place = rows.columns.iter().position(|column| column == WHOLE);
    place.is_none_or(|place| rows.rows.iter().any(|row| row.get(place).is_some_and(Option::is_some)))
}

/// When threads worked for one connection, by the snapshots: from the first that found them at it to the last, if none between found
/// another, or found them gone.
fn connection_spans(snapshots: &[Snapshot]) -> Vec<(u32, Span<u64>)> {
    let mut spans = Vec::new();
    let mut open: HashMap<u32, Span<u64>> = HashMap::new();
    let mut close = |tid: u32, span: Span<u64>| {
        if span.begin_ns < span.end_ns {
            spans.push((tid, span));
        }
    };
    for snapshot in snapshots {
        let t_ns = snapshot.t_ns;
        for thread in &snapshot.threads {
            let new = || Span { begin_ns: t_ns, end_ns: t_ns, of: thread.connection };
            let span = open.entry(thread.tid).or_insert_with(new);
            if span.of == thread.connection {
                span.end_ns = t_ns;
            } else {
                close(thread.tid, std::mem::replace(span, new()));
            }
        }
        if snapshot.is_whole {
            let gone = open.extract_if(|_, span| span.end_ns < t_ns);
            gone.for_each(|(tid, span)| close(tid, span));
        }
    }
    open.into_iter().for_each(|(tid, span)| close(tid, span));
    spans
}

/// The threads that executed a statement in a snapshot, since it had begun.
fn executing<T>(snapshot: &Snapshot, of: impl Fn(&ThreadFacts) -> T) -> Vec<(u32, Span<T>)> {
    let span = |thread: &ThreadFacts| {
        let begin_ns =
            thread.since_ns.filter(|begin_ns| thread.statement.is_some() && *begin_ns <= snapshot.t_ns)?;
        Some((thread.tid, Span { begin_ns, end_ns: snapshot.t_ns, of: of(thread) }))
    };
    snapshot.threads.iter().filter_map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(t_ns: i64, rows: &[[Option<&str>; 4]]) -> Snapshot {
        let columns = ["tid", "connection", "statement", "since_ns"].map(str::to_string).to_vec();
        let row = |cells: &[Option<&str>; 4]| cells.map(|cell| cell.map(str::to_string)).to_vec();
        snapshot(&TextRows {
            source: SOURCE.to_string(),
            t_ns,
            columns,
            rows: rows.iter().map(row).collect(),
        })
    }

    #[test]
    fn a_connection_is_known_from_snapshot_to_snapshot_while_its_thread_works_for_it() {
        let at = |t_ns, connection: &'static str| rows(t_ns, &[[Some("7"), Some(connection), None, None]]);
        let snapshots = [at(10, "40"), at(20, "40"), at(30, "41"), rows(40, &[]), at(50, "41"), at(60, "41")];
        let spans = Spans::new(KnownBy::Snapshots, connection_spans(&snapshots).into_iter());
        let connection_at = |t_ns| spans.at(7, t_ns).copied();
        assert_eq!(
            [9, 10, 15, 20, 25, 35, 45, 55, 61].map(connection_at),
            [None, Some(40), Some(40), Some(40), None, None, None, Some(41), None]
        );
        assert_eq!(spans.at(8, 15), None);
    }

    #[test]
    fn a_statement_is_known_from_when_it_had_begun_to_the_snapshot() {
        let of = |thread: &ThreadFacts| thread.statement.clone().unwrap_or_default();
        let snapshots = [
            rows(1_000, &[[Some("7"), Some("1"), Some("SELECT ?"), Some("400")]]),
            // Began before the snapshot before: one stretch for each snapshot, the same statement.
            rows(2_000, &[[Some("7"), Some("1"), Some("SELECT ?"), Some("400")]]),
            // Waits for its client; began after the server was asked; has no time since when.
            rows(
                3_000,
                &[
                    [Some("7"), Some("1"), None, Some("2500")],
                    [Some("8"), Some("2"), Some("COMMIT"), Some("3001")],
                    [Some("9"), Some("3"), Some("COMMIT"), None],
                ],
            ),
        ];
        let spans =
            Spans::new(KnownBy::Snapshots, snapshots.iter().flat_map(|snapshot| executing(snapshot, of)));
        let statement_at = |tid, t_ns| spans.at(tid, t_ns).map(String::as_str);
        assert_eq!(
            [399, 400, 1_000, 1_500, 2_001].map(|t_ns| statement_at(7, t_ns)),
            [None, Some("SELECT ?"), Some("SELECT ?"), Some("SELECT ?"), None]
        );
        assert_eq!([2_600, 3_000].map(|t_ns| statement_at(7, t_ns)), [None, None]);
        assert_eq!([statement_at(8, 3_000), statement_at(9, 3_000)], [None, None]);
    }

    #[test]
    fn a_trace_of_commands_has_each_command_s_begin_and_end() {
        let command = |t_ns, connection, statement| ClientCommand {
            t_ns,
            tid: 7,
            response_ns: 10,
            connection: Some(connection),
            statement,
            ..ClientCommand::default()
        };
        let commands = [
            command(100, 40, Some(0)),
            command(200, 40, None),
            command(300, 41, Some(0)),
            command(400, 40, Some(1)),
        ];
        let texts = HashMap::from([(0, Arc::from("SELECT ?"))]);
        let spans = Spans::new(KnownBy::SqlTrace, statements_of(&commands, &texts).into_iter());
        let has_statement = [99, 100, 110, 111, 205, 305, 405].map(|t_ns| spans.at(7, t_ns).is_some());
        assert_eq!(has_statement, [false, true, true, false, false, true, false]);
        let at = |has_own_thread| {
            let spans = connections_of(&commands, has_own_thread).into_iter();
            let spans = Spans::new(KnownBy::SqlTrace, spans);
            [99, 105, 150, 205, 250, 305, 350, 405].map(|t_ns| spans.at(7, t_ns).copied())
        };
        let none = None::<u64>;
        let (first, next) = (Some(40), Some(41));
        assert_eq!(at(true), [none, first, first, first, none, next, none, first]);
        assert_eq!(at(false), [none, first, none, first, none, next, none, first]);
    }
}

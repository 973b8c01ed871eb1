//! Connections: which of the kernel's threads works for which, what it executes, and what it waits for, into the text table `connections`.

use std::collections::HashMap;

use mysql_async::{Conn, Error};
use whyso_record::data::TextRows;

use crate::digest::digest;
use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{NOW_AND_THEN, SamplerEntry, ScheduledSampler, StartContext};
use crate::samplers::pfs::{self, Session, Sessions};
use crate::sink::Batch;
use crate::sql::{OwnConnections, Sql};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["connections"],
    counts: "thread, statement, stage and wait of each connection, as a table",
    origin: "the process list, the Performance Schema",
    metrics: &[],
    start,
};

/// It asks the Performance Schema, too, and waits for its turn.
fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let (Some(sql), Some(reader)) = (context.sql(), context.pfs()) else { return Vec::new() };
    let sampler = Connections::new(sql, context.own_connections.clone(), reader);
    vec![ScheduledSampler::of_server(sampler).at_least_every(NOW_AND_THEN).on_thread(pfs::THREAD)]
}

const NS_PER_MS: u64 = 1_000_000;

/// A connection of the server that was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The kernel's number of the thread that works for it now.
    pub tid: u32,
    /// The server's number of it.
    pub id: u64,
    /// What it executes, literals replaced by `?`; `None` where it waits for its client.
    pub statement: Option<String>,
    /// For how long it has executed it, at least; `None` where the server does not show it.
    pub executing_ms: Option<u64>,
}

/// MariaDB shows the kernel's number of a thread in its process list, MySQL in the Performance Schema; older servers nowhere. MySQL shows
/// whole seconds, of which the last may not be over.
const QUESTIONS: [&str; 2] = [
    "SELECT TID, ID, INFO, CAST(FLOOR(GREATEST(TIME_MS, 0)) AS UNSIGNED) FROM information_schema.PROCESSLIST \
     WHERE TID IS NOT NULL",
    "SELECT THREAD_OS_ID, PROCESSLIST_ID, PROCESSLIST_INFO, \
     CAST(GREATEST(PROCESSLIST_TIME - 1, 0) * 1000 AS UNSIGNED) FROM performance_schema.threads \
     WHERE THREAD_OS_ID IS NOT NULL AND PROCESSLIST_ID IS NOT NULL",
];

/// What is answered: the kernel's number, the server's, the statement, and for how many milliseconds it has run.
type Row = (u32, u64, Option<String>, Option<u64>);

/// Returns every connection with its thread; `None` if the server shows no threads.
///
/// # Errors
/// The server closed the connection, or the like; that it does not know a table or a column is none.
pub async fn connections(conn: &mut Conn) -> Result<Option<Vec<Connection>>, Error> {
    ask(&mut ControlConnection::uncounted(conn)).await
}

async fn ask(conn: &mut ControlConnection<'_>) -> Result<Option<Vec<Connection>>, Error> {
    for question in QUESTIONS {
        let rows: Result<Vec<Row>, Error> = conn.query(question).await;
        match rows {
            Ok(rows) => {
                let connections = rows.into_iter().map(|(tid, id, text, executing_ms)| Connection {
                    tid,
                    id,
                    executing_ms: executing_ms.filter(|_| text.is_some()),
                    statement: text.map(|text| digest(&text)),
                });
                return Ok(Some(connections.collect()));
            }
            Err(Error::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// `own`: "1" where it is a connection of whyso's samplers.
const COLUMNS: [&str; 9] =
    ["tid", "connection", "statement", "since_ns", "stage", "wait", "wait_ns", "wait_object", "own"];

pub(crate) struct Connections {
    sql: Sql,
    own: OwnConnections,
    /// What else is asked of the Performance Schema, within its budget.
    sessions: Sessions,
}

impl Connections {
    pub(crate) fn new(sql: Sql, own: OwnConnections, reader: pfs::SharedReader) -> Connections {
        Connections { sql, own, sessions: Sessions::new(reader) }
    }
}

impl Sampler for Connections {
    fn source(&self) -> &'static str {
        "connections"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        // The answer was true at some time between these two.
        let asked_ns = whyso_clock::monotonic_ns();
        let Some(found) = self.sql.run(async |conn| ask(conn).await)? else {
            return Err(Failure::Absent(
                "which thread works for which connection: this server does not show it".to_string(),
            ));
        };
        let answered_ns = whyso_clock::monotonic_ns();
        let mut sessions = match self.sessions.read() {
            Ok(sessions) => sessions,
            Err(Failure::Stopped) => return Err(Failure::Stopped),
            // The table is worth having without: a view of the Performance Schema reports that it can't be read.
            Err(_) => HashMap::new(),
        };
        let row = |connection: Connection| {
            let session = sessions.remove(&connection.id).unwrap_or_default();
            let is_own = self.own.contains(connection.id);
            row(connection, session, answered_ns, is_own)
        };
        batch.sink.rows(TextRows {
            source: "connections".to_string(),
            t_ns: asked_ns,
            columns: COLUMNS.map(str::to_string).to_vec(),
            rows: found.into_iter().map(row).collect(),
        });
        Ok(())
    }
}

/// By [`COLUMNS`].
fn row(connection: Connection, session: Session, answered_ns: i64, is_own: bool) -> Vec<Option<String>> {
    let since_ns = |executing_ms: u64| {
        let executing_ns = i64::try_from(executing_ms.saturating_mul(NS_PER_MS)).unwrap_or(i64::MAX);
        answered_ns.saturating_sub(executing_ns).to_string()
    };
    vec![
        Some(connection.tid.to_string()),
        Some(connection.id.to_string()),
        connection.statement,
        connection.executing_ms.map(since_ns),
        session.stage,
        session.wait,
        session.wait_ns.map(|ns| ns.to_string()),
        session.object,
        is_own.then(|| "1".to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_columns_also_where_nothing_is_known() {
        let connection = |statement: Option<&str>, executing_ms| Connection {
            tid: 7,
            id: 40,
            statement: statement.map(str::to_string),
            executing_ms,
        };
        let idle = row(connection(None, None), Session::default(), 5_000_000_000, false);
        assert_eq!(idle.len(), COLUMNS.len());
        assert_eq!(idle[1].as_deref(), Some("40"));
        assert!(idle[2..].iter().all(Option::is_none), "{idle:?}");
        let waits = Session {
            stage: Some("stage/sql/Updating".to_string()),
            wait: Some("wait/io/file/innodb/innodb_log_file".to_string()),
            wait_ns: Some(12),
            object: None,
        };
        let at_work = row(connection(Some("UPDATE t"), Some(3)), waits, 5_000_000_000, true);
        assert_eq!(at_work[8].as_deref(), Some("1"));
        assert_eq!(at_work[3].as_deref(), Some("4997000000"));
        assert_eq!(at_work[4].as_deref(), Some("stage/sql/Updating"));
        assert_eq!(at_work[6].as_deref(), Some("12"));
    }
}

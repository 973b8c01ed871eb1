//! What each connection waits for right now, and in which stage of its statement it is.
//!
//! Each table is read by itself, and joined here: servers without indexes on these tables would compare every line with every other.

use std::collections::HashMap;

use mysql_async::{Error, Row};
use whyso_clock::monotonic_ns;

use super::budget::Share;
use super::probe::Tables;
use super::reader::{SharedReader, lock};
use super::views::Frequency;
use crate::own_statements::ControlConnection;
use crate::sampler::Failure;
use crate::samplers::status::text_of;
use crate::sql::bounded_select;

const STAGES: &str = "events_stages_current";
const WAITS: &str = "events_waits_current";
/// The column that marks finished events: without it they can't be distinguished from events that continue.
const END: &str = "END_EVENT_ID";
/// Sessions that are read at once.
const READ_MAX: usize = 5000;
const PICOSECONDS_PER_NS: u64 = 1000;

/// What a connection does, as far as the server's settings let it show that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) stage: Option<String>,
    pub(crate) wait: Option<String>,
    /// For how long it has waited; `None` where the instrument is not timed.
    pub(crate) wait_ns: Option<u64>,
    /// The file or table that it waits for.
    pub(crate) object: Option<String>,
}

/// Asks for the sessions, within a share of the time.
pub(crate) struct Sessions {
    shared: SharedReader,
    share: Share,
}

impl Sessions {
    pub(crate) fn new(shared: SharedReader) -> Sessions {
        Sessions { shared, share: Share::of(Frequency::NowAndThen) }
    }

    /// By the server's number of the connection; nothing where the Performance Schema shows none, or the share is used up.
    pub(crate) fn read(&mut self) -> Result<HashMap<u64, Session>, Failure> {
        let mut reader = lock(&self.shared);
        let tables = reader.tables()?;
        let has_events = [WAITS, STAGES].iter().any(|table| marks_ends(&tables, table));
        if !has_events || !tables.has("threads") || !self.share.allows() {
            return Ok(HashMap::new());
        }
        let begin_ns = monotonic_ns();
        let outcome = reader.run(false, async |conn| ask(conn, &tables).await);
        self.share.spend_since(begin_ns);
        outcome
    }
}

/// Whether a table is there, and marks finished events.
fn marks_ends(tables: &Tables, table: &str) -> bool {
    tables.has(table) && tables.has_column(table, END)
}

async fn ask(conn: &mut ControlConnection<'_>, tables: &Tables) -> Result<HashMap<u64, Session>, Error> {
    let mut by_thread: HashMap<u64, Session> = HashMap::new();
    if marks_ends(tables, WAITS) {
        // The innermost comes last: a read of a table holds the read of a file.
        let question = format!(
            "THREAD_ID, EVENT_NAME, TIMER_WAIT, \
             COALESCE(CONCAT(OBJECT_SCHEMA, '.', OBJECT_NAME), OBJECT_NAME) FROM performance_schema.{WAITS} \
             WHERE {END} IS NULL AND EVENT_NAME <> 'idle' ORDER BY EVENT_ID LIMIT {READ_MAX}"
        );
        for row in rows(conn, &question).await? {
            let Some(thread) = number(&row, 0) else { continue };
            let session = by_thread.entry(thread).or_default();
            session.wait = text_of(&row, 1).map(str::to_string);
            session.wait_ns = number(&row, 2).map(|picoseconds| picoseconds / PICOSECONDS_PER_NS);
            session.object = text_of(&row, 3).map(str::to_string);
        }
    }
    if marks_ends(tables, STAGES) {
        let question = format!(
            "THREAD_ID, EVENT_NAME FROM performance_schema.{STAGES} WHERE {END} IS NULL \
             ORDER BY EVENT_ID LIMIT {READ_MAX}"
        );
        for row in rows(conn, &question).await? {
            let Some(thread) = number(&row, 0) else { continue };
            by_thread.entry(thread).or_default().stage = text_of(&row, 1).map(str::to_string);
        }
    }
    if by_thread.is_empty() {
        return Ok(HashMap::new());
    }
    let question = format!(
        "THREAD_ID, PROCESSLIST_ID FROM performance_schema.threads WHERE PROCESSLIST_ID IS NOT NULL LIMIT {READ_MAX}"
    );
    let named = rows(conn, &question).await?;
    let session = |row: &Row| Some((number(row, 1)?, by_thread.remove(&number(row, 0)?)?));
    Ok(named.iter().filter_map(session).collect())
}

async fn rows(conn: &mut ControlConnection<'_>, question: &str) -> Result<Vec<Row>, Error> {
    conn.query(bounded_select(question)).await
}

fn number(row: &Row, place: usize) -> Option<u64> {
    text_of(row, place)?.parse().ok()
}

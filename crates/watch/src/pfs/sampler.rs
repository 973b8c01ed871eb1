//! One view, read whole.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use whyso_clock::monotonic_ns;
use whyso_record::data::Value;

use super::budget::Share;
use super::probe::{Tables, tables};
use super::views::{Column, View};
use crate::sampler::{Failure, Sampler};
use crate::sink::Batch;
use crate::sql::{Sql, bounded_select};
use crate::status::text_of;

/// The connection that all views share, and what was found out about the server.
pub(crate) struct Reader {
    sql: Sql,
    tables: Option<Arc<Tables>>,
}

pub(crate) type Shared = Arc<Mutex<Reader>>;

impl Reader {
    pub(crate) fn new(sql: Sql) -> Reader {
        Reader { sql, tables: None }
    }

    /// What the server has, asked once.
    pub(crate) fn tables(&mut self) -> Result<Arc<Tables>, Failure> {
        if let Some(tables) = &self.tables {
            return Ok(tables.clone());
        }
        let found = Arc::new(self.sql.run(async |conn| tables(conn).await)?);
        self.tables = Some(found.clone());
        Ok(found)
    }

    /// Within the time that the watching goes on, or as its last question.
    pub(crate) fn run<T>(
        &mut self,
        last: bool,
        query: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        if last { self.sql.run_last(query) } else { self.sql.run(query) }
    }
}

pub(crate) fn locked(shared: &Shared) -> MutexGuard<'_, Reader> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a server that has no such table, or not for us, is told to be.
pub(crate) fn not_granted(failure: Failure, table: &str) -> Failure {
    match failure {
        Failure::Absent(why) => {
            Failure::Absent(format!("{table}: {why}; grant SELECT on performance_schema.*"))
        }
        failure => failure,
    }
}

pub(crate) struct Summary {
    view: &'static View,
    shared: Shared,
    share: Share,
    /// What is asked, and which columns that gives; made when the server was first met.
    question: Option<(String, Vec<&'static Column>)>,
    /// Lines that were met.
    known: HashSet<String>,
}

impl Summary {
    pub(crate) fn new(view: &'static View, shared: Shared) -> Summary {
        Summary { view, shared, share: Share::of(view.often), question: None, known: HashSet::new() }
    }

    fn read_view(&mut self, batch: &mut Batch<'_>, last: bool) -> Result<(), Failure> {
        let Some((question, columns)) = &self.question else {
            batch.nothing_to_read();
            return Ok(());
        };
        let (view, known) = (self.view, &mut self.known);
        let is_first = known.is_empty();
        let mut reader = locked(&self.shared);
        let outcome = reader.run(last, async |conn| {
            let mut result = conn.query_iter(question.as_str()).await?;
            while let Some(row) = result.next().await? {
                let Some(instance) = text_of(&row, 0) else { continue };
                let is_new = !known.contains(instance);
                if is_new {
                    known.insert(instance.to_string());
                }
                for (at, column) in columns.iter().enumerate() {
                    let Some(number) = text_of(&row, at + 1).and_then(|text| column.value(text)) else {
                        continue;
                    };
                    if is_new && !is_first && view.absent_is_zero {
                        batch.was(&column.metric, instance, Value::Int(0));
                    }
                    batch.put_value(&column.metric, instance, Value::Int(number));
                }
            }
            Ok(())
        });
        outcome.map_err(|failure| not_granted(failure, view.table))
    }
}

/// The SELECT of a view with the columns that `tables` has of it; `None` where the table is not there.
fn question(view: &'static View, tables: &Tables) -> Option<(String, Vec<&'static Column>)> {
    if !tables.has(view.table) {
        return None;
    }
    let columns: Vec<&Column> =
        view.columns.iter().filter(|column| tables.has_column(view.table, column.sql)).collect();
    let named: Vec<&str> = columns.iter().map(|column| column.sql).collect();
    let select = format!(
        "{}, {} FROM performance_schema.{} {} WHERE {} {}",
        view.key,
        named.join(", "),
        view.table,
        view.join,
        view.lines,
        view.rest
    );
    Some((bounded_select(select.trim_end()), columns))
}

impl Sampler for Summary {
    fn source(&self) -> &'static str {
        self.view.source
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        if self.question.is_none() {
            let tables = locked(&self.shared).tables()?;
            tables.absent.iter().for_each(|line| batch.absent(line.clone()));
            self.question = question(self.view, &tables);
            if self.question.is_none() {
                return Err(Failure::NotHere);
            }
        }
        if !self.share.allows() {
            batch.put_off();
            return Ok(());
        }
        let begin_ns = monotonic_ns();
        let outcome = self.read_view(batch, false);
        self.share.spend_since(begin_ns);
        outcome
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        self.read_view(batch, true)
    }
}

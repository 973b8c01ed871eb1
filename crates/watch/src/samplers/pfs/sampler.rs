//! One view, read whole.

use std::collections::HashSet;

use whyso_clock::monotonic_ns;
use whyso_record::data::Value;

use super::budget::Share;
use super::probe::Tables;
use super::reader::{SharedReader, lock};
use super::views::{Column, View};
use crate::sampler::{Failure, Sampler};
use crate::samplers::status::text_of;
use crate::sink::Batch;
use crate::sql::bounded_select;

/// A first reading that costs more is paid for before it is taken.
const DEAR_MS: f64 = 10.0;

/// Adds the table and the missing privilege to the failure of a server that does not have the table, or not for us.
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
    shared: SharedReader,
    share: Share,
    /// The question, and the columns of its answer; built when the server is asked first.
    question: Option<(String, Vec<&'static Column>)>,
    /// Lines that were read before.
    instances: HashSet<String>,
    is_read: bool,
}

impl Summary {
    pub(crate) fn new(view: &'static View, shared: SharedReader) -> Summary {
        Summary {
            view,
            shared,
            share: Share::of(view.frequency),
            question: None,
            instances: HashSet::new(),
            is_read: false,
        }
    }

    /// The note on a view whose first reading would cost too much to be taken at once.
    fn is_dear(&mut self) -> Result<Option<String>, Failure> {
        if self.view.ns_per_pair == 0.0 {
            return Ok(None);
        }
        let cost_ms = lock(&self.shared).pairs()? * self.view.ns_per_pair / 1e6;
        if cost_ms < DEAR_MS {
            return Ok(None);
        }
        self.share.owe((cost_ms * 1e6) as i64);
        Ok(Some(format!(
            "{} at first: with so many open tables one reading takes the server some {cost_ms:.0} ms of CPU time, so that \
             the first is taken after {:.0} s",
            self.view.table,
            self.share.rest_s()
        )))
    }

    fn read_view(&mut self, batch: &mut Batch<'_>, last: bool) -> Result<(), Failure> {
        let Some((question, columns)) = &self.question else {
            batch.nothing_to_read();
            return Ok(());
        };
        let (view, instances) = (self.view, &mut self.instances);
        let is_first = instances.is_empty();
        let mut reader = lock(&self.shared);
        let outcome = reader.run(last, async |conn| {
            let mut result = conn.query_iter(question.as_str()).await?;
            while let Some(row) = result.next().await? {
                let Some(instance) = text_of(&row, 0) else { continue };
                let is_new = !instances.contains(instance);
                if is_new {
                    instances.insert(instance.to_string());
                }
                for (at, column) in columns.iter().enumerate() {
                    let Some(number) = text_of(&row, at + 1).and_then(|text| column.value(text)) else {
                        continue;
                    };
                    if is_new && !is_first && view.absent_is_zero {
                        batch.put_before(&column.metric, instance, Value::Int(0));
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
            let tables = lock(&self.shared).tables()?;
            tables.absent.iter().for_each(|line| batch.absent(line.clone()));
            let Some(question) = question(self.view, &tables) else { return Err(Failure::NotHere) };
            if let Some(line) = self.is_dear()? {
                batch.absent(line);
            }
            self.question = Some(question);
        }
        if !self.share.allows() {
            batch.put_off();
            return Ok(());
        }
        let begin_ns = monotonic_ns();
        let outcome = self.read_view(batch, false);
        self.is_read = true;
        self.share.spend_since(begin_ns);
        outcome
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        if !self.is_read {
            // A single reading shows no growth.
            batch.nothing_to_read();
            return Ok(());
        }
        self.read_view(batch, true)
    }
}

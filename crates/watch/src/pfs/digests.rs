//! Statement digests: the numbers of those that ran since the last reading, and once the text of each.

use std::collections::HashMap;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Row};
use whyso_clock::monotonic_ns;
use whyso_record::data::{TextRows, Value};

use super::sampler::{Shared, locked, not_granted};
use super::views::{Column, STATEMENTS};
use crate::sampler::{Failure, Sampler};
use crate::sink::Batch;
use crate::sql::bounded_select;
use crate::status::text_of;

const SOURCE: &str = "pfs_digests";
const TABLE: &str = "events_statements_summary_by_digest";
/// Digests that are recorded at one reading: those whose time grew most.
const RECORDED_MAX: usize = 200;
/// Lines that are read at once; a server keeps some thousands.
const READ_MAX: usize = 5000;
/// Characters of a text that are kept.
const TEXT_MAX: usize = 2000;

pub(crate) struct Digests {
    shared: Shared,
    columns: Option<Vec<&'static Column>>,
    /// The server's own time of the last reading: what was seen before that has not grown.
    since: Option<String>,
    readings: u64,
    known: HashMap<String, Known>,
}

/// What was read of a digest last.
#[derive(Default)]
struct Known {
    values: Vec<Option<i64>>,
    /// The reading at which it was recorded last, from 1; 0 for never.
    recorded_at: u64,
}

/// A digest as it was read.
struct Line {
    instance: String,
    values: Vec<Option<i64>>,
    grown: i64,
}

impl Digests {
    pub(crate) fn new(shared: Shared) -> Digests {
        Digests { shared, columns: None, since: None, readings: 0, known: HashMap::new() }
    }

    fn read_digests(&mut self, batch: &mut Batch<'_>, last: bool) -> Result<(), Failure> {
        let Some(columns) = self.columns.clone() else {
            batch.nothing_to_read();
            return Ok(());
        };
        let question = question(&columns, self.since.as_deref());
        let shared = self.shared.clone();
        let mut reader = locked(&shared);
        let outcome = reader.run(last, async |conn| read(conn, &question, &columns).await);
        let (now, mut lines) = outcome.map_err(|failure| not_granted(failure, TABLE))?;
        self.since = now.or(self.since.take());
        self.readings += 1;
        for line in &mut lines {
            let before = self.known.get(&line.instance).map_or(&[][..], |known| &known.values);
            line.grown = grown(&line.values, before);
        }
        lines.retain(|line| line.grown > 0);
        lines.sort_by_key(|line| std::cmp::Reverse(line.grown));
        let mut new = Vec::new();
        for (place, line) in lines.into_iter().enumerate() {
            let known = self.known.entry(line.instance.clone()).or_default();
            if place < RECORDED_MAX {
                if known.recorded_at == 0 {
                    new.push(line.instance.clone());
                }
                let was_told = known.recorded_at + 1 == self.readings;
                record(batch, &columns, &line, (!was_told && self.readings > 1).then_some(&known.values));
                known.recorded_at = self.readings;
            }
            known.values = line.values;
        }
        if !new.is_empty() {
            let texts = reader.run(last, async |conn| texts(conn, &new).await)?;
            batch.sink.rows(TextRows {
                source: SOURCE.to_string(),
                t_ns: monotonic_ns(),
                columns: ["instance", "schema", "text"].map(str::to_string).to_vec(),
                rows: texts,
            });
        }
        Ok(())
    }
}

/// By how much its time grew in nanoseconds, with its executions: those of an untimed statement grow alone.
fn grown(values: &[Option<i64>], before: &[Option<i64>]) -> i64 {
    let at = |values: &[Option<i64>], place: usize| values.get(place).copied().flatten().unwrap_or(0);
    (0..2).map(|place| (at(values, place) - at(before, place)).max(0)).sum()
}

/// `before`: what it was at the reading before, where that did not record it; nothing where the digest was not there.
fn record(
    batch: &mut Batch<'_>,
    columns: &[&'static Column],
    line: &Line,
    before: Option<&Vec<Option<i64>>>,
) {
    for (place, (column, value)) in columns.iter().zip(&line.values).enumerate() {
        let Some(value) = *value else { continue };
        if let Some(before) = before {
            let before = before.get(place).copied().flatten().unwrap_or(0);
            batch.was(&column.metric, &line.instance, Value::Int(before));
        }
        batch.put_value(&column.metric, &line.instance, Value::Int(value));
    }
}

/// A digest by its schema and its hash; the line of those that found no place has no hash.
const INSTANCE: &str = "CONCAT_WS(':', COALESCE(SCHEMA_NAME, ''), COALESCE(LEFT(DIGEST, 32), 'others'))";

fn question(columns: &[&'static Column], since: Option<&str>) -> String {
    let named: Vec<&str> = columns.iter().map(|column| column.sql).collect();
    // A whole second earlier: servers that tell no parts of one.
    let seen =
        since.map_or(String::new(), |since| format!(" WHERE LAST_SEEN >= '{since}' - INTERVAL 1 SECOND"));
    bounded_select(&format!(
        "{INSTANCE}, CAST(NOW() AS CHAR), {} FROM performance_schema.{TABLE}{seen} \
         ORDER BY SUM_TIMER_WAIT DESC LIMIT {READ_MAX}",
        named.join(", ")
    ))
}

/// The server's time, and every digest that ran since.
async fn read(
    conn: &mut Conn,
    question: &str,
    columns: &[&'static Column],
) -> Result<(Option<String>, Vec<Line>), Error> {
    let mut now = None;
    let mut lines = Vec::new();
    let mut result = conn.query_iter(question).await?;
    while let Some(row) = result.next().await? {
        let Some(instance) = text_of(&row, 0) else { continue };
        now = text_of(&row, 1).filter(|now| is_a_time(now)).map(str::to_string).or(now);
        let value =
            |(place, column): (usize, &&Column)| text_of(&row, place + 2).and_then(|text| column.value(text));
        lines.push(Line {
            instance: instance.to_string(),
            values: columns.iter().enumerate().map(value).collect(),
            grown: 0,
        });
    }
    Ok((now, lines))
}

/// "2026-11-22 20:15:01", and nothing that could end the quotes around it.
fn is_a_time(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b" -:.".contains(&byte))
}

/// (instance, schema, text) of each.
async fn texts(conn: &mut Conn, instances: &[String]) -> Result<Vec<Vec<Option<String>>>, Error> {
    let quoted: Vec<String> =
        instances.iter().map(|one| format!("'{}'", one.replace(['\'', '\\'], ""))).collect();
    let question = bounded_select(&format!(
        "{INSTANCE}, SCHEMA_NAME, LEFT(DIGEST_TEXT, {TEXT_MAX}) FROM performance_schema.{TABLE} WHERE {INSTANCE} IN ({})",
        quoted.join(", ")
    ));
    let rows: Vec<Row> = conn.query(question).await?;
    let cells = |row: &Row| (0..3).map(|place| text_of(row, place).map(str::to_string)).collect();
    Ok(rows.iter().map(cells).collect())
}

impl Sampler for Digests {
    fn source(&self) -> &'static str {
        SOURCE
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        if self.columns.is_none() {
            let tables = locked(&self.shared).tables()?;
            if !tables.has(TABLE) {
                return Err(Failure::NotHere);
            }
            self.columns =
                Some(STATEMENTS.iter().filter(|column| tables.has_column(TABLE, column.sql)).collect());
        }
        if !locked(&self.shared).may_read() {
            batch.put_off();
            return Ok(());
        }
        self.read_digests(batch, false)
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        self.read_digests(batch, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_time_is_put_between_quotes() {
        assert!(is_a_time("2026-11-22 20:15:01"));
        assert!(is_a_time("2026-11-22 20:15:01.123456"));
        assert!(!is_a_time("2026' OR '1"));
        assert!(!is_a_time(""));
    }

    #[test]
    fn a_digest_grows_by_its_time_and_its_executions() {
        assert_eq!(grown(&[Some(3), Some(100)], &[]), 103);
        assert_eq!(grown(&[Some(3), Some(100)], &[Some(1), Some(40)]), 62);
        assert_eq!(grown(&[Some(3), None], &[Some(1), None]), 2);
        assert_eq!(grown(&[Some(1), Some(5)], &[Some(9), Some(50)]), 0);
    }
}

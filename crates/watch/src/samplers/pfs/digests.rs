//! Statement digests: the numbers of those that ran since the last reading, and once the text of each.

use mysql_async::{Error, Row};
use whyso_clock::monotonic_ns;
use whyso_record::data::{TextRows, Value};

use super::budget::Share;
use super::growing::{Growing, Line};
use super::own_lines::OwnLines;
use super::reader::{SharedReader, lock};
use super::sampler::not_granted;
use super::views::{Column, Frequency, OWN_COUNT, STATEMENTS};
use crate::own_statements::{ControlConnection, OwnStatements};
use crate::sampler::{Failure, Sampler};
use crate::samplers::status::text_of;
use crate::sink::Batch;
use crate::sql::bounded_select;

const SOURCE: &str = "pfs_digests";
const TABLE: &str = "events_statements_summary_by_digest";
/// Lines that are read at once; a server keeps some thousands.
const READ_MAX: usize = 5000;
/// Characters of a text that are kept.
const TEXT_MAX: usize = 2000;

pub(crate) struct Digests {
    shared: SharedReader,
    share: Share,
    columns: Option<Vec<&'static Column>>,
    /// The server's own time of the last reading: what was seen before that has not grown.
    since: Option<String>,
    growing: Growing,
    statements: OwnStatements,
    own: OwnLines,
}

impl Digests {
    /// `statements`: whyso's own, which are counted apart from others'.
    pub(crate) fn new(shared: SharedReader, statements: OwnStatements) -> Digests {
        Digests {
            shared,
            share: Share::of(Frequency::NowAndThen),
            columns: None,
            since: None,
            growing: Growing::default(),
            statements,
            own: OwnLines::default(),
        }
    }

    fn read_digests(&mut self, batch: &mut Batch<'_>, last: bool) -> Result<(), Failure> {
        let Some(columns) = self.columns.clone() else {
            batch.nothing_to_read();
            return Ok(());
        };
        let question = question(&columns, self.since.as_deref());
        let mut reader = lock(&self.shared);
        self.own.begin_reading(&self.statements);
        let outcome = reader.run(last, async |conn| read(conn, &question, &columns).await);
        let (now, lines) = outcome.map_err(|failure| not_granted(failure, TABLE))?;
        self.since = now.or(self.since.take());
        self.own.end_reading(&self.statements);
        let recorded = self.growing.record(batch, &columns, lines);
        if !recorded.new.is_empty() {
            let texts = reader.run(last, async |conn| texts(conn, &recorded.new).await)?;
            for row in &texts {
                if let [Some(instance), schema, Some(text)] = row.as_slice() {
                    self.own.learn(instance, schema.as_deref(), text, text.chars().count() >= TEXT_MAX);
                }
            }
            record_rows(batch, SOURCE, texts);
        }
        for own in self.own.own(&recorded.counts) {
            if let Some(was) = own.was {
                batch.put_before(&OWN_COUNT, &own.instance, Value::Int(was));
            }
            batch.put_value(&OWN_COUNT, &own.instance, Value::Int(own.count));
        }
        Ok(())
    }
}

/// Texts of lines, as a table of the source: (instance, schema, text) each.
pub(crate) fn record_rows(batch: &Batch<'_>, source: &str, rows: Vec<Vec<Option<String>>>) {
    batch.sink.rows(TextRows {
        source: source.to_string(),
        t_ns: monotonic_ns(),
        columns: ["instance", "schema", "text"].map(str::to_string).to_vec(),
        rows,
    });
}

/// A digest by its schema and its hash; the line of those that found no place has no hash.
const INSTANCE: &str = "CONCAT_WS(':', COALESCE(SCHEMA_NAME, ''), COALESCE(LEFT(DIGEST, 32), 'others'))";

fn question(columns: &[&'static Column], since: Option<&str>) -> String {
    let named: Vec<&str> = columns.iter().map(|column| column.sql).collect();
    // A whole second earlier: some servers show no parts of a second.
    let filter =
        since.map_or(String::new(), |since| format!(" WHERE LAST_SEEN >= '{since}' - INTERVAL 1 SECOND"));
    bounded_select(&format!(
        "{INSTANCE}, CAST(NOW() AS CHAR), {} FROM performance_schema.{TABLE}{filter} \
         ORDER BY SUM_TIMER_WAIT DESC LIMIT {READ_MAX}",
        named.join(", ")
    ))
}

/// The server's time, and every digest that ran since.
async fn read(
    conn: &mut ControlConnection<'_>,
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
        });
    }
    Ok((now, lines))
}

/// "2026-11-22 20:15:01", and nothing that could end the quotes around it.
fn is_a_time(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b" -:.".contains(&byte))
}

/// (instance, schema, text) of each.
async fn texts(
    conn: &mut ControlConnection<'_>,
    instances: &[String],
) -> Result<Vec<Vec<Option<String>>>, Error> {
    let quoted: Vec<String> =
        instances.iter().map(|instance| format!("'{}'", instance.replace(['\'', '\\'], ""))).collect();
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
            let tables = lock(&self.shared).tables()?;
            if !tables.has(TABLE) {
                return Err(Failure::NotHere);
            }
            self.columns =
                Some(STATEMENTS.iter().filter(|column| tables.has_column(TABLE, column.sql)).collect());
        }
        if !self.share.allows() {
            batch.put_off();
            return Ok(());
        }
        let begin_ns = monotonic_ns();
        let outcome = self.read_digests(batch, false);
        self.share.spend_since(begin_ns);
        outcome
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
}

//! `SHOW GLOBAL STATUS`: every numeric value under the server's own name.
//!
//! The table in [`kinds`] distinguishes counters from gauges; a name that it does not know is
//! a counter. `ON` and `OFF`, `YES` and `NO` are gauges of 1 and 0. Other words go to the text
//! table `status`, all of them at the first reading and later those that changed.
//!
//! The statement counts itself: `Com_show_status`, `Queries`, `Questions`, `Bytes_sent`,
//! `Handler_write`, `Created_tmp_tables` and others grow by our own readings, also those of the
//! other samplers that ask the server. That is one to two statements an interval and not taken out.

mod events;
mod kinds;

use std::collections::HashMap;

use mysql_async::Error;
use whyso_model::{Missing, NotMeasured};
use whyso_record::data::{Kind, TextRows, Value};

use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};
use crate::samplers::lock_waits::{RowLockActivity, RowLockCounts};
use crate::sink::Batch;
use crate::sql::Sql;
use events::EventDetector;
use kinds::{is_gauge, unit};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["status"],
    counts: "every numeric status variable",
    origin: "`SHOW GLOBAL STATUS`",
    metrics: &[],
    start,
};

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    vec![ScheduledSampler::of_server(Status::new(sql, context.row_lock_activity.clone()))]
}

pub(crate) struct Status {
    sql: Sql,
    /// Values that are words, as they were last recorded.
    words: HashMap<String, String>,
    /// Shows the sampler of lock waits whether rows are waited for.
    activity: RowLockActivity,
    row_locks: RowLockCounts,
    events: EventDetector,
}

impl Status {
    pub(crate) fn new(sql: Sql, activity: RowLockActivity) -> Status {
        Status {
            sql,
            words: HashMap::new(),
            activity,
            row_locks: RowLockCounts::default(),
            events: EventDetector::default(),
        }
    }
}

impl Sampler for Status {
    fn source(&self) -> &'static str {
        "status"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let (words, events) = (&mut self.words, &mut self.events);
        let mut row_locks = RowLockCounts::default();
        events.forget_half();
        let changed =
            self.sql.run(async |conn| read_status(conn, words, &mut row_locks, events, batch).await)?;
        for (kind, text) in self.events.take_events() {
            batch.event(kind, text);
        }
        self.activity.note_counts(&row_locks, &self.row_locks, whyso_clock::monotonic_ns());
        self.row_locks = row_locks;
        if !changed.is_empty() {
            batch.sink.rows(TextRows {
                source: "status".to_string(),
                t_ns: whyso_clock::monotonic_ns(),
                columns: vec!["name".to_string(), "value".to_string()],
                rows: changed,
            });
        }
        Ok(())
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let (words, events) = (&mut self.words, &mut self.events);
        let mut row_locks = RowLockCounts::default();
        self.sql.run_last(async |conn| read_status(conn, words, &mut row_locks, events, batch).await)?;
        Ok(())
    }
}

/// Returns the rows of words that are new or changed.
async fn read_status(
    conn: &mut ControlConnection<'_>,
    words: &mut HashMap<String, String>,
    row_locks: &mut RowLockCounts,
    events: &mut EventDetector,
    batch: &mut Batch<'_>,
) -> Result<Vec<Vec<Option<String>>>, Error> {
    let mut changed = Vec::new();
    let mut result = conn.query_iter("SHOW GLOBAL STATUS").await?;
    while let Some(row) = result.next().await? {
        let (Some(name), Some(value)) = (text_of(&row, 0), text_of(&row, 1)) else {
            continue;
        };
        match parse_value(value) {
            ParsedValue::Number(value) => {
                row_locks.note(name, value);
                events.note(name, value);
                if has_lost(name, value) {
                    batch.absent(NotMeasured::new(
                        Missing::PerformanceSchema,
                        "part of what the Performance Schema counts",
                        format!("{name} is above 0; start the server with a greater performance_schema setting for it"),
                    ));
                }
                batch.put_named(name, "", value, || (kind(name), unit(name)));
            }
            ParsedValue::Switch(on) => {
                let value = Value::Int(i64::from(on));
                batch.put_named(name, "", value, || (Kind::Gauge, "1"));
            }
            ParsedValue::Nothing => {}
            ParsedValue::Word => {
                if words.get(name).is_some_and(|before| before == value) {
                    continue;
                }
                words.insert(name.to_string(), value.to_string());
                changed.push(vec![Some(name.to_string()), Some(value.to_string())]);
            }
        }
    }
    Ok(changed)
}

/// Whether the Performance Schema had no room for something, such as for one table more than it expected at its start.
fn has_lost(name: &str, value: Value) -> bool {
    name.starts_with("Performance_schema_") && name.ends_with("_lost") && value.as_f64() > 0.0
}

/// A column of the text protocol, where it is text.
pub(crate) fn text_of(row: &mysql_async::Row, column: usize) -> Option<&str> {
    match row.as_ref(column)? {
        mysql_async::Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}

fn kind(name: &str) -> Kind {
    match is_gauge(name) {
        true => Kind::Gauge,
        false => Kind::Counter,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum ParsedValue {
    Number(Value),
    Switch(bool),
    Word,
    Nothing,
}

fn parse_value(text: &str) -> ParsedValue {
    match text {
        "" | "NULL" => return ParsedValue::Nothing,
        "ON" | "YES" | "Yes" => return ParsedValue::Switch(true),
        "OFF" | "NO" | "No" => return ParsedValue::Switch(false),
        _ => {}
    }
    match parse_number(text) {
        Some(value) => ParsedValue::Number(value),
        None => ParsedValue::Word,
    }
}

/// A decimal number of the server; what is beyond an `i64` is kept as a float.
pub(crate) fn parse_number(text: &str) -> Option<Value> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(Value::Int(value));
    }
    // `f64` would also take "inf" and "nan".
    let numeric =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'));
    let starts_as_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    if !numeric || !starts_as_number {
        return None;
    }
    let value = text.parse::<f64>().ok()?;
    value.is_finite().then_some(Value::Float(value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_are_distinguished_by_their_form() {
        assert_eq!(parse_value("12"), ParsedValue::Number(Value::Int(12)));
        assert_eq!(parse_value("-1"), ParsedValue::Number(Value::Int(-1)));
        assert_eq!(parse_value("0.25"), ParsedValue::Number(Value::Float(0.25)));
        let beyond = ParsedValue::Number(Value::Float(18_446_744_073_709_551_615.0));
        assert_eq!(parse_value("18446744073709551615"), beyond);
        assert_eq!(parse_value("ON"), ParsedValue::Switch(true));
        assert_eq!(parse_value("Primary"), ParsedValue::Word);
        assert_eq!(parse_value("inf"), ParsedValue::Word);
        assert_eq!(parse_value("2026-11-21 20:53:00"), ParsedValue::Word);
        assert_eq!(parse_value(""), ParsedValue::Nothing);
    }

    #[test]
    fn what_the_performance_schema_lost_is_found_by_its_name() {
        assert!(has_lost("Performance_schema_digest_lost", Value::Int(1)));
        assert!(!has_lost("Performance_schema_digest_lost", Value::Int(0)));
        assert!(!has_lost("Handler_lost", Value::Int(1)));
    }

    #[test]
    fn the_table_fits_a_real_server() {
        let mut gauges = Vec::new();
        let mut words = Vec::new();
        for line in include_str!("../../../tests/data/status_mariadb_10_11").lines() {
            let Some((name, value)) = line.split_once('\t') else {
                continue;
            };
            match parse_value(value) {
                ParsedValue::Number(_) if is_gauge(name) => gauges.push(name),
                ParsedValue::Word => words.push(name),
                _ => {}
            }
        }
        for name in [
            "Threads_running",
            "Innodb_buffer_pool_pages_dirty",
            "Innodb_history_list_length",
            "Innodb_row_lock_current_waits",
            "Open_tables",
            "Innodb_checkpoint_age",
            "Max_used_connections",
            "Memory_used",
            "Innodb_data_pending_fsyncs",
        ] {
            assert!(gauges.contains(&name), "{name} is a gauge");
        }
        for name in [
            "Com_select",
            "Innodb_buffer_pool_pages_flushed",
            "Innodb_row_lock_time",
            "Opened_tables",
            "Questions",
            "Innodb_lsn_current",
            "Threads_created",
            "Uptime",
        ] {
            assert!(!gauges.contains(&name), "{name} is a counter");
        }
        assert!(words.len() < 30, "{words:?}");
    }

    proptest! {
        #[test]
        fn garbage_is_survived(text in "(?s)[0-9.eE+-]{0,40}.{0,20}") {
            if let ParsedValue::Number(value) = parse_value(&text) {
                prop_assert!(value.as_f64().is_finite());
            }
        }
    }
}

//! What the Performance Schema is set to count: its setup tables, at the start, each slow interval and at the end.
//!
//! The first reading goes to the text table `pfs_setup`; a change becomes an event `variable`, as that of a global variable does.

use std::collections::BTreeMap;

use mysql_async::{Error, Row};
use whyso_clock::monotonic_ns;
use whyso_record::data::TextRows;

use super::budget::Share;
use super::probe::Tables;
use super::reader::{SharedReader, lock};
use super::views::Frequency;
use crate::own_statements::ControlConnection;
use crate::sampler::{Failure, Sampler};
use crate::samplers::status::text_of;
use crate::sink::Batch;
use crate::sql::{bounded_select, is_not_for_us};

const SOURCE: &str = "pfs_setup";
/// Changes of one table that are listed one by one; of more, only the number is shown.
const LISTED_MAX: usize = 10;

/// Tables, what names their lines, and the columns that are read of them where the server has them.
const TABLES: [(&str, &str, &[&str]); 7] = [
    ("setup_consumers", "NAME", &["ENABLED"]),
    ("setup_instruments", "NAME", &["ENABLED", "TIMED"]),
    ("setup_actors", "CONCAT(USER, '@', HOST)", &["ENABLED", "HISTORY"]),
    ("setup_objects", "CONCAT_WS('.', OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME)", &["ENABLED", "TIMED"]),
    ("setup_threads", "NAME", &["ENABLED", "HISTORY"]),
    ("setup_timers", "NAME", &["TIMER_NAME"]),
    ("performance_timers", "TIMER_NAME", &["TIMER_FREQUENCY", "TIMER_RESOLUTION", "TIMER_OVERHEAD"]),
];

/// What a table's lines are set to, by their names.
type Settings = BTreeMap<(&'static str, String), String>;

pub(crate) struct Setup {
    shared: SharedReader,
    share: Share,
    settings: Option<Settings>,
}

impl Setup {
    pub(crate) fn new(shared: SharedReader) -> Setup {
        Setup { shared, share: Share::of(Frequency::Slowly), settings: None }
    }

    fn take(&mut self, now: Settings, batch: &mut Batch<'_>) {
        match &self.settings {
            Some(before) => {
                for text in changes(before, &now) {
                    batch.event("variable", text);
                }
            }
            None => batch.sink.rows(TextRows {
                source: SOURCE.to_string(),
                t_ns: monotonic_ns(),
                columns: ["table", "name", "value"].map(str::to_string).to_vec(),
                rows: now
                    .iter()
                    .map(|((table, name), value)| {
                        [*table, name.as_str(), value.as_str()].map(|cell| Some(cell.to_string())).to_vec()
                    })
                    .collect(),
            }),
        }
        self.settings = Some(now);
    }
}

async fn ask(conn: &mut ControlConnection<'_>, tables: &Tables) -> Result<Settings, Error> {
    let mut settings = Settings::new();
    for (table, name, columns) in TABLES {
        let present: Vec<&str> =
            columns.iter().copied().filter(|column| tables.has_column(table, column)).collect();
        if present.is_empty() {
            continue;
        }
        let question = format!("{name}, {} FROM performance_schema.{table} LIMIT 20000", present.join(", "));
        let rows: Vec<Row> = match conn.query(bounded_select(&question)).await {
            Ok(rows) => rows,
            Err(Error::Server(error)) if is_not_for_us(error.code) => continue,
            Err(error) => return Err(error),
        };
        for row in &rows {
            let Some(name) = text_of(row, 0) else { continue };
            let value: Vec<String> = present
                .iter()
                .enumerate()
                .filter_map(|(place, column)| {
                    Some(format!("{} {}", column.to_ascii_lowercase(), text_of(row, place + 1)?))
                })
                .collect();
            settings.insert((table, name.to_string()), value.join(", "));
        }
    }
    Ok(settings)
}

/// What differs, a sentence each: of a table of which much does, how much.
fn changes(before: &Settings, now: &Settings) -> Vec<String> {
    let mut by_table: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut add_change = |table: &'static str, name: &str, old: &str, new: &str| {
        by_table.entry(table).or_default().push(format!("{name}: {old} → {new}"));
    };
    for ((table, name), new) in now {
        match before.get(&(*table, name.clone())) {
            Some(old) if old == new => {}
            Some(old) => add_change(table, name, old, new),
            None => add_change(table, name, "(did not exist)", new),
        }
    }
    for ((table, name), old) in before {
        if !now.contains_key(&(*table, name.clone())) {
            add_change(table, name, old, "(does not exist)");
        }
    }
    let mut texts = Vec::new();
    for (table, changed) in by_table {
        texts.extend(changed.iter().take(LISTED_MAX).map(|change| format!("{table} {change}")));
        if changed.len() > LISTED_MAX {
            texts.push(format!("{table}: {} more lines changed", changed.len() - LISTED_MAX));
        }
    }
    texts
}

impl Sampler for Setup {
    fn source(&self) -> &'static str {
        SOURCE
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        if !self.share.allows() {
            batch.put_off();
            return Ok(());
        }
        let settings = {
            let mut reader = lock(&self.shared);
            let tables = reader.tables()?;
            if !tables.has("setup_instruments") {
                return Err(Failure::NotHere);
            }
            let begin_ns = monotonic_ns();
            let outcome = reader.run(false, async |conn| ask(conn, &tables).await);
            self.share.spend_since(begin_ns);
            outcome?
        };
        self.take(settings, batch);
        Ok(())
    }

    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let settings = {
            let mut reader = lock(&self.shared);
            let tables = reader.tables()?;
            reader.run(true, async |conn| ask(conn, &tables).await)?
        };
        self.take(settings, batch);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(lines: &[(&'static str, &str, &str)]) -> Settings {
        let pair = |(table, name, value): &(&'static str, &str, &str)| {
            ((*table, name.to_string()), value.to_string())
        };
        lines.iter().map(pair).collect()
    }

    #[test]
    fn each_change_is_listed_and_of_many_how_many() {
        let consumer = |word| settings(&[("setup_consumers", "events_waits_current", word)]);
        assert_eq!(
            changes(&consumer("enabled NO"), &consumer("enabled YES")),
            ["setup_consumers events_waits_current: enabled NO → enabled YES"]
        );
        assert_eq!(changes(&consumer("enabled NO"), &consumer("enabled NO")), [""; 0]);
        assert_eq!(changes(&consumer("enabled NO"), &Settings::new()).len(), 1);
        let many = |word: &str| {
            let line = |number| (("setup_instruments", format!("wait/{number}")), word.to_string());
            (0..40).map(line).collect::<Settings>()
        };
        let texts = changes(&many("a"), &many("b"));
        assert_eq!(texts.len(), LISTED_MAX + 1);
        assert_eq!(texts[LISTED_MAX], "setup_instruments: 30 more lines changed");
    }
}

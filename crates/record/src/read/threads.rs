//! The server's threads, from the text tables that the tracer and the sampler of connections write.

use std::collections::{HashMap, HashSet};

use whyso_series::{ConnectionSnapshot, Look, ThreadSnapshot, ThreadTable};

use super::Recording;
use crate::data::TextRows;
use crate::error::Result;
use crate::{layout, table};

const THREADS: &str = "threads";
const CONNECTIONS: &str = "connections";
/// What the name of a state's column ends in.
const STATE: &str = "_ns";
/// Ends so too, and is no state.
const BORN: &str = "born_ns";

impl Recording {
    /// Every look at the server's threads, with what the server said of its connections; empty where nothing traced them.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn threads(&self) -> Result<ThreadTable> {
        let mut states: Vec<String> = Vec::new();
        let mut looks = Vec::new();
        self.each_table(THREADS, |rows| {
            if states.is_empty() {
                let is_state = |name: &&String| name.ends_with(STATE) && *name != BORN;
                states = rows.columns.iter().filter(is_state).cloned().collect();
            }
            looks.push(look(&rows, &states));
        })?;
        let mut told = Vec::new();
        self.each_table(CONNECTIONS, |rows| told.push(connections(&rows)))?;
        let names = states.iter().map(|name| name.trim_end_matches(STATE).to_string()).collect();
        Ok(ThreadTable::new(names, looks, &told))
    }

    /// Hands over the tables of a source one after the other, so that never all of them are in memory as text; then those
    /// that were read and had no row.
    fn each_table(&self, source: &str, mut take: impl FnMut(TextRows)) -> Result<()> {
        let stream = layout::rows_stream(source);
        let mut seen: HashSet<i64> = HashSet::new();
        for batch in self.batches(&stream)? {
            for rows in table::rows_of(&batch, source).unwrap_or_default() {
                seen.insert(rows.t_ns);
                take(rows);
            }
        }
        let Some(readings) = self.collections.named(&stream) else { return Ok(()) };
        for t_ns in readings.read_at_ns().filter(|t_ns| !seen.contains(t_ns)) {
            take(TextRows { source: source.to_string(), t_ns, columns: Vec::new(), rows: Vec::new() });
        }
        Ok(())
    }
}

/// A row's cell by its column's name.
fn cell<'a>(places: &HashMap<&str, usize>, row: &'a [Option<String>], name: &str) -> Option<&'a str> {
    places.get(name).and_then(|place| row.get(*place)?.as_deref())
}

fn places(rows: &TextRows) -> HashMap<&str, usize> {
    rows.columns.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect()
}

fn look(rows: &TextRows, states: &[String]) -> Look {
    let places = places(rows);
    let seen = |row: &Vec<Option<String>>| {
        let text = |name: &str| cell(&places, row, name);
        let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
        Some(ThreadSnapshot {
            tid: u32::try_from(number("tid")?).ok()?,
            // Older recordings do not have it.
            born_ns: number(BORN).unwrap_or(0),
            name: text("name").unwrap_or_default().to_string(),
            role: text("role").unwrap_or_default().to_string(),
            requests: number("requests").unwrap_or(0),
            states_ns: states.iter().map(|state| number(state).unwrap_or(0)).collect(),
        })
    };
    Look { t_ns: rows.t_ns, threads: rows.rows.iter().filter_map(seen).collect() }
}

fn connections(rows: &TextRows) -> ConnectionSnapshot {
    let places = places(rows);
    let one = |row: &Vec<Option<String>>| {
        let text = |name: &str| cell(&places, row, name);
        let connection = text("connection")?.parse().ok()?;
        Some((text("tid")?.parse().ok()?, (connection, text("statement").map(str::to_string))))
    };
    ConnectionSnapshot { t_ns: rows.t_ns, by_tid: rows.rows.iter().filter_map(one).collect() }
}

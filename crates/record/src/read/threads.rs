//! The server's threads, from the text tables that the tracer and the sampler of connections write.

use std::collections::HashMap;

use whyso_series::{ConnectionSnapshot, Snapshot, ThreadSnapshot, ThreadTable};

use super::Recording;
use crate::data::TextRows;
use crate::error::Result;

const THREADS: &str = "threads";
const CONNECTIONS: &str = "connections";
/// What the name of a state's column ends in.
const STATE: &str = "_ns";
/// Ends so too, and is no state.
const BORN: &str = "born_ns";

impl Recording {
    /// Every snapshot of the server's threads, with the connections that the server listed. Empty where nothing traced them.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn threads(&self) -> Result<ThreadTable> {
        let mut states: Vec<String> = Vec::new();
        let mut snapshots = Vec::new();
        self.each_table(THREADS, None, |rows| {
            if states.is_empty() {
                let is_state = |name: &&String| name.ends_with(STATE) && *name != BORN;
                states = rows.columns.iter().filter(is_state).cloned().collect();
            }
            snapshots.push(snapshot(&rows, &states));
        })?;
        let mut connection_tables = Vec::new();
        self.each_table(CONNECTIONS, None, |rows| connection_tables.push(connections(&rows)))?;
        let names = states.iter().map(|name| name.trim_end_matches(STATE).to_string()).collect();
        Ok(ThreadTable::new(names, snapshots, &connection_tables))
    }
}

/// A row's cell by its column's name.
fn cell<'a>(places: &HashMap<&str, usize>, row: &'a [Option<String>], name: &str) -> Option<&'a str> {
    places.get(name).and_then(|place| row.get(*place)?.as_deref())
}

fn places(rows: &TextRows) -> HashMap<&str, usize> {
    rows.columns.iter().enumerate().map(|(place, name)| (name.as_str(), place)).collect()
}

fn snapshot(rows: &TextRows, states: &[String]) -> Snapshot {
    let places = places(rows);
    let thread = |row: &Vec<Option<String>>| {
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
    Snapshot { t_ns: rows.t_ns, threads: rows.rows.iter().filter_map(thread).collect() }
}

fn connections(rows: &TextRows) -> ConnectionSnapshot {
    let places = places(rows);
    let connection_of = |row: &Vec<Option<String>>| {
        let text = |name: &str| cell(&places, row, name);
        let connection = text("connection")?.parse().ok()?;
        Some((text("tid")?.parse().ok()?, (connection, text("statement").map(str::to_string))))
    };
    ConnectionSnapshot { t_ns: rows.t_ns, by_tid: rows.rows.iter().filter_map(connection_of).collect() }
}

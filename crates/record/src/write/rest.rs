//! Connections at rest: with many, those that execute nothing are listed every minute.

use std::collections::HashMap;

use crate::data::TextRows;

/// The text tables that list connections.
const SOURCE: &str = "connections";
/// So many connections are always all listed.
const WHOLE_ROWS_MAX: usize = 200;
/// With more, all are listed this often.
const WHOLE_EVERY_NS: i64 = 60_000_000_000;
/// The column of tables that list every connection.
const WHOLE: &str = "whole";

/// Which connections were listed, and when all were.
#[derive(Debug, Default)]
pub(crate) struct ConnectionsAtRest {
    whole_ns: Option<i64>,
    /// By the number of the connection: its thread.
    listed: HashMap<String, String>,
}

impl ConnectionsAtRest {
    /// The table as it is to be written. Tables of other sources stay as they are.
    pub(crate) fn pass(&mut self, mut table: TextRows) -> TextRows {
        let place = |name: &str| table.columns.iter().position(|column| column == name);
        let places = place("tid").zip(place("connection")).zip(place("statement"));
        let Some(((tid, connection), statement)) = places.filter(|_| table.source == SOURCE) else {
            return table;
        };
        let is_due =
            self.whole_ns.is_none_or(|whole_ns| table.t_ns.saturating_sub(whole_ns) >= WHOLE_EVERY_NS);
        let is_whole = is_due || table.rows.len() <= WHOLE_ROWS_MAX;
        if is_whole {
            self.whole_ns = Some(table.t_ns);
            self.listed.clear();
        }
        let mut is_first = true;
        table.rows.retain(|row| {
            let text = |place: usize| row.get(place).and_then(Option::as_deref);
            let is_new = match (text(connection), text(tid)) {
                (Some(connection), Some(tid)) => {
                    self.listed.insert(connection.to_string(), tid.to_string()).as_deref() != Some(tid)
                }
                _ => true,
            };
            // A table without a row would be one of a server without connections.
            is_whole || is_new || text(statement).is_some() || std::mem::take(&mut is_first)
        });
        table.columns.push(WHOLE.to_string());
        table.rows.iter_mut().for_each(|row| row.push(is_whole.then(|| "1".to_string())));
        table
    }
}

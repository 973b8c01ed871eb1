//! When a thread is known to have worked for a connection, or to have executed a statement.
//!
//! The server is asked every few seconds which thread works for which connection, and what it executes. A thread that worked for the same
//! connection at two such looks, one after the other, worked for it all the time between them: the server does not give a connection's
//! number again. Of a statement it is known when it had begun at the latest: so it is known from then to the look, and no longer.

use std::collections::HashMap;

use whyso_series::{Span, Spans};

use super::Recording;
use crate::data::TextRows;
use crate::error::Result;

/// The text tables that hold what the server said.
const SOURCE: &str = "connections";
/// The server's variable that says how connections get their threads, and its value where each has one of its own.
const THREAD_HANDLING: &str = "thread_handling";
const OWN_THREAD: &str = "one-thread-per-connection";

/// What the server said of one thread.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    tid: u32,
    connection: u64,
    statement: Option<String>,
    /// When it had begun to execute the statement, at the latest.
    since_ns: Option<i64>,
}

/// What the server said of all its threads.
#[derive(Clone, Debug, Default, PartialEq)]
struct Look {
    t_ns: i64,
    said: Vec<Said>,
}

impl Recording {
    /// Which connection each thread worked for. A pool's thread is known to work for one only while it executes a statement.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn connections_at_work(&self) -> Result<Spans<u64>> {
        let looks = looks(self)?;
        let handling = self.run().server.variables.get(THREAD_HANDLING);
        Ok(if handling.is_none_or(|handling| handling == OWN_THREAD) {
            Spans::new(looks.windows(2).flat_map(|pair| between(&pair[0], &pair[1])))
        } else {
            Spans::new(looks.iter().flat_map(|look| executing(look, |said| said.connection)))
        })
    }

    /// Which statement each thread executed, told without its literals; `None` where the recording tells statements, and not since when they ran.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn statements_at_work(&self) -> Result<Option<Spans<String>>> {
        let looks = looks(self)?;
        let is_told = |look: &Look| look.said.iter().any(|said| said.statement.is_some());
        let is_since = |look: &Look| look.said.iter().any(|said| said.since_ns.is_some());
        if looks.iter().any(is_told) && !looks.iter().any(is_since) {
            return Ok(None);
        }
        let statement = |said: &Said| said.statement.clone().unwrap_or_default();
        Ok(Some(Spans::new(looks.iter().flat_map(|look| executing(look, statement)))))
    }
}

/// The looks, ascending in time.
fn looks(recording: &Recording) -> Result<Vec<Look>> {
    let mut looks: Vec<Look> = recording.rows(SOURCE)?.iter().map(look).collect();
    looks.sort_by_key(|look| look.t_ns);
    Ok(looks)
}

fn look(rows: &TextRows) -> Look {
    let place = |name: &str| rows.columns.iter().position(|column| column == name);
    let [tid, connection, statement, since_ns] = ["tid", "connection", "statement", "since_ns"].map(place);
    let said = |row: &Vec<Option<String>>| {
        let text = |place: Option<usize>| row.get(place?)?.as_deref();
        Some(Said {
            tid: text(tid)?.parse().ok()?,
            connection: text(connection)?.parse().ok()?,
            statement: text(statement).map(str::to_string),
            since_ns: text(since_ns).and_then(|text| text.parse().ok()),
        })
    };
    Look { t_ns: rows.t_ns, said: rows.rows.iter().filter_map(said).collect() }
}

/// The threads that worked for the same connection at two looks.
fn between(first: &Look, next: &Look) -> Vec<(u32, Span<u64>)> {
    let then: HashMap<u32, u64> = first.said.iter().map(|said| (said.tid, said.connection)).collect();
    let same = next.said.iter().filter(|said| then.get(&said.tid) == Some(&said.connection));
    let span = |of| Span { begin_ns: first.t_ns, end_ns: next.t_ns, of };
    same.map(|said| (said.tid, span(said.connection))).collect()
}

/// The threads that executed a statement at a look, since it had begun.
fn executing<T>(look: &Look, of: impl Fn(&Said) -> T) -> Vec<(u32, Span<T>)> {
    let span = |said: &Said| {
        let begin_ns = said.since_ns.filter(|begin_ns| said.statement.is_some() && *begin_ns <= look.t_ns)?;
        Some((said.tid, Span { begin_ns, end_ns: look.t_ns, of: of(said) }))
    };
    look.said.iter().filter_map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(t_ns: i64, rows: &[[Option<&str>; 4]]) -> Look {
        let columns = ["tid", "connection", "statement", "since_ns"].map(str::to_string).to_vec();
        let row = |cells: &[Option<&str>; 4]| cells.map(|cell| cell.map(str::to_string)).to_vec();
        look(&TextRows { source: SOURCE.to_string(), t_ns, columns, rows: rows.iter().map(row).collect() })
    }

    #[test]
    fn a_connection_is_known_from_look_to_look_while_its_thread_works_for_it() {
        let at = |t_ns, connection: &'static str| rows(t_ns, &[[Some("7"), Some(connection), None, None]]);
        let looks = [at(10, "40"), at(20, "40"), at(30, "41"), rows(40, &[]), at(50, "41"), at(60, "41")];
        let spans = Spans::new(looks.windows(2).flat_map(|pair| between(&pair[0], &pair[1])));
        let known = |t_ns| spans.at(7, t_ns).copied();
        assert_eq!(
            [9, 10, 15, 20, 25, 35, 45, 55, 61].map(known),
            [None, Some(40), Some(40), Some(40), None, None, None, Some(41), None]
        );
        assert_eq!(spans.at(8, 15), None);
    }

    #[test]
    fn a_statement_is_known_from_when_it_had_begun_to_the_look() {
        let of = |said: &Said| said.statement.clone().unwrap_or_default();
        let looks = [
            rows(1_000, &[[Some("7"), Some("1"), Some("SELECT ?"), Some("400")]]),
            // Began before the look before: one stretch for each look, the same statement.
            rows(2_000, &[[Some("7"), Some("1"), Some("SELECT ?"), Some("400")]]),
            // Waits for its client; began after it was asked; is not told since when.
            rows(
                3_000,
                &[
                    [Some("7"), Some("1"), None, Some("2500")],
                    [Some("8"), Some("2"), Some("COMMIT"), Some("3001")],
                    [Some("9"), Some("3"), Some("COMMIT"), None],
                ],
            ),
        ];
        let spans = Spans::new(looks.iter().flat_map(|look| executing(look, of)));
        let known = |tid, t_ns| spans.at(tid, t_ns).map(String::as_str);
        assert_eq!(
            [399, 400, 1_000, 1_500, 2_001].map(|t_ns| known(7, t_ns)),
            [None, Some("SELECT ?"), Some("SELECT ?"), Some("SELECT ?"), None]
        );
        assert_eq!([2_600, 3_000].map(|t_ns| known(7, t_ns)), [None, None]);
        assert_eq!([known(8, 3_000), known(9, 3_000)], [None, None]);
    }
}

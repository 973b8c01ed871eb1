//! Waits and statements of a server that counts none, from the states of its threads and the statements that its connections were found executing.

use std::collections::{BTreeMap, BTreeSet};

use whyso_record::run::Window;
use whyso_series::is_idle;
use whyso_words::{count, nanoseconds, number, percent};

use super::{TabData, hidden_words, is_observers, over, plain};
use crate::history::read::Cells;
use crate::screen::listing::{Cell, Column, Line, Listing, REST};
use crate::screen::session_statement::SessionStatement;

/// Snapshots of connections are some seconds apart. A shorter window has too few of them for a share.
const SNAPSHOTS_WINDOW_NS: i64 = 60_000_000_000;

/// What threads were in, by role and state, where the tracer reports it.
pub(super) fn states(shown: &TabData, window: Window) -> Listing {
    const SUFFIX: &str = "_ns";
    let Some(window) = shown.history.aligned("threads", window.end_ns - window.begin_ns, window.end_ns)
    else {
        return Listing::nothing(
            "waits are counted by the Performance Schema, which this server has off, or by the tracer, which does not run here",
        );
    };
    let series =
        shown.history.every_series(window, |key| key.source == "threads" && key.metric.ends_with(SUFFIX));
    let at_work = series.into_iter().filter(|state_time| {
        state_time.value > 0.0 && !is_idle(state_time.key.metric.trim_end_matches(SUFFIX))
    });
    let lines = at_work.map(|state_time| {
        let state = state_time.key.metric.trim_end_matches(SUFFIX).to_string();
        Line {
            cells: vec![
                Cell::number(Some(state_time.value), nanoseconds),
                Cell::number(Some(state_time.value / 1e9), number),
                Cell::Text(state_time.key.instance.clone()),
                Cell::Text(state.clone()),
            ],
            executed: None,
            whole: format!("{} threads in {state}", state_time.key.instance),
        }
    });
    Listing {
        columns: vec![
            Column { title: "time/s", width: 10 },
            Column { title: "threads", width: 9 },
            Column { title: "role", width: 18 },
            Column { title: "state", width: REST },
        ],
        lines: lines.collect(),
        sort: Some(0),
        about: format!(
            "what the server's threads at work were in, {}; the Performance Schema counts no waits here",
            over(window)
        ),
        empty: "no thread did anything at this time".to_string(),
    }
}

/// Statements that connections were found executing.
pub(super) fn statements(shown: &TabData, window: Window, with_observer: bool) -> Listing {
    let window = Window { begin_ns: window.begin_ns.min(window.end_ns - SNAPSHOTS_WINDOW_NS), ..window };
    let snapshots = shown.history.connection_snapshots(window);
    if snapshots.is_empty() {
        return Listing::nothing(
            "statements are counted by the Performance Schema, which this server has off; nor does it report what its connections execute",
        );
    }
    #[derive(Default)]
    struct StatementSummary {
        times: u64,
        longest_ns: i64,
    }
    let mut hidden: BTreeSet<String> = BTreeSet::new();
    let mut by_text: BTreeMap<String, StatementSummary> = BTreeMap::new();
    let mut all = 0;
    for snapshot in &snapshots {
        for row in &snapshot.rows {
            let cells = Cells { columns: &snapshot.columns, row };
            let Some(text) = cells.text("statement") else { continue };
            let text = plain(text);
            let text = match is_observers(cells) {
                false => text,
                true if with_observer => format!("[whyso] {text}"),
                true => {
                    hidden.insert(text);
                    continue;
                }
            };
            let statement = by_text.entry(text).or_default();
            statement.times += 1;
            all += 1;
            let since_ns = cells.number("since_ns").unwrap_or(snapshot.t_ns);
            statement.longest_ns = statement.longest_ns.max(snapshot.t_ns - since_ns);
        }
    }
    let lines = by_text.into_iter().map(|(text, statement)| Line {
        cells: vec![
            Cell::number(Some(statement.times as f64 / snapshots.len() as f64), number),
            Cell::number(Some(statement.times as f64 / f64::from(all)), percent),
            Cell::number(Some(statement.longest_ns as f64), nanoseconds),
            Cell::Text(text.clone()),
        ],
        executed: (!text.starts_with("[whyso]"))
            .then(|| SessionStatement { connection: None, statement: text.clone() }),
        whole: text,
    });
    Listing {
        columns: vec![
            Column { title: "sessions", width: 10 },
            Column { title: "share", width: 7 },
            Column { title: "longest", width: 10 },
            Column { title: "statement", width: REST },
        ],
        lines: lines.collect(),
        sort: Some(0),
        about: format!(
            "what connections were found executing, {} {}; the Performance Schema counts no statements here{}",
            count(snapshots.len() as u64, "snapshot"),
            over(window),
            hidden_words(hidden.len(), "statement")
        ),
        empty: "no connection was found executing anything".to_string(),
    }
}

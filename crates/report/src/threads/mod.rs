//! Threads and where their time went, in per cent, as prstat -mL shows it: a table for the terminal, JSON, and columns for the page.

mod columns;

pub(crate) use columns::{CELLS_MAX, THREADS_MAX, ThreadsHead, columns};

use serde_json::{Value, json};
use whyso_explain::model::Pauses;
use whyso_series::ThreadTime;
use whyso_words::{percent_number, seconds, whole};

use crate::pauses::pauses_json;
use crate::text::clean;
use crate::text::layout::aligned_with_words;

/// Longest statement in the terminal, in characters.
const STATEMENT_MAX: usize = 60;

/// What a table of threads is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadsWindow {
    /// Seconds since the load began, as the page counts them; `None` for a server that is read now.
    pub begin_s: Option<f64>,
    pub seconds: f64,
    /// Threads that there are, those that were not asked for included.
    pub of: usize,
}

/// Returns the table, the thread with the most time on a CPU first, and under it the sum of all that are shown. `states` names the columns of
/// [`ThreadTime::states_ns`]; states that no thread was in for a thousandth of its time are left out.
pub fn threads(window: ThreadsWindow, rows: &[&ThreadTime], states: &[String]) -> String {
    let shown: Vec<usize> =
        (0..states.len()).filter(|&at| rows.iter().any(|row| share(row, at) >= 0.001)).collect();
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| {
        let busy = |row: &ThreadTime| row.states_ns.first().copied().unwrap_or(0);
        busy(b).cmp(&busy(a)).then(a.tid.cmp(&b.tid))
    });
    let mut head: Vec<String> = ["thread", "name", "role"].map(str::to_string).to_vec();
    head.extend(shown.iter().map(|&at| format!("{} %", states[at].replace('_', " "))));
    head.extend(["requests", "conn", "statement"].map(str::to_string));
    let mut table = vec![head];
    let sum = sum_of(&sorted, states.len());
    for row in sorted {
        table.push(cells(row, &shown));
    }
    if rows.len() > 1 {
        let mut last = cells(&sum, &shown);
        last[0] = "all".to_string();
        table.push(last);
    }
    let last = table[0].len() - 1;
    format!("{}\n{}", heading(window, rows.len()), aligned_with_words(&table, &[1, 2, last]))
}

/// Returns the same as one object: times in milliseconds by state, the sum of the threads that are shown, and their periodic pauses.
pub fn threads_json(
    window: ThreadsWindow,
    rows: &[&ThreadTime],
    states: &[String],
    pauses: &[Pauses],
) -> Value {
    let by_state = |row: &ThreadTime| -> Value {
        let named = states.iter().zip(&row.states_ns).map(|(state, ns)| (state.clone(), json!(ms(*ns))));
        Value::Object(named.collect())
    };
    let thread = |row: &&ThreadTime| {
        json!({
            "tid": row.tid,
            "name": row.name,
            "role": row.role,
            "connection": row.connection,
            "statement": row.statement,
            "requests": row.requests,
            "time_ms": ms(row.window_ns),
            "states_ms": by_state(row),
        })
    };
    let sum = sum_of(rows, states.len());
    json!({
        "window": {"begin_s": window.begin_s, "seconds": window.seconds},
        "threads_in_all": window.of,
        "sum": {"requests": sum.requests, "time_ms": ms(sum.window_ns), "states_ms": by_state(&sum)},
        "threads": rows.iter().map(thread).collect::<Vec<_>>(),
        "pauses": pauses_json(pauses),
    })
}

fn heading(window: ThreadsWindow, shown: usize) -> String {
    let count = match shown {
        shown if shown == window.of => format!("all {}", whole(shown as u64)),
        shown => format!("{} of {}", whole(shown as u64), whole(window.of as u64)),
    };
    let when = match window.begin_s {
        Some(begin_s) => {
            let (begin, end) = (seconds(begin_s), seconds(begin_s + window.seconds));
            format!("from {begin} to {end} of the run, from snapshot to snapshot")
        }
        None => format!("over {}", seconds(window.seconds)),
    };
    format!("Per cent of each thread's time, {when}: {count} threads.")
}

fn cells(row: &ThreadTime, shown: &[usize]) -> Vec<String> {
    let mut cells = vec![row.tid.to_string(), clean(&row.name), row.role.clone()];
    cells.extend(shown.iter().map(|&at| share_cell(share(row, at))));
    cells.push(whole(row.requests));
    cells.push(row.connection.map_or(String::new(), |id| id.to_string()));
    let statement = row.statement.as_deref().unwrap_or_default();
    cells.push(clean(statement).chars().take(STATEMENT_MAX).collect());
    cells
}

fn sum_of(rows: &[&ThreadTime], states: usize) -> ThreadTime {
    let mut sum = ThreadTime { states_ns: vec![0; states], ..ThreadTime::default() };
    for row in rows {
        sum.requests += row.requests;
        sum.window_ns += row.window_ns;
        for (sum, ns) in sum.states_ns.iter_mut().zip(&row.states_ns) {
            *sum += ns;
        }
    }
    sum
}

fn share(row: &ThreadTime, at: usize) -> f64 {
    match (row.window_ns, row.states_ns.get(at)) {
        (1.., Some(ns)) => *ns as f64 / row.window_ns as f64,
        _ => 0.0,
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn share_cell(share: f64) -> String {
    match share {
        0.0 => String::new(),
        share => percent_number(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tid: u32, states_ns: &[u64]) -> ThreadTime {
        ThreadTime {
            tid,
            name: "one\u{1b}[2J".to_string(),
            role: "connection".to_string(),
            connection: Some(5),
            statement: Some("SELECT ?".to_string()),
            requests: 1234,
            window_ns: states_ns.iter().sum(),
            states_ns: states_ns.to_vec(),
        }
    }

    fn states() -> Vec<String> {
        ["cpu", "file_sync", "sleep"].map(str::to_string).to_vec()
    }

    #[test]
    fn the_busiest_thread_comes_first_empty_states_are_left_out_and_the_sum_comes_last() {
        let window = ThreadsWindow { begin_s: Some(4.25), seconds: 8.0, of: 40 };
        let mut purge = row(31, &[750, 250, 0]);
        (purge.name, purge.role) = ("ib_purge".to_string(), "purge".to_string());
        (purge.connection, purge.statement, purge.requests) = (None, None, 0);
        let text = threads(window, &[&row(4, &[100, 900, 0]), &purge], &states());
        let expected = "\
Per cent of each thread's time, from 4.25 s to 12.3 s of the run, from snapshot to snapshot: 2 of 40 threads.
thread  name      role        cpu %  file sync %  requests  conn  statement
    31  ib_purge  purge          75           25         0
     4  one?[2J   connection     10           90     1,234     5  SELECT ?
   all                           43           57     1,234
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_thread_without_a_window_has_no_shares() {
        let window = ThreadsWindow { begin_s: None, seconds: 5.0, of: 1 };
        let text = threads(window, &[&ThreadTime { window_ns: 0, ..row(1, &[5, 0, 0]) }], &states());
        assert!(text.starts_with("Per cent of each thread's time, over 5 s: all 1 threads."), "{text}");
        assert!(!text.contains('%'), "{text}");
    }

    #[test]
    fn the_object_has_milliseconds_by_state_and_their_sum() {
        let window = ThreadsWindow { begin_s: Some(1.0), seconds: 2.0, of: 2 };
        let (one, other) = (row(1, &[1_000_000, 500_000, 0]), row(2, &[3_000_000, 0, 0]));
        let json = threads_json(window, &[&one, &other], &states(), &[]);
        assert_eq!(json["sum"]["states_ms"], json!({"cpu": 4.0, "file_sync": 0.5, "sleep": 0.0}));
        assert_eq!(json["threads"][0]["time_ms"], 1.5);
        assert_eq!(json["threads"][1]["tid"], 2);
        assert_eq!(json["window"]["begin_s"], 1.0);
    }
}

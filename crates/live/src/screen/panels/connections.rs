//! Connections: what each executes, and what its thread was in.

use std::collections::HashMap;

use whyso_model::Missing;
use whyso_record::run::Window;
use whyso_series::is_idle;
use whyso_words::{nanoseconds, percent};

use super::{TabData, hidden_words, is_observers, over, plain};
use crate::history::read::{Cells, TimeByState};
use crate::screen::listing::{Cell, Column, Line, Listing, REST};
use crate::screen::session_statement::SessionStatement;

/// States that are shown of a thread, those with the most time.
const STATES_SHOWN: usize = 3;
const SHARE_MIN: f64 = 0.01;
/// Connections are read every five seconds: an older snapshot is over.
const SNAPSHOT_NS: i64 = 12_000_000_000;

pub(super) fn listing(shown: &TabData, window: Window, with_observer: bool) -> Listing {
    let recent = Window { begin_ns: window.end_ns - SNAPSHOT_NS, ..window };
    let Some(snapshot) = shown.history.connection_snapshots(recent).into_iter().next() else {
        let missing = shown.not_measured.iter().find(|missing| missing.source == Missing::ConnectionThreads);
        return Listing::nothing(
            missing.map_or("connections have not been read yet".to_string(), |why| plain(&why.to_string())),
        );
    };
    let (states, threads) = shown.history.threads(window);
    let rows = snapshot.rows.iter().map(|row| Cells { columns: &snapshot.columns, row });
    let (observer, mut rows): (Vec<Cells>, Vec<Cells>) = rows.partition(|cells| is_observers(*cells));
    let hidden = if with_observer { 0 } else { observer.len() };
    if with_observer {
        rows.extend(observer);
    }
    let time_of = |cells: Cells| {
        cells.text("tid").and_then(|tid| tid.parse().ok()).and_then(|tid: u32| threads.get(&tid))
    };
    let all = rows.len();
    if !with_observer {
        let is_busy =
            |time: &TimeByState| states_of(time, &states, window).0.is_some_and(|busy| busy >= SHARE_MIN);
        rows.retain(|cells| cells.text("statement").is_some() || time_of(*cells).is_some_and(is_busy));
    }
    let idle = all - rows.len();
    let lines = rows.iter().map(|&cells| line(cells, snapshot.t_ns, window, &states, time_of(cells)));
    Listing {
        columns: vec![
            Column { title: "busy", width: 7 },
            Column { title: "for", width: 10 },
            Column { title: "connection", width: 11 },
            Column { title: "thread", width: 9 },
            Column { title: "was in", width: 34 },
            Column { title: "waits for", width: 34 },
            Column { title: "statement", width: REST },
        ],
        lines: lines.collect(),
        sort: Some(0),
        about: format!(
            "{}, as they were {} before",
            connection_count(all, idle, &threads),
            nanoseconds((window.end_ns - snapshot.t_ns).max(0) as f64)
        ) + &format!("; states of their threads {}", over(window))
            + &hidden_words(hidden, "connection"),
        empty: "no connection but whyso's own does anything".to_string(),
    }
}

fn connection_count(all: usize, idle: usize, threads: &HashMap<u32, TimeByState>) -> String {
    let others = if threads.is_empty() { "" } else { ", the server has others for its own work" };
    let hidden =
        if idle > 0 { format!(", {idle} of them idle and hidden (O shows them)") } else { String::new() };
    format!("{}{hidden}{others}", whyso_words::count(all as u64, "connection"))
}

fn line(
    cells: Cells,
    snapshot_ns: i64,
    window: Window,
    states: &[String],
    time: Option<&TimeByState>,
) -> Line {
    let statement = cells.text("statement").map(plain);
    let since_ns = cells.number("since_ns").map(|since_ns| (snapshot_ns - since_ns).max(0) as f64);
    let (busy, was_in) = match time {
        Some(time) => states_of(time, states, window),
        None => (None, String::new()),
    };
    let text = |name: &str| cells.text(name).unwrap_or("–").to_string();
    let number = |name: &str| Cell::number(cells.number(name).map(|number| number as f64), |_| text(name));
    let shown = statement.clone().unwrap_or("–".to_string());
    let shown = if is_observers(cells) { format!("[whyso] {shown}") } else { shown };
    Line {
        cells: vec![
            Cell::number(busy, percent),
            Cell::number(since_ns.filter(|_| statement.is_some()), nanoseconds),
            number("connection"),
            number("tid"),
            Cell::Text(was_in.clone()),
            Cell::Text(waits_for(cells)),
            Cell::Text(shown.clone()),
        ],
        executed: executed(cells, statement),
        whole: format!("connection {}: {was_in}: {} {shown}", text("connection"), waits_for(cells)),
    }
}

/// What a connection executes; `None` for whyso's own, which nobody ends.
fn executed(cells: Cells, statement: Option<String>) -> Option<SessionStatement> {
    let connection = cells.text("connection").and_then(|connection| connection.parse().ok());
    statement.filter(|_| !is_observers(cells)).map(|statement| SessionStatement { connection, statement })
}

/// The wait that it is in, or the stage of its statement, where the Performance Schema has one.
fn waits_for(cells: Cells) -> String {
    let place = |kind: &str| cells.text(kind).map(plain);
    match (place("wait"), place("stage")) {
        (Some(wait), _) => {
            let on = place("wait_object").map_or(String::new(), |object| format!(" on {object}"));
            format!("{}{on}", wait.trim_start_matches("wait/"))
        }
        (None, Some(stage)) => stage.trim_start_matches("stage/sql/").to_string(),
        (None, None) => "–".to_string(),
    }
}

/// The share of the time in which it was not idle, and in what it was most.
fn states_of(time: &TimeByState, states: &[String], window: Window) -> (Option<f64>, String) {
    let mut at_work: Vec<(&str, u64)> = states
        .iter()
        .map(String::as_str)
        .zip(time.states_ms.iter().copied())
        .filter(|(state, ms)| !is_idle(state) && *ms > 0)
        .collect();
    at_work.sort_by_key(|(_, ms)| std::cmp::Reverse(*ms));
    let window_ms = (window.seconds() * 1e3).max(1.0);
    let busy: u64 = at_work.iter().map(|(_, ms)| ms).sum();
    let share = |ms: u64| (ms as f64 / window_ms).min(1.0);
    let shown = at_work.iter().filter(|(_, ms)| share(*ms) >= SHARE_MIN).take(STATES_SHOWN);
    let words = shown.map(|(state, ms)| format!("{state} {}", percent(share(*ms))));
    (Some((busy as f64 / window_ms).min(1.0)), words.collect::<Vec<_>>().join(", "))
}

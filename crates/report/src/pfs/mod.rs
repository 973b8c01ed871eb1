//! The Performance Schema's views: for the terminal, and as one object.

mod page;
mod timers;
mod versus;

#[cfg(test)]
pub(crate) use page::PfsLines;
pub use page::{LevelPfs, RunPfs};
pub(crate) use page::{PfsHead, view_blocks as pfs_view_blocks};
pub use timers::{PfsTimersOf, pfs_timers, pfs_timers_json};
pub use versus::{pfs_differences, pfs_differences_json};

use serde_json::{Map, Value, json};
use whyso_explain::pfs::{Column, Evenness, Line, OWN_COUNT, Per, Table};
use whyso_words::{number, percent, whole};

use crate::text::layout::{TEXT_WIDTH, aligned_with_words, wrapped};
use crate::text::pfs::{events_head, events_line, value_text, window_text};
use crate::text::{capital, clean, dash};

pub use crate::text::pfs::{PfsOf, observer_words, own_label};

/// Idle waits that are shown beneath the others.
const IDLE_SHOWN_MAX: usize = 5;
/// Returns a view as a table, under a line about its window.
pub fn pfs(of: PfsOf) -> String {
    let table = of.table;
    let mut out = heading(of);
    if table.lines.is_empty() && table.idle.is_empty() {
        out.push_str("Nothing was counted.\n");
        out.push_str(&hidden(table));
        return out;
    }
    let is_of_events = table.view.is_of_events();
    let head = if is_of_events { events_head(table) } else { wide_head(table) };
    let line = |line: &Line| if is_of_events { events_line(of, line) } else { wide_line(of, line) };
    let words = head.len() - 1;
    let mut rows = vec![head, line(&table.total())];
    rows.extend(table.lines.iter().take(of.limit).map(line));
    if !is_of_events {
        let per = match of.per {
            Per::Window => "Over the whole window".to_string(),
            per => format!("Per {}", per.name()),
        };
        let levels = if table.view.columns.iter().any(|column| column.is_level) {
            "; what is in use or held is a mean"
        } else {
            ""
        };
        out.push_str(&format!("{per}{levels}.\n"));
    }
    out.push_str(&aligned_with_words(&rows, &[words]));
    let left = table.lines.len().saturating_sub(of.limit);
    if left > 0 {
        out.push_str(&format!("and {} more: --limit N shows N\n", whole(left as u64)));
    }
    out.push_str(&hidden(table));
    if !table.idle.is_empty() {
        let heading =
            "\nWaits of threads that had nothing to do, or waited for their client; not in the total:\n";
        out.push_str(heading);
        let idle: Vec<Vec<String>> = table.idle.iter().take(IDLE_SHOWN_MAX).map(line).collect();
        let rows: Vec<Vec<String>> = rows.into_iter().take(1).chain(idle).collect();
        out.push_str(&aligned_with_words(&rows, &[words]));
        let left = table.idle.len().saturating_sub(IDLE_SHOWN_MAX);
        if left > 0 {
            out.push_str(&format!("and {left} more: --json has them\n"));
        }
    }
    out
}

/// Returns how evenly the instances of each lock are used.
pub fn pfs_evenness(of: PfsOf, locks: &[Evenness]) -> String {
    let mut out = heading(of);
    let head = ["instances", "count/s", "busiest has", "evenness", "ms/s", "lock"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    let seconds = of.table.seconds;
    for lock in locks.iter().take(of.limit) {
        rows.push(vec![
            whole(lock.instances as u64),
            number(lock.count / seconds),
            percent(lock.busiest),
            percent(lock.even),
            lock.ns.map_or_else(dash, |ns| number(ns / seconds / 1e6)),
            clean(&lock.event),
        ]);
    }
    out.push_str(&aligned_with_words(&rows, &[head.len() - 1]));
    out.push_str(&wrapped(
        "Evenness is 100 % where all instances are used alike, and 100 % divided by their number where one has everything. Read are the 1,000 \
         instances with the highest counts; --like NAME shows those of one lock.",
        "  ",
        TEXT_WIDTH,
    ));
    out
}

/// Says what of the observer's own statements is not shown.
fn hidden(table: &Table) -> String {
    let Some(text) = observer_words(table) else { return String::new() };
    wrapped(&format!("Not shown: {text} (--observer shows them)."), "", TEXT_WIDTH)
}

fn heading(of: PfsOf) -> String {
    format!("{}.\n{}: {}.\n\n", capital(of.table.view.about), capital(of.window), window_text(of.table))
}

/// Columns that counted anything.
fn filled_columns(table: &Table) -> Vec<&'static Column> {
    let total = table.total();
    let is_filled = |place: usize| total.values[place].is_some_and(|sum| sum > 0.0);
    let columns = table.view.columns.iter().enumerate();
    columns.filter(|(place, _)| *place == 0 || is_filled(*place)).map(|(_, column)| column).collect()
}

fn wide_head(table: &Table) -> Vec<String> {
    let names = filled_columns(table).into_iter().map(|column| column.name);
    names.chain([table.view.line]).map(str::to_string).collect()
}

fn wide_line(of: PfsOf, line: &Line) -> Vec<String> {
    let columns = filled_columns(of.table).into_iter();
    let mut cells: Vec<String> =
        columns.map(|column| value_text(of.table.value(line, column, of.per), column)).collect();
    cells.push(of.name(line));
    cells
}

/// Returns the same as one object, numbers undivided: over the whole window, times in ns.
pub fn pfs_json(of: PfsOf) -> Value {
    let table = of.table;
    let object = |line: &Line| {
        let mut object = Map::new();
        object.insert("name".to_string(), json!(line.name));
        if let Some(text) = of.texts.get(&line.name) {
            object.insert("text".to_string(), json!(text));
        }
        for (column, value) in table.view.columns.iter().zip(&line.values) {
            object.insert(column.metric.to_string(), json!(value));
        }
        if let Some(own) = line.own {
            object.insert(OWN_COUNT.to_string(), json!(own));
        }
        Value::Object(object)
    };
    json!({
        "view": table.view.name,
        "window": of.window,
        "seconds": table.seconds,
        "statements": table.statements,
        "transactions": table.transactions,
        "lines": table.lines.iter().map(object).collect::<Vec<_>>(),
        "idle": table.idle.iter().map(object).collect::<Vec<_>>(),
        "observer": table.observer.iter().map(object).collect::<Vec<_>>(),
    })
}

/// Returns how evenly locks' instances are used, as one object.
pub fn pfs_evenness_json(of: PfsOf, locks: &[Evenness]) -> Value {
    let object = |lock: &Evenness| {
        json!({
            "lock": lock.event,
            "instances": lock.instances,
            "count": lock.count,
            "time_ns": lock.ns,
            "busiest": lock.busiest,
            "evenness": lock.even,
        })
    };
    json!({
        "view": of.table.view.name,
        "window": of.window,
        "seconds": of.table.seconds,
        "locks": locks.iter().map(object).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests;

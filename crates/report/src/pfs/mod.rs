//! The Performance Schema's views: for the terminal, and as one object.

mod page;
mod timers;
mod versus;

pub use page::{LevelPfs, RunPfs};
pub(crate) use page::{PfsHead, view_blocks as pfs_view_blocks};
pub(crate) use timers::{DOCUMENTED, RECKONED, is_documented, timing_head, timing_rows};
pub use timers::{PfsTimersOf, pfs_timers, pfs_timers_json};
pub use versus::{pfs_differences, pfs_differences_json};

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use whyso_explain::pfs::{Column, Evenness, Line, OWN_COUNT, Per, Quantity, Table};

use crate::number::{amount, grouped, percent, whole};
use crate::terminal::{TEXT_WIDTH, aligned_with_words, wrapped};
use crate::threads::clean;

/// Idle waits that are shown beneath the others.
const IDLE_SHOWN_MAX: usize = 5;
/// Characters of a digest's text that are shown.
const TEXT_MAX: usize = 120;

/// What a view is of.
#[derive(Clone, Copy, Debug)]
pub struct PfsOf<'a> {
    /// Which part of the run, such as "the level of 16 users".
    pub window: &'a str,
    pub table: &'a Table,
    /// Text of a digest, by the name of its line.
    pub texts: &'a HashMap<String, String>,
    /// What numbers are divided by, in views that have more of them than count and time.
    pub per: Per,
    /// Lines that are shown.
    pub limit: usize,
}

impl PfsOf<'_> {
    pub(crate) fn name(&self, line: &Line) -> String {
        let name = match self.texts.get(&line.name) {
            Some(text) => clean(&cut(text, TEXT_MAX)),
            None => clean(&line.name),
        };
        format!("{}{name}", own_label(line))
    }
}

/// How many of a line's executions are whyso's own; empty where none is.
pub fn own_label(line: &Line) -> String {
    let count = line.values.first().copied().flatten();
    match line.own.zip(count) {
        Some((own, count)) if own >= count => "[whyso] ".to_string(),
        // A client's only execution must not be rounded away.
        Some((own, count)) => {
            format!("[whyso: {} of {}] ", whole(own.floor() as u64), whole(count.ceil() as u64))
        }
        None => String::new(),
    }
}

/// A view as a table, with what it rests on above it.
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

/// How evenly the instances of each lock are used.
pub fn pfs_evenness(of: PfsOf, locks: &[Evenness]) -> String {
    let mut out = heading(of);
    let head = ["instances", "count/s", "busiest has", "evenness", "ms/s", "lock"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    let seconds = of.table.seconds;
    for lock in locks.iter().take(of.limit) {
        rows.push(vec![
            whole(lock.instances as u64),
            grouped(lock.count / seconds),
            percent(lock.busiest),
            percent(lock.even),
            lock.ns.map_or_else(untold, |ns| grouped(ns / seconds / 1e6)),
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

/// Such as "12 statements of whyso's own connections, 3.1 % of the time"; `None` where nothing is hidden.
pub fn observer_words(table: &Table) -> Option<String> {
    let share = table.observer_share()?;
    let is_timed = table.observer.iter().any(|line| line.values.get(1).copied().flatten() > Some(0.0));
    let what = if is_timed { "time" } else { "executions" };
    let statements = match table.observer.len() {
        1 => "1 statement".to_string(),
        many => format!("{} statements", whole(many as u64)),
    };
    Some(format!("{statements} of whyso's own connections, {} of the {what}", percent(share)))
}

fn heading(of: PfsOf) -> String {
    format!("{}.\n{}: {}.\n\n", capital(of.table.view.about), capital(of.window), known(of.table))
}

/// What is known of the window: its length, and what was done in it.
fn known(table: &Table) -> String {
    let mut known = format!("{} s", grouped(table.seconds));
    for (count, what) in [(table.statements, "statements"), (table.transactions, "transactions")] {
        if let Some(count) = count {
            known.push_str(&format!(", {} {what}", whole(count.round() as u64)));
        }
    }
    known
}

pub(crate) fn events_head(table: &Table) -> Vec<String> {
    let mut head = vec!["count/s"];
    head.extend(table.statements.map(|_| "/statement"));
    head.extend(table.transactions.map(|_| "/transaction"));
    head.push("ms/s");
    head.extend(table.statements.map(|_| "µs/statement"));
    head.extend(table.transactions.map(|_| "µs/transaction"));
    head.extend(["mean µs", "of time", table.view.line]);
    head.into_iter().map(str::to_string).collect()
}

pub(crate) fn events_line(of: PfsOf, line: &Line) -> Vec<String> {
    let table = of.table;
    let [count, time] = [&table.view.columns[0], &table.view.columns[1]];
    let told = |column: &Column, per: Per, divisor: f64| {
        table.value(line, column, per).map_or_else(untold, |value| grouped(value / divisor))
    };
    let mut pers = vec![Per::Second];
    pers.extend(table.statements.map(|_| Per::Statement));
    pers.extend(table.transactions.map(|_| Per::Transaction));
    let mut cells: Vec<String> = pers.iter().map(|per| told(count, *per, 1.0)).collect();
    cells.extend(pers.iter().map(|per| told(time, *per, if *per == Per::Second { 1e6 } else { 1e3 })));
    let [times, ns] = [line.values[0], line.values[1]];
    let mean = ns.zip(times).filter(|(_, times)| *times > 0.0).map(|(ns, times)| ns / times / 1e3);
    cells.push(mean.map_or_else(untold, grouped));
    let all = table.total().values[1].filter(|all| *all > 0.0);
    let is_idle = table.idle.iter().any(|idle| idle.name == line.name);
    cells.push(ns.zip(all).filter(|_| !is_idle).map_or_else(untold, |(ns, all)| percent(ns / all)));
    cells.push(of.name(line));
    cells
}

/// Columns that counted anything.
fn told_columns(table: &Table) -> Vec<&'static Column> {
    let total = table.total();
    let counted = |place: usize| total.values[place].is_some_and(|sum| sum > 0.0);
    let columns = table.view.columns.iter().enumerate();
    columns.filter(|(place, _)| *place == 0 || counted(*place)).map(|(_, column)| column).collect()
}

fn wide_head(table: &Table) -> Vec<String> {
    let names = told_columns(table).into_iter().map(|column| column.name);
    names.chain([table.view.line]).map(str::to_string).collect()
}

fn wide_line(of: PfsOf, line: &Line) -> Vec<String> {
    let columns = told_columns(of.table).into_iter();
    let mut cells: Vec<String> =
        columns.map(|column| number(of.table.value(line, column, of.per), column)).collect();
    cells.push(of.name(line));
    cells
}

/// A number of `column` with its unit.
fn number(value: Option<f64>, column: &Column) -> String {
    let Some(value) = value else { return untold() };
    match column.quantity {
        Quantity::Count => grouped(value),
        Quantity::Time => amount(value, "ns"),
        Quantity::Bytes if value >= 1024.0 => crate::number::bytes(value as u64),
        Quantity::Bytes => amount(value, "bytes"),
    }
}

fn untold() -> String {
    "–".to_string()
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// The same as one object, numbers undivided: over the whole window, times in ns.
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

/// How evenly locks' instances are used, as one object.
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

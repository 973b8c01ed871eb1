//! Lines of the Performance Schema's views.

use std::collections::HashMap;

use whyso_explain::pfs::{Column, Line, Per, Quantity, Table};
use whyso_words::{bytes, count, nanoseconds, number, percent, seconds, whole};

use super::{clean, dash, shortened};

/// Longest text of a digest, in characters.
pub(crate) const DIGEST_TEXT_MAX: usize = 120;

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
            Some(text) => clean(&shortened(text, DIGEST_TEXT_MAX)),
            None => clean(&line.name),
        };
        format!("{}{name}", own_label(line))
    }
}

/// Returns how many of a line's executions are whyso's own; empty where none is.
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

/// Returns a text such as "12 statements of whyso's own connections, 3.1 % of the time"; `None` where nothing is hidden.
pub fn observer_words(table: &Table) -> Option<String> {
    let share = table.observer_share()?;
    let is_timed = table.observer.iter().any(|line| line.values.get(1).copied().flatten() > Some(0.0));
    let what = if is_timed { "time" } else { "executions" };
    let statements = count(table.observer.len() as u64, "statement");
    Some(format!("{statements} of whyso's own connections, {} of the {what}", percent(share)))
}

/// Returns the length of a window, and the statements and transactions in it.
pub(crate) fn window_text(table: &Table) -> String {
    let mut text = seconds(table.seconds);
    for (things, noun) in [(table.statements, "statement"), (table.transactions, "transaction")] {
        if let Some(things) = things {
            text.push_str(&format!(", {}", count(things.round() as u64, noun)));
        }
    }
    text
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
    let [times, time] = [&table.view.columns[0], &table.view.columns[1]];
    let value = |column: &Column, per: Per, divisor: f64| {
        table.value(line, column, per).map_or_else(dash, |value| number(value / divisor))
    };
    let mut pers = vec![Per::Second];
    pers.extend(table.statements.map(|_| Per::Statement));
    pers.extend(table.transactions.map(|_| Per::Transaction));
    let mut cells: Vec<String> = pers.iter().map(|per| value(times, *per, 1.0)).collect();
    cells.extend(pers.iter().map(|per| value(time, *per, if *per == Per::Second { 1e6 } else { 1e3 })));
    let [executions, ns] = [line.values[0], line.values[1]];
    let mean = ns.zip(executions).filter(|(_, times)| *times > 0.0).map(|(ns, times)| ns / times / 1e3);
    cells.push(mean.map_or_else(dash, number));
    let all = table.total().values[1].filter(|all| *all > 0.0);
    let is_idle = table.idle.iter().any(|idle| idle.name == line.name);
    cells.push(ns.zip(all).filter(|_| !is_idle).map_or_else(dash, |(ns, all)| percent(ns / all)));
    cells.push(of.name(line));
    cells
}

/// Returns a number of a column with its unit.
pub(crate) fn value_text(value: Option<f64>, column: &Column) -> String {
    let Some(value) = value else { return dash() };
    match column.quantity {
        Quantity::Count => number(value),
        Quantity::Time => nanoseconds(value),
        Quantity::Bytes => bytes(value),
    }
}

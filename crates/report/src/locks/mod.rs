//! Lock waits by table and index, by instrument, and who waits for whom: for the terminal, and as one object.

mod json;
mod now;
mod page;

pub use json::locks_json;
pub use now::{LocksNowOf, locks_now, locks_now_json};
pub use page::LevelLocks;
pub(crate) use page::{LocksHead, heads as locks_heads};

use std::fmt::Write as _;

use whyso_explain::locks::{InstrumentWait, LockObject, Snapshots, TableWait};
use whyso_words::{count, nanoseconds, number, percent, seconds, whole};

use crate::text::layout::{TEXT_WIDTH, aligned_with_words, wrapped};
use crate::text::{clean, dash, shortened};

/// Lines of a table that are shown; the JSON has all.
const SHOWN_MAX: usize = 20;
/// Longest statement, in characters.
const STATEMENT_MAX: usize = 70;

/// What a table of lock waits is of.
#[derive(Clone, Copy, Debug)]
pub struct LocksOf<'a> {
    /// Which part of the run, such as "the level of 16 users".
    pub window: &'a str,
    pub seconds: f64,
    /// Number of snapshots of who waits for whom.
    pub snapshot_count: u64,
    /// How many of them succeeded, and how old the last good one is.
    pub snapshots: Snapshots,
    pub objects: &'a [LockObject],
    /// What InnoDB counted: waits for row locks, and their time in ns.
    pub row_locks_counted: Option<(f64, f64)>,
    pub instruments: &'a [InstrumentWait],
    pub tables: &'a [TableWait],
    /// Time that requests waited for locks; `None` where that was not traced.
    pub requests_waited_ns: Option<f64>,
    pub not_measured: &'a [String],
}

/// Returns the tables, each with a line about what its numbers are of.
pub fn locks(of: LocksOf) -> String {
    let mut out = format!("Lock waits in {}, {}.\n\n", of.window, seconds(of.seconds));
    out.push_str(&objects(of));
    if !of.instruments.is_empty() {
        let _ = write!(out, "\n{}", instruments(of));
    }
    if !of.tables.is_empty() {
        let _ = write!(out, "\n{}", tables(of.tables));
    }
    if !of.not_measured.is_empty() {
        out.push_str("\nNot measured:\n");
        for line in of.not_measured {
            out.push_str(&wrapped(&clean(line), "  ", TEXT_WIDTH));
        }
    }
    out
}

fn objects(of: LocksOf) -> String {
    let counted = of.row_locks_counted.map_or(String::new(), |(waits, ns)| {
        format!(
            " InnoDB counted {} for row locks, of {} in all.",
            count(waits as u64, "wait"),
            nanoseconds(ns)
        )
    });
    let snapshots = snapshots(of.snapshots);
    if of.objects.is_empty() {
        let text = match of.snapshots.count {
            0 => "Whether connections waited for locks is not known: the lock tables could not be read in this window."
                .to_string(),
            _ => format!("No connection was found waiting for a lock in {} of the server.", count(of.snapshot_count, "snapshot")),
        };
        return match snapshots.is_empty() {
            true => format!("{text}{counted}\n"),
            false => wrapped_plain(&format!("{text}{counted}{snapshots}")),
        };
    }
    let samples: u64 = of.objects.iter().map(|object| object.samples).sum();
    let mut out = format!(
        "By table and index: {} found waiting in {}.{counted}\n",
        count(samples, "connection"),
        count(of.snapshot_count, "snapshot")
    );
    if !snapshots.is_empty() {
        out.push_str(&wrapped_plain(snapshots.trim_start()));
    }
    let head = ["samples", "share", "seconds", "lock", "mode", "table (index)", "held by"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for object in of.objects.iter().take(SHOWN_MAX) {
        rows.push(vec![
            whole(object.samples),
            percent(object.share),
            object.waited_ns.map_or_else(dash, |ns| number(ns / 1e9)),
            object.kind.name().to_string(),
            clean(&object.mode),
            place(&object.object, &object.index),
            holder(object),
        ]);
    }
    out.push_str(&aligned_with_words(&rows, &[3, 4, 5, 6]));
    out.push_str(&more(of.objects.len()));
    out
}

/// What stands against the snapshots, or how old the last good one is, with a space before; empty where they are as they should be.
fn snapshots(of: Snapshots) -> String {
    let mut text = String::new();
    if of.failed > 0 || !of.are_good() {
        text.push_str(&format!(" {}", of.in_words()));
    }
    if let Some(contradiction) = of.contradiction() {
        text.push_str(&format!(" {contradiction}"));
    }
    text
}

/// In as many columns as a terminal has.
fn wrapped_plain(text: &str) -> String {
    wrapped(text, "", TEXT_WIDTH).trim_start_matches(['•', ' ']).replace("\n  ", "\n")
}

/// "shop.orders (PRIMARY)"
fn place(object: &str, index: &str) -> String {
    let object = if object.is_empty() { "not known" } else { object };
    match index {
        "" => clean(object),
        index => clean(&format!("{object} ({index})")),
    }
}

fn holder(object: &LockObject) -> String {
    let share = percent(object.blocking_share);
    match &object.blocking_statement {
        Some(statement) => format!("{share} {}", one_line(statement)),
        None => format!("{share} between statements, or not known"),
    }
}

fn one_line(statement: &str) -> String {
    let line = clean(&statement.split_whitespace().collect::<Vec<_>>().join(" "));
    shortened(&line, STATEMENT_MAX)
}

fn more(count: usize) -> String {
    match count.saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        left => format!("and {left} more: --json has them\n"),
    }
}

fn instruments(of: LocksOf) -> String {
    let mut out = String::from("By instrument, in all threads of the server");
    if let Some(ns) = of.requests_waited_ns {
        let _ = write!(
            out,
            "; requests waited {} for locks, which the last column is a share of",
            nanoseconds(ns)
        );
    }
    out.push_str(".\n");
    let head = ["count", "seconds", "mean µs", "of lock", "instrument"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for wait in of.instruments.iter().take(SHOWN_MAX) {
        rows.push(vec![
            whole(wait.count as u64),
            wait.ns.map_or_else(dash, |ns| number(ns / 1e9)),
            wait.ns.map_or_else(dash, |ns| number(ns / 1e3 / wait.count.max(1.0))),
            share_of_lock(wait, of.requests_waited_ns).map_or_else(dash, percent),
            clean(&wait.name),
        ]);
    }
    out.push_str(&aligned_with_words(&rows, &[4]));
    out.push_str(&more(of.instruments.len()));
    if of.instruments.iter().take(SHOWN_MAX).any(InstrumentWait::is_condition) {
        out.push_str("Conditions (cond) are mostly waited on by threads that have nothing to do.\n");
    }
    out
}

/// Returns the share of what requests waited for locks. Conditions have none that is known.
fn share_of_lock(wait: &InstrumentWait, requests_waited_ns: Option<f64>) -> Option<f64> {
    let all = requests_waited_ns.filter(|ns| *ns > 0.0)?;
    (!wait.is_condition()).then_some(wait.ns? / all)
}

fn tables(tables: &[TableWait]) -> String {
    let mut out = String::from(
        "By table, as the SQL layer counts it: locks that were taken, and rows with their row locks.\n",
    );
    let head = ["locks", "seconds", "rows", "seconds", "table"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for table in tables.iter().take(SHOWN_MAX) {
        rows.push(vec![
            whole(table.lock_count as u64),
            number(table.lock_ns / 1e9),
            whole(table.io_count as u64),
            number(table.io_ns / 1e9),
            clean(&table.name),
        ]);
    }
    out.push_str(&aligned_with_words(&rows, &[4]));
    out.push_str(&more(tables.len()));
    out
}

#[cfg(test)]
mod tests;

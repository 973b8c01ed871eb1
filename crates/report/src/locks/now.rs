//! Who waits for whom now: trees with the connection that waits for nobody at the root.

use std::fmt::Write as _;
use whyso_model::{LockKind, Missing, NotMeasured};

use serde_json::{Value, json};
use whyso_explain::locks::{WaitingConnection, WaitingTree};
use whyso_words::{milliseconds, seconds, whole};

use super::{one_line, place};
use crate::text::clean;
use crate::text::layout::{TEXT_WIDTH, wrapped};

/// What is known of who waits for whom now.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocksNowOf<'a> {
    /// When the snapshot was asked for.
    pub at: &'a str,
    pub took_ms: f64,
    /// Why it failed.
    pub failed: Option<&'a str>,
    /// Connections that InnoDB counts as waiting for a row.
    pub row_waits_counted: Option<u64>,
    pub trees: &'a [WaitingTree],
    pub not_reported: &'a [NotMeasured],
}

impl LocksNowOf<'_> {
    fn waiting(&self) -> usize {
        self.trees.iter().map(waiting_in).sum()
    }

    /// Returns whether the server reports waits for rows.
    fn reports_rows(&self) -> bool {
        !self.not_reported.iter().any(|missing| missing.source == Missing::RowLockWaits)
    }

    /// What InnoDB's counter has against the snapshot; `None` where they agree.
    fn contradiction(&self) -> Option<String> {
        let counted = self.row_waits_counted.filter(|counted| *counted > 0)?;
        let waits_for_row = |tree: &WaitingTree| rows_in(tree) > 0;
        (!self.trees.iter().any(waits_for_row)).then(|| {
            let connections = if counted == 1 { "1 connection waits" } else { "connections wait" };
            let count = if counted == 1 { String::new() } else { format!("{} ", whole(counted)) };
            format!("But InnoDB counts that {count}{connections} for a row now, and the snapshot does not show which.")
        })
    }

    fn headline(&self) -> String {
        let took = format!("The snapshot was taken at {} and took {}.", self.at, milliseconds(self.took_ms));
        match (self.failed, self.waiting()) {
            (Some(why), _) => {
                format!("Who waits for locks is not known: {why}. It was asked at {}.", self.at)
            }
            (None, 0) if !self.reports_rows() => {
                format!("Who waits for rows is not known: the server does not report it to this user. {took}")
            }
            (None, 0) if self.contradiction().is_some() => {
                format!("The lock tables show no connection that waits. {took}")
            }
            (None, 0) => format!("No connection waits for a lock now. {took}"),
            (None, 1) => format!("1 connection waits for a lock now. {took}"),
            (None, waiting) => format!("{} connections wait for locks now. {took}", whole(waiting as u64)),
        }
    }
}

/// Returns one line per connection, indented under the one that it waits for.
pub fn locks_now(of: LocksNowOf) -> String {
    let mut out = format!("{}\n", of.headline());
    if let Some(contradiction) = of.contradiction() {
        out.push_str(&format!("{contradiction}\n"));
    }
    for tree in of.trees {
        out.push('\n');
        lines(&mut out, tree, 0);
    }
    if !of.not_reported.is_empty() {
        out.push_str("\nNot reported by this server:\n");
        for line in of.not_reported {
            out.push_str(&wrapped(&clean(&line.to_string()), "  ", TEXT_WIDTH));
        }
    }
    out
}

/// Connections of a tree that wait for a row.
fn rows_in(tree: &WaitingTree) -> usize {
    let own = usize::from(tree.waits.as_ref().is_some_and(|waits| waits.kind == LockKind::Row));
    own + tree.waiters.iter().map(rows_in).sum::<usize>()
}

fn waiting_in(tree: &WaitingTree) -> usize {
    tree.waiting() + usize::from(tree.waits.is_some())
}

fn lines(out: &mut String, tree: &WaitingTree, depth: usize) {
    let indent = "   ".repeat(depth);
    let statement =
        tree.statement.as_deref().map_or("between statements, or not known".to_string(), one_line);
    let _ = match &tree.waits {
        None => {
            let others = match tree.waiting() {
                1 => "1 waits for it".to_string(),
                count => format!("{} wait for it", whole(count as u64)),
            };
            writeln!(out, "{indent}{} ({others}): {statement}", tree.connection)
        }
        Some(waits) => writeln!(out, "{indent}{} waits {}: {statement}", tree.connection, described(waits)),
    };
    for waiter in &tree.waiters {
        lines(out, waiter, depth + 1);
    }
}

/// "12 s for row lock X on shop.orders (PRIMARY)"
fn described(waits: &WaitingConnection) -> String {
    let mode = clean(&waits.mode);
    let what = match waits.kind {
        LockKind::Row => format!("row lock {mode}"),
        LockKind::Metadata if !mode.contains("lock") => format!("metadata lock {mode}"),
        _ => mode,
    };
    let waited = seconds(waits.waited_s as f64);
    match waits.object.is_empty() {
        true => format!("{waited} for {what}"),
        false => format!("{waited} for {what} on {}", place(&waits.object, &waits.index)),
    }
}

/// Returns the same as one object. `waiting` is null where it is not known.
pub fn locks_now_json(of: LocksNowOf) -> Value {
    let waiting = of.failed.is_none().then(|| of.waiting());
    json!({
        "waiting": waiting,
        "snapshot": {
            "at": of.at,
            "took_ms": of.took_ms,
            "failed": of.failed,
            "row_waits_counted": of.row_waits_counted,
            "contradiction": of.contradiction(),
        },
        "trees": of.trees.iter().map(tree_json).collect::<Vec<_>>(),
        "not_told": of.not_reported.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn tree_json(tree: &WaitingTree) -> Value {
    let waits = tree.waits.as_ref().map(|waits| {
        json!({
            "lock": waits.kind,
            "object": waits.object,
            "index": waits.index,
            "mode": waits.mode,
            "waited_s": waits.waited_s,
        })
    });
    json!({
        "connection": tree.connection,
        "statement": tree.statement,
        "waits": waits,
        "waiters": tree.waiters.iter().map(tree_json).collect::<Vec<_>>(),
    })
}

//! Who waits for whom now: trees with the connection that waits for nobody at the root.

use std::fmt::Write as _;

use serde_json::{Value, json};
use whyso_explain::locks::{Waiting, WaitingTree};

use super::{place, shortened};
use crate::number::whole;
use crate::terminal::{TEXT_WIDTH, wrapped};
use crate::threads::clean;

/// A line a connection, indented under the one that it waits for.
pub fn locks_now(trees: &[WaitingTree], not_told: &[String]) -> String {
    let waiting: usize = trees.iter().map(waiting_in).sum();
    let mut out = match waiting {
        0 => "No connection waits for a lock now.\n".to_string(),
        1 => "1 connection waits for a lock now.\n".to_string(),
        waiting => format!("{} connections wait for locks now.\n", whole(waiting as u64)),
    };
    for tree in trees {
        out.push('\n');
        lines(&mut out, tree, 0);
    }
    if !not_told.is_empty() {
        out.push_str("\nNot told by this server:\n");
        for line in not_told {
            out.push_str(&wrapped(&clean(line), "  ", TEXT_WIDTH));
        }
    }
    out
}

fn waiting_in(tree: &WaitingTree) -> usize {
    tree.waiting() + usize::from(tree.waits.is_some())
}

fn lines(out: &mut String, tree: &WaitingTree, depth: usize) {
    let indent = "   ".repeat(depth);
    let statement =
        tree.statement.as_deref().map_or("between statements, or not told".to_string(), shortened);
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
fn described(waits: &Waiting) -> String {
    let mode = clean(&waits.mode);
    let what = match waits.kind.as_str() {
        "row" => format!("row lock {mode}"),
        "metadata" if !mode.contains("lock") => format!("metadata lock {mode}"),
        _ => mode,
    };
    match waits.object.is_empty() {
        true => format!("{} s for {what}", waits.waited_s),
        false => format!("{} s for {what} on {}", waits.waited_s, place(&waits.object, &waits.index)),
    }
}

/// The same as one object.
pub fn locks_now_json(trees: &[WaitingTree], not_told: &[String]) -> Value {
    json!({
        "waiting": trees.iter().map(waiting_in).sum::<usize>(),
        "trees": trees.iter().map(tree_json).collect::<Vec<_>>(),
        "not_told": not_told,
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

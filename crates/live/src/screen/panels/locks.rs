//! Who waits for whom.

use std::collections::BTreeMap;

use whyso_explain::locks::{Snapshots, WaitingConnection, WaitingTree, objects, waiting_trees};
use whyso_model::Missing;
use whyso_record::run::Window;
use whyso_words::{milliseconds, number, percent, seconds, whole};

use super::{TabData, over, plain};
use crate::screen::listing::{Cell, Column, Line, Listing, REST};
use crate::screen::session_statement::SessionStatement;

/// A shorter window holds no snapshot of the lock tables for certain.
const LAST_NS: i64 = 3_000_000_000;

pub(super) fn listing(shown: &TabData, window: Window) -> Listing {
    match shown.history.lock_snapshot_at(window.end_ns) {
        Some(snapshot) => trees(&waiting_trees(&snapshot.waits)),
        None => waited_for(shown, window),
    }
}

/// The one that waits for nobody first, those that wait for it beneath.
fn trees(trees: &[WaitingTree]) -> Listing {
    let mut lines = Vec::new();
    for tree in trees {
        add(&mut lines, tree, 0);
    }
    let waiting: usize = trees.iter().map(|tree| tree.waiting() + usize::from(tree.waits.is_some())).sum();
    Listing {
        columns: vec![
            Column { title: "connection", width: 18 },
            Column { title: "waits", width: 7 },
            Column { title: "for", width: 40 },
            Column { title: "statement", width: REST },
        ],
        lines,
        sort: None,
        about: match waiting {
            1 => "1 connection waits; the one that holds the lock is above it".to_string(),
            _ => format!(
                "{} connections wait; the one that holds the lock is above them",
                whole(waiting as u64)
            ),
        },
        empty: "nobody waits for a lock".to_string(),
    }
}

fn add(lines: &mut Vec<Line>, tree: &WaitingTree, depth: usize) {
    let statement = tree.statement.as_deref().map_or("between statements, or not known".to_string(), plain);
    let (waits, what) = match &tree.waits {
        None => ("–".to_string(), format!("holds up {}", whole(tree.waiting() as u64))),
        Some(waits) => (seconds(waits.waited_s as f64), described(waits)),
    };
    lines.push(Line {
        executed: tree.statement.as_deref().map(|statement| SessionStatement {
            connection: Some(tree.connection),
            statement: plain(statement),
        }),
        whole: format!("connection {}, {what}, {waits}: {statement}", tree.connection),
        cells: [format!("{}{}", "  ".repeat(depth.min(4)), tree.connection), waits, what, statement]
            .map(Cell::Text)
            .to_vec(),
    });
    for waiter in &tree.waiters {
        add(lines, waiter, depth + 1);
    }
}

/// "row lock X on shop.orders (PRIMARY)"
fn described(waits: &WaitingConnection) -> String {
    let index = if waits.index.is_empty() { String::new() } else { format!(" ({})", waits.index) };
    let object = if waits.object.is_empty() { String::new() } else { format!(" on {}{index}", waits.object) };
    let kind = if waits.mode.contains(waits.kind.name()) { "" } else { waits.kind.name() };
    plain(&format!("{kind} {}{object}", waits.mode))
}

/// Returns that nobody waits at this time and when that was read, or why it is not known.
fn nobody_waits(snapshots: Snapshots) -> String {
    if snapshots.are_good() {
        let took = snapshots.last_took_ms.map_or(String::new(), |ms| format!(", in {}", milliseconds(ms)));
        return format!(
            "nobody waits at this time (read {} before{took})",
            seconds(snapshots.last_good_s.unwrap_or(0.0))
        );
    }
    let mut text = format!("who waits at this time is not known. {}", snapshots.in_words());
    if let Some(contradiction) = snapshots.contradiction() {
        text.push_str(&format!(" {contradiction}"));
    }
    text
}

/// Nobody was found waiting at this time: what was waited for before.
fn waited_for(shown: &TabData, window: Window) -> Listing {
    let snapshots = shown.history.lock_snapshots(window);
    let locks = objects(&snapshots, &BTreeMap::new());
    let lines = locks.iter().map(|lock| {
        let index = if lock.index.is_empty() { String::new() } else { format!(" ({})", lock.index) };
        let what = plain(&format!("{} {} {}{index}", lock.kind.name(), lock.mode, lock.object));
        let statement = lock.statement.as_deref().map_or(String::new(), plain);
        Line {
            cells: vec![
                Cell::number(Some(lock.samples as f64), number),
                Cell::number(Some(lock.share), percent),
                Cell::Text(what.clone()),
                Cell::Text(statement.clone()),
            ],
            executed: (!statement.is_empty())
                .then(|| SessionStatement { connection: None, statement: statement.clone() }),
            whole: format!("{what}: {statement}"),
        }
    });
    let last = Window { begin_ns: window.begin_ns.min(window.end_ns - LAST_NS), end_ns: window.end_ns };
    let quality = shown.history.lock_snapshot_quality(last);
    let missing = shown.not_measured.iter().find(|missing| missing.source == Missing::RowLockWaits);
    Listing {
        columns: vec![
            Column { title: "found", width: 8 },
            Column { title: "share", width: 7 },
            Column { title: "waited for", width: 44 },
            Column { title: "statement", width: REST },
        ],
        lines: lines.collect(),
        sort: Some(0),
        about: format!("{}; found waiting {}", nobody_waits(quality).trim_end_matches('.'), over(window)),
        empty: match missing {
            Some(why) => plain(&why.to_string()),
            None if !quality.are_good() => nobody_waits(quality),
            None => {
                "nobody waited for a lock in this window: w makes it longer, ← goes back in time".to_string()
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_nobody_waits_is_shown_where_it_was_read_and_nothing_contradicts_it() {
        let good = Snapshots {
            seconds: 5.0,
            count: 10,
            last_good_s: Some(0.4),
            last_took_ms: Some(3.0),
            row_waits_now: Some((0.0, 0.0)),
            ..Snapshots::default()
        };
        assert_eq!(nobody_waits(good), "nobody waits at this time (read 400 ms before, in 3 ms)");
        let slow = Snapshots { count: 0, last_good_s: Some(9.0), last_took_ms: Some(4_000.0), ..good };
        let text = nobody_waits(slow);
        assert!(text.starts_with("who waits at this time is not known. The last good snapshot"), "{text}");
        assert!(text.contains("9 s before the end and took 4 s"), "{text}");
        let contradicted = Snapshots { row_waits_now: Some((4.0, 4.0)), ..good };
        assert!(nobody_waits(contradicted).contains("But InnoDB counted"), "{}", nobody_waits(contradicted));
    }
}

//! Who waits for whom, as trees: at the root a connection that waits for nobody.

use std::collections::{BTreeMap, BTreeSet};

use whyso_model::{LockKind, LockWait};

/// A connection, and those that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingTree {
    pub connection: u64,
    /// What it executes, without literals; `None` where it is between statements, or that is not known.
    pub statement: Option<String>,
    /// What it waits for itself, where it is not the root.
    pub waits: Option<WaitingConnection>,
    pub waiters: Vec<WaitingTree>,
}

/// What a connection waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingConnection {
    pub kind: LockKind,
    pub object: String,
    pub index: String,
    pub mode: String,
    pub waited_s: u64,
}

impl WaitingTree {
    /// Connections that wait for this one, directly or through others.
    pub fn waiting(&self) -> usize {
        self.waiters.iter().map(|waiter| 1 + waiter.waiting()).sum()
    }
}

/// The trees, the one with the most waiters first. A wait of which it is not known for whom is a root of its own. So is one of those that
/// wait for each other in a circle.
pub fn waiting_trees(waits: &[LockWait]) -> Vec<WaitingTree> {
    let mut by_blocker: BTreeMap<u64, Vec<&LockWait>> = BTreeMap::new();
    for wait in waits {
        if let Some(blocking) = wait.blocking {
            by_blocker.entry(blocking).or_default().push(wait);
        }
    }
    let waiting: BTreeSet<u64> = waits.iter().map(|wait| wait.waiting).collect();
    let mut placed = BTreeSet::new();
    let mut trees = Vec::new();
    for (blocker, waiters) in by_blocker.iter().filter(|(blocker, _)| !waiting.contains(blocker)) {
        let statement = waiters.iter().find_map(|wait| wait.blocking_statement.clone());
        let root = WaitingTree { connection: *blocker, statement, waits: None, waiters: Vec::new() };
        placed.insert(*blocker);
        trees.push(grown(root, &by_blocker, &mut placed));
    }
    for wait in waits {
        if !placed.contains(&wait.waiting) {
            placed.insert(wait.waiting);
            trees.push(grown(of(wait), &by_blocker, &mut placed));
        }
    }
    trees.sort_by_key(|tree| std::cmp::Reverse(tree.waiting()));
    trees
}

fn of(wait: &LockWait) -> WaitingTree {
    WaitingTree {
        connection: wait.waiting,
        statement: wait.statement.clone(),
        waits: Some(WaitingConnection {
            kind: wait.kind,
            object: wait.object.clone(),
            index: wait.index.clone(),
            mode: wait.mode.clone(),
            waited_s: wait.waited_s,
        }),
        waiters: Vec::new(),
    }
}

/// Each connection stands in one place only, so that this ends.
fn grown(
    mut tree: WaitingTree,
    by_blocker: &BTreeMap<u64, Vec<&LockWait>>,
    placed: &mut BTreeSet<u64>,
) -> WaitingTree {
    for wait in by_blocker.get(&tree.connection).into_iter().flatten() {
        if placed.insert(wait.waiting) {
            tree.waiters.push(grown(of(wait), by_blocker, placed));
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lock_wait(waiting: u64, blocking: Option<u64>) -> LockWait {
        let blocking_statement = blocking.map(|id| format!("of {id}"));
        LockWait { waiting, blocking, blocking_statement, kind: LockKind::Row, ..LockWait::default() }
    }

    #[test]
    fn the_one_that_waits_for_nobody_is_at_the_root() {
        let trees = waiting_trees(&[
            lock_wait(2, Some(1)),
            lock_wait(3, Some(1)),
            lock_wait(4, Some(3)),
            lock_wait(9, None),
        ]);
        let [first, unknown] = &trees[..] else { panic!("{trees:?}") };
        assert_eq!((first.connection, first.statement.as_deref(), first.waiting()), (1, Some("of 1"), 3));
        assert!(first.waits.is_none() && first.waiters[1].waiters[0].connection == 4);
        assert_eq!((unknown.connection, unknown.waiting()), (9, 0));
    }

    proptest! {
        #[test]
        fn whoever_waits_stands_in_one_place(pairs in prop::collection::vec((0u64..9, prop::option::of(0u64..9)), 0..40)) {
            let waits: Vec<LockWait> = pairs.iter().map(|(waiting, blocking)| lock_wait(*waiting, *blocking)).collect();
            let ids: BTreeSet<u64> = waits.iter().map(|wait| wait.waiting).collect();
            let trees = waiting_trees(&waits);
            let count: usize = trees.iter().map(|tree| tree.waiting() + usize::from(tree.waits.is_some())).sum();
            prop_assert_eq!(count, ids.len());
        }
    }
}

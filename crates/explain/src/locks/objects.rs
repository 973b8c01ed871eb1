//! Connections that were found waiting, added up by what they waited for.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use whyso_model::{LockKind, LockWait};

/// Fewer samples name no object in a sentence.
pub(crate) const SAMPLES_MIN: u64 = 20;
/// A chain of connections that wait for each other is followed so far.
const CHAIN_MAX: usize = 16;

/// All that waited, in one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockSnapshot {
    pub t_ns: i64,
    pub waits: Vec<LockWait>,
}

/// What connections were found waiting for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockObject {
    pub kind: LockKind,
    /// Such as "shop.orders"; empty where the server does not report it.
    pub object: String,
    pub index: String,
    /// The mode that was asked for most.
    pub mode: String,
    /// Connections found waiting, each counted in each snapshot.
    pub samples: u64,
    /// Share of the samples of its kind, 0 to 1.
    pub share: f64,
    /// The time that the samples stand for, an estimate; `None` where the number of waiting connections was not recorded.
    pub waited_ns: Option<f64>,
    /// What those that waited executed most.
    pub statement: Option<String>,
    /// What those at the head of the queue executed most, which waited for nobody themselves. `None`: they were between statements, or it
    /// is not known.
    pub blocking_statement: Option<String>,
    /// Share of the samples whose head of the queue executed that, 0 to 1.
    pub blocking_share: f64,
}

/// Everything that was waited for, the most samples of all first. `waited_ns` is the time that connections waited, by kind of lock.
pub fn objects(snapshots: &[LockSnapshot], waited_ns: &BTreeMap<LockKind, f64>) -> Vec<LockObject> {
    type Key<'a> = (&'a str, &'a str, &'a str);
    let mut found: BTreeMap<Key, Vec<(&LockWait, Option<&str>)>> = BTreeMap::new();
    let mut of_kind: BTreeMap<&str, u64> = BTreeMap::new();
    for snapshot in snapshots {
        let by_connection: HashMap<u64, &LockWait> =
            snapshot.waits.iter().map(|wait| (wait.waiting, wait)).collect();
        for wait in &snapshot.waits {
            let head = head_of(wait, &by_connection).blocking_statement.as_deref();
            found.entry((wait.kind.name(), &wait.object, &wait.index)).or_default().push((wait, head));
            *of_kind.entry(wait.kind.name()).or_default() += 1;
        }
    }
    let object = |((kind, object, index), waits): (Key, Vec<(&LockWait, Option<&str>)>)| {
        let samples = waits.len() as u64;
        let share = samples as f64 / of_kind.get(kind).copied().unwrap_or(samples) as f64;
        let (mode, _) = most(waits.iter().map(|(wait, _)| Some(wait.mode.as_str())));
        let (statement, _) = most(waits.iter().map(|(wait, _)| wait.statement.as_deref()));
        let (blocking_statement, blocking) = most(waits.iter().map(|(_, head)| *head));
        LockObject {
            kind: LockKind::of_name(kind),
            object: object.to_string(),
            index: index.to_string(),
            mode: mode.unwrap_or_default().to_string(),
            samples,
            share,
            waited_ns: waited_ns.get(&LockKind::of_name(kind)).map(|ns| ns * share),
            statement: statement.map(str::to_string),
            blocking_statement: blocking_statement.map(str::to_string),
            blocking_share: blocking as f64 / samples as f64,
        }
    };
    let mut objects: Vec<LockObject> = found.into_iter().map(object).collect();
    objects.sort_by_key(|object| std::cmp::Reverse(object.samples));
    objects
}

/// The wait of the last in the chain that still waits: what it waits for is the head.
fn head_of<'a>(wait: &'a LockWait, by_connection: &HashMap<u64, &'a LockWait>) -> &'a LockWait {
    let mut last = wait;
    for _ in 0..CHAIN_MAX {
        match last.blocking.and_then(|id| by_connection.get(&id)) {
            Some(next) => last = next,
            None => break,
        }
    }
    last
}

/// The most frequent text, and how often it occurred.
fn most<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> (Option<&'a str>, u64) {
    let mut counts: BTreeMap<Option<&str>, u64> = BTreeMap::new();
    for text in texts {
        *counts.entry(text).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).unwrap_or((None, 0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn lock_wait(waiting: u64, blocking: u64, object: &str, head: Option<&str>) -> LockWait {
        LockWait {
            kind: LockKind::Row,
            waiting,
            blocking: Some(blocking),
            object: object.to_string(),
            index: "PRIMARY".to_string(),
            mode: "X".to_string(),
            waited_s: 1,
            statement: Some("UPDATE accounts SET v=?".to_string()),
            blocking_statement: head.map(str::to_string),
        }
    }

    #[test]
    fn samples_are_added_up_by_table_and_index_with_what_the_head_of_the_queue_executes() {
        let first = LockSnapshot {
            t_ns: 1,
            waits: vec![
                lock_wait(2, 1, "t.accounts", Some("COMMIT")),
                lock_wait(3, 2, "t.accounts", Some("UPDATE accounts SET v=?")),
                lock_wait(4, 9, "t.log", None),
            ],
        };
        let second = LockSnapshot { t_ns: 2, waits: vec![lock_wait(3, 1, "t.accounts", Some("COMMIT"))] };
        let waited = BTreeMap::from([(LockKind::Row, 8e9)]);
        let found = objects(&[first, second], &waited);
        let [accounts, log] = &found[..] else { panic!("{found:?}") };
        assert_eq!((accounts.object.as_str(), accounts.samples, accounts.share), ("t.accounts", 3, 0.75));
        assert_eq!(accounts.waited_ns, Some(6e9));
        let head = (accounts.blocking_statement.as_deref(), accounts.blocking_share);
        assert_eq!(
            head,
            (Some("COMMIT"), 1.0),
            "connection 3 waits for 2, which waits for the one that commits"
        );
        assert_eq!((log.samples, log.blocking_statement.as_deref(), log.blocking_share), (1, None, 1.0));
    }

    proptest! {
        #[test]
        fn any_snapshots_keep_every_sample_and_no_circle_hangs(pairs in prop::collection::vec((0u64..6, 0u64..6, 0u8..3), 0..30)) {
            let waits: Vec<LockWait> = pairs.iter().map(|(a, b, o)| lock_wait(*a, *b, &o.to_string(), Some("S"))).collect();
            let found = objects(&[LockSnapshot { t_ns: 0, waits: waits.clone() }], &BTreeMap::new());
            prop_assert_eq!(found.iter().map(|object| object.samples).sum::<u64>(), waits.len() as u64);
            prop_assert!(found.iter().all(|object| (0.0..=1.0).contains(&object.share) && object.waited_ns.is_none()));
        }
    }
}

//! Lock waits by level, as the page has them.

use serde::Serialize;
use serde_json::Value;

use super::{LocksOf, locks_json};

/// Lines of each table that the page has.
const SHOWN_MAX: usize = 50;

/// Lock waits over one level.
#[derive(Clone, Copy, Debug)]
pub struct LevelLocks<'a> {
    /// The level's index; `None`: all of a recording in which no level ended.
    pub level: Option<u32>,
    pub locks: LocksOf<'a>,
}

/// What the page's head holds of the lock waits of a level.
#[derive(Serialize)]
pub(crate) struct LocksHead {
    level: Option<u32>,
    #[serde(flatten)]
    locks: Value,
    /// How many more lines each table would have.
    left: Remainder,
}

#[derive(Serialize)]
struct Remainder {
    objects: usize,
    instruments: usize,
    tables: usize,
}

pub(crate) fn heads(levels: &[LevelLocks]) -> Vec<LocksHead> {
    levels.iter().map(|level| head(level, SHOWN_MAX)).collect()
}

fn head(level: &LevelLocks, most: usize) -> LocksHead {
    let of = level.locks;
    let shown = LocksOf {
        objects: &of.objects[..of.objects.len().min(most)],
        instruments: &of.instruments[..of.instruments.len().min(most)],
        tables: &of.tables[..of.tables.len().min(most)],
        ..of
    };
    let left = Remainder {
        objects: of.objects.len() - shown.objects.len(),
        instruments: of.instruments.len() - shown.instruments.len(),
        tables: of.tables.len() - shown.tables.len(),
    };
    LocksHead { level: level.level, locks: locks_json(shown), left }
}

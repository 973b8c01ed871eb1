//! Lock waits by level, as the page has them.

use serde::Serialize;
use ts_rs::TS;

use super::LocksOf;
use super::json::LocksObject;

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
#[derive(Serialize, TS)]
pub(crate) struct LocksHead<'a> {
    level: Option<u32>,
    #[serde(flatten)]
    waits: LocksObject<'a>,
    /// How many more lines each table would have.
    left: Remainder,
}

#[derive(Serialize, TS)]
struct Remainder {
    objects: usize,
    instruments: usize,
    tables: usize,
}

pub(crate) fn heads<'a>(levels: &[LevelLocks<'a>]) -> Vec<LocksHead<'a>> {
    levels.iter().map(|level| head(level, SHOWN_MAX)).collect()
}

fn head<'a>(level: &LevelLocks<'a>, most: usize) -> LocksHead<'a> {
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
    LocksHead { level: level.level, waits: LocksObject::new(shown), left }
}

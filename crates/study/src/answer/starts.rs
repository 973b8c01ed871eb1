//! Which start was recorded where.

use serde::Serialize;
use ts_rs::TS;

use crate::cells::Cell;
use crate::journal::StartRecord;

/// A start that has come to its end.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct StartSummary {
    /// From 0. Of the pair: the first one or the second.
    pub block: u32,
    pub pair: bool,
    /// Name of the cell.
    pub name: String,
    /// Name of its recording within the study's `runs`; empty where there is none.
    pub run: String,
    /// As the server reports it.
    pub version: String,
    /// How long it took, the server's start and the restoring of its data included.
    pub seconds: f64,
}

pub(super) fn starts_done(cells: &[Cell], done: &[StartRecord]) -> Vec<StartSummary> {
    let start = |record: &StartRecord| StartSummary {
        block: record.start.block,
        pair: record.start.pair,
        name: cells.get(record.start.cell).map(Cell::name).unwrap_or_default(),
        run: record.run.clone(),
        version: record.version.clone(),
        seconds: record.seconds,
    };
    done.iter().map(start).collect()
}

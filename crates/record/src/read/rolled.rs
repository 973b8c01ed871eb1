//! A stream with roll-ups: which files serve which part of a window.

use std::sync::Arc;

use arrow::array::RecordBatch;

use super::Recording;
use super::parts::{Between, Plain};
use super::pieces::{Piece, pieces};
use crate::error::Result;
use crate::run::Window;

/// Detail and its roll-ups, the shortest first.
pub(super) struct RollupStream<'a> {
    pub(super) detail: &'a [&'a str],
    pub(super) rollups: &'a [(&'a str, i64)],
    /// The times of a row: the streams of roll-ups have columns of the same names.
    pub(super) begin: &'a str,
    pub(super) end: &'a str,
    /// Rows are stretches, which lie where they end, and not moments.
    pub(super) has_stretches: bool,
}

impl Recording {
    /// Hands over the rows of a window, with the part of time that they are read for: others among them are to be left out. A moment's part
    /// excludes its end. A stretch's part includes its end and excludes its begin. One that ends after the window is in the last. So each
    /// row counts once. Roll-ups longer than `step_ns` are not read, nor those of segments that have not all of them. `columns`: those to
    /// read; `None`: all.
    pub(super) fn each_rolled(
        &self,
        rolled: &RollupStream<'_>,
        window: Window,
        step_ns: i64,
        columns: Option<&[&str]>,
        mut take: impl FnMut(&RecordBatch, Window) -> Result<()>,
    ) -> Result<()> {
        let parts = |stream: &str| self.plain.get(stream).map_or(&[][..], Vec::as_slice);
        let detail: Vec<&Arc<Plain>> = rolled.detail.iter().flat_map(|stream| parts(stream)).collect();
        let rollups: Vec<&[Arc<Plain>]> = rolled.rollups.iter().map(|(stream, _)| parts(stream)).collect();
        let is_covered = |part: &Plain| {
            let has = |segment: u32, rollups: &[Arc<Plain>]| {
                rollups.iter().any(|other| other.first <= segment && segment <= other.last)
            };
            (part.first..=part.last).all(|segment| rollups.iter().all(|rollups| has(segment, rollups)))
        };
        let (covered, bare): (Vec<&Arc<Plain>>, Vec<&Arc<Plain>>) =
            detail.iter().partition(|part| is_covered(part));
        let overlaps = |part: &Plain, others: &[&Arc<Plain>]| {
            others.iter().any(|other| other.first <= part.last && part.first <= other.last)
        };
        let between = |window| Between { begin: rolled.begin, end: rolled.end, window };
        let after = Window { begin_ns: window.end_ns, end_ns: i64::MAX };
        let open = if rolled.has_stretches { Window { end_ns: i64::MAX, ..window } } else { window };
        for part in &bare {
            part.each(Some(between(window)), columns, |rows| take(rows, open))?;
        }
        let lengths_ns: Vec<i64> = rolled
            .rollups
            .iter()
            .map(|(_, length_ns)| *length_ns)
            .filter(|length| *length <= step_ns)
            .collect();
        let mut wanted = pieces(window, &lengths_ns);
        if rolled.has_stretches && window.end_ns < i64::MAX {
            wanted.push(Piece { window: after, rollup: None });
        }
        for piece in wanted {
            let mut serving: Vec<&Arc<Plain>> = Vec::new();
            match piece.rollup {
                Some(place) => serving.extend(rollups[place].iter().filter(|part| !overlaps(part, &bare))),
                None => {
                    serving.extend(&covered);
                    // The oldest detail of a recording may be removed.
                    let finest = rollups.first().copied().unwrap_or_default();
                    serving.extend(finest.iter().filter(|part| !overlaps(part, &detail)));
                }
            }
            // Of what ends after the window, only what begins in it.
            let reach =
                Window { end_ns: piece.window.end_ns.min(window.end_ns.saturating_add(1)), ..piece.window };
            for part in serving {
                part.each(Some(between(reach)), columns, |rows| take(rows, piece.window))?;
            }
        }
        Ok(())
    }
}

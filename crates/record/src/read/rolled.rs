//! A stream with roll-ups: which files serve which part of a window.

use std::sync::Arc;
use std::thread;

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

/// A file that serves a part of a window.
struct Serving<'a> {
    part: &'a Plain,
    between: Between<'a>,
    /// The part of time that it is read for.
    window: Window,
}

/// Files of fewer rows are added up together: making sums apart would take longer than reading.
const GROUP_ROWS_MIN: usize = 250_000;
/// So many groups of files are read at one time at most: each takes the memory of a row group.
const AT_ONCE_MAX: usize = 8;

/// Files that follow each other, of enough rows each.
fn groups<'s, 'a>(serving: &'s [Serving<'a>]) -> Vec<&'s [Serving<'a>]> {
    let (mut groups, mut first, mut rows) = (Vec::new(), 0, 0);
    for (place, one) in serving.iter().enumerate() {
        rows += one.part.row_count();
        if rows >= GROUP_ROWS_MIN || place + 1 == serving.len() {
            groups.push(&serving[first..=place]);
            (first, rows) = (place + 1, 0);
        }
    }
    groups
}

impl Recording {
    /// Adds up the rows of a window: those of some files by themselves, several such groups at one time, and then the sums, in order of time.
    /// Rows come with the part of time that they are read for: others among them are to be left out. A moment's part excludes its end. A
    /// stretch's part includes its end and excludes its begin. One that ends after the window is in the last. So each row counts once.
    /// Roll-ups longer than `step_ns` are not read, nor those of segments that have not all of them. `columns`: those to read; `None`: all.
    pub(super) fn fold_rolled<S: Default + Send>(
        &self,
        rolled: &RollupStream<'_>,
        window: Window,
        step_ns: i64,
        columns: Option<&[&str]>,
        add: impl Fn(&mut S, &RecordBatch, Window) -> Result<()> + Sync,
        mut merge: impl FnMut(S),
    ) -> Result<()> {
        let fold = |group: &[Serving<'_>]| {
            let mut sum = S::default();
            for serving in group {
                let add_rows = |rows: &RecordBatch| add(&mut sum, rows, serving.window);
                serving.part.each(Some(serving.between), columns, add_rows)?;
            }
            Ok(sum)
        };
        let at_once = thread::available_parallelism().map_or(1, usize::from).min(AT_ONCE_MAX);
        let serving = self.serving(rolled, window, step_ns);
        for several in groups(&serving).chunks(at_once) {
            if let [one] = several {
                merge(fold(one)?);
                continue;
            }
            let sums: Vec<Result<S>> = thread::scope(|scope| {
                let folding: Vec<_> = several.iter().map(|one| scope.spawn(|| fold(one))).collect();
                let end = |fold: thread::ScopedJoinHandle<'_, Result<S>>| {
                    fold.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                folding.into_iter().map(end).collect()
            });
            sums.into_iter().try_for_each(|sum| sum.map(&mut merge))?;
        }
        Ok(())
    }

    /// Which files serve a window, by its parts in order of time.
    fn serving<'a>(&'a self, rolled: &RollupStream<'a>, window: Window, step_ns: i64) -> Vec<Serving<'a>> {
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
        let mut serving: Vec<Serving<'_>> = Vec::new();
        let mut serve = |part: &'a Arc<Plain>, reach: Window, window: Window| {
            serving.push(Serving { part, between: between(reach), window });
        };
        bare.iter().for_each(|part| serve(part, window, open));
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
            // Of what ends after the window, only what begins in it.
            let reach =
                Window { end_ns: piece.window.end_ns.min(window.end_ns.saturating_add(1)), ..piece.window };
            match piece.rollup {
                Some(place) => {
                    let chosen = rollups[place].iter().filter(|part| !overlaps(part, &bare));
                    chosen.for_each(|part| serve(part, reach, piece.window));
                }
                None => {
                    covered.iter().for_each(|part| serve(part, reach, piece.window));
                    // The oldest detail of a recording may be removed.
                    let finest = rollups.first().copied().unwrap_or_default();
                    let alone = finest.iter().filter(|part| !overlaps(part, &detail));
                    alone.for_each(|part| serve(part, reach, piece.window));
                }
            }
        }
        serving
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array};

    fn part(rows: usize) -> Plain {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
        Plain::open(1, vec![RecordBatch::try_from_iter([("t_ns", column)]).unwrap()])
    }

    #[test]
    fn files_with_few_rows_are_added_up_together_and_none_is_left_out() {
        let parts = [10, 200_000, 60_000, 300_000, 5].map(part);
        let window = Window { begin_ns: 0, end_ns: 1 };
        let between = Between::at("t_ns", window);
        let serving: Vec<Serving<'_>> = parts.iter().map(|part| Serving { part, between, window }).collect();
        let lengths: Vec<usize> = groups(&serving).iter().map(|group| group.len()).collect();
        assert_eq!(lengths, [3, 1, 1]);
        assert!(groups(&[]).is_empty());
    }
}

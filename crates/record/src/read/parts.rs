//! One stream of a recording, from however many files it lies in.

use std::ops::Range;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};

use crate::data::Value;
use crate::error::Result;
use crate::index::Index;
use crate::parquet_file::ParquetFile;
use crate::run::Window;
use crate::sorted::{RollupRow, SortedFile, SortedRow};
use crate::table::Sample;

/// A segment of a stream in the order in which it was written.
pub(crate) struct Plain {
    /// The segments that it covers.
    pub(crate) first: u32,
    pub(crate) last: u32,
    content: PlainContent,
}

enum PlainContent {
    Sealed(ParquetFile),
    Open(Vec<RecordBatch>),
}

/// The rows of a window: those of which the time in column `begin` lies before its end, and the time in column `end` not before its
/// begin. Which of them lie on an edge is for who reads them.
#[derive(Clone, Copy)]
pub(crate) struct Between<'a> {
    pub(crate) begin: &'a str,
    pub(crate) end: &'a str,
    pub(crate) window: Window,
}

impl<'a> Between<'a> {
    /// Of rows with one time, the window's end excluded.
    pub(crate) fn at(time: &'a str, window: Window) -> Between<'a> {
        Between { begin: time, end: time, window }
    }

    /// Whether rows of these bounds all lie in the window.
    fn holds_all(&self, begin: Option<(i64, i64)>, end: Option<(i64, i64)>) -> bool {
        begin.is_some_and(|(_, last)| last < self.window.end_ns)
            && end.is_some_and(|(first, _)| first >= self.window.begin_ns)
    }

    /// By the bounds of both columns; one that is not known excludes nothing.
    fn may_hold(&self, begin: Option<(i64, i64)>, end: Option<(i64, i64)>) -> bool {
        begin.is_none_or(|(first, _)| first < self.window.end_ns)
            && end.is_none_or(|(_, last)| last >= self.window.begin_ns)
    }
}

impl Plain {
    pub(crate) fn sealed(first: u32, last: u32, file: ParquetFile) -> Plain {
        Plain { first, last, content: PlainContent::Sealed(file) }
    }

    pub(crate) fn open(segment: u32, batches: Vec<RecordBatch>) -> Plain {
        Plain { first: segment, last: segment, content: PlainContent::Open(batches) }
    }

    pub(crate) fn batches(&self) -> Result<Vec<RecordBatch>> {
        match &self.content {
            PlainContent::Sealed(file) => file.read_all(),
            PlainContent::Open(batches) => Ok(batches.clone()),
        }
    }

    pub(crate) fn has_column(&self, name: &str) -> bool {
        match &self.content {
            PlainContent::Sealed(file) => file.schema().index_of(name).is_ok(),
            PlainContent::Open(batches) => batches.iter().all(|batch| batch.column_by_name(name).is_some()),
        }
    }

    /// The least and the largest value of a column of whole numbers; `None` where it has none.
    pub(crate) fn bounds(&self, column: &str) -> Result<Option<(i64, i64)>> {
        if let PlainContent::Sealed(file) = &self.content {
            let bounds: Option<Vec<(i64, i64)>> =
                (0..file.group_count()).map(|group| file.bounds(group, column)).collect();
            if let Some(bounds) = bounds {
                return Ok(bounds.into_iter().reduce(wider));
            }
        }
        let mut bounds = None;
        self.each(None, Some(&[column]), |batch| {
            bounds = [bounds, bounds_of(batch, column)].into_iter().flatten().reduce(wider);
            Ok(())
        })?;
        Ok(bounds)
    }

    pub(crate) fn row_count(&self) -> usize {
        match &self.content {
            PlainContent::Sealed(file) => file.row_count(),
            PlainContent::Open(batches) => batches.iter().map(RecordBatch::num_rows).sum(),
        }
    }

    /// Hands over the rows, a row group at a time, so that never all are in memory. Row groups without rows of the window are not read,
    /// nor are other columns than those named; `None`: all.
    pub(crate) fn each(
        &self,
        rows: Option<Between<'_>>,
        columns: Option<&[&str]>,
        mut take: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let file = match &self.content {
            PlainContent::Sealed(file) => file,
            PlainContent::Open(batches) => {
                let may_hold = |batch: &&RecordBatch| {
                    let bounds = |column| bounds_of(batch, column);
                    rows.is_none_or(|rows| rows.may_hold(bounds(rows.begin), bounds(rows.end)))
                };
                return batches.iter().filter(may_hold).try_for_each(take);
            }
        };
        for group in 0..file.group_count() {
            let bounds = |column| file.bounds(group, column);
            let range = match rows {
                None => file.rows_of(group),
                Some(rows) if !rows.may_hold(bounds(rows.begin), bounds(rows.end)) => continue,
                Some(rows) if rows.holds_all(bounds(rows.begin), bounds(rows.end)) => file.rows_of(group),
                Some(rows) => rows_within(file, group, rows)?,
            };
            file.read(std::slice::from_ref(&range), columns)?.iter().try_for_each(&mut take)?;
        }
        Ok(())
    }
}

/// The rows of a row group from the first that may lie in a window to the last, by their times.
fn rows_within(file: &ParquetFile, group: usize, rows: Between<'_>) -> Result<Range<usize>> {
    let all = file.rows_of(group);
    let (mut first, mut last) = (all.end, all.start);
    let mut at = all.start;
    for batch in file.read(std::slice::from_ref(&all), Some(&[rows.begin, rows.end]))? {
        let times =
            |column: &str| Some(batch.column_by_name(column)?.as_primitive_opt::<Int64Type>()?.values());
        let (Some(begins), Some(ends)) = (times(rows.begin), times(rows.end)) else { return Ok(all) };
        for (begin_ns, end_ns) in begins.iter().zip(ends) {
            if rows.may_hold(Some((*begin_ns, *begin_ns)), Some((*end_ns, *end_ns))) {
                first = first.min(at);
                last = at + 1;
            }
            at += 1;
        }
    }
    Ok(first.min(last)..last)
}

fn bounds_of(batch: &RecordBatch, column: &str) -> Option<(i64, i64)> {
    let values = batch.column_by_name(column)?.as_primitive_opt::<Int64Type>()?;
    arrow::compute::min(values).zip(arrow::compute::max(values))
}

fn wider(one: (i64, i64), other: (i64, i64)) -> (i64, i64) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// A segment of a stream that is sorted by series.
pub(crate) struct SortedSegment<R> {
    /// The segments that it covers.
    pub(crate) first: u32,
    pub(crate) last: u32,
    content: Content<R>,
}

enum Content<R> {
    Sealed(SortedFile),
    Open { rows: Vec<R>, index: Index },
}

impl<R: SortedRow> SortedSegment<R> {
    pub(crate) fn sealed(first: u32, last: u32, file: SortedFile) -> SortedSegment<R> {
        SortedSegment { first, last, content: Content::Sealed(file) }
    }

    /// From rows in any order.
    pub(crate) fn open(segment: u32, mut rows: Vec<R>) -> SortedSegment<R> {
        rows.sort_unstable_by_key(|row| (row.series(), row.position()));
        let mut index = Index::default();
        for series in rows.chunk_by(|a, b| a.series() == b.series()) {
            let (first, last) = (series[0], series[series.len() - 1]);
            index.push(first.series(), series.len(), first.position(), last.position());
        }
        SortedSegment { first: segment, last: segment, content: Content::Open { rows, index } }
    }

    /// Rows of a segment that is still written.
    pub(crate) fn open_rows(&self) -> &[R] {
        match &self.content {
            Content::Sealed(_) => &[],
            Content::Open { rows, .. } => rows,
        }
    }

    pub(crate) fn index(&self) -> &Index {
        match &self.content {
            Content::Sealed(file) => &file.index,
            Content::Open { index, .. } => index,
        }
    }
}

impl SortedSegment<RollupRow> {
    /// Columns of the given rows.
    pub(crate) fn columns(&self, ranges: &[Range<usize>], columns: &[&str]) -> Result<Vec<RecordBatch>> {
        match &self.content {
            Content::Sealed(file) => file.file.read(ranges, Some(columns)),
            Content::Open { .. } => Ok(Vec::new()),
        }
    }

    pub(crate) fn rollups(&self, rows: Range<usize>) -> Result<Vec<RollupRow>> {
        match &self.content {
            Content::Sealed(file) => file.rows(&[rows]),
            Content::Open { rows: all, .. } => Ok(all[rows].to_vec()),
        }
    }
}

impl SortedSegment<Sample> {
    /// Calls `each` with the collection and the value of the given rows, in order.
    pub(crate) fn values(&self, ranges: &[Range<usize>], mut each: impl FnMut(i64, Value)) -> Result<()> {
        let file = match &self.content {
            Content::Sealed(file) => file,
            Content::Open { rows, .. } => {
                for sample in ranges.iter().flat_map(|range| &rows[range.clone()]) {
                    each(sample.collection, sample.value);
                }
                return Ok(());
            }
        };
        for batch in file.file.read(ranges, Some(&["collection", "value_i64", "value_f64"]))? {
            read_values(&batch, &mut each).ok_or_else(|| file.unexpected())?;
        }
        Ok(())
    }

    /// The values of the given rows, in order; `None` where the rows lie in memory, as [`SortedSegment::values`] is as good for these.
    pub(crate) fn sealed_values(&self, ranges: &[Range<usize>]) -> Result<Option<Vec<Value>>> {
        let Content::Sealed(file) = &self.content else { return Ok(None) };
        let mut values = Vec::new();
        for batch in file.file.read(ranges, Some(&["value_i64", "value_f64"]))? {
            add_values(&batch, &mut values).ok_or_else(|| file.unexpected())?;
        }
        Ok(Some(values))
    }
}

fn add_values(batch: &RecordBatch, values: &mut Vec<Value>) -> Option<()> {
    let whole = batch.column_by_name("value_i64")?.as_primitive_opt::<Int64Type>()?;
    let fraction = batch.column_by_name("value_f64")?.as_primitive_opt::<Float64Type>()?;
    values.extend((0..batch.num_rows()).map(|row| match whole.is_null(row) {
        true => Value::Float(fraction.value(row)),
        false => Value::Int(whole.value(row)),
    }));
    Some(())
}

fn read_values(batch: &RecordBatch, each: &mut impl FnMut(i64, Value)) -> Option<()> {
    let collection = batch.column_by_name("collection")?.as_primitive_opt::<Int64Type>()?.values();
    let whole = batch.column_by_name("value_i64")?.as_primitive_opt::<Int64Type>()?;
    let fraction = batch.column_by_name("value_f64")?.as_primitive_opt::<Float64Type>()?;
    if whole.null_count() == 0 {
        for (collection, value) in collection.iter().zip(whole.values()) {
            each(*collection, Value::Int(*value));
        }
        return Some(());
    }
    for (row, collection) in collection.iter().enumerate() {
        let value = match whole.is_null(row) {
            true => Value::Float(fraction.value(row)),
            false => Value::Int(whole.value(row)),
        };
        each(*collection, value);
    }
    Some(())
}

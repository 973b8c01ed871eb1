//! One stream of a recording, from however many files it lies in.

use std::ops::Range;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};

use crate::data::Value;
use crate::error::Result;
use crate::index::Index;
use crate::parquet_file::ParquetFile;
use crate::sorted::{RollupRow, SortedFile, SortedRow};
use crate::table::Sample;

/// A stream in the order in which it was written.
pub(crate) enum Plain {
    Sealed(ParquetFile),
    Open(Vec<RecordBatch>),
}

impl Plain {
    pub(crate) fn batches(&self) -> Result<Vec<RecordBatch>> {
        match self {
            Plain::Sealed(file) => file.read_all(),
            Plain::Open(batches) => Ok(batches.clone()),
        }
    }
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

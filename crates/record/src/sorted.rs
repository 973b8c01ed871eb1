//! Files that are sorted by series: samples and roll-ups.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Float64Array, Int64Array, RecordBatch, UInt32Array};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, UInt32Type};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use whyso_series::{Rollup, merge_rollups};

use crate::error::{Error, Result};
use crate::index::{self, Index};
use crate::parquet_file::{ParquetFile, properties};
use crate::table::{self, Sample};

/// A row group ends after this many series, once it has this many rows. Fewer would make the footer of a short segment larger than
/// its data.
const GROUP_SERIES_MIN: usize = 30;
const GROUP_ROWS_MIN: usize = 32_768;

/// A row of such a file.
pub(crate) trait SortedRow: Copy {
    fn series(&self) -> u32;
    /// What rows of one series are sorted by: the collection, or the begin of the bucket.
    fn position(&self) -> i64;
    fn batch(rows: &[Self]) -> Result<RecordBatch>;
    fn rows_of(batch: &RecordBatch) -> Option<Vec<Self>>;
    /// Makes one row of neighbours that are one (a bucket that two segments share).
    fn join(rows: Vec<Self>) -> Vec<Self>;
}

impl SortedRow for Sample {
    fn series(&self) -> u32 {
        self.series
    }

    fn position(&self) -> i64 {
        self.collection
    }

    fn batch(rows: &[Sample]) -> Result<RecordBatch> {
        table::samples_batch(rows)
    }

    fn rows_of(batch: &RecordBatch) -> Option<Vec<Sample>> {
        table::samples_of(batch)
    }

    fn join(rows: Vec<Sample>) -> Vec<Sample> {
        rows
    }
}

/// One row of a roll-up stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RollupRow {
    pub(crate) series: u32,
    pub(crate) rollup: Rollup,
}

impl SortedRow for RollupRow {
    fn series(&self) -> u32 {
        self.series
    }

    fn position(&self) -> i64 {
        self.rollup.t_ns
    }

    fn batch(rows: &[RollupRow]) -> Result<RecordBatch> {
        let floats = |of: fn(&Rollup) -> f64| {
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| of(&row.rollup))))
        };
        let extremes = |of: fn(&Rollup) -> f64| {
            let extreme = |row: &RollupRow| (row.rollup.count > 0).then(|| of(&row.rollup));
            Arc::new(rows.iter().map(extreme).collect::<Float64Array>())
        };
        let schema = Schema::new(vec![
            Field::new("series", DataType::UInt32, false),
            Field::new("t_ns", DataType::Int64, false),
            Field::new("min", DataType::Float64, true),
            Field::new("max", DataType::Float64, true),
            Field::new("sum", DataType::Float64, false),
            Field::new("count", DataType::UInt32, false),
            Field::new("first", DataType::Float64, false),
            Field::new("last", DataType::Float64, false),
            Field::new("hidden_growth", DataType::Float64, false),
        ]);
        let batch = RecordBatch::try_new(
            Arc::new(schema),
            vec![
                Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.series))),
                Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.rollup.t_ns))),
                extremes(|rollup| rollup.min),
                extremes(|rollup| rollup.max),
                floats(|rollup| rollup.sum),
                Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.rollup.count))),
                floats(|rollup| rollup.first),
                floats(|rollup| rollup.last),
                floats(|rollup| rollup.hidden_growth),
            ],
        );
        batch.map_err(|cause| Error::damaged(Path::new("a table"), "roll-ups", cause))
    }

    fn rows_of(batch: &RecordBatch) -> Option<Vec<RollupRow>> {
        let series = batch.column_by_name("series")?.as_primitive_opt::<UInt32Type>()?;
        let t_ns = batch.column_by_name("t_ns")?.as_primitive_opt::<Int64Type>()?;
        let count = batch.column_by_name("count")?.as_primitive_opt::<UInt32Type>()?;
        let float = |name| batch.column_by_name(name)?.as_primitive_opt::<Float64Type>();
        let (min, max, sum) = (float("min")?, float("max")?, float("sum")?);
        let (first, last) = (float("first")?, float("last")?);
        // Older recordings lack it.
        let hidden_growth = float("hidden_growth");
        let or_nan = |array: &Float64Array, row| if array.is_null(row) { f64::NAN } else { array.value(row) };
        let row = |row: usize| RollupRow {
            series: series.value(row),
            rollup: Rollup {
                t_ns: t_ns.value(row),
                min: or_nan(min, row),
                max: or_nan(max, row),
                sum: sum.value(row),
                count: count.value(row),
                first: first.value(row),
                last: last.value(row),
                hidden_growth: hidden_growth.map_or(f64::NAN, |hidden| hidden.value(row)),
            },
        };
        Some((0..batch.num_rows()).map(row).collect())
    }

    fn join(rows: Vec<RollupRow>) -> Vec<RollupRow> {
        let Some(first) = rows.first() else { return rows };
        let series = first.series;
        let parts: Vec<Rollup> = rows.iter().map(|row| row.rollup).collect();
        // Buckets of 1 ns hold what begins at the same time, which is what has to become one.
        merge_rollups(&parts, 1).into_iter().map(|rollup| RollupRow { series, rollup }).collect()
    }
}

/// Writes such a file into memory.
pub(crate) struct SortedWriter<R> {
    group: Vec<R>,
    group_series: usize,
    index: Index,
    writer: Option<ArrowWriter<Vec<u8>>>,
}

impl<R: SortedRow> SortedWriter<R> {
    pub(crate) fn new() -> SortedWriter<R> {
        SortedWriter { group: Vec::new(), group_series: 0, index: Index::default(), writer: None }
    }

    /// Adds all rows of the next series, which are in order of position.
    pub(crate) fn push(&mut self, rows: &[R]) -> Result<()> {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
        self.index.push(first.series(), rows.len(), first.position(), last.position());
        self.group.extend_from_slice(rows);
        self.group_series += 1;
        if self.group_series >= GROUP_SERIES_MIN && self.group.len() >= GROUP_ROWS_MIN {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        let batch = R::batch(&self.group)?;
        let failed = |cause| Error::damaged(Path::new("a table"), "Parquet", cause);
        if self.writer.is_none() {
            let properties = properties(&batch.schema(), &["series", "count", "hidden_growth"]).build();
            self.writer =
                Some(ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).map_err(failed)?);
        }
        if let Some(writer) = &mut self.writer {
            writer.write(&batch).map_err(failed)?;
            writer.flush().map_err(failed)?;
        }
        self.group.clear();
        self.group_series = 0;
        Ok(())
    }

    /// The file; `None` where there was no row.
    pub(crate) fn finish(mut self) -> Result<Option<Vec<u8>>> {
        if !self.group.is_empty() {
            self.end_group()?;
        }
        let Some(mut writer) = self.writer else { return Ok(None) };
        writer.append_key_value_metadata(KeyValue::new(index::KEY.to_string(), self.index.encode()));
        let bytes = writer.into_inner();
        bytes.map(Some).map_err(|cause| Error::damaged(Path::new("a table"), "Parquet", cause))
    }
}

/// Such a file, open.
pub(crate) struct SortedFile {
    pub(crate) file: ParquetFile,
    pub(crate) index: Index,
}

impl SortedFile {
    pub(crate) fn open(path: &Path) -> Result<SortedFile> {
        let file = ParquetFile::open(path)?;
        let index = file.note(index::KEY).and_then(Index::decode);
        let fits = |index: &Index| index.row_count() == file.row_count();
        let index = index
            .filter(fits)
            .ok_or_else(|| Error::damaged(path, "a sorted file", "its index is missing or does not fit"))?;
        Ok(SortedFile { file, index })
    }

    pub(crate) fn rows<R: SortedRow>(&self, rows: &[Range<usize>]) -> Result<Vec<R>> {
        let mut found = Vec::new();
        for batch in self.file.read(rows, None)? {
            found.extend(R::rows_of(&batch).ok_or_else(|| self.unexpected())?);
        }
        Ok(found)
    }

    pub(crate) fn unexpected(&self) -> Error {
        Error::damaged(self.file.path(), "a sorted file", "its columns are not what they should be")
    }
}

/// Sorts rows and hands over those of each series.
pub(crate) fn by_series<R: SortedRow>(
    rows: &mut [R],
    mut each: impl FnMut(&[R]) -> Result<()>,
) -> Result<()> {
    rows.sort_unstable_by_key(|row| (row.series(), row.position()));
    for series in rows.chunk_by(|a, b| a.series() == b.series()) {
        each(series)?;
    }
    Ok(())
}

/// One file from several that follow each other in time; a part of the series at a time, so that memory stays small.
pub(crate) fn merge<R: SortedRow>(files: &[SortedFile]) -> Result<Option<Vec<u8>>> {
    let mut all: Vec<u32> =
        files.iter().flat_map(|file| file.index.iter().map(|(series, _)| series)).collect();
    all.sort_unstable();
    all.dedup();
    let mut writer = SortedWriter::new();
    for part in all.chunks(GROUP_SERIES_MIN) {
        let mut rows: Vec<Vec<R>> = vec![Vec::new(); part.len()];
        for file in files {
            let places: Vec<Range<usize>> =
                part.iter().filter_map(|series| file.index.find(*series)).map(|place| place.rows).collect();
            for row in file.rows::<R>(&places)? {
                if let Ok(index) = part.binary_search(&row.series()) {
                    rows[index].push(row);
                }
            }
        }
        for series in rows {
            writer.push(&R::join(series))?;
        }
    }
    writer.finish()
}

//! Parquet, as we write it and read it back.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use bytes::{Buf, Bytes};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::statistics::Statistics;

use crate::error::{Error, Result};
use crate::{pages, private};

/// Compression level: measured on the recording that `examples/make_recording.rs` makes, higher levels cost more and save next to
/// nothing. What is left after the encodings is noise.
const ZSTD_LEVEL: i32 = 3;
/// Rows of a page: about an hour of one series at one reading per second. So a reader of one series decompresses two pages of a
/// column instead of the row group.
const PAGE_ROWS: usize = 3_600;
const BATCH_ROWS: usize = 600;
/// A page has a header and something in it.
const PAGE_BYTES_MIN: i64 = 20;

/// Encodings for a schema: whole numbers as bit-packed differences, text by dictionary. Fractions differ:
///
/// - Samples are left to zstd as they are, since a gauge with few digits takes the same values again. Measured: 3.9 bytes per sample,
///   against 6.8 as byte streams and 4.3 by dictionary.
/// - Roll-ups, whose values don't repeat, go as byte streams: a sixth less than plain.
///
/// Columns named in `repeating` go by dictionary whatever they are.
pub(crate) fn properties(schema: &Schema, repeating: &[&str]) -> WriterPropertiesBuilder {
    let level = ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(BATCH_ROWS)
        .set_created_by(concat!("whyso ", env!("CARGO_PKG_VERSION")).to_string());
    for field in schema.fields() {
        let encoding = match field.data_type() {
            DataType::Int64 | DataType::UInt32 | DataType::UInt64 => Encoding::DELTA_BINARY_PACKED,
            DataType::Float64 if field.name() == "value_f64" => Encoding::PLAIN,
            DataType::Float64 => Encoding::BYTE_STREAM_SPLIT,
            _ => continue,
        };
        if !repeating.contains(&field.name().as_str()) {
            let column = field.name().as_str();
            properties = properties
                .set_column_dictionary_enabled(column.into(), false)
                .set_column_encoding(column.into(), encoding);
        }
    }
    properties
}

/// A whole file of one table. Each batch is a row group of its own.
pub(crate) fn encode(groups: &[RecordBatch], properties: WriterProperties) -> Result<Vec<u8>> {
    let Some(first) = groups.first() else { return Ok(Vec::new()) };
    let mut encoder = Encoder::new(first.schema(), properties)?;
    groups.iter().try_for_each(|group| encoder.group(group))?;
    encoder.finish()
}

/// Writes a file into memory, row group by row group.
pub(crate) struct Encoder(ArrowWriter<Vec<u8>>);

impl Encoder {
    pub(crate) fn new(schema: Arc<Schema>, properties: WriterProperties) -> Result<Encoder> {
        ArrowWriter::try_new(Vec::new(), schema, Some(properties)).map(Encoder).map_err(failed)
    }

    pub(crate) fn group(&mut self, rows: &RecordBatch) -> Result<()> {
        self.0.write(rows).and_then(|()| self.0.flush()).map_err(failed)
    }

    pub(crate) fn finish(self) -> Result<Vec<u8>> {
        self.0.into_inner().map_err(failed)
    }
}

fn failed(cause: ParquetError) -> Error {
    Error::damaged(Path::new("a table"), "Parquet", cause)
}

/// A Parquet file that is open, its footer read.
pub(crate) struct ParquetFile {
    path: PathBuf,
    file: File,
    file_bytes: u64,
    footer: ArrowReaderMetadata,
    /// Row number at which each row group begins, and the number of rows at the end.
    group_rows: Vec<usize>,
}

impl ParquetFile {
    pub(crate) fn open(path: &Path) -> Result<ParquetFile> {
        ParquetFile::of(path, private::open_file(path).map_err(|cause| Error::io(path, cause))?)
    }

    /// Reads the footer of a file that is open already. `path`: what errors call it.
    pub(crate) fn of(path: &Path, file: File) -> Result<ParquetFile> {
        let file_bytes = file.metadata().map_err(|cause| Error::io(path, cause))?.len();
        let footer = unpanicked(path, || {
            let footer = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
            footer.map_err(|cause| Error::damaged(path, "Parquet", cause))
        })?;
        if !footer.schema().fields().iter().all(|field| is_written(field.data_type())) {
            return Err(Error::damaged(path, "Parquet", "it has a column of a type that is never written"));
        }
        let mut group_rows = vec![0];
        let (mut rows, mut chunk_bytes) = (0, 0_u64);
        for group in footer.metadata().row_groups() {
            let rows_max = group.columns().iter().map(rows_max).min().unwrap_or(0);
            let group_fits = (0..=rows_max).contains(&group.num_rows());
            let fits = |column: &ColumnChunkMetaData| lies_within(column, file_bytes);
            if !group_fits || !group.columns().iter().all(fits) {
                return Err(Error::damaged(path, "Parquet", "its footer names places outside the file"));
            }
            rows += group.num_rows() as usize;
            group_rows.push(rows);
            chunk_bytes += group.columns().iter().map(|column| column.byte_range().1).sum::<u64>();
        }
        if chunk_bytes > file_bytes {
            return Err(Error::damaged(path, "Parquet", "its columns overlap"));
        }
        Ok(ParquetFile { path: path.to_path_buf(), file, file_bytes, footer, group_rows })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.file_bytes
    }

    /// A text of our own from the footer.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        let notes = self.footer.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    pub(crate) fn row_count(&self) -> usize {
        self.group_rows.last().copied().unwrap_or(0)
    }

    pub(crate) fn read_all(&self) -> Result<Vec<RecordBatch>> {
        let all = 0..self.row_count();
        self.read(std::slice::from_ref(&all), None)
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.footer.schema()
    }

    pub(crate) fn group_count(&self) -> usize {
        self.group_rows.len() - 1
    }

    /// The numbers of the rows of a row group.
    pub(crate) fn rows_of(&self, group: usize) -> Range<usize> {
        self.group_rows[group]..self.group_rows[group + 1]
    }

    /// The least and the largest value of a whole-number column in a row group, by the footer; `None` where it does not say.
    pub(crate) fn bounds(&self, group: usize, column: &str) -> Option<(i64, i64)> {
        let group = self.footer.metadata().row_group(group);
        let chunk = group.columns().iter().find(|chunk| chunk.column_path().string() == column)?;
        match chunk.statistics()? {
            Statistics::Int64(bounds) => Some((*bounds.min_opt()?, *bounds.max_opt()?)),
            _ => None,
        }
    }

    /// These rows, in order. `rows` are ascending and disjoint. `columns` by their names, `None` for all.
    pub(crate) fn read(&self, rows: &[Range<usize>], columns: Option<&[&str]>) -> Result<Vec<RecordBatch>> {
        unpanicked(&self.path, || self.decode(rows, columns))
    }

    fn decode(&self, rows: &[Range<usize>], columns: Option<&[&str]>) -> Result<Vec<RecordBatch>> {
        let mut groups = Vec::new();
        let mut selectors = Vec::new();
        let mut selected = 0;
        for group in 0..self.group_rows.len() - 1 {
            let group_rows = self.group_rows[group]..self.group_rows[group + 1];
            let first = rows.partition_point(|range| range.end <= group_rows.start);
            let ranges = rows[first..].iter().take_while(|range| range.start < group_rows.end);
            let mut at = group_rows.start;
            let selectors_before = selectors.len();
            for range in ranges {
                let begin = range.start.max(group_rows.start);
                let end = range.end.min(group_rows.end);
                if begin > at {
                    selectors.push(RowSelector::skip(begin - at));
                }
                selectors.push(RowSelector::select(end - begin));
                selected += end - begin;
                at = end;
            }
            if selectors.len() > selectors_before {
                groups.push(group);
                if at < group_rows.end {
                    selectors.push(RowSelector::skip(group_rows.end - at));
                }
            }
        }
        if selected == 0 {
            return Ok(Vec::new());
        }
        let schema = self.footer.parquet_schema();
        let mask = match columns {
            Some(columns) => ProjectionMask::columns(schema, columns.iter().copied()),
            None => ProjectionMask::all(),
        };
        let failed = |cause: &dyn std::fmt::Display| Error::damaged(&self.path, "Parquet", cause);
        let chunks = Arc::new(self.load(&groups, &mask)?);
        let memory_max = pages::memory_max(self.file_bytes);
        let text_bytes =
            self.text_bytes_of_a_row(&chunks, &groups, &mask, memory_max).map_err(|cause| failed(&cause))?;
        // A text of a dictionary may stand in each of the rows that are decoded at once.
        let batch_rows = (memory_max / text_bytes.max(1)).clamp(1, selected as u64) as usize;
        let chunks = Arc::unwrap_or_clone(chunks);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(chunks, self.footer.clone())
            .with_row_groups(groups)
            .with_projection(mask)
            .with_row_selection(RowSelection::from(selectors))
            .with_batch_size(batch_rows)
            .build()
            .map_err(|cause| failed(&cause))?;
        let (mut batches, mut bytes): (Vec<RecordBatch>, u64) = (Vec::new(), 0);
        for batch in reader {
            let batch = batch.map_err(|cause| failed(&cause))?;
            bytes += batch.get_array_memory_size() as u64;
            if bytes > memory_max.saturating_mul(2) {
                return Err(failed(&"its rows take more memory than a file of this size can need"));
            }
            batches.push(batch);
        }
        // One batch, as what belongs together must not be cut.
        if batches.len() > 1 {
            let whole = arrow::compute::concat_batches(&batches[0].schema(), &batches);
            batches = vec![whole.map_err(|cause| failed(&cause))?];
        }
        Ok(batches)
    }

    /// Checks that the pages of these columns take no more than `memory_max`. Returns how long those texts of a row can be that lie in
    /// dictionaries, in bytes.
    fn text_bytes_of_a_row(
        &self,
        chunks: &Arc<Chunks>,
        groups: &[usize],
        mask: &ProjectionMask,
        memory_max: u64,
    ) -> parquet::errors::Result<u64> {
        let too_long = || {
            ParquetError::General("its lists take more memory than a file of this size can need".to_string())
        };
        let mut longest = vec![0_u64; self.footer.parquet_schema().num_columns()];
        let mut bytes = 0;
        for group in groups {
            let group = self.footer.metadata().row_group(*group);
            for (leaf, column) in
                group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf))
            {
                let (begin, length) = column.byte_range();
                let need =
                    pages::need(column, &chunks.get_bytes(begin, length as usize)?, memory_max - bytes)?;
                bytes += need.bytes;
                let text = pages::longest_text(chunks, column, group.num_rows() as usize, &need)?;
                if column.column_descr().max_rep_level() == 0 {
                    longest[leaf] = longest[leaf].max(text);
                } else if need.values.saturating_mul(text) > memory_max {
                    return Err(too_long());
                }
            }
        }
        Ok(longest.iter().sum())
    }

    /// Reads the column chunks that a read will need, each at once. Pages are then found in memory, and two readers of one file
    /// share no position.
    fn load(&self, groups: &[usize], mask: &ProjectionMask) -> Result<Chunks> {
        let mut parts = Vec::new();
        for group in groups {
            let columns = self.footer.metadata().row_group(*group).columns();
            for (leaf, column) in columns.iter().enumerate() {
                if mask.leaf_included(leaf) {
                    let (begin, length) = column.byte_range();
                    let mut part = vec![0; length as usize];
                    let read = self.file.read_exact_at(&mut part, begin);
                    read.map_err(|cause| Error::io(&self.path, cause))?;
                    parts.push((begin, Bytes::from(part)));
                }
            }
        }
        parts.sort_by_key(|(begin, _)| *begin);
        Ok(Chunks { parts })
    }
}

/// Runs the decoder, which panics on some damaged files (a property test found it), and reports such a file.
fn unpanicked<T>(path: &Path, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    // What the closure borrows is only read, so that nothing is left half changed.
    let outcome = panic::catch_unwind(AssertUnwindSafe(decode));
    outcome.unwrap_or_else(|_| Err(Error::damaged(path, "Parquet", "its contents contradict each other")))
}

/// The types of columns that a recording has. A footer may ask for others, some of which take memory that nothing in the file bounds.
fn is_written(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(of) => is_written(of.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_written(field.data_type())),
        DataType::Utf8 | DataType::Boolean => true,
        other => other.is_integer() || matches!(other, DataType::Float64),
    }
}

/// Checks a footer's offsets and lengths, before anything is allocated by them.
fn lies_within(column: &ColumnChunkMetaData, file_bytes: u64) -> bool {
    let begin = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let end = begin.checked_add(column.compressed_size());
    let ordered = begin >= 0 && column.compressed_size() >= 0;
    ordered && end.is_some_and(|end| end as u64 <= file_bytes)
}

/// How many rows a column can hold by its bytes: however alike they are, a page holds a bounded number. A reader allocates by the number of rows.
fn rows_max(column: &ColumnChunkMetaData) -> i64 {
    (column.compressed_size().max(0) / PAGE_BYTES_MIN + 1)
        .saturating_mul(PAGE_ROWS as i64 + BATCH_ROWS as i64)
}

#[derive(Clone)]
struct Chunks {
    /// Offset in the file, and what lies there; ascending.
    parts: Vec<(u64, Bytes)>,
}

impl Chunks {
    fn from(&self, start: u64) -> parquet::errors::Result<Bytes> {
        let after = self.parts.partition_point(|(begin, _)| *begin <= start);
        let part = after.checked_sub(1).and_then(|index| self.parts.get(index));
        let outside = || ParquetError::EOF(format!("offset {start} lies outside the columns that were read"));
        let (begin, bytes) = part.ok_or_else(outside)?;
        let skip = (start - begin) as usize;
        if skip > bytes.len() {
            return Err(outside());
        }
        Ok(bytes.slice(skip..))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.parts.last().map_or(0, |(begin, bytes)| begin + bytes.len() as u64)
    }
}

impl ChunkReader for Chunks {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} reach past their column")));
        }
        Ok(bytes.slice(..length))
    }
}

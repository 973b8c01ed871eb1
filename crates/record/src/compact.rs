//! Many sealed segments into one.

use std::path::Path;

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{Int64Type, Schema};
use arrow::error::ArrowError;

use crate::error::{Error, Result};
use crate::layout::{self, Segment};
use crate::parquet_file::{self, Encoder, ParquetFile};
use crate::sorted::{self, RollupRow, SortedFile};
use crate::table::{self, Collection, Sample};
use crate::write::Disk;
use crate::{stack_rollup, state_table};

/// Rows of a row group: about a minute of a server at which 500 connections work.
const GROUP_ROWS: usize = 65_536;

/// Compacts the segments from `first` to `last`, each stream into one file, and removes the parts. Between the two the parts are
/// superseded by name, so that a crash counts nothing twice.
pub(crate) fn compact(disk: &Disk, first: u32, last: u32) -> Result<()> {
    let live = layout::live_segments(&disk.dir)?;
    let is_within = |file: &&Segment| file.sealed && file.first >= first && file.last <= last;
    let parts: Vec<Segment> = live.iter().filter(is_within).cloned().collect();
    for parts in parts.chunk_by(|a, b| a.stream == b.stream) {
        if let [only, .., end] = parts {
            let bytes = merged(parts)?;
            if let Some(bytes) = bytes {
                disk.put(&layout::sealed_name(&only.stream, only.first, end.last), &bytes)?;
                parts.iter().try_for_each(|part| disk.remove(&part.path))?;
            }
        }
    }
    // What a crash, or a reader that held on to it, may have left.
    for file in layout::superseded_segments(&disk.dir)? {
        disk.remove(&file.path)?;
    }
    Ok(())
}

fn merged(parts: &[Segment]) -> Result<Option<Vec<u8>>> {
    let stream = parts[0].stream.as_str();
    let is_rollup = layout::ROLLUPS.iter().any(|(name, _)| *name == stream);
    if stream == layout::SAMPLES || is_rollup {
        let files = parts.iter().map(|part| SortedFile::open(&part.path)).collect::<Result<Vec<_>>>()?;
        return if is_rollup { sorted::merge::<RollupRow>(&files) } else { sorted::merge::<Sample>(&files) };
    }
    let files = parts.iter().map(|part| ParquetFile::open(&part.path)).collect::<Result<Vec<_>>>()?;
    let length_of = |rollups: &[(&str, i64)]| {
        rollups.iter().find(|(name, _)| *name == stream).map(|(_, length_ns)| *length_ns)
    };
    let all = || Ok(files.iter().map(ParquetFile::read_all).collect::<Result<Vec<_>>>()?.concat());
    if let Some(length_ns) = length_of(&layout::STATE_ROLLUPS) {
        let rows = state_table::roll_up(&all()?, length_ns)?.batch(true)?;
        return plain_file(&parts[0].path, &[rows]);
    }
    if let Some(length_ns) = length_of(&layout::STACK_ROLLUPS) {
        let rows = stack_rollup::merged(&all()?, length_ns)?;
        return plain_file(&parts[0].path, &[rows]);
    }
    if stream == layout::COLLECTIONS {
        return plain_file(&parts[0].path, &all()?);
    }
    let schemas: Vec<&Schema> = files.iter().map(ParquetFile::schema).collect();
    let mut writer = PlainWriter::new(&parts[0].path, &schemas)?;
    for file in &files {
        for group in 0..file.group_count() {
            file.read(std::slice::from_ref(&file.rows_of(group)), None)?
                .iter()
                .try_for_each(|rows| writer.push(rows))?;
        }
    }
    writer.finish()
}

/// A file of a stream that is kept in the order in which it was written, collections aside, which are sorted by number.
/// `path` names it in errors.
pub(crate) fn plain_file(path: &Path, batches: &[RecordBatch]) -> Result<Option<Vec<u8>>> {
    if batches.iter().all(|batch| batch.num_rows() == 0) {
        return Ok(None);
    }
    let schemas: Vec<&Schema> = batches.iter().map(|batch| batch.schema_ref().as_ref()).collect();
    let mut writer = PlainWriter::new(path, &schemas)?;
    let collections: Option<Vec<Vec<Collection>>> = batches.iter().map(table::collections_of).collect();
    match collections {
        Some(collections) if schemas.iter().all(|schema| schema.index_of("t_begin_ns").is_ok()) => {
            let mut collections = collections.concat();
            collections.sort_by_key(|collection| collection.id);
            writer.push(&table::collections_batch(&collections)?)?;
        }
        _ => batches.iter().try_for_each(|batch| writer.push(batch))?,
    }
    writer.finish()
}

/// Writes a stream in row groups, so that a reader of a window reads a part of it. Rows of one time stay in one group.
struct PlainWriter<'a> {
    path: &'a Path,
    schema: Arc<Schema>,
    encoder: Option<Encoder>,
    waiting: Vec<RecordBatch>,
    waiting_rows: usize,
}

impl<'a> PlainWriter<'a> {
    /// For rows with any of these columns.
    fn new(path: &'a Path, schemas: &[&Schema]) -> Result<PlainWriter<'a>> {
        let odd =
            || Error::damaged(path, "a table", "its parts have columns of one name and different types");
        let schema = table::union_schema(schemas).ok_or_else(odd)?;
        Ok(PlainWriter { path, schema, encoder: None, waiting: Vec::new(), waiting_rows: 0 })
    }

    fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        let odd = || Error::damaged(self.path, "a table", "its rows do not fit its columns");
        self.waiting_rows += rows.num_rows();
        self.waiting.push(table::widened(rows, &self.schema).ok_or_else(odd)?);
        if self.waiting_rows >= GROUP_ROWS { self.write(false) } else { Ok(()) }
    }

    /// Writes what fills groups, at the end all.
    fn write(&mut self, all: bool) -> Result<()> {
        let failed = |cause: ArrowError| Error::damaged(self.path, "a table", cause);
        let rows = arrow::compute::concat_batches(&self.schema, &self.waiting).map_err(failed)?;
        let mut at = 0;
        while rows.num_rows() - at >= if all { 1 } else { GROUP_ROWS } {
            let Some(end) = cut(&rows, (at + GROUP_ROWS).min(rows.num_rows()), all) else { break };
            if self.encoder.is_none() {
                let properties = parquet_file::properties(&self.schema, &["level", "born_ns"]).build();
                self.encoder = Some(Encoder::new(Arc::clone(&self.schema), properties)?);
            }
            if let Some(encoder) = &mut self.encoder {
                encoder.group(&rows.slice(at, end - at))?;
            }
            at = end;
        }
        let rest = rows.slice(at, rows.num_rows() - at);
        (self.waiting_rows, self.waiting) = (rest.num_rows(), vec![rest]);
        Ok(())
    }

    /// The file; `None` where there was no row.
    fn finish(mut self) -> Result<Option<Vec<u8>>> {
        if self.waiting_rows > 0 {
            self.write(true)?;
        }
        self.encoder.map(Encoder::finish).transpose()
    }
}

/// The first place from `wanted` on at which the time changes. `None` where it does not, and more rows may follow.
fn cut(rows: &RecordBatch, wanted: usize, is_end: bool) -> Option<usize> {
    let times = rows.column_by_name("t_ns").and_then(|times| times.as_primitive_opt::<Int64Type>());
    let Some(times) = times.map(Int64Array::values) else { return Some(wanted) };
    let changes = |place: &usize| *place < times.len() && times[*place] != times[*place - 1];
    (wanted.max(1)..times.len()).find(changes).or_else(|| is_end.then_some(times.len()))
}

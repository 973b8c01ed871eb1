//! Many sealed segments into one.

use std::path::Path;

use arrow::array::RecordBatch;

use crate::error::{Error, Result};
use crate::layout::{self, Segment};
use crate::parquet_file::{self, ParquetFile};
use crate::sorted::{self, RollupRow, SortedFile};
use crate::table::{self, Sample};
use crate::write::Disk;

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
    let mut batches = Vec::new();
    for part in parts {
        batches.extend(ParquetFile::open(&part.path)?.read_all()?);
    }
    plain_file(&parts[0].path, &batches)
}

/// A file of a stream that is kept in the order in which it was written, collections aside, which are sorted by number.
/// `path` names it in errors.
pub(crate) fn plain_file(path: &Path, batches: &[RecordBatch]) -> Result<Option<Vec<u8>>> {
    if batches.iter().all(|batch| batch.num_rows() == 0) {
        return Ok(None);
    }
    let odd = || Error::damaged(path, "a table", "its parts have columns of one name and different types");
    let mut all = table::union(batches).ok_or_else(odd)?;
    if let (Some(_), Some(mut collections)) = (all.column_by_name("t_begin_ns"), table::collections_of(&all))
    {
        collections.sort_by_key(|collection| collection.id);
        all = table::collections_batch(&collections)?;
    }
    let properties = parquet_file::properties(&all.schema(), &["level", "born_ns"]).build();
    parquet_file::encode(&[all], properties).map(Some)
}

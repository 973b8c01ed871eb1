//! What a recording's finished files hold, and of which time: from their footers, without their rows.

use std::path::Path;

use crate::layout::{self, Segment};
use crate::parquet_file::ParquetFile;

/// A finished Parquet file of a recording.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SegmentFacts {
    pub(crate) stream: String,
    /// Name within the recording's folder.
    pub(crate) file: String,
    /// Of its rows, on the recording's clock. `None`: its rows have no times.
    pub(crate) begin_ns: Option<i64>,
    pub(crate) end_ns: Option<i64>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Files with the same columns have the same number.
    pub(crate) columns: u32,
}

/// Columns with the begin and the end of a row, in the order in which they are searched for.
const BEGINS: [&str; 3] = ["t_begin_ns", "begin_ns", "t_ns"];
const ENDS: [&str; 2] = ["t_end_ns", "t_ns"];

/// The finished files that count. Those that can't be read are left out.
pub(crate) fn segments_of(dir: &Path) -> Vec<SegmentFacts> {
    let sealed: Vec<Segment> =
        layout::live_segments(dir).unwrap_or_default().into_iter().filter(|segment| segment.sealed).collect();
    let mut found: Vec<(&Segment, SegmentFacts)> =
        sealed.iter().filter_map(|segment| Some((segment, read(&segment.stream, &segment.path)?))).collect();
    // Samples have the times of their collections.
    let times: Vec<(u32, u32, i64, i64)> = found
        .iter()
        .filter(|(_, facts)| facts.stream == layout::COLLECTIONS)
        .filter_map(|(segment, facts)| Some((segment.first, segment.last, facts.begin_ns?, facts.end_ns?)))
        .collect();
    for (segment, facts) in found.iter_mut().filter(|(_, facts)| facts.stream == layout::SAMPLES) {
        let of_samples = || times.iter().filter(|time| time.0 <= segment.last && segment.first <= time.1);
        facts.begin_ns = of_samples().map(|time| time.2).min();
        facts.end_ns = of_samples().map(|time| time.3).max();
    }
    let series = read(layout::SERIES_STREAM, &dir.join(layout::SERIES));
    series.into_iter().chain(found.into_iter().map(|(_, facts)| facts)).collect()
}

fn read(stream: &str, path: &Path) -> Option<SegmentFacts> {
    let file = ParquetFile::open(path).ok()?;
    let schema = file.schema();
    let column_of =
        |names: &[&'static str]| names.iter().copied().find(|name| schema.field_with_name(name).is_ok());
    let groups = 0..file.group_count();
    let bounds = |names| {
        let column = column_of(names)?;
        groups.clone().map(|group| file.bounds(group, column)).collect::<Option<Vec<_>>>()
    };
    let columns: Vec<String> =
        schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    Some(SegmentFacts {
        stream: stream.to_string(),
        file: path.file_name()?.to_str()?.to_string(),
        begin_ns: bounds(&BEGINS).and_then(|bounds| bounds.iter().map(|bound| bound.0).min()),
        end_ns: bounds(&ENDS)
            .and_then(|bounds| bounds.iter().map(|bound| bound.1).max())
            .map(|end_ns| end_ns.saturating_add(layout::row_length_ns(stream))),
        rows: file.row_count() as u64,
        bytes: file.bytes(),
        columns: crc32c::crc32c(columns.join(", ").as_bytes()),
    })
}

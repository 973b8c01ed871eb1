//! Names of the files in a run's folder, and which of them count.
//!
//! A segment file is called `<stream>-<segment>.<wal|parquet>`. The segment is a number of six digits, or two with `_` between for a
//! range that was compacted into one file. A sealed file supersedes every other file of its stream within its range. So a crash
//! between writing the new file and removing the old ones counts no sample twice.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

pub(crate) const RUN: &str = "run.json";
/// More of it is not read.
pub(crate) const RUN_BYTES_MAX: u64 = 64 << 20;
pub(crate) const NOTES: &str = "notes.jsonl";
pub(crate) const LABELS: &str = "labels.json";
pub(crate) const MANIFEST: &str = "manifest.jsonl";
pub(crate) const PRUNED: &str = "pruned.json";
pub(crate) const SERIES: &str = "series.parquet";
/// What it is called among the streams.
pub(crate) const SERIES_STREAM: &str = "series";
pub(crate) const SERIES_WAL: &str = "series.wal";
pub(crate) const RESERVE: &str = ".reserve";
pub(crate) const TEMPORARY_PREFIX: &str = ".new-";
/// In the folder that holds the runs.
pub(crate) const CATALOGUE: &str = "catalogue.parquet";
pub(crate) const CATALOGUE_TEMPORARY_PREFIX: &str = ".whyso-catalogue-new-";
/// The catalogue of older versions.
pub(crate) const OLD_CATALOGUE: &str = ".whyso-catalogue";

pub(crate) const COLLECTIONS: &str = "collections";
pub(crate) const SAMPLES: &str = "samples";
pub(crate) const LOAD: &str = "load";
pub(crate) const EVENTS: &str = "events";
pub(crate) const STATES: &str = "states";
pub(crate) const STACKS: &str = "stacks";
pub(crate) const WAITS: &str = "waits";
pub(crate) const FRAMES: &str = "frames";
pub(crate) const PROGRAM_STACKS: &str = "program_stacks";
pub(crate) const PROGRAM_WAITS: &str = "program_waits";
pub(crate) const PROGRAM_FRAMES: &str = "program_frames";
pub(crate) const COMMANDS: &str = "commands";
pub(crate) const STATEMENTS: &str = "statements";
pub(crate) const ROWS_PREFIX: &str = "rows-";

/// Stream of the roll-ups of one length, and the length.
pub(crate) const ROLLUPS: [(&str, i64); 2] =
    [("rollup-10s", 10_000_000_000), ("rollup-2min", 120_000_000_000)];

/// Streams of the roll-ups of thread states, the finest first, and the length of each.
pub(crate) const STATE_ROLLUPS: [(&str, i64); 3] =
    [("states-10s", 10_000_000_000), ("states-2min", 120_000_000_000), ("states-1h", HOUR_NS)];
/// Streams of the roll-ups of samples and waits by their stack.
pub(crate) const STACK_ROLLUPS: [(&str, i64); 2] =
    [("profile-2min", 120_000_000_000), ("profile-1h", HOUR_NS)];
const HOUR_NS: i64 = 3_600_000_000_000;

/// Every stream of roll-ups.
pub(crate) fn rollup_streams() -> impl Iterator<Item = &'static str> {
    ROLLUPS.iter().chain(&STATE_ROLLUPS).chain(&STACK_ROLLUPS).map(|(stream, _)| *stream)
}

/// How long the time of a row is that begins at its `t_ns`; 0 of streams whose rows have a moment, or a begin and an end.
pub(crate) fn row_length_ns(stream: &str) -> i64 {
    let mut buckets = ROLLUPS.iter().chain(&STACK_ROLLUPS);
    buckets.find(|(rollup, _)| *rollup == stream).map_or(0, |(_, length_ns)| *length_ns)
}

/// Whether this version knows what a stream holds.
pub(crate) fn is_known(stream: &str) -> bool {
    const STREAMS: [&str; 10] =
        [COLLECTIONS, SAMPLES, LOAD, EVENTS, STATES, STACKS, WAITS, FRAMES, COMMANDS, STATEMENTS];
    STREAMS.contains(&stream)
        || [PROGRAM_STACKS, PROGRAM_WAITS, PROGRAM_FRAMES].contains(&stream)
        || stream.starts_with(ROWS_PREFIX)
        || rollup_streams().any(|rollup| rollup == stream)
}

/// One file of one stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Segment {
    pub(crate) stream: String,
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// Parquet, not a write-ahead file.
    pub(crate) sealed: bool,
    pub(crate) path: PathBuf,
}

impl Segment {
    pub(crate) fn covers(&self, other: &Segment) -> bool {
        self.stream == other.stream && self.first <= other.first && other.last <= self.last
    }
}

pub(crate) fn wal_name(stream: &str, segment: u32) -> String {
    format!("{stream}-{segment:06}.wal")
}

pub(crate) fn sealed_name(stream: &str, first: u32, last: u32) -> String {
    if first == last {
        format!("{stream}-{first:06}.parquet")
    } else {
        format!("{stream}-{first:06}_{last:06}.parquet")
    }
}

/// Name of the stream that holds one source's text tables. What a file name should not hold is written as `%XX`.
pub(crate) fn rows_stream(source: &str) -> String {
    let mut stream = String::from(ROWS_PREFIX);
    for byte in source.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            stream.push(char::from(byte));
        } else {
            stream.push_str(&format!("%{byte:02X}"));
        }
    }
    stream
}

/// The source of such a stream; `None` for any other stream.
pub(crate) fn rows_source(stream: &str) -> Option<String> {
    let coded = stream.strip_prefix(ROWS_PREFIX)?.as_bytes();
    let mut source = Vec::new();
    let mut at = 0;
    while at < coded.len() {
        let hex = coded.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match (coded[at], hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                source.push(byte);
                at += 3;
            }
            (byte, _) => {
                source.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(source).ok()
}

/// Every segment file in a folder, superseded ones too, sorted by stream and segment.
pub(crate) fn all_segments(dir: &Path) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(dir).map_err(|cause| Error::io(dir, cause))? {
        let entry = entry.map_err(|cause| Error::io(dir, cause))?;
        let segment = entry.file_name().to_str().and_then(|name| parse(name, entry.path()));
        segments.extend(segment);
    }
    segments.sort();
    Ok(segments)
}

/// The segment files that count.
pub(crate) fn live_segments(dir: &Path) -> Result<Vec<Segment>> {
    let all = all_segments(dir)?;
    let superseded = |segment: &Segment| all.iter().any(|other| supersedes(other, segment));
    Ok(all.iter().filter(|segment| !superseded(segment)).cloned().collect())
}

/// The segment files that no longer count.
pub(crate) fn superseded_segments(dir: &Path) -> Result<Vec<Segment>> {
    let all = all_segments(dir)?;
    let superseded = |segment: &Segment| all.iter().any(|other| supersedes(other, segment));
    Ok(all.iter().filter(|segment| superseded(segment)).cloned().collect())
}

fn supersedes(newer: &Segment, older: &Segment) -> bool {
    let wider = newer.last - newer.first > older.last - older.first;
    newer.sealed && newer.covers(older) && (wider || !older.sealed)
}

fn parse(name: &str, path: PathBuf) -> Option<Segment> {
    if name.starts_with('.') {
        return None;
    }
    let (stem, extension) = name.rsplit_once('.')?;
    let sealed = match extension {
        "parquet" => true,
        "wal" => false,
        _ => return None,
    };
    let (stream, range) = stem.rsplit_once('-')?;
    let (first, last) = range.split_once('_').unwrap_or((range, range));
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then(|| Segment { stream: stream.to_string(), first, last, sealed, path })
}

fn number(digits: &str) -> Option<u32> {
    let well_formed = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if well_formed { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compacted_supersedes_its_parts() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "samples-000001.parquet",
            "samples-000001_000002.parquet",
            "samples-000002.parquet",
            "samples-000003.parquet",
            "samples-000003.wal",
            "samples-000004.wal",
            "load-000001.parquet",
            "rollup-10s-000001.parquet",
            "series.parquet",
            ".new-samples-000004.parquet",
            "report.html",
        ];
        for name in names {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let live: Vec<String> = live_segments(dir.path())
            .unwrap()
            .iter()
            .map(|segment| segment.path.file_name().unwrap().to_str().unwrap().to_string())
            .collect();
        assert_eq!(
            live,
            [
                "load-000001.parquet",
                "rollup-10s-000001.parquet",
                "samples-000001_000002.parquet",
                "samples-000003.parquet",
                "samples-000004.wal"
            ]
        );
        assert_eq!(superseded_segments(dir.path()).unwrap().len(), 3);
    }

    #[test]
    fn any_source_has_a_file_name_of_its_own() {
        for source in ["digests", "lock-waits", "../../etc", "a%2D", "é", ""] {
            let stream = rows_stream(source);
            assert!(!stream.contains('/') && !stream[ROWS_PREFIX.len()..].contains('-'));
            assert_eq!(rows_source(&stream).as_deref(), Some(source));
        }
        assert_eq!(rows_source("load"), None);
    }
}

//! From a folder to a [`Recording`].

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;

use super::parts::{Plain, SortedSegment};
use super::version::run_of;
use super::{Recording, SeriesInfo};
use crate::data::{SeriesId, SeriesKey};
use crate::error::{Error, Result};
use crate::layout::{self, Segment};
use crate::lock::is_locked;
use crate::manifest::Manifest;
use crate::parquet_file::ParquetFile;
use crate::private;
use crate::prune::PruneRecord;
use crate::run::RunInfo;
use crate::sorted::{RollupRow, SortedFile};
use crate::table::{self, Sample};
use crate::wal;

/// How often the folder is looked at again when a file goes while it is being opened: a recorder at work seals and compacts.
const TRIES_MAX: u32 = 5;

/// One file, as it was read. Sealed ones never change; one that is written ahead grows.
#[derive(Clone)]
pub(super) enum FilePart {
    Rollups(Arc<SortedSegment<RollupRow>>),
    Samples(Arc<SortedSegment<Sample>>),
    Plain(Arc<Plain>),
    Tail(Tail),
}

/// A write-ahead file, as far as it was read.
#[derive(Clone, Default)]
pub(super) struct Tail {
    read_bytes: u64,
    /// Of samples, what each reading of the file found.
    samples: Vec<Arc<SortedSegment<Sample>>>,
    /// Of any other stream.
    batches: Vec<RecordBatch>,
}

/// More parts of samples are merged: each costs a little whenever a series is read.
const TAIL_PARTS_MAX: usize = 24;

/// Of this many of the newest readings, the time may not be in the files yet.
const COLLECTIONS_COMING_MAX: usize = 64;

/// `before`: the same recording as it was, of which nothing is read again.
pub(crate) fn open(dir: &Path, before: Option<&Recording>) -> Result<Recording> {
    if !dir.join(layout::RUN).is_file() {
        return Err(Error::NotARecording(dir.to_path_buf()));
    }
    let mut tries = 1;
    loop {
        let opened = open_once(dir, before);
        let gone = matches!(&opened, Err(Error::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound);
        if !gone || tries == TRIES_MAX {
            return opened;
        }
        tries += 1;
    }
}

fn open_once(dir: &Path, before: Option<&Recording>) -> Result<Recording> {
    let live = is_locked(dir);
    let segments = layout::live_segments(dir)?;
    let mut problems = Vec::new();
    let (manifest, manifest_problems) = Manifest::read(dir, live);
    problems.extend(manifest_problems);
    let run = read_run(dir, &manifest, &mut problems)?;
    let keys = read_series(dir, &manifest, &mut problems)?;
    let mut recording = Recording {
        dir: dir.to_path_buf(),
        run,
        live,
        problems,
        series: keys
            .into_iter()
            .map(|(id, key)| SeriesInfo { id: SeriesId(id), key, samples: 0, first_ns: 0, last_ns: 0 })
            .collect(),
        collections: before.map(|before| before.collections.clone()).unwrap_or_default(),
        files: HashMap::new(),
        samples: Vec::new(),
        rollups: [Vec::new(), Vec::new()],
        plain: HashMap::new(),
    };
    let mut unknown: Vec<&str> = Vec::new();
    for segment in &segments {
        if !layout::is_known(&segment.stream) {
            unknown.push(&segment.stream);
            // A caller that asks for it by its name may know it. What can't be read of it is a part of what is not shown.
            let _ = recording.add(segment, before);
            continue;
        }
        let is_known = before.is_some_and(|before| before.files.contains_key(&segment.path));
        let checked = if segment.sealed && !is_known { manifest.check(&segment.path) } else { Ok(()) };
        let added = checked.and_then(|()| recording.add(segment, before));
        match added {
            Err(Error::Damaged { .. } | Error::Changed(_)) if segment.sealed => {
                let problem =
                    added.err().map(|error| format!("{error}; what it held is missing")).unwrap_or_default();
                recording.problems.push(problem);
            }
            other => other?,
        }
    }
    unknown.dedup();
    if !unknown.is_empty() {
        let problem =
            format!("this version knows no stream called {}, and shows nothing of it", unknown.join(", "));
        recording.problems.push(problem);
    }
    recording.problems.extend(PruneRecord::of(dir).map(PruneRecord::words));
    recording.read_collections(&segments, before)?;
    recording.count_samples();
    if !live && recording.run.ended.is_none() {
        let last_ns = recording.series.iter().map(|info| info.last_ns).max().unwrap_or(0);
        let problem = format!(
            "the recorder ended without finishing: what it wrote until {last_ns} ns is here, at most the last second is lost"
        );
        recording.problems.push(problem);
    }
    Ok(recording)
}

fn read_run(dir: &Path, manifest: &Manifest, problems: &mut Vec<String>) -> Result<RunInfo> {
    let path = dir.join(layout::RUN);
    let json = private::read_file(&path, layout::RUN_BYTES_MAX).map_err(|cause| Error::io(&path, cause))?;
    let (run, run_problems) = run_of(&json, &path.display().to_string());
    problems.extend(run_problems);
    problems.extend(manifest.check(&path).err().map(|error| error.to_string()));
    Ok(run)
}

/// Series in order of their number.
fn read_series(dir: &Path, manifest: &Manifest, problems: &mut Vec<String>) -> Result<Vec<(u32, SeriesKey)>> {
    // The write-ahead file first: it is removed once the other one is whole.
    let mut batches = Vec::new();
    let wal = dir.join(layout::SERIES_WAL);
    if wal.exists() {
        let recovered = wal::read(&wal)?;
        if recovered.lost_bytes > 0 && !is_locked(dir) {
            problems.push(lost(&wal, recovered.lost_bytes));
        }
        batches = recovered.batches;
    }
    let sealed = dir.join(layout::SERIES);
    if sealed.exists() {
        problems.extend(manifest.check(&sealed).err().map(|error| error.to_string()));
        match ParquetFile::open(&sealed).and_then(|file| file.read_all()) {
            Ok(read) => batches.extend(read),
            Err(error) => problems.push(error.to_string()),
        }
    }
    let mut series = Vec::new();
    for batch in &batches {
        match table::series_of(batch) {
            Some(read) => series.extend(read),
            None => problems.push(format!("{} has other columns than this version knows", sealed.display())),
        }
    }
    series.sort_by_key(|(id, _)| *id);
    series.dedup_by_key(|(id, _)| *id);
    Ok(series)
}

fn lost(path: &Path, bytes: usize) -> String {
    format!("{}: its last {bytes} bytes are not whole and were left out", path.display())
}

fn sealed(segment: &Segment) -> Result<FilePart> {
    let is_rollup = layout::ROLLUPS.iter().any(|(stream, _)| *stream == segment.stream);
    Ok(if is_rollup {
        let file = SortedFile::open(&segment.path)?;
        FilePart::Rollups(Arc::new(SortedSegment::<RollupRow>::sealed(segment.first, segment.last, file)))
    } else if segment.stream == layout::SAMPLES {
        let file = SortedFile::open(&segment.path)?;
        FilePart::Samples(Arc::new(SortedSegment::<Sample>::sealed(segment.first, segment.last, file)))
    } else {
        let file = ParquetFile::open(&segment.path)?;
        FilePart::Plain(Arc::new(Plain::sealed(segment.first, segment.last, file)))
    })
}

impl Recording {
    fn add(&mut self, segment: &Segment, before: Option<&Recording>) -> Result<()> {
        let earlier = before.and_then(|before| before.files.get(&segment.path)).cloned();
        let part = match (segment.sealed, earlier) {
            (true, Some(part)) => part,
            (true, None) => sealed(segment)?,
            (false, Some(FilePart::Tail(tail))) => FilePart::Tail(self.follow(segment, tail)?),
            (false, _) => FilePart::Tail(self.follow(segment, Tail::default())?),
        };
        match &part {
            FilePart::Rollups(rollups) => {
                let level = layout::ROLLUPS.iter().position(|(stream, _)| *stream == segment.stream);
                self.rollups[level.unwrap_or(0)].push(Arc::clone(rollups));
            }
            FilePart::Samples(samples) => self.samples.push(Arc::clone(samples)),
            FilePart::Plain(plain) => self.add_plain(segment, Arc::clone(plain)),
            FilePart::Tail(tail) if segment.stream == layout::SAMPLES => {
                self.samples.extend(tail.samples.iter().cloned());
            }
            FilePart::Tail(tail) => {
                self.add_plain(segment, Arc::new(Plain::open(segment.first, tail.batches.clone())));
            }
        }
        self.files.insert(segment.path.clone(), part);
        Ok(())
    }

    /// Reads a write-ahead file on from where it was read to.
    fn follow(&mut self, segment: &Segment, mut tail: Tail) -> Result<Tail> {
        let recovered = wal::read_on(&segment.path, tail.read_bytes)?;
        // While a recorder is at work, the frame that it is just writing is no loss.
        if recovered.lost_bytes > 0 && !self.live {
            self.problems.push(lost(&segment.path, recovered.lost_bytes));
        }
        tail.read_bytes = recovered.read_bytes;
        if segment.stream != layout::SAMPLES {
            tail.batches.extend(recovered.batches);
            return Ok(tail);
        }
        let mut rows = Vec::new();
        if tail.samples.len() >= TAIL_PARTS_MAX {
            rows.extend(tail.samples.drain(..).flat_map(|part| part.open_rows().to_vec()));
        }
        for batch in &recovered.batches {
            rows.extend(table::samples_of(batch).unwrap_or_default());
        }
        if !rows.is_empty() {
            tail.samples.push(Arc::new(SortedSegment::open(segment.first, rows)));
        }
        Ok(tail)
    }

    fn add_plain(&mut self, segment: &Segment, part: Arc<Plain>) {
        self.plain.entry(segment.stream.clone()).or_default().push(part);
    }

    /// Adds those that the recording did not have before.
    fn read_collections(&mut self, segments: &[Segment], before: Option<&Recording>) -> Result<()> {
        let mut fresh = Vec::new();
        for segment in segments.iter().filter(|segment| segment.stream == layout::COLLECTIONS) {
            let earlier = before.and_then(|before| before.files.get(&segment.path));
            match (self.files.get(&segment.path), earlier) {
                (Some(FilePart::Plain(plain)), None) => fresh.extend(plain.batches()?),
                (Some(FilePart::Tail(tail)), Some(FilePart::Tail(earlier))) => {
                    fresh.extend(tail.batches.iter().skip(earlier.batches.len()).cloned());
                }
                (Some(FilePart::Tail(tail)), _) => fresh.extend(tail.batches.iter().cloned()),
                _ => {}
            }
        }
        for batch in fresh {
            let Some(collections) = table::collections_of(&batch) else {
                let problem =
                    "when sources were read stands in other columns than this version knows".to_string();
                self.problems.push(problem);
                continue;
            };
            let odd = collections.iter().filter(|collection| !self.collections.add(collection)).count();
            if odd > 0 {
                self.problems
                    .push(format!("{odd} readings have numbers that can't be right and were left out"));
            }
        }
        Ok(())
    }

    fn count_samples(&mut self) {
        let mut unknown = 0u64;
        for part in &self.samples {
            for (series, place) in part.index().iter() {
                let Ok(at) = self.series.binary_search_by_key(&series, |info| info.id.0) else {
                    unknown += place.rows.len() as u64;
                    continue;
                };
                let info = &mut self.series[at];
                let first_ns =
                    self.collections.window(place.first).map_or(info.first_ns, |window| window.end_ns);
                // Of a recording that is still written, a sample may be read before its time.
                let last = (place.first..=place.last).rev().take(COLLECTIONS_COMING_MAX);
                let last_ns = last.filter_map(|collection| self.collections.window(collection)).next();
                let last_ns = last_ns.map_or(info.last_ns, |window| window.end_ns);
                info.first_ns = if info.samples == 0 { first_ns } else { info.first_ns.min(first_ns) };
                info.last_ns = info.last_ns.max(last_ns);
                info.samples += place.rows.len() as u64;
            }
        }
        if unknown > 0 {
            self.problems
                .push(format!("{unknown} samples belong to series that are not known and were left out"));
        }
    }
}

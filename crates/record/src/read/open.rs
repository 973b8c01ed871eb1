//! From a folder to a [`Recording`].

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use super::collections::Collections;
use super::parts::{Plain, Sorted};
use super::version::run_of;
use super::{Recording, SeriesInfo};
use crate::data::{SeriesId, SeriesKey};
use crate::error::{Error, Result};
use crate::layout::{self, Segment};
use crate::parquet_file::ParquetFile;
use crate::prune::Pruned;
use crate::run::RunInfo;
use crate::sorted::{RollupRow, SortedFile};
use crate::table::{self, Sample};
use crate::wal;
use crate::write::is_locked;

/// How often the folder is looked at again when a file goes while it is being opened: a recorder at work seals and compacts.
const TRIES_MAX: u32 = 5;

pub(crate) fn open(dir: &Path) -> Result<Recording> {
    if !dir.join(layout::RUN).is_file() {
        return Err(Error::NotARecording(dir.to_path_buf()));
    }
    let mut tries = 1;
    loop {
        let opened = open_once(dir);
        let gone = matches!(&opened, Err(Error::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound);
        if !gone || tries == TRIES_MAX {
            return opened;
        }
        tries += 1;
    }
}

fn open_once(dir: &Path) -> Result<Recording> {
    let live = is_locked(dir);
    let segments = layout::live_segments(dir)?;
    let mut problems = Vec::new();
    let run = read_run(dir, &mut problems)?;
    let keys = read_series(dir, &mut problems)?;
    let mut recording = Recording {
        dir: dir.to_path_buf(),
        run,
        live,
        problems,
        series: keys
            .into_iter()
            .map(|(id, key)| SeriesInfo { id: SeriesId(id), key, samples: 0, first_ns: 0, last_ns: 0 })
            .collect(),
        collections: Collections::default(),
        samples: Vec::new(),
        rollups: [Vec::new(), Vec::new()],
        plain: HashMap::new(),
    };
    let mut unknown: Vec<&str> = Vec::new();
    for segment in &segments {
        if !layout::is_known(&segment.stream) {
            unknown.push(&segment.stream);
            // Whoever asks for it by its name may know it. What can't be read of it is a part of what is not shown.
            let _ = recording.add(segment);
            continue;
        }
        let added = recording.add(segment);
        match added {
            Err(Error::Damaged { .. }) if segment.sealed => {
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
    recording.problems.extend(Pruned::of(dir).map(Pruned::words));
    recording.read_collections()?;
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

fn read_run(dir: &Path, problems: &mut Vec<String>) -> Result<RunInfo> {
    let path = dir.join(layout::RUN);
    let json = fs::read(&path).map_err(|cause| Error::io(&path, cause))?;
    let (run, told) = run_of(&json, &path.display().to_string());
    problems.extend(told);
    Ok(run)
}

/// Series in order of their number.
fn read_series(dir: &Path, problems: &mut Vec<String>) -> Result<Vec<(u32, SeriesKey)>> {
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

impl Recording {
    fn add(&mut self, segment: &Segment) -> Result<()> {
        let rollup = layout::ROLLUPS.iter().position(|(stream, _)| *stream == segment.stream);
        if segment.sealed {
            if let Some(rollup) = rollup {
                let file = SortedFile::open(&segment.path)?;
                self.rollups[rollup].push(Sorted::<RollupRow>::sealed(segment.first, segment.last, file));
            } else if segment.stream == layout::SAMPLES {
                let file = SortedFile::open(&segment.path)?;
                self.samples.push(Sorted::<Sample>::sealed(segment.first, segment.last, file));
            } else {
                self.add_plain(segment, Plain::Sealed(ParquetFile::open(&segment.path)?));
            }
            return Ok(());
        }
        let recovered = wal::read(&segment.path)?;
        // While a recorder is at work, the frame that it is just writing is no loss.
        if recovered.lost_bytes > 0 && !self.live {
            self.problems.push(lost(&segment.path, recovered.lost_bytes));
        }
        if segment.stream == layout::SAMPLES {
            let mut rows = Vec::new();
            for batch in &recovered.batches {
                rows.extend(table::samples_of(batch).unwrap_or_default());
            }
            self.samples.push(Sorted::open(segment.first, rows));
        } else {
            self.add_plain(segment, Plain::Open(recovered.batches));
        }
        Ok(())
    }

    fn add_plain(&mut self, segment: &Segment, part: Plain) {
        self.plain.entry(segment.stream.clone()).or_default().push(part);
    }

    fn read_collections(&mut self) -> Result<()> {
        for part in self.plain.get(layout::COLLECTIONS).map_or(&[][..], Vec::as_slice) {
            for batch in part.batches()? {
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
                let last_ns =
                    self.collections.window(place.last).map_or(info.last_ns, |window| window.end_ns);
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

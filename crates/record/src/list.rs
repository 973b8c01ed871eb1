//! Which recordings a folder holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::catalogue::{self, Catalogue, Entry};
use crate::error::{Error, Result};
use crate::folder::FolderScan;
use crate::labels::{Labels, labels_of};
use crate::lock::is_locked;
use crate::manifest::Manifest;
use crate::read::version::run_of;
use crate::run::RunInfo;
use crate::run_facts::RunFacts;
use crate::segment_facts::segments_of;
use crate::{layout, private};

/// Runs that must have been read before the catalogue is written. Reading fewer takes less time than writing it for many, and a small
/// folder needs none.
const UNCATALOGUED_MAX: usize = 15;
/// How long a run's files have been quiet before they are catalogued. It exceeds a tick of any file system's clock: FAT has 2 seconds.
const QUIET: Duration = Duration::from_secs(3);
/// What is waited in addition.
const SETTLED_AFTER: Duration = Duration::from_millis(100);

pub(crate) const UNFINISHED: &str = "its recorder ended without finishing";

/// When the program writes a catalogue.
pub(crate) const SHIPPED: CataloguePolicy =
    CataloguePolicy { uncatalogued_max: UNCATALOGUED_MAX, quiet: QUIET };

/// A recording in a folder of recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Name of its folder.
    pub id: String,
    pub path: PathBuf,
    /// What can't be read of its `run.json` counts as missing.
    pub facts: RunFacts,
    pub bytes: u64,
    /// See [`crate::stamp`].
    pub stamp: u64,
    /// What the user calls it.
    pub labels: Labels,
    /// Whether a recorder is at work on it.
    pub live: bool,
    /// Why it is not whole, such as a recorder that died, or not wholly known, such as one of a newer version.
    pub problem: Option<String>,
}

/// A recording in a folder of recordings, with the whole of its `run.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedRun {
    pub summary: RunSummary,
    /// What can't be read of it counts as missing.
    pub run: RunInfo,
}

/// Lists the recordings in a folder, oldest first. Folders that are no recording are left out; a folder that does not exist holds none.
///
/// It keeps a catalogue in the folder, and reads the `run.json` only of runs that have changed since and of live ones. Sizes and labels
/// are those of now.
///
/// # Errors
/// The folder can't be read.
pub fn list_runs(dir: &Path) -> Result<Vec<RunSummary>> {
    Ok(list(dir, SHIPPED)?.runs)
}

/// Reads the recordings in a folder as [`list_runs`] lists them, each with its whole `run.json`. It writes nothing.
///
/// # Errors
/// The folder can't be read.
pub fn load_runs(dir: &Path) -> Result<Vec<LoadedRun>> {
    let mut runs: Vec<LoadedRun> = folders(dir)?.iter().filter_map(|path| load_run(path)).collect();
    runs.sort_by(|a, b| order(&a.summary).cmp(&order(&b.summary)));
    Ok(runs)
}

/// Reads the recording that a folder is; `None` where it is none.
pub fn load_run(path: &Path) -> Option<LoadedRun> {
    let scan = FolderScan::of(path);
    scan.run?;
    let live = is_locked(path);
    let read = RunRead::of(path, live)?;
    let problem = read.run_problem.or(read.file_problem);
    let summary = summary(path, &scan, live, RunFacts::of(&read.run), problem);
    Some(LoadedRun { summary, run: read.run })
}

/// What the catalogue would have of the recording that a folder is; `None` where it is none.
pub(crate) fn entry_of(path: &Path) -> Option<Entry> {
    let scan = FolderScan::of(path);
    let read = RunRead::of(path, false)?;
    let name = path.file_name().and_then(|name| name.to_str());
    let mut entry = Entry::new(name, &scan, &read.run, RunFacts::of(&read.run), read.run_problem)?;
    entry.update(&scan, &labels_of(path));
    Some(entry)
}

/// When a catalogue is written.
#[derive(Clone, Copy)]
pub(crate) struct CataloguePolicy {
    pub(crate) uncatalogued_max: usize,
    pub(crate) quiet: Duration,
}

/// Writes the catalogue of a folder as it is now, however few runs it has. Returns its path, and how many runs it has. Live runs and
/// damaged ones are not in it. It waits some seconds if a run has just ended.
///
/// # Errors
/// The folder can't be read or written.
pub fn write_catalogue(dir: &Path) -> Result<(PathBuf, usize)> {
    let policy = CataloguePolicy { uncatalogued_max: usize::MAX, quiet: QUIET };
    let mut listing = list(dir, policy)?;
    if listing.entries.iter().any(|listed| listed.settles) {
        std::thread::sleep(QUIET + SETTLED_AFTER);
        listing = list(dir, policy)?;
    }
    let count = listing.write_catalogue(dir)?;
    Ok((dir.join(layout::CATALOGUE), count))
}

/// A list, and the work that it took.
pub(crate) struct Listing {
    pub(crate) runs: Vec<RunSummary>,
    /// What the catalogue has of each run, or would have, in another order.
    pub(crate) entries: Vec<ListedEntry>,
    /// Runs whose `run.json` was read.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests bound the work of a list by it"))]
    pub(crate) read: usize,
}

/// What is known of one run.
pub(crate) struct ListedEntry {
    pub(crate) entry: Entry,
    path: PathBuf,
    pub(crate) is_live: bool,
    /// Its files have been quiet, so that the catalogue may have it.
    is_settled: bool,
    /// They have changed just now, and the catalogue may have it soon.
    settles: bool,
}

impl ListedEntry {
    fn read_segments(&mut self) {
        if self.entry.of_folder.segments.is_none() {
            self.entry.of_folder.segments = Some(segments_of(&self.path));
        }
    }
}

impl Listing {
    /// Reads what the finished files of each run hold, where the catalogue does not have it.
    pub(crate) fn read_segments(&mut self) {
        self.entries.iter_mut().for_each(ListedEntry::read_segments);
    }

    fn write_catalogue(&mut self, dir: &Path) -> Result<usize> {
        self.entries.iter_mut().filter(|entry| entry.is_settled).for_each(ListedEntry::read_segments);
        let settled: Vec<&Entry> =
            self.entries.iter().filter(|entry| entry.is_settled).map(|listed| &listed.entry).collect();
        catalogue::write(dir, &settled)?;
        Ok(settled.len())
    }
}

pub(crate) fn list(dir: &Path, policy: CataloguePolicy) -> Result<Listing> {
    let folders = folders(dir)?;
    let mut catalogue = Catalogue::read(dir);
    let (mut runs, mut entries) = (Vec::new(), Vec::new());
    let (mut read, mut uncatalogued) = (0, 0);
    for path in folders {
        // Before anything is read: what changes afterwards has another identity.
        let now = SystemTime::now();
        let scan = FolderScan::of(&path);
        if scan.run.is_none() {
            continue;
        }
        let live = is_locked(&path);
        let name = path.file_name().and_then(|name| name.to_str());
        if !live && let Some(mut entry) = catalogue.take(name, &scan) {
            let summary = summary(&path, &scan, live, entry.facts.clone(), entry.problem.clone());
            entry.update(&scan, &summary.labels);
            runs.push(summary);
            entries.push(ListedEntry { entry, path, is_live: live, is_settled: true, settles: false });
            continue;
        }
        read += 1;
        let Some(run) = RunRead::of(&path, live) else { continue };
        let facts = RunFacts::of(&run.run);
        let is_whole = !live && run.file_problem.is_none();
        let problem = run.run_problem.clone().or(run.file_problem);
        let summary = summary(&path, &scan, live, facts.clone(), problem);
        if let Some(mut entry) = Entry::new(name, &scan, &run.run, facts, run.run_problem) {
            entry.update(&scan, &summary.labels);
            let is_settled = is_whole && entry.is_settled(now, policy.quiet);
            uncatalogued += usize::from(is_settled);
            let settles = is_whole && !is_settled;
            entries.push(ListedEntry { entry, path, is_live: live, is_settled, settles });
        }
        runs.push(summary);
    }
    let settled = entries.iter().filter(|entry| entry.is_settled).count();
    let has_too_many = catalogue.len() > settled.max(policy.uncatalogued_max);
    runs.sort_by(|a, b| order(a).cmp(&order(b)));
    let mut listing = Listing { runs, entries, read };
    if uncatalogued > policy.uncatalogued_max || has_too_many {
        // A folder that can't be written has none.
        let _ = listing.write_catalogue(dir);
    }
    Ok(listing)
}

fn folders(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let io = |cause| Error::io(dir, cause);
    fs::read_dir(dir).map_err(io)?.map(|entry| Ok(entry.map_err(io)?.path())).collect()
}

fn order(run: &RunSummary) -> (i64, &str) {
    (run.facts.began_wall_ns.unwrap_or(0), &run.id)
}

fn summary(
    path: &Path,
    scan: &FolderScan,
    live: bool,
    facts: RunFacts,
    problem: Option<String>,
) -> RunSummary {
    let is_unfinished = facts.ended.is_none() && !live;
    RunSummary {
        id: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        path: path.to_path_buf(),
        facts,
        bytes: scan.bytes,
        stamp: scan.stamp,
        labels: if scan.has_labels { labels_of(path) } else { Labels::default() },
        live,
        problem: problem.or(is_unfinished.then(|| UNFINISHED.to_string())),
    }
}

/// A `run.json` that was read and checked.
struct RunRead {
    run: RunInfo,
    /// What this version can't read of it.
    run_problem: Option<String>,
    /// What is wrong with the manifest, or with the file by the manifest. It contains a path as the user gave it.
    file_problem: Option<String>,
}

impl RunRead {
    /// `live` must have been found before this reads: a recorder that ends in between has then written everything.
    fn of(path: &Path, live: bool) -> Option<RunRead> {
        let file = path.join(layout::RUN);
        // A folder that goes meanwhile is no recording any more.
        let json = private::read_file(&file, layout::RUN_BYTES_MAX).ok()?;
        let (run, run_problems) = run_of(&json, "its run.json");
        let (manifest, mut file_problems) = Manifest::read(path, live);
        file_problems.extend(manifest.check(&file).err().map(|error| error.to_string()));
        let first = |problems: Vec<String>| problems.into_iter().next();
        Some(RunRead { run, run_problem: first(run_problems), file_problem: first(file_problems) })
    }
}

#[cfg(test)]
mod tests;

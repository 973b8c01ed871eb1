//! Which recordings a folder holds.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::lock::is_locked;
use crate::manifest::Manifest;
use crate::read::version::run_of;
use crate::run::RunInfo;
use crate::{layout, private};

/// A recording in a folder of recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Name of its folder.
    pub id: String,
    pub path: PathBuf,
    /// Its `run.json`; what can't be read of it counts as not there.
    pub run: RunInfo,
    pub bytes: u64,
    /// Whether a recorder is at work on it.
    pub live: bool,
    /// Why it is not whole, such as a recorder that died, or not wholly known, such as one of a newer version.
    pub problem: Option<String>,
}

/// The recordings in a folder, oldest first. Folders that are no recording are left out; a folder that does not exist holds none.
pub fn list_runs(dir: &Path) -> Result<Vec<RunSummary>> {
    let mut runs = Vec::new();
    if !dir.exists() {
        return Ok(runs);
    }
    for entry in fs::read_dir(dir).map_err(|cause| Error::io(dir, cause))? {
        let path = entry.map_err(|cause| Error::io(dir, cause))?.path();
        // A folder that goes meanwhile is no recording any more.
        runs.extend(run_in(&path));
    }
    let began_ns = |run: &RunSummary| run.run.anchors.first().map_or(0, |anchor| anchor.wall_ns);
    runs.sort_by(|a, b| (began_ns(a), &a.id).cmp(&(began_ns(b), &b.id)));
    Ok(runs)
}

/// The recording that a folder is; `None` where it is none.
pub fn run_in(path: &Path) -> Option<RunSummary> {
    let file = path.join(layout::RUN);
    let json = private::read_file(&file, layout::RUN_BYTES_MAX).ok()?;
    let live = is_locked(path);
    let (run, mut problems) = run_of(&json, "its run.json");
    let (manifest, unreadable) = Manifest::read(path, live);
    problems.extend(unreadable);
    problems.extend(manifest.check(&file).err().map(|error| error.to_string()));
    if run.ended.is_none() && !live {
        problems.push("its recorder ended without finishing".to_string());
    }
    let id = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bytes = folder_bytes(path);
    Some(RunSummary { id, path: path.to_path_buf(), run, bytes, live, problem: problems.into_iter().next() })
}

/// Size of the files in a folder.
pub(crate) fn folder_bytes(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files
        .filter_map(|entry| entry.metadata().ok())
        .filter(|metadata| metadata.is_file())
        .map(|metadata| metadata.len())
        .sum()
}

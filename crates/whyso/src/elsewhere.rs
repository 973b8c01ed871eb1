//! Runs in storage: found by the same names as runs in a folder, and copied here before they are read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use whyso_control::Error;
use whyso_record::RunSummary;
use whyso_storage::{Bucket, Place, is_place};

/// The place that `--runs` names; `None` for a folder.
pub(crate) fn place_of(runs: &Path) -> Result<Option<Place>> {
    match runs.to_str().filter(|text| is_place(text)) {
        Some(text) => Ok(Some(Place::parse(text)?)),
        None => Ok(None),
    }
}

/// A folder for what is written: storage can't be recorded into.
pub(crate) fn parse_folder(name: OsString) -> Result<PathBuf, String> {
    match name.to_str().is_some_and(is_place) {
        true => {
            Err("a run is recorded into a folder: name one, then send it with `whyso runs push`".to_string())
        }
        false => Ok(PathBuf::from(name)),
    }
}

/// The runs in a folder or in storage, oldest first.
pub(crate) fn list_runs(runs: &Path) -> Result<Vec<RunSummary>> {
    match place_of(runs)? {
        Some(place) => Ok(Bucket::open(&place)?.list()?),
        None => Ok(whyso_record::list_runs(runs)?),
    }
}

/// Copies a run that lies in storage, and returns the folder of the copy. `None`: neither names storage.
pub(crate) fn copy_of(run: &Path, runs: &Path) -> Result<Option<PathBuf>> {
    if let Some(place) = place_of(run)? {
        let Some((place, id)) = place.split_run() else {
            bail!(Error::Plan(format!(
                "{place} is a whole bucket: add the id of a run, or name the bucket with --runs"
            )));
        };
        return Ok(Some(Bucket::open(&place)?.copy(&id)?));
    }
    let Some(place) = place_of(runs)? else { return Ok(None) };
    let bucket = Bucket::open(&place)?;
    let id = crate::run_names::find(&run.to_string_lossy(), &bucket.list()?, runs)?.id.clone();
    Ok(Some(bucket.copy(&id)?))
}

/// Refuses what is only done to runs in a folder.
pub(crate) fn refuse_place(runs: &Path) -> Result<()> {
    match place_of(runs)? {
        Some(place) => bail!(Error::Plan(format!(
            "runs in {place} stay as they are: fetch some with `whyso runs pull`, and name their folder with --runs"
        ))),
        None => Ok(()),
    }
}

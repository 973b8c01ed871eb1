//! Finds and opens recordings.

use std::path::{Path, PathBuf};

use anyhow::Result;
use whyso_record::{Recording, list_runs};

pub(crate) use crate::run_names::LATEST;
use crate::run_names::find;

/// Opens a run by its folder, or by what [`path_of`] understands. Warns of problems with it.
pub(crate) fn open(run: &Path, runs: &Path) -> Result<(Recording, PathBuf)> {
    let path = path_of(run, runs)?;
    let recording = Recording::open(&path)?;
    for problem in recording.problems() {
        print_stderr!("whyso: warning: {problem}");
    }
    Ok((recording, path))
}

/// The folder of a run: a folder as it is, else within the folder of runs an id, the begin of one id, "latest" or "latest~2". A run in
/// storage is copied first.
pub(crate) fn path_of(run: &Path, runs: &Path) -> Result<PathBuf> {
    if run.is_dir() {
        return Ok(run.to_path_buf());
    }
    let within = runs.join(run);
    if within.is_dir() && !run.as_os_str().is_empty() {
        return Ok(within);
    }
    if let Some(copy) = crate::elsewhere::copy_of(run, runs)? {
        return Ok(copy);
    }
    Ok(find(&run.to_string_lossy(), &list_runs(runs)?, runs)?.path.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders with a `run.json` each, one begun after the other.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for id in ["20260101-1000-1", "20260101-1100-2", "20260102-0900-3"] {
            let run = folder.path().join(id);
            std::fs::create_dir(&run).unwrap();
            std::fs::write(run.join("run.json"), format!("{{\"format\":3,\"id\":\"{id}\"}}")).unwrap();
        }
        folder
    }

    fn found_name(run: &str, folder: &Path) -> Result<String> {
        path_of(Path::new(run), folder).map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
    }

    #[test]
    fn a_run_is_named_by_its_id_the_begin_of_it_or_how_long_ago_it_was() {
        let folder = folder();
        let found = |run| found_name(run, folder.path()).map_err(|error| error.to_string());
        assert_eq!(found("20260101-1100-2").unwrap(), "20260101-1100-2");
        assert_eq!(found("20260102").unwrap(), "20260102-0900-3");
        assert_eq!(found("latest").unwrap(), "20260102-0900-3");
        assert_eq!(found("latest~0").unwrap(), "20260102-0900-3");
        assert_eq!(found("latest~2").unwrap(), "20260101-1000-1");
        let error = found("latest~3").unwrap_err();
        assert!(error.contains("has 3 runs") && error.contains("latest~2"), "{error}");
        let error = found("20260101").unwrap_err();
        assert!(
            error.contains("2 runs begin with 20260101, such as 20260101-1000-1, 20260101-1100-2"),
            "{error}"
        );
        assert!(found("other").unwrap_err().contains("there is no run other"));
        assert!(found("").is_err());
    }

    #[test]
    fn a_folder_without_runs_says_how_to_get_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            found_name("latest", folder.path()).unwrap_err().to_string().contains("`whyso run` records one")
        );
    }
}

//! Finds and opens recordings.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use whyso_control::Error;
use whyso_record::{Recording, list_runs};

/// The run that began last, and what stands before a number of runs to go back.
pub(crate) const LATEST: &str = "latest";
const BACK: &str = "latest~";
/// Runs that are named where a text could mean any of them.
const NAMED_MAX: usize = 4;

/// Opens a run by its folder, or by what [`path_of`] understands. Warns of problems with it.
pub(crate) fn open(run: &Path, runs: &Path) -> Result<(Recording, PathBuf)> {
    let path = path_of(run, runs)?;
    let recording = Recording::open(&path)?;
    for problem in recording.problems() {
        print_stderr!("whyso: warning: {problem}");
    }
    Ok((recording, path))
}

/// The folder of a run: a folder as it is, else within the folder of runs an id, the begin of one id, "latest" or "latest~2".
pub(crate) fn path_of(run: &Path, runs: &Path) -> Result<PathBuf> {
    if run.is_dir() {
        return Ok(run.to_path_buf());
    }
    let within = runs.join(run);
    if within.is_dir() && !run.as_os_str().is_empty() {
        return Ok(within);
    }
    let typed = run.to_string_lossy();
    if typed == LATEST {
        return before_last(0, runs);
    }
    if let Some(back) = typed.strip_prefix(BACK).and_then(|back| back.parse().ok()) {
        return before_last(back, runs);
    }
    by_begin(&typed, runs)
}

fn before_last(back: usize, runs: &Path) -> Result<PathBuf> {
    let all = list_runs(runs)?;
    if all.is_empty() {
        bail!(Error::Plan(format!(
            "there is no run in {} yet: `whyso run` records one, and --runs names another folder",
            runs.display()
        )));
    }
    let Some(at) = all.len().checked_sub(back + 1) else {
        bail!(Error::Plan(format!(
            "{1} has {0}: the first is latest~{2}",
            whyso_words::count(all.len() as u64, "run"),
            runs.display(),
            all.len() - 1
        )));
    };
    Ok(all[at].path.clone())
}

fn by_begin(begin: &str, runs: &Path) -> Result<PathBuf> {
    let all = if begin.is_empty() { Vec::new() } else { list_runs(runs)? };
    let mut found = all.iter().filter(|run| run.id.starts_with(begin));
    match (found.next(), found.count()) {
        (Some(only), 0) => Ok(only.path.clone()),
        (Some(first), more) => {
            let others = all.iter().filter(|run| run.id.starts_with(begin)).skip(1).take(NAMED_MAX - 1);
            let ids: Vec<&str> = [first].into_iter().chain(others).map(|run| run.id.as_str()).collect();
            bail!(Error::Plan(format!(
                "{} begin with {begin}, such as {}: give more of the id",
                whyso_words::count(more as u64 + 1, "run"),
                ids.join(", ")
            )))
        }
        (None, _) => {
            bail!(Error::Plan(format!(
                "there is no run {begin}: `whyso runs` lists those in {}",
                runs.display()
            )))
        }
    }
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

    fn find(run: &str, folder: &Path) -> Result<String> {
        path_of(Path::new(run), folder).map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
    }

    #[test]
    fn a_run_is_named_by_its_id_the_begin_of_it_or_how_long_ago_it_was() {
        let folder = folder();
        let found = |run| find(run, folder.path()).map_err(|error| error.to_string());
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
        assert!(find("latest", folder.path()).unwrap_err().to_string().contains("`whyso run` records one"));
    }
}

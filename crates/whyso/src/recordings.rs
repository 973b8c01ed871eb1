//! Opens recordings.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use whyso_control::Error;
use whyso_record::Recording;

/// Opens a run by its folder, or by its id in the folder of runs. Warns of problems with it.
pub(crate) fn open(run: &Path, runs: &Path) -> Result<(Recording, PathBuf)> {
    let path = if run.is_dir() { run.to_path_buf() } else { runs.join(run) };
    if !path.is_dir() {
        bail!(Error::Plan(format!(
            "there is no run {}: `whyso runs` lists those in {}",
            run.display(),
            runs.display()
        )));
    }
    let recording = Recording::open(&path)?;
    for problem in recording.problems() {
        print_stderr!("whyso: warning: {problem}");
    }
    Ok((recording, path))
}

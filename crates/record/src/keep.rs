//! What is done to recordings as a whole: they are removed, kept within a bound, and checked for changes since they were read.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::folder::{FolderScan, folder_bytes};
use crate::layout;
use crate::lock::is_locked;
use crate::prune::prune;
use crate::sweep::{GOING, sweep};
use crate::write::Disk;

/// A number that differs once a file of the recording has come, gone, grown or been written again. A folder that is not there has one, too.
pub fn stamp(dir: &Path) -> u64 {
    FolderScan::of(dir).stamp
}

/// Removes the recording in `dir`, with everything that lies in its folder. Gives the bytes that it took.
///
/// # Errors
/// The folder is no recording, is being recorded, is a link, or can't be removed.
pub fn remove_run(dir: &Path) -> Result<u64> {
    ended(dir)?;
    if let Some(runs) = dir.parent() {
        // A recording of this name that was half removed would be in the way.
        sweep(runs);
    }
    let io = |cause| Error::io(dir, cause);
    let bytes = folder_bytes(dir);
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    // First it is a recording no more, then its files go: a crash in between leaves no half of one.
    let going = dir.with_file_name(format!("{GOING}{name}"));
    fs::rename(dir, &going).map_err(io)?;
    fs::remove_dir_all(&going).map_err(|cause| Error::io(&going, cause))?;
    Ok(bytes)
}

/// Removes the oldest detail of a recording that has ended, until it is within `bytes_max` or only its newest segment has detail left: see
/// `docs/reference/recording.md`. Gives the bytes that were freed.
///
/// # Errors
/// The folder is no recording, is being recorded, or can't be written.
pub fn prune_run(dir: &Path, bytes_max: u64) -> Result<u64> {
    ended(dir)?;
    let before = folder_bytes(dir);
    // The lock keeps others away that would remove or record meanwhile.
    let disk = Disk::create(dir, 0).map_err(|error| match error {
        Error::Exists(dir) => Error::Live(dir),
        other => other,
    })?;
    // A recorder that was killed could not give it back.
    disk.remove(&dir.join(layout::RESERVE))?;
    prune(&disk, bytes_max)?;
    disk.unlock()?;
    Ok(before.saturating_sub(folder_bytes(dir)))
}

/// A recording that nobody works on.
fn ended(dir: &Path) -> Result<()> {
    let is_folder = fs::symlink_metadata(dir).is_ok_and(|about| about.is_dir());
    if !is_folder || !dir.join(layout::RUN).is_file() {
        return Err(Error::NotARecording(PathBuf::from(dir)));
    }
    match is_locked(dir) {
        true => Err(Error::Live(PathBuf::from(dir))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Recorder};

    #[test]
    fn a_recording_goes_whole_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("one");
        assert!(matches!(remove_run(&dir), Err(Error::NotARecording(_))));
        let recorder = Recorder::create(&dir, Options::default()).unwrap();
        assert!(matches!(remove_run(&dir), Err(Error::Live(_))));
        assert!(matches!(prune_run(&dir, 0), Err(Error::Live(_))));
        recorder.finish().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&dir, &link).unwrap();
        assert!(matches!(remove_run(&link), Err(Error::NotARecording(_))));
        assert!(dir.is_dir());
        assert!(remove_run(&dir).unwrap() > 0);
        assert!(!dir.exists());
        let plain = folder.path().join("plain");
        fs::create_dir(&plain).unwrap();
        assert!(matches!(remove_run(&plain), Err(Error::NotARecording(_))));
        assert!(plain.is_dir());
    }

    #[test]
    fn the_stamp_changes_with_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let before = stamp(folder.path());
        assert_eq!(before, stamp(folder.path()));
        fs::write(folder.path().join("a"), "1").unwrap();
        let with_a_file = stamp(folder.path());
        assert_ne!(before, with_a_file);
        fs::write(folder.path().join("a"), "12").unwrap();
        assert_ne!(with_a_file, stamp(folder.path()));
    }
}

//! Folders of cases.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder in memory, where the machine has one.
pub(super) fn temporary() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.expect("a temporary folder")
}

/// Writes files into a folder of their own within `parent`.
pub(super) fn write(parent: &Path, name: &str, files: &[(String, Vec<u8>)]) -> PathBuf {
    let dir = parent.join(name);
    fs::create_dir_all(&dir).expect("a folder");
    for (name, content) in files {
        // A name that the file system refuses is no case.
        let _ = fs::write(dir.join(name), content);
    }
    dir
}

//! Recordings that come from elsewhere: they are put together in a folder of their own, and appear among the runs whole or not at all.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result};
use crate::private;
use crate::sweep::sweep;

/// What is being imported has this before its name.
const COMING: &str = ".importing-";
const COMING_MAX: usize = 100;
/// Of a run or a file, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// Whether a folder or a file of a recording may be called so: the name leads nowhere else.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let is_path = name.is_empty() || name == "." || name == ".." || name.contains('/');
    !is_path && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control)
}

/// The folder that recordings are put together in. It is locked while somebody does, and goes at the end.
pub(crate) struct Coming {
    pub(crate) dir: PathBuf,
    _lock: File,
}

impl Coming {
    pub(crate) fn create(runs: &Path) -> Result<Coming> {
        remove_left_over(runs);
        sweep(runs);
        for number in 0..COMING_MAX {
            let dir = runs.join(format!("{COMING}{number}"));
            match private::create_new_folder(&dir) {
                Err(cause) if cause.kind() == ErrorKind::AlreadyExists => continue,
                created => created.map_err(|cause| Error::io(&dir, cause))?,
            }
            // Before it is locked, another import may take it for one that was left over.
            let Ok(lock) = File::open(&dir) else { continue };
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() && dir.is_dir() {
                return Ok(Coming { dir, _lock: lock });
            }
        }
        Err(Error::Backup(format!(
            "{COMING_MAX} imports into {} are under way: try again later",
            runs.display()
        )))
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        // What is left in it is of no use; why the import failed matters more than whether this worked.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes what imports left that were killed: nobody holds their locks.
fn remove_left_over(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let is_coming = entry.file_name().as_encoded_bytes().starts_with(COMING.as_bytes());
        let Some(lock) = is_coming.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

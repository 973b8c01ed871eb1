//! The files of a recording's folder, by what the file system knows of them. None of them is opened.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::layout;

/// A file as it is. A file with another content has another identity, because no program can choose a file's time of change (`ctime`).
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileIdentity {
    pub(crate) fn of(about: &Metadata) -> FileIdentity {
        FileIdentity {
            device: about.dev(),
            inode: about.ino(),
            bytes: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }

    /// Whether the file had not changed for `quiet` at the moment `now`. Two changes within one tick of the file system's clock leave
    /// the same times. So a file that has just changed may change again and keep its identity.
    pub(crate) fn is_settled(&self, now: SystemTime, quiet: Duration) -> bool {
        let (Ok(now), Ok(seconds), Ok(nanoseconds)) =
            (now.duration_since(UNIX_EPOCH), u64::try_from(self.changed.0), u32::try_from(self.changed.1))
        else {
            return false;
        };
        Duration::new(seconds, nanoseconds) + quiet < now
    }
}

/// What one pass over a recording's folder finds.
#[derive(Default)]
pub(crate) struct FolderScan {
    /// `None`: there is none, or it is no plain file.
    pub(crate) run: Option<FileIdentity>,
    pub(crate) manifest: Option<FileIdentity>,
    /// Size of the plain files.
    pub(crate) bytes: u64,
    /// See [`crate::stamp`].
    pub(crate) stamp: u64,
    pub(crate) has_labels: bool,
}

impl FolderScan {
    /// Scans a folder. One that can't be read counts as empty.
    pub(crate) fn of(dir: &Path) -> FolderScan {
        let mut scan = FolderScan::default();
        let mut files: Vec<(OsString, u64, Option<SystemTime>)> = Vec::new();
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let name = entry.file_name();
            if about.is_file() {
                scan.bytes += about.len();
                match name.to_str() {
                    Some(layout::RUN) => scan.run = Some(FileIdentity::of(&about)),
                    Some(layout::LABELS) => scan.has_labels = true,
                    Some(layout::MANIFEST) => scan.manifest = Some(FileIdentity::of(&about)),
                    _ => {}
                }
            }
            files.push((name, about.len(), about.modified().ok()));
        }
        files.sort_unstable();
        let mut hasher = DefaultHasher::new();
        files.hash(&mut hasher);
        scan.stamp = hasher.finish();
        scan
    }
}

/// Size of the files in a folder.
pub(crate) fn folder_bytes(dir: &Path) -> u64 {
    FolderScan::of(dir).bytes
}

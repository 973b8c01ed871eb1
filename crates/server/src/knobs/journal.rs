//! What was changed on which server, on our own disk, so that a crash does not lose it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use serde::{Deserialize, Serialize};

use super::pfs::SetupChange;
use crate::error::{Result, io};
use crate::paths::unique_name;

/// Held while values are handed from one journal to another.
const FOLDER_LOCK: &str = "all.lock";
const UNDO_PREFIX: &str = "undo";
const ALONE_BOUND: Duration = Duration::from_secs(30);

fn open_lock(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// One life of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServerId {
    /// `server_uuid` or `server_uid`, where it has one, and host name, port, socket and data folder. By its own name alone a copy of its data
    /// would be the same server, and so would two MariaDB servers of one machine.
    pub(super) identity: String,
    /// Seconds since 1970, by the server's clock.
    pub(super) started_s: i64,
}

impl ServerId {
    /// The start is reckoned from two readings in whole seconds, so it wavers.
    const WAVER_S: u64 = 3;

    /// Journals of older versions have its own name alone.
    pub(super) fn is_same_server(&self, other: &ServerId) -> bool {
        let (short, long) =
            if self.identity.len() < other.identity.len() { (self, other) } else { (other, self) };
        long.identity
            .strip_prefix(&short.identity)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    }

    pub(super) fn is_same_life(&self, other: &ServerId) -> bool {
        self.is_same_server(other) && self.started_s.abs_diff(other.started_s) <= ServerId::WAVER_S
    }
}

/// One changed knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub name: String,
    pub before: String,
    /// As the server shows it; `None` where we crashed between writing this down and hearing of it.
    pub after: Option<String>,
    /// Further values that this run sets in turn, as the server shows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) in_turn: Vec<String>,
    /// Grows from change to change of all runs that share the folder; 0 in journals of older versions.
    #[serde(default)]
    pub(super) order: u64,
}

impl Change {
    /// Whether the server may have this value by this change. Where nobody heard of the change's outcome, it may have any.
    pub(super) fn may_have_set(&self, value: &str) -> bool {
        self.after.as_deref().is_none_or(|after| after == value)
            || self.in_turn.iter().any(|other| other == value)
    }

    /// Whether this change of another run is later than `other`. Journals of older versions have no order: there, a
    /// change is later if it found the value that the other set.
    pub(super) fn is_later_than(&self, other: &Change) -> bool {
        let is_later = match (self.order, other.order) {
            (0, _) | (_, 0) => Some(&self.before) == other.after.as_ref(),
            (order, other_order) => order > other_order,
        };
        self.name == other.name && is_later
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) server: ServerId,
    pub(super) changes: Vec<Change>,
    /// Of the Performance Schema's setup tables.
    #[serde(default)]
    pub(super) setup: Vec<SetupChange>,
}

impl Journal {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.setup.is_empty()
    }
}

impl Journal {
    pub(super) fn new_path(folder: &Path) -> PathBuf {
        folder.join(format!("{}.json", unique_name(UNDO_PREFIX)))
    }

    /// Reads it again: another run that ended meanwhile may have handed values over. `None` where it is not there.
    pub(super) fn read(path: &Path) -> Option<Journal> {
        serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
    }

    pub(super) fn lock_path(path: &Path) -> PathBuf {
        path.with_extension("lock")
    }

    /// Takes a journal for this process, until the file is closed. `None` where another holds it.
    ///
    /// A lock, and no process's number: that says nothing in another container or on another host with the same home.
    pub(super) fn own(path: &Path) -> Result<Option<File>> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder).map_err(io("cannot make the folder", folder))?;
        let lock = Journal::lock_path(path);
        let file = open_lock(&lock).map_err(io("cannot make the lock", &lock))?;
        Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file))
    }

    /// Keeps all other runs from changing journals of this folder, until the file is closed.
    ///
    /// # Errors
    /// Another run held the lock for half a minute.
    pub(super) fn alone(folder: &Path) -> Result<File> {
        std::fs::create_dir_all(folder).map_err(io("cannot make the folder", folder))?;
        let path = folder.join(FOLDER_LOCK);
        let file = open_lock(&path).map_err(io("cannot make the lock", &path))?;
        let deadline = Instant::now() + ALONE_BOUND;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                Err(errno) => return Err(io("another run of whyso holds the lock", &path)(errno.into())),
            }
        }
    }

    /// Removes it, once nothing is left to be put back.
    pub(super) fn remove(path: &Path) -> Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(io("cannot remove the undo journal", path)(error))
            }
            _ => Ok(()),
        }
    }

    /// On disk, whole, when this returns.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder).map_err(io("cannot make the folder", folder))?;
        let unfinished = path.with_extension("new");
        let write = || -> std::io::Result<()> {
            use std::io::Write;
            let text = serde_json::to_string_pretty(self)?;
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&unfinished)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&unfinished, path)?;
            std::fs::File::open(folder)?.sync_all()
        };
        write().map_err(|error| {
            // What could not be written is of no use; why matters more than whether this worked.
            let _ = std::fs::remove_file(&unfinished);
            io("cannot write the undo journal", path)(error)
        })
    }

    /// Removes locks and unfinished files of runs that were killed before they had a journal, or just after it was removed.
    pub(super) fn sweep(folder: &Path) -> Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        let _alone = Journal::alone(folder)?;
        for entry in std::fs::read_dir(folder).map_err(io("cannot list", folder))?.flatten() {
            let path = entry.path();
            let is_ours = entry.file_name().to_string_lossy().starts_with(UNDO_PREFIX);
            if !is_ours || path.extension().is_none_or(|extension| extension == "json") {
                continue;
            }
            let Some(_own) = Journal::own(&path)? else { continue };
            let _ = std::fs::remove_file(path.with_extension("new"));
            if !path.with_extension("json").exists() {
                let _ = std::fs::remove_file(Journal::lock_path(&path));
            }
        }
        Ok(())
    }

    /// The journals in a folder; what can't be understood is left where it is.
    pub(super) fn all(folder: &Path) -> Result<Vec<(PathBuf, Journal)>> {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io("cannot list", folder)(error)),
        };
        let mut journals = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            if let Ok(journal) = serde_json::from_str(&text) {
                journals.push((path, journal));
            }
        }
        journals.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(journals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_a_servers_data_is_another_server() {
        let of = |identity: &str, started_s| ServerId { identity: identity.to_string(), started_s };
        let one = of("uid host 0 /a/socket /a/data", 100);
        assert!(one.is_same_life(&of("uid host 0 /a/socket /a/data", 102)));
        assert!(!one.is_same_life(&of("uid host 0 /a/socket /a/data", 104)), "it was restarted");
        assert!(!one.is_same_server(&of("uid host 0 /b/socket /b/data", 100)));
        // Written by an older version, which knew it by its own name.
        assert!(one.is_same_server(&of("uid", 100)) && of("uid", 100).is_same_server(&one));
        assert!(!of("uid2 host", 100).is_same_server(&of("uid", 100)));
    }
}

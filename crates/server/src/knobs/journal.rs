//! What was changed on which server, on our own disk, so that a crash does not lose it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::pfs::SetupChange;
use crate::error::{Result, io};
use crate::paths::unique_name;
use crate::throwaway::state::ProcessId;

/// One life of one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServerId {
    /// `server_uuid`, `server_uid`, or host name, port, socket and data folder where it has none.
    pub(super) identity: String,
    /// Seconds since 1970, by the server's clock.
    pub(super) started_s: i64,
}

impl ServerId {
    /// The start is reckoned from two readings in whole seconds, so it wavers.
    const WAVER_S: u64 = 3;

    pub(super) fn is_same_life(&self, other: &ServerId) -> bool {
        self.identity == other.identity && self.started_s.abs_diff(other.started_s) <= ServerId::WAVER_S
    }
}

/// One changed knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub name: String,
    pub before: String,
    /// As the server shows it; `None` where we crashed between writing this down and hearing of it.
    pub after: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) server: ServerId,
    pub(super) owner: Option<ProcessId>,
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
        folder.join(format!("{}.json", unique_name("undo")))
    }

    /// On disk, whole, when this returns.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder).map_err(io("cannot make the folder", folder))?;
        let unfinished = path.with_extension("new");
        let write = || -> std::io::Result<()> {
            use std::io::Write;
            use std::os::unix::fs::OpenOptionsExt;
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
        write().map_err(io("cannot write the undo journal", path))
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

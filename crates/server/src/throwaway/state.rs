//! Who owns a server's folder: what a sweep after a crash goes by.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, io};

const FILE: &str = "state.json";

/// A process that can't be mistaken for another: numbers are used again, start times are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub(crate) pid: u32,
    /// Clock ticks after boot, field 22 of proc(5)'s stat.
    pub(crate) start_ticks: u64,
    pub(crate) boot_id: String,
    pub(crate) executable: PathBuf,
    /// Effective user.
    pub(crate) uid: u32,
}

impl ProcessId {
    /// The process that has this number now; `None` where there is none, or only its remains.
    pub(crate) fn of(pid: u32) -> Option<ProcessId> {
        use std::os::unix::fs::MetadataExt;
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        let (_, after_name) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
        let is_zombie = matches!(fields.first(), Some(&"Z" | &"X"));
        if is_zombie {
            return None;
        }
        Some(ProcessId {
            pid,
            start_ticks: fields.get(22 - 3)?.parse().ok()?,
            boot_id: boot_id(),
            executable: std::fs::read_link(folder.join("exe")).unwrap_or_default(),
            uid: std::fs::metadata(&folder).ok()?.uid(),
        })
    }

    /// Whether the very same process still runs. The executable may have been replaced on disk
    /// meanwhile, which the kernel shows as a suffix.
    pub(crate) fn is_alive(&self) -> bool {
        let Some(now) = ProcessId::of(self.pid) else { return false };
        let plain = |path: &Path| path.to_string_lossy().trim_end_matches(" (deleted)").to_string();
        now.start_ticks == self.start_ticks
            && now.boot_id == self.boot_id
            && now.uid == self.uid
            && plain(&now.executable) == plain(&self.executable)
    }
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// `None` where the owner could not tell, which a sweep takes for alive.
    pub(super) owner: Option<ProcessId>,
    pub(super) server: Option<ProcessId>,
    /// Where the server outlives who started it, until it is stopped on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<KeptAs>,
}

/// What a kept server is called, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptAs {
    pub(crate) name: String,
    /// Such as "MySQL 9.7.4".
    pub(crate) server: String,
}

impl State {
    pub(super) fn of_this_process() -> State {
        State { owner: ProcessId::of(std::process::id()), server: None, kept: None }
    }

    /// Writes the state so that a reader sees the old one or the new one.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        let written = folder.join(format!("{FILE}.new"));
        let text =
            serde_json::to_string_pretty(self).map_err(|error| io("cannot write", &path)(error.into()))?;
        std::fs::write(&written, text).map_err(io("cannot write", &written))?;
        std::fs::rename(&written, &path).map_err(io("cannot write", &path))
    }

    /// `Ok(None)` where there is none.
    pub(super) fn read(folder: &Path) -> Result<Option<State>> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io("cannot read", &path)(error)),
        };
        serde_json::from_str(&text).map(Some).map_err(|error| Error::Io {
            what: "cannot understand",
            path,
            source: error.into(),
        })
    }
}

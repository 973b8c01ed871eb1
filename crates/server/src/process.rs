//! Processes, by more than their number, which others had before and get later.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

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

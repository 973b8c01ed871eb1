//! Clears up what a crash of whyso left behind.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::home::FOLDER_PREFIX;
use super::lock::{self, Owner};
use super::state::State;
use crate::error::{Result, io};
use crate::process::ProcessId;

/// How long an orphaned server gets to end, first by itself and then killed.
const END_BOUND: Duration = Duration::from_secs(5);
/// A folder is locked right after it is created.
const LOCKED_WITHIN: Duration = Duration::from_secs(60);

/// What a sweep did with one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    pub folder: PathBuf,
    /// The server that still ran and was ended.
    pub ended_pid: Option<u32>,
    /// Why the folder was left, where it was.
    pub left_because: Option<String>,
}

/// Removes the folders of throw-away servers below `parent` whose owner is gone, and ends their servers. A process is
/// ended only if number, start time, boot, executable and user are those that its owner wrote down. A folder is removed
/// only if it is ours and closed to others.
///
/// Folders whose owner lives are not mentioned in the result.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io) where `parent` can't be listed; one that does not exist is empty.
pub fn sweep(parent: &Path) -> Result<Vec<Swept>> {
    let entries = match std::fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io("cannot list", parent)(error)),
    };
    let mut swept = Vec::new();
    for entry in entries.flatten() {
        let is_candidate = entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX);
        if is_candidate && is_ours(&entry.path()) {
            swept.extend(sweep_one(&entry.path()));
        }
    }
    Ok(swept)
}

pub(super) fn is_ours(folder: &Path) -> bool {
    let Ok(facts) = std::fs::symlink_metadata(folder) else { return false };
    let closed_to_others = facts.permissions().mode() & 0o077 == 0;
    facts.is_dir() && closed_to_others && facts.uid() == rustix::process::geteuid().as_raw()
}

fn sweep_one(folder: &Path) -> Option<Swept> {
    let left =
        |why: String| Some(Swept { folder: folder.to_path_buf(), ended_pid: None, left_because: Some(why) });
    let state = State::read(folder);
    let _ours = match (lock::owner(folder), &state) {
        (Owner::Lives, _) => return None,
        // a server that was started to stay belongs to nobody
        (_, Ok(Some(State { kept: Some(_), .. }))) => return None,
        (Owner::Gone(lock), _) => lock,
        (Owner::Unknown, Ok(Some(_))) => {
            return left(
                "an older version of whyso made it: remove it by hand once its server has ended".to_string(),
            );
        }
        // its owner is between making the folder and locking it, or crashed there: then it is empty
        (Owner::Unknown, _) => {
            return (is_old(folder) && std::fs::remove_dir(folder).is_ok()).then(|| Swept {
                folder: folder.to_path_buf(),
                ended_pid: None,
                left_because: None,
            });
        }
    };
    let server = match state {
        Ok(state) => state.and_then(|state| state.server),
        Err(error) => return left(error.to_string()),
    };
    let mut ended_pid = None;
    if let Some(server) = server.filter(ProcessId::is_alive) {
        if !end(&server, END_BOUND) {
            return left(format!("its server, process {}, can't be ended", server.pid));
        }
        ended_pid = Some(server.pid);
    }
    if lock::runs(folder) {
        return left("its server still runs, in another container or on another host".to_string());
    }
    // the supervisor may be removing it too
    match std::fs::remove_dir_all(folder) {
        Err(error) if folder.exists() => left(format!("it can't be removed: {error}")),
        _ => Some(Swept { folder: folder.to_path_buf(), ended_pid, left_because: None }),
    }
}

/// Whether nobody can be about to lock it any more.
fn is_old(folder: &Path) -> bool {
    let modified = std::fs::symlink_metadata(folder).and_then(|about| about.modified());
    modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > LOCKED_WITHIN))
}

/// Ends the process through a handle that was opened before its identity was checked once more, so that no other can be
/// hit. The process is first asked to end, then killed, within `bound` each. Returns whether it is gone.
pub(super) fn end(server: &ProcessId, bound: Duration) -> bool {
    let Some(pid) = Pid::from_raw(server.pid as i32) else { return false };
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return !server.is_alive() };
    if !server.is_alive() {
        return true;
    }
    for signal in [Signal::TERM, Signal::KILL] {
        let _ = pidfd_send_signal(&handle, signal);
        let deadline = Instant::now() + bound;
        while Instant::now() < deadline {
            if !server.is_alive() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    !server.is_alive()
}

//! The folder of a throw-away server, and who watches over it.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::lock;
use super::state::{KeptAs, State};
use super::supervise::Supervisor;
use crate::cpus::{Cgroup, CpuSet, Means};
use crate::error::{Error, Result, io};
use crate::paths::{FileSystem, cache_dir, file_system, unique_name};
use crate::process::ProcessId;

/// Folders of throw-away servers begin with this.
pub(crate) const FOLDER_PREFIX: &str = "whyso-server";
/// Name of the socket in it.
pub(super) const SOCKET: &str = "s.sock";
pub(super) const LOG: &str = "server.log";
/// `sun_path` of unix(7), with its terminating zero.
const MAX_SOCKET_PATH: usize = 107;

/// Removes everything when dropped; the supervisor does where we can't any more.
pub(super) struct Home {
    pub(super) folder: PathBuf,
    pub(super) supervisor: Supervisor,
    pub(super) file_system: FileSystem,
    pub(super) cgroups: Vec<Cgroup>,
    pub(super) means: Option<Means>,
    state: State,
    /// The folder is ours as long as this is open.
    _lock: File,
}

/// Returns the default folder of throw-away servers: the first that lies on a disk and can be written. It prefers
/// `~/.cache/whyso`, so that snapshots can be reflinked, to `/var/tmp`.
///
/// # Errors
///
/// [`Error::Binary`] where both lie in memory or can't be written.
pub fn default_parent_dir() -> Result<PathBuf> {
    let mut candidates = Vec::new();
    if let Ok(cache) = cache_dir() {
        candidates.push(cache.join("servers"));
    }
    candidates.push(PathBuf::from("/var/tmp"));
    for candidate in candidates {
        let usable = std::fs::create_dir_all(&candidate).is_ok()
            && rustix::fs::access(&candidate, rustix::fs::Access::WRITE_OK).is_ok()
            && candidate.as_os_str().len() + 60 < MAX_SOCKET_PATH;
        if usable && file_system(&candidate).is_ok_and(|on| !on.in_memory) {
            return Ok(candidate);
        }
    }
    Err(Error::Binary(
        "neither ~/.cache/whyso nor /var/tmp is a folder on a disk that we may write to: name one for the server".to_string(),
    ))
}

/// What the server may use of the machine.
#[derive(Default)]
pub(super) struct Limits<'a> {
    pub(super) cpus: Option<&'a CpuSet>,
    pub(super) memory_bytes: Option<u64>,
    /// No quota of CPU time bounds it, although one bounds this process.
    pub(super) is_without_quota: bool,
}

impl Home {
    pub(super) fn create(parent: Option<&Path>, allow_in_memory: bool, limits: &Limits) -> Result<Home> {
        let parent = match parent {
            Some(parent) => {
                std::fs::create_dir_all(parent).map_err(io("cannot make the folder", parent))?;
                parent.canonicalize().map_err(io("cannot find the folder", parent))?
            }
            None => default_parent_dir()?,
        };
        let file_system = file_system(&parent)?;
        if file_system.in_memory && !allow_in_memory {
            return Err(Error::Binary(format!(
                "'{}' lies in memory ({}), where fsync costs nothing and findings would be false: name a folder on a disk, or ask for memory explicitly",
                parent.display(),
                file_system.kind
            )));
        }
        let name = unique_name(FOLDER_PREFIX);
        let folder = parent.join(&name);
        if folder.join(SOCKET).as_os_str().len() > MAX_SOCKET_PATH {
            return Err(Error::Binary(format!(
                "the folder '{}' has too long a path for a Unix socket in it (at most {MAX_SOCKET_PATH} bytes): name one with a shorter path",
                parent.display()
            )));
        }
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(io("cannot make the server's folder", &folder))?;
        let home = lock::own(&folder)
            .and_then(|lock| Home::furnish(folder.clone(), &name, file_system, limits, lock));
        if home.is_err() {
            let _ = std::fs::remove_dir_all(&folder);
        }
        home
    }

    fn furnish(
        folder: PathBuf,
        name: &str,
        file_system: FileSystem,
        limits: &Limits,
        lock: File,
    ) -> Result<Home> {
        for below in ["data", "tmp"] {
            let path = folder.join(below);
            DirBuilder::new().mode(0o700).create(&path).map_err(io("cannot make the folder", &path))?;
        }
        let state = State::of_this_process();
        state.write(&folder)?;
        let mut cgroups: Vec<Cgroup> = Vec::new();
        let mut means = None;
        if limits.is_without_quota && limits.memory_bytes.is_some() {
            return Err(Error::Binary(
                "a server outside of a quota of CPU time can't have a bound on its memory".to_string(),
            ));
        }
        // In version 2, a process is in one group only.
        if limits.cpus.is_some() && limits.is_without_quota {
            let why_no_cgroup = "its group is the one without a quota".to_string();
            means = Some(Means::Affinity { why_no_cgroup });
        } else if let Some(cpus) = limits.cpus {
            means = Some(match Cgroup::create(name, cpus) {
                Ok(cgroup) => {
                    let means = Means::Cgroup { version: cgroup.version, path: cgroup.path.clone() };
                    cgroups.push(cgroup);
                    means
                }
                Err(why) => Means::Affinity { why_no_cgroup: why.to_string() },
            });
        }
        if let Some(bytes) = limits.memory_bytes {
            let bounded = Cgroup::bound_memory(name, bytes, cgroups.first());
            cgroups.extend(bounded.map_err(|why| {
                Error::Binary(format!(
                    "the server's memory can't be bounded here ({why}): leave out the bound"
                ))
            })?);
        }
        if limits.is_without_quota {
            cgroups.push(Cgroup::without_quota(name).map_err(|why| {
                Error::Binary(format!("the server can't be taken out of its quota of CPU time ({why})"))
            })?);
        }
        let paths: Vec<&Path> = cgroups.iter().map(|cgroup| cgroup.path.as_path()).collect();
        let supervisor = Supervisor::start(&folder, &paths)?;
        Ok(Home { folder, supervisor, file_system, cgroups, means, state, _lock: lock })
    }

    /// Leaves the folder to the server in it, which lives on: it is written down as kept, and nobody
    /// watches over it any more.
    pub(super) fn keep(mut self, kept: KeptAs) -> Result<()> {
        self.state.owner = None;
        self.state.kept = Some(kept);
        self.state.write(&self.folder)?;
        self.supervisor.end();
        // its end would remove the folder
        std::mem::forget(self);
        Ok(())
    }

    /// Writes down which server belongs to the folder, for a sweep after a crash.
    pub(super) fn note_server(&mut self, pid: Option<u32>) -> Result<()> {
        self.state.server = pid.and_then(ProcessId::of);
        self.state.write(&self.folder)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // first the folder: should it not be possible to the end, the next sweep finds it
        let _ = std::fs::remove_dir_all(&self.folder);
        self.supervisor.end();
    }
}

//! Servers of our own that outlive the process that started them, until they are stopped.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::child::prepare_server;
use super::home::{FOLDER_PREFIX, LOG, SOCKET, default_parent_dir};
use super::lock;
use super::state::{KeptAs, KeptNode, SavedCommand, State};
use super::sweep::{end, is_ours};
use super::{StartSpec, ThrowAway};
use crate::cluster::kind::{ClusterKind, Role};
use crate::cpus::affinity;
use crate::dsn::{DEFAULT_SCHEMA, Dsn};
use crate::error::{Error, Result, io};
use crate::process::ProcessId;

/// How long a kept server may take to shut down before it is killed.
const STOP_BOUND: Duration = Duration::from_secs(60);

/// A server that was started to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptServer {
    pub name: String,
    /// Such as "MySQL 9.7.4".
    pub server: String,
    pub folder: PathBuf,
    /// Its process; `None` where it has ended by itself.
    pub pid: Option<u32>,
    process: Option<ProcessId>,
    pub(crate) node: Option<KeptNode>,
}

impl KeptServer {
    /// `process`: while it runs.
    pub(super) fn of(kept: KeptAs, folder: PathBuf, process: Option<ProcessId>) -> KeptServer {
        let pid = process.as_ref().map(|process| process.pid);
        let KeptAs { name, server, node } = kept;
        KeptServer { name, server, folder, pid, process, node }
    }

    /// What is written down of it.
    pub(super) fn kept_as(&self) -> KeptAs {
        KeptAs { name: self.name.clone(), server: self.server.clone(), node: self.node.clone() }
    }

    /// How to reach it: user root, no password, schema `whyso`.
    pub fn dsn(&self) -> Dsn {
        Dsn::on_socket(self.folder.join(SOCKET), "root", DEFAULT_SCHEMA)
    }

    /// Ends its process; its data stay.
    pub(crate) fn end(&self) -> Result<()> {
        let name = &self.name;
        if let Some(process) = &self.process
            && !end(process, STOP_BOUND)
        {
            return Err(Error::Build(format!("the server '{name}', process {}, does not end", process.pid)));
        }
        if lock::runs(&self.folder) {
            return Err(Error::Build(format!(
                "the server '{name}' runs in another container or on another host: stop it there"
            )));
        }
        Ok(())
    }

    /// Ends it, and removes its folder.
    pub(crate) fn remove(&self) -> Result<StopOutcome> {
        self.end()?;
        std::fs::remove_dir_all(&self.folder).map_err(io("cannot remove", &self.folder))?;
        Ok(if self.process.is_some() { StopOutcome::Now } else { StopOutcome::Before })
    }

    /// Starts a node again on its data, once it has ended. Whether it answers is for the caller to find out.
    pub(crate) fn start_again(&self) -> Result<()> {
        let Some(node) = &self.node else {
            return Err(Error::Build(format!("the server '{}' is no node of a cluster", self.name)));
        };
        let path = self.folder.join(LOG);
        let open_log =
            || OpenOptions::new().create(true).append(true).open(&path).map_err(io("cannot write", &path));
        let lock = lock::for_server(&self.folder).map_err(io("cannot take the lock of", &self.folder))?;
        let inherited = lock.as_raw_fd();
        let affinity = (!node.cpus.is_empty()).then(|| affinity(&node.cpus));
        let prepare = move || {
            // SAFETY: the parent holds the file open across fork and exec.
            unsafe { prepare_server(inherited) }?;
            affinity.as_ref().map_or(Ok(()), |cpus| Ok(rustix::thread::sched_setaffinity(None, cpus)?))
        };
        let mut command = node.command.command();
        command.process_group(0).stdin(Stdio::null()).stdout(open_log()?).stderr(open_log()?);
        // SAFETY: system calls only, on memory that was prepared before.
        let child = unsafe { command.pre_exec(prepare) }.spawn();
        let child = child.map_err(io("cannot run", Path::new(command.get_program())))?;
        let state = State::read(&self.folder)?.unwrap_or_else(State::of_this_process);
        State { server: ProcessId::of(child.id()), ..state }.write(&self.folder)
    }
}

/// How a kept server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopOutcome {
    Now,
    /// It had ended by itself; its folder was removed.
    Before,
}

impl ThrowAway {
    /// Starts a server that lives on under this name when this process ends, until [`stop_kept`].
    ///
    /// # Errors
    ///
    /// [`Error::BuildName`] where one of that name is kept already, or the name is none; else as
    /// [`ThrowAway::start`].
    pub async fn start_kept(spec: StartSpec, name: &str) -> Result<KeptServer> {
        crate::builds::check_name(name)?;
        if kept_servers()?.iter().any(|server| server.name == name) {
            return Err(Error::BuildName(format!(
                "a server '{name}' was started already: stop it with `whyso server stop {name}`, or choose another name"
            )));
        }
        ThrowAway::start(spec).await?.keep(name, None)
    }

    /// As it would be kept. `place`: what it is in its cluster.
    pub(crate) fn described(&self, name: &str, place: Option<(String, ClusterKind, Role)>) -> KeptServer {
        let node = place.map(|(cluster, kind, role)| KeptNode {
            cluster,
            kind,
            role,
            port: self.spec.node.as_ref().map_or(0, |node| node.port),
            command: SavedCommand::of(&self.command()),
            cpus: self.spec.cpus.as_ref().map_or(Vec::new(), |cpus| cpus.cpus().to_vec()),
            ndb: None,
        });
        let kept_as = KeptAs { name: name.to_string(), server: self.server_name(), node };
        KeptServer::of(kept_as, self.home.folder.clone(), self.pid().and_then(ProcessId::of))
    }

    /// Lets it live on. `place`: what it is in its cluster.
    pub(crate) fn keep(
        mut self,
        name: &str,
        place: Option<(String, ClusterKind, Role)>,
    ) -> Result<KeptServer> {
        let kept = self.described(name, place);
        let Some(server) = self.server.take() else {
            return Err(Error::Build("the server has ended: start it again".to_string()));
        };
        self.home.keep(kept.kept_as())?;
        // its end would end the process
        std::mem::forget(server);
        Ok(kept)
    }
}

/// The servers that were started to be kept, by name.
///
/// # Errors
///
/// [`Error::Io`] where the folder of servers can't be listed.
pub fn kept_servers() -> Result<Vec<KeptServer>> {
    kept_below(&default_parent_dir()?)
}

fn kept_below(parent: &Path) -> Result<Vec<KeptServer>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(parent).map_err(io("cannot list", parent))?.flatten() {
        let folder = entry.path();
        let is_candidate = entry.file_name().to_string_lossy().starts_with(FOLDER_PREFIX);
        if !is_candidate || !is_ours(&folder) {
            continue;
        }
        // what can't be understood is not one of these; a sweep tells of it
        let Ok(Some(State { server, kept: Some(kept), .. })) = State::read(&folder) else { continue };
        found.push(KeptServer::of(kept, folder, server.filter(ProcessId::is_alive)));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Shuts a kept server down and removes its folder with everything in it. The process is ended only if
/// number, start time, boot, executable and user are those that were written down when it started.
///
/// # Errors
///
/// [`Error::BuildName`] where none of that name is kept, [`Error::Build`] where it does not end.
pub fn stop_kept(name: &str) -> Result<StopOutcome> {
    let all = kept_servers()?;
    let Some(server) = all.iter().find(|server| server.name == name) else {
        let names: Vec<&str> = all.iter().map(|server| server.name.as_str()).collect();
        let those =
            if names.is_empty() { "none was".to_string() } else { format!("{} were", names.join(", ")) };
        return Err(Error::BuildName(format!(
            "no server '{}' was started to be kept: {those}",
            name.escape_default()
        )));
    };
    server.remove()
}

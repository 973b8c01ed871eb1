//! Servers of our own that outlive the process that started them, until they are stopped.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::home::{FOLDER_PREFIX, SOCKET, default_parent_dir};
use super::lock;
use super::state::{KeptAs, State};
use super::sweep::{end, is_ours};
use super::{StartSpec, ThrowAway};
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
}

impl KeptServer {
    /// How to reach it: user root, no password, schema `whyso`.
    pub fn dsn(&self) -> Dsn {
        Dsn::on_socket(self.folder.join(SOCKET), "root", DEFAULT_SCHEMA)
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
        ThrowAway::start(spec).await?.keep(name)
    }

    fn keep(mut self, name: &str) -> Result<KeptServer> {
        let kept_as = KeptAs { name: name.to_string(), server: self.server_name() };
        let Some(server) = self.server.take() else {
            return Err(Error::Build("the server has ended: start it again".to_string()));
        };
        let (folder, pid) = (self.home.folder.clone(), server.pid());
        self.home.keep(kept_as.clone())?;
        // its end would end the process
        std::mem::forget(server);
        let process = ProcessId::of(pid);
        Ok(KeptServer { name: kept_as.name, server: kept_as.server, folder, pid: Some(pid), process })
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
        let process = server.filter(ProcessId::is_alive);
        let pid = process.as_ref().map(|process| process.pid);
        found.push(KeptServer { name: kept.name, server: kept.server, folder, pid, process });
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
    if let Some(process) = &server.process
        && !end(process, STOP_BOUND)
    {
        return Err(Error::Build(format!("the server '{name}', process {}, does not end", process.pid)));
    }
    if lock::runs(&server.folder) {
        return Err(Error::Build(format!(
            "the server '{name}' runs in another container or on another host: stop it there"
        )));
    }
    std::fs::remove_dir_all(&server.folder).map_err(io("cannot remove", &server.folder))?;
    Ok(if server.process.is_some() { StopOutcome::Now } else { StopOutcome::Before })
}

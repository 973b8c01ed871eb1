//! Who owns a server's folder: what a sweep after a crash goes by.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::cluster::kind::{ClusterKind, Role};
use crate::error::{Error, Result, io};
use crate::process::ProcessId;

const FILE: &str = "state.json";

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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<KeptNode>,
}

/// What a kept server is in its cluster, and how it is started again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptNode {
    pub(crate) cluster: String,
    pub(crate) kind: ClusterKind,
    pub(crate) role: Role,
    pub(crate) port: u16,
    pub(crate) command: SavedCommand,
    /// CPUs that it may run on; empty where it may on all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cpus: Vec<u32>,
    /// Of a management node and a data node, which are no servers for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ndb: Option<NdbPlace>,
}

/// What a program is in a cluster of NDB, and how its state is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NdbPlace {
    /// Its number in the cluster.
    pub(crate) id: u32,
    pub(crate) manager_port: u16,
    /// What asks the management node.
    pub(crate) client: SavedCommand,
}

/// A command line that outlives the process that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedCommand {
    program: PathBuf,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    folder: Option<PathBuf>,
}

impl SavedCommand {
    pub(crate) fn of(command: &Command) -> SavedCommand {
        let text = |text: &OsStr| text.to_string_lossy().into_owned();
        SavedCommand {
            program: PathBuf::from(command.get_program()),
            arguments: command.get_args().map(text).collect(),
            environment: command
                .get_envs()
                .filter_map(|(name, value)| Some((text(name), text(value?))))
                .collect(),
            folder: command.get_current_dir().map(Path::to_path_buf),
        }
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(&self.environment).env_remove("MYSQL_PWD");
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }
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

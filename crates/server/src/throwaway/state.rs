//! Who owns a server's folder: what a sweep after a crash goes by.

use std::path::Path;

use serde::{Deserialize, Serialize};

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

//! `agent.toml`: what an agent may do, and the servers of its host.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Deserialize;
use whyso_hub::Right;

use crate::error::{Error, Result};

/// More of a file is not read.
const BYTES_MAX: u64 = 64 << 10;
/// Write permissions of a group and of others.
const OPEN_TO_OTHERS: u32 = 0o022;

/// A server of this host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentServer {
    /// By which the commander names it.
    pub name: String,
    /// How to reach it from here. The password may be in it, or in `~/.my.cnf`.
    pub dsn: String,
}

/// A program of this host that is recorded, with all that its processes start.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentProgram {
    /// By which the commander names it.
    pub name: String,
    /// Its process: a name as `ps -e` shows it, a part of one, or a number.
    pub process: String,
}

/// What this host may send a load to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentTarget {
    /// By which the commander names it.
    pub name: String,
    /// How to reach it from here.
    pub dsn: String,
    /// Its schema may be written although whyso did not make it.
    #[serde(default)]
    pub allow_writes: bool,
}

/// What an agent may do.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    #[serde(default = "observe")]
    pub may: Vec<Right>,
    #[serde(default, rename = "server")]
    pub servers: Vec<AgentServer>,
    #[serde(default, rename = "program")]
    pub programs: Vec<AgentProgram>,
    #[serde(default, rename = "target")]
    pub targets: Vec<AgentTarget>,
    /// Recordings stay here once they were handed over.
    #[serde(default)]
    pub keep_recordings: bool,
    /// Space for what the hub has not taken yet, in bytes. Beyond it, what comes is lost, and counted.
    #[serde(default = "waiting_bytes_max")]
    pub waiting_bytes_max: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            may: observe(),
            servers: Vec::new(),
            programs: Vec::new(),
            targets: Vec::new(),
            keep_recordings: false,
            waiting_bytes_max: waiting_bytes_max(),
        }
    }
}

fn observe() -> Vec<Right> {
    vec![Right::Observe]
}

fn waiting_bytes_max() -> u64 {
    2 << 30
}

impl Settings {
    /// Reads the file. Where there is none, an agent may observe its machine, and nothing else.
    ///
    /// # Errors
    /// It can't be read or understood, or others can write it.
    pub fn read(path: &Path) -> Result<Settings> {
        let facts = match fs::metadata(path) {
            Ok(facts) => facts,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Settings::default()),
            Err(error) => return Err(Error::io(path, error)),
        };
        if facts.uid() != 0 && facts.uid() != rustix::process::geteuid().as_raw() {
            return Err(Error::Owner { path: path.to_path_buf() });
        }
        if facts.mode() & OPEN_TO_OTHERS != 0 {
            return Err(Error::OpenToOthers { path: path.to_path_buf() });
        }
        let wrong = |cause: String| Error::Settings { path: path.to_path_buf(), cause };
        if facts.len() > BYTES_MAX {
            return Err(wrong(format!("it has more than {BYTES_MAX} bytes")));
        }
        let text = fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        let settings: Settings = toml::from_str(&text).map_err(|error| wrong(error.message().to_string()))?;
        if let Some(name) = first_twice(settings.servers.iter().map(|server| &server.name)) {
            return Err(wrong(format!("two servers are called {name}")));
        }
        if let Some(name) = first_twice(settings.programs.iter().map(|program| &program.name)) {
            return Err(wrong(format!("two programs are called {name}")));
        }
        if let Some(name) = first_twice(settings.targets.iter().map(|target| &target.name)) {
            return Err(wrong(format!("two targets are called {name}")));
        }
        Ok(settings)
    }
}

fn first_twice<'n>(names: impl Iterator<Item = &'n String>) -> Option<&'n String> {
    let mut known = HashSet::new();
    names.into_iter().find(|name| !known.insert(*name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(text: &str, mode: u32) -> Result<Settings> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Settings::read(&path)
    }

    #[test]
    fn without_a_file_an_agent_only_observes_its_machine() {
        let settings = Settings::read(Path::new("/nowhere/agent.toml")).unwrap();
        assert_eq!((settings.may, settings.servers), (vec![Right::Observe], Vec::new()));
    }

    #[test]
    fn a_file_is_read_and_a_mistake_in_it_is_named() {
        let text =
            "may = [\"observe\", \"load\"]\n[[server]]\nname = \"shop\"\ndsn = \"mysql://root@localhost/\"\n";
        let settings = read(text, 0o600).unwrap();
        assert_eq!(settings.may, [Right::Observe, Right::Load]);
        assert_eq!(settings.servers[0].name, "shop");
        for (text, word) in [("may = [\"fly\"]", "fly"), ("mai = []", "mai"), ("may = 3", "invalid type")] {
            let error = read(text, 0o600).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
        let twice = format!("{text}[[server]]\nname = \"shop\"\ndsn = \"mysql://\"\n");
        assert!(read(&twice, 0o600).unwrap_err().to_string().contains("two servers"));
        let target = "[[target]]\nname = \"shop\"\ndsn = \"mysql://\"\n";
        assert!(!read(target, 0o600).unwrap().targets[0].allow_writes);
        assert!(read(&target.repeat(2), 0o600).unwrap_err().to_string().contains("two targets"));
    }

    #[test]
    fn a_file_that_others_can_write_gives_no_rights() {
        assert!(matches!(read("may = []", 0o666), Err(Error::OpenToOthers { .. })));
        assert_eq!(read("may = []", 0o644).unwrap().may, []);
    }
}

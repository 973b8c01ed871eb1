//! The file that `--hosts` names: the hub, and the hosts that record and load.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde::Deserialize;
use whyso_control::{Error, HostPlan, HostsPlan};
use whyso_hub::{HostName, HubFolder, Token};

use crate::user::state_folder;

/// More of a file is not read.
const BYTES_MAX: u64 = 64 << 10;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LabFile {
    /// The folder of a hub of this machine.
    hub: Option<PathBuf>,
    /// A file with a commander's token, for a hub elsewhere.
    token: Option<PathBuf>,
    #[serde(rename = "host")]
    hosts: Vec<LabHost>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabHost {
    name: String,
    server: Option<String>,
    #[serde(default)]
    programs: Vec<String>,
    load: Option<String>,
}

/// Reads the file.
pub(crate) fn read(path: &Path) -> Result<HostsPlan> {
    let wrong = |cause: String| Error::Plan(format!("can't understand {}: {cause}", path.display()));
    let facts = std::fs::metadata(path)
        .map_err(|error| Error::Plan(format!("can't read {}: {error}", path.display())))?;
    if facts.len() > BYTES_MAX || !facts.is_file() {
        bail!(wrong(format!("it is no file of up to {BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let lab: LabFile = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    // Paths in it are from where it lies.
    let from_here = |named: &Path| path.parent().unwrap_or(Path::new("")).join(named);
    let token = match (&lab.hub, &lab.token) {
        (Some(_), Some(_)) => bail!(wrong("give hub or token, and not both".to_string())),
        (_, Some(file)) => {
            let file = from_here(file);
            let line = std::fs::read_to_string(&file)
                .map_err(|error| Error::Plan(format!("can't read {}: {error}", file.display())))?;
            Token::from_line(&line)?
        }
        (Some(hub), None) => HubFolder::open(&from_here(hub))?.commander()?,
        (None, None) => HubFolder::open(&state_folder("hub")?)?.commander()?,
    };
    let mut hosts: Vec<HostPlan> = Vec::new();
    for host in lab.hosts {
        let name = HostName::new(&host.name)?;
        if hosts.iter().any(|other| other.name == name) {
            bail!(wrong(format!("{name} is in it twice")));
        }
        hosts.push(HostPlan { name, server: host.server, programs: host.programs, load: host.load });
    }
    if hosts.iter().filter(|host| host.server.is_some()).count() > 1 {
        bail!(wrong("one host has the run's server, and not several".to_string()));
    }
    Ok(HostsPlan { token, hosts })
}

//! The programs of MySQL Cluster that are no servers for clients, and how they are run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::CONFIG_FILE;
use crate::error::{Error, Result};
use crate::find::{Binary, Launch, output_within};
use crate::throwaway::{NdbPlace, SavedCommand};

/// Folders of a tree with its programs; the first one holds what was compiled here, which runs with the machine's own libraries.
const FOLDERS: [&str; 4] = ["ndb", "bin", "sbin", "libexec"];
const COMPILED: &str = "ndb";
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const LEAVES_WITHIN: Duration = Duration::from_secs(60);

pub(super) struct Programs {
    manager: PathBuf,
    data_node: PathBuf,
    client: PathBuf,
    launch: Launch,
}

impl Programs {
    /// # Errors
    /// The build has not all of them.
    pub(super) fn of(binary: &Binary) -> Result<Programs> {
        let find = |name: &str| {
            let all = FOLDERS.iter().map(|folder| binary.basedir.join(folder).join(name));
            all.into_iter().find(|path| path.is_file()).ok_or_else(|| {
                Error::Binary(format!(
                    "there is no '{name}' below '{}': fetch a build that has it with `whyso server fetch mysql-cluster`, and choose it with --server \
                     mysql-cluster; or give the folder of an unpacked MySQL Cluster",
                    binary.basedir.display()
                ))
            })
        };
        let [manager, data_node, client] = [find("ndb_mgmd")?, find("ndbd")?, find("ndb_mgm")?];
        let is_compiled = manager.parent().is_some_and(|folder| folder.ends_with(COMPILED));
        let launch = if is_compiled { Launch::default() } else { binary.launch.clone() };
        Ok(Programs { manager, data_node, client, launch })
    }

    /// Reads the file in its folder at each start.
    pub(super) fn manager(&self, folder: &Path) -> Command {
        let mut command = self.launch.command(&self.manager);
        command
            .args(["--no-defaults", "--nodaemon", "--no-nodeid-checks", "--skip-config-cache"])
            .arg(format!("--config-file={}", folder.join(CONFIG_FILE).display()))
            .arg(format!("--configdir={}", folder.display()));
        command
    }

    pub(super) fn data_node(&self, id: u32, manager_port: u16) -> Command {
        let mut command = self.launch.command(&self.data_node);
        command
            .args(["--no-defaults", "--nodaemon", "--foreground"])
            .arg(format!("--ndb-connectstring=nodeid={id},127.0.0.1:{manager_port}"));
        command
    }

    /// What asks the management node.
    pub(super) fn client(&self, manager_port: u16) -> SavedCommand {
        let mut command = self.launch.command(&self.client);
        command
            .args(["--no-defaults", "--try-reconnect=1"])
            .arg(format!("--ndb-connectstring=127.0.0.1:{manager_port}"));
        SavedCommand::of(&command)
    }
}

/// Asks the management node to stop a data node, whose part the others take over. One that can't leave, such as the last one, stays.
pub(crate) fn stop_data_node(place: &NdbPlace) {
    let mut command = place.client.command();
    command.arg("--execute").arg(format!("{} STOP", place.id));
    // Its process is looked at next.
    let _ = output_within(command, LEAVES_WITHIN);
}

/// The state of a node as the management node says it, such as "started (mysql-9.7.4 ndb-9.7.4)".
///
/// # Errors
/// The management node does not answer.
pub(crate) fn state(place: &NdbPlace) -> Result<String> {
    let mut command = place.client.command();
    command.arg("--execute").arg(format!("{} STATUS", place.id));
    let asked = output_within(command, ANSWERS_WITHIN)
        .map_err(|error| Error::Build(format!("the management node can't be asked: {error}")))?;
    let said = String::from_utf8_lossy(&asked.stdout).into_owned();
    state_in(&said, place.id).ok_or_else(|| {
        let errors = String::from_utf8_lossy(&asked.stderr).into_owned();
        let last = [said, errors].concat();
        let line = last.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing").to_string();
        Error::Build(format!("the management node does not say in which state node {} is: {line}", place.id))
    })
}

fn state_in(said: &str, id: u32) -> Option<String> {
    let before = format!("Node {id}: ");
    let line = said.lines().find_map(|line| line.strip_prefix(&before))?;
    Some(line.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_node_is_read_from_what_the_client_prints() {
        let said = "Connected to management server at 127.0.0.1 port 1186 (using cleartext)\nNode 2: starting (Last completed phase 3) (mysql-9.7.4 ndb-9.7.4)\n\n";
        assert_eq!(state_in(said, 2).unwrap(), "starting (Last completed phase 3) (mysql-9.7.4 ndb-9.7.4)");
        assert_eq!(state_in(said, 3), None);
        assert_eq!(state_in("Node 3: not connected\n", 3).unwrap(), "not connected");
    }
}

//! The file that configures all nodes of a cluster of NDB.

use std::path::PathBuf;

use crate::error::{Error, Result};

/// What whyso sets for each data node, for small machines: the defaults would take 1 GiB of disk for the redo log of each.
const DEFAULTS: [(&str, &str); 3] =
    [("DataMemory", "256M"), ("NoOfFragmentLogFiles", "8"), ("FragmentLogFileSize", "16M")];
/// Parameters that depend on where the nodes are.
const OURS: [&str; 6] = ["datadir", "hostname", "nodeid", "noofreplicas", "portnumber", "serverport"];
const OF_DATA_NODES: &str = "[ndbd default]";

pub(super) struct DataNode {
    pub(super) id: u32,
    pub(super) port: u16,
    pub(super) folder: PathBuf,
}

pub(super) struct Config {
    /// Number, port and folder.
    pub(super) manager: (u32, u16, PathBuf),
    pub(super) data: Vec<DataNode>,
    /// Numbers of the SQL nodes' connections.
    pub(super) sql_ids: Vec<u32>,
    /// Numbers for other programs.
    pub(super) spare: u32,
    /// Parameters of the data nodes that the user gave.
    pub(super) set: Vec<(String, String)>,
}

impl Config {
    pub(super) fn text(&self) -> String {
        let replicas = if self.data.len() == 1 { 1 } else { 2 };
        let mut text = format!("{OF_DATA_NODES}\nNoOfReplicas={replicas}\n");
        let is_asked = |name: &str| self.set.iter().any(|(asked, _)| asked.eq_ignore_ascii_case(name));
        for (name, value) in DEFAULTS.iter().filter(|(name, _)| !is_asked(name)) {
            text.push_str(&format!("{name}={value}\n"));
        }
        for (name, value) in &self.set {
            text.push_str(&format!("{name}={value}\n"));
        }
        let (id, port, folder) = &self.manager;
        text.push_str(&format!(
            "\n[ndb_mgmd]\nNodeId={id}\nHostName=127.0.0.1\nPortNumber={port}\nDataDir={}\n",
            folder.display()
        ));
        for DataNode { id, port, folder } in &self.data {
            text.push_str(&format!(
                "\n[ndbd]\nNodeId={id}\nHostName=127.0.0.1\nServerPort={port}\nDataDir={}\n",
                folder.display()
            ));
        }
        for id in &self.sql_ids {
            text.push_str(&format!("\n[mysqld]\nNodeId={id}\nHostName=127.0.0.1\n"));
        }
        for _ in 0..self.spare {
            text.push_str("\n[api]\nHostName=127.0.0.1\n");
        }
        text
    }
}

/// Refuses what is no parameter, and what whyso chooses.
pub(super) fn check(name: &str, value: &str) -> Result<()> {
    let wrong = |why: &str| {
        Err(Error::KnobValue { name: name.to_string(), value: value.to_string(), why: why.to_string() })
    };
    if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
        return wrong("whyso chooses it, since it depends on where the nodes are");
    }
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric());
    if !is_name {
        return wrong("a parameter of data nodes has letters and digits only, such as DataMemory");
    }
    if value.is_empty() || value.chars().any(char::is_control) {
        return wrong("a value is one line");
    }
    Ok(())
}

/// The file with other values for parameters of the data nodes.
///
/// # Errors
/// A parameter is none, or whyso chooses it.
pub(crate) fn change(text: &str, set: &[(String, String)]) -> Result<String> {
    set.iter().try_for_each(|(name, value)| check(name, value))?;
    let mut changed = String::new();
    let mut is_of_data_nodes = false;
    for line in text.lines() {
        if line.starts_with('[') {
            is_of_data_nodes = line == OF_DATA_NODES;
        }
        let is_replaced = line
            .split_once('=')
            .is_some_and(|(name, _)| set.iter().any(|(asked, _)| asked.eq_ignore_ascii_case(name)));
        if is_of_data_nodes && is_replaced {
            continue;
        }
        changed.push_str(&format!("{line}\n"));
        if line == OF_DATA_NODES {
            for (name, value) in set {
                changed.push_str(&format!("{name}={value}\n"));
            }
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let data = [2, 3].map(|id| DataNode { id, port: 9000 + id as u16, folder: format!("/d{id}").into() });
        Config {
            manager: (1, 9001, "/m".into()),
            data: data.into(),
            sql_ids: vec![50, 51],
            spare: 1,
            set: vec![("datamemory".to_string(), "1G".to_string())],
        }
    }

    #[test]
    fn every_node_is_in_the_file_and_what_the_user_asks_for_replaces_ours() {
        let text = config().text();
        assert!(text.starts_with("[ndbd default]\nNoOfReplicas=2\nNoOfFragmentLogFiles=8\n"), "{text}");
        assert!(text.contains("\ndatamemory=1G\n") && !text.contains("DataMemory"), "{text}");
        assert!(
            text.contains("[ndb_mgmd]\nNodeId=1\nHostName=127.0.0.1\nPortNumber=9001\nDataDir=/m\n"),
            "{text}"
        );
        assert!(text.contains("NodeId=3\nHostName=127.0.0.1\nServerPort=9003\nDataDir=/d3\n"), "{text}");
        assert_eq!((text.matches("[mysqld]").count(), text.matches("[api]").count()), (2, 1));
    }

    #[test]
    fn a_parameter_of_the_data_nodes_is_changed_where_it_stands() {
        let text = config().text();
        let set = [
            ("DataMemory".to_string(), "2G".to_string()),
            ("DiskPageBufferMemory".to_string(), "512M".to_string()),
        ];
        let changed = change(&text, &set).unwrap();
        assert!(
            changed.starts_with("[ndbd default]\nDataMemory=2G\nDiskPageBufferMemory=512M\nNoOfReplicas=2\n"),
            "{changed}"
        );
        assert_eq!(changed.to_lowercase().matches("datamemory").count(), 1, "{changed}");
        assert_eq!(change(&changed, &set).unwrap(), changed, "twice is once");
        let wrong =
            |name: &str, value: &str| change(&text, &[(name.to_string(), value.to_string())]).unwrap_err();
        assert!(wrong("ServerPort", "1").to_string().contains("whyso chooses it"));
        assert!(wrong("a b", "1").is_wrong_use());
        assert!(wrong("DataMemory", "1\n[ndbd]").is_wrong_use());
    }
}

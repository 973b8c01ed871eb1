//! A throw-away server as a node of a cluster: others reach it, and it keeps the options that make it one.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;

use crate::error::{Result, io};

const SCRIPTS: &str = "scripts";

/// What makes a server a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Where the other nodes reach it, on 127.0.0.1.
    pub port: u16,
    /// Options that come after all others.
    pub options: Vec<String>,
    /// Options of its first start alone.
    pub first_options: Vec<String>,
    /// Scripts that it runs: name and text.
    pub scripts: Vec<(String, String)>,
    /// It gets its data from the other nodes, so nothing is prepared.
    pub joins: bool,
}

/// Its place among the options: where it listens.
pub(super) fn listening(node: Option<&NodeSpec>) -> Vec<String> {
    match node {
        Some(node) => vec![format!("--port={}", node.port), "--bind-address=127.0.0.1".to_string()],
        None => vec!["--skip-networking".to_string()],
    }
}

impl NodeSpec {
    /// Writes its scripts into its folder.
    pub(super) fn write_scripts(&self, home: &Path) -> Result<()> {
        let folder = home.join(SCRIPTS);
        std::fs::create_dir_all(&folder).map_err(io("cannot make the folder", &folder))?;
        for (name, text) in &self.scripts {
            let path = folder.join(name);
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o700);
            let written = options.open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
            written.map_err(io("cannot write", &path))?;
        }
        Ok(())
    }

    /// Adds what each of its starts needs.
    pub(super) fn complete(&self, command: &mut Command, home: &Path) {
        command.args(&self.options);
        if self.scripts.is_empty() {
            return;
        }
        let before = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(home.join(SCRIPTS)).chain(std::env::split_paths(&before));
        if let Ok(path) = std::env::join_paths(folders) {
            command.env("PATH", path);
        }
    }
}

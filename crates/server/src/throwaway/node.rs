//! A throw-away server as a node of a cluster: others reach it, and it keeps the options that make it one.

use std::path::PathBuf;
use std::process::Command;

/// What makes a server a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// Where the other nodes reach it, on 127.0.0.1.
    pub port: u16,
    /// Options that come after all others.
    pub options: Vec<String>,
    /// Options of its first start alone.
    pub first_options: Vec<String>,
    /// A folder with programs that it finds before those of the same name elsewhere.
    pub programs: Option<PathBuf>,
}

/// Its place among the options: where it listens.
pub(super) fn listening(node: Option<&NodeSpec>) -> Vec<String> {
    match node {
        Some(node) => vec![format!("--port={}", node.port), "--bind-address=127.0.0.1".to_string()],
        None => vec!["--skip-networking".to_string()],
    }
}

impl NodeSpec {
    /// Adds what each of its starts needs.
    pub(super) fn complete(&self, command: &mut Command) {
        command.args(&self.options);
        if let Some(programs) = &self.programs {
            let before = std::env::var_os("PATH").unwrap_or_default();
            let folders = std::iter::once(programs.clone()).chain(std::env::split_paths(&before));
            if let Ok(path) = std::env::join_paths(folders) {
                command.env("PATH", path);
            }
        }
    }
}

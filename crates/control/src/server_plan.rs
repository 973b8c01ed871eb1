//! Which server a run loads.

use std::path::PathBuf;

/// The server that a run loads.
#[derive(Clone, Debug)]
pub enum ServerPlan {
    /// One that runs already.
    Dsn { dsn: String, set: Vec<(String, String)> },
    /// One that is started for this run alone, and removed after it.
    ThrowAway {
        /// Folder of the build; `None` for the one on the PATH.
        build: Option<PathBuf>,
        /// Folder in which the server's own folder is created.
        parent: Option<PathBuf>,
        set: Vec<(String, String)>,
        defaults_file: Option<PathBuf>,
        cpus: Option<String>,
        /// Bound on its memory, the page cache of its files included.
        memory_bytes: Option<u64>,
        /// A library that it loads before its own.
        preload: Option<PathBuf>,
    },
}

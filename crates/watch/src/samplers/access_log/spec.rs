//! Which log is followed.

use std::path::{Path, PathBuf};

use whyso_access_log::LogFormat;

/// A log that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    pub path: PathBuf,
    /// `None`: it is guessed by the log's lines.
    pub format: Option<LogFormat>,
}

impl AccessLog {
    /// The name of its file.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        Path::new(name).display().to_string()
    }
}

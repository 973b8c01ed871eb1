use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// Why a recording could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0} is not a recording: it has no run.json")]
    NotARecording(PathBuf),
    #[error("{0} holds a recording already: give another folder")]
    Exists(PathBuf),
    #[error(
        "the disk that holds {0} is full: free some space and start the run again; what was recorded until now is kept"
    )]
    DiskFull(PathBuf),
    #[error(
        "the disk that holds {0} has less than {1} MiB free, which a recording keeps in reserve: free some space or choose another folder"
    )]
    NoReserve(PathBuf, u64),
    #[error("{path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
    #[error("{path} can't be read as {what}: {cause}")]
    Damaged { path: PathBuf, what: &'static str, cause: String },
    #[error("{0} is not what was recorded: its digest in the manifest is another one")]
    Changed(PathBuf),
    #[error("the recording has no series {0}")]
    NoSuchSeries(u32),
    #[error("the recorder has ended: {0}")]
    Ended(String),
    #[error("the recorder did not answer within {0} s: the disk may be stuck")]
    Timeout(u64),
    #[error("{0:?} can't be the name of a stream: give another, of lower-case letters, digits and _")]
    StreamName(String),
    /// A recording that is not written to.
    #[error("{0}")]
    Newer(String),
    /// It is being recorded: what is asked has to wait until it has ended.
    #[error("{0} is being recorded: wait until it has ended, or end it first")]
    Live(PathBuf),
    /// A note that belongs to no recording that is running, or lacks its time.
    #[error("{0}")]
    Note(String),
    /// A name or a tag that no recording can have.
    #[error("{0}")]
    Label(String),
    #[error("{0}")]
    Backup(String),
    /// A recording that comes from elsewhere or goes there.
    #[error("{0}")]
    Transfer(String),
    #[error("{0}")]
    Export(String),
}

impl Error {
    /// Returns whether the command line was wrong, rather than the recording.
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, Error::Note(_) | Error::Label(_))
    }

    pub(crate) fn io(path: &Path, cause: io::Error) -> Error {
        Error::Io { path: path.to_path_buf(), cause }
    }

    pub(crate) fn damaged(path: &Path, what: &'static str, cause: impl ToString) -> Error {
        Error::Damaged { path: path.to_path_buf(), what, cause: cause.to_string() }
    }
}

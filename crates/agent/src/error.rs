use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with an agent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} can't be used: {cause}")]
    Io { path: PathBuf, cause: std::io::Error },
    #[error("{path} can't be understood ({cause}): docs/how-to/many-hosts.md shows one")]
    Settings { path: PathBuf, cause: String },
    #[error("others than its owner can write {path}, which says what the agent may do: chmod go-w {path}")]
    OpenToOthers { path: PathBuf },
    #[error(
        "{path} says what the agent may do, and belongs to another user: chown it to root, or to this user"
    )]
    Owner { path: PathBuf },
    #[error(
        "this host has not joined a hub: whyso agent join TOKEN, with the token that whyso hub invite prints"
    )]
    NotJoined,
    #[error("this is a commander's token: an agent joins with that of whyso hub invite NAME")]
    NoAgent,
    #[error("another agent runs here already, on {path}")]
    Running { path: PathBuf },
    #[error(transparent)]
    Hub(#[from] whyso_hub::Error),
}

impl Error {
    pub(crate) fn io(path: &Path, cause: std::io::Error) -> Error {
        Error::Io { path: path.to_path_buf(), cause }
    }
}

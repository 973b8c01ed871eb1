//! Errors: of the server as an [`Error`], of a request as a [`Refusal`], each one sentence.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// Servers that a file can name.
pub(crate) const SERVERS_MAX: usize = 50;
/// Characters of a server's name.
pub(crate) const NAME_CHARACTERS_MAX: usize = 60;

/// What is wrong in a file of servers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServersFileError {
    #[error("it is too large")]
    TooLarge,
    #[error("{}", .0.message())]
    Syntax(#[from] toml::de::Error),
    #[error("it names more than {SERVERS_MAX} servers")]
    TooMany,
    #[error("a server needs a name of at most {NAME_CHARACTERS_MAX} characters")]
    Name,
    #[error("two servers are called {0}")]
    SameName(String),
    #[error("interval_ms of {0} must be 100 to 600000")]
    Interval(String),
    #[error("disk_max of {server}: {why}")]
    DiskMax { server: String, why: String },
    #[error("{0} needs a dsn, a process, or the hosts of a lab file, and one of them")]
    Target(String),
    #[error("process of {0} must be a name, or the number of a process")]
    Process(String),
    #[error("{setting} of {server} is for a server by its dsn: leave it out")]
    OfServer { server: String, setting: &'static str },
    #[error("{setting} of {server} needs {needed}: set it, or leave out {setting}")]
    Needs { server: String, setting: &'static str, needed: &'static str },
    #[error("{server} has more than {most} add-ons")]
    AddOns { server: String, most: usize },
    /// Of what the recorder takes.
    #[error("{server}: {why}")]
    Setting { server: String, why: String },
}

/// Why the server could not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(
        "{0} is in use: give another address with --listen, such as --listen 127.0.0.1:0 for any free port"
    )]
    InUse(SocketAddr),
    #[error("can't listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error("{0} is no folder: name the folder that holds the recordings with --runs")]
    NoFolder(PathBuf),
    #[error("can't make a token: {0}")]
    Token(io::Error),
    #[error("{0} holds no token: it has to be one line of 32 to 128 letters, digits, - and _")]
    TokenFile(PathBuf),
    #[error("others can read {0}, and so the token: take that away with `chmod 600 {0}`")]
    TokenFileOpen(PathBuf),
    #[error("{0} belongs to another user, who knows the token: name a file of your own")]
    TokenFileOwner(PathBuf),
    #[error("others can read {0}, and so the servers' passwords: take that away with `chmod 600 {0}`")]
    ServersFileOpen(PathBuf),
    #[error("{0} can't be read as a file of servers: {1}")]
    Servers(PathBuf, ServersFileError),
    /// What can't be drawn.
    #[error("{0}")]
    Plot(String),
    /// Of a recording.
    #[error("{0}")]
    Read(String),
    #[error("{path}: {cause}")]
    Io { path: PathBuf, cause: io::Error },
}

impl Error {
    /// Returns whether the command line was wrong, rather than something having failed.
    pub fn is_wrong_use(&self) -> bool {
        match self {
            Error::NoFolder(_)
            | Error::TokenFile(_)
            | Error::TokenFileOpen(_)
            | Error::TokenFileOwner(_)
            | Error::ServersFileOpen(_)
            | Error::Servers(..)
            | Error::Plot(_) => true,
            Error::InUse(_) | Error::Listen(..) | Error::Token(_) | Error::Read(_) | Error::Io { .. } => {
                false
            }
        }
    }
}

impl From<Refusal> for Error {
    fn from(refused: Refusal) -> Error {
        match refused.status.is_client_error() {
            true => Error::Plot(refused.why),
            false => Error::Read(refused.why),
        }
    }
}

/// Why a request is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    why: String,
}

pub(crate) type Answer<T> = Result<T, Refusal>;

impl Refusal {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Refusal {
        Refusal { status, why: why.into() }
    }

    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// The request makes no sense.
    pub(crate) fn bad(why: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, why)
    }

    pub(crate) fn not_found(why: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, why)
    }

    /// Not now.
    pub(crate) fn conflict(why: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::CONFLICT, why)
    }

    pub(crate) fn damaged() -> Refusal {
        Refusal::failed("this could not be read: the recording may be damaged")
    }

    pub(crate) fn busy() -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server is busy: ask again in a moment")
    }

    fn failed(why: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, why)
    }
}

impl From<whyso_record::Error> for Refusal {
    fn from(error: whyso_record::Error) -> Refusal {
        match error {
            whyso_record::Error::NoSuchSeries(_) | whyso_record::Error::NotARecording(_) => {
                Refusal::not_found(error.to_string())
            }
            whyso_record::Error::Newer(_) | whyso_record::Error::Live(_) => {
                Refusal::new(StatusCode::CONFLICT, error.to_string())
            }
            whyso_record::Error::Backup(_) | whyso_record::Error::Note(_) | whyso_record::Error::Label(_) => {
                Refusal::bad(error.to_string())
            }
            _ => Refusal::failed(error.to_string()),
        }
    }
}

impl From<whyso_query::Error> for Refusal {
    fn from(error: whyso_query::Error) -> Refusal {
        if error.is_wrong_use() {
            Refusal::bad(error.to_string())
        } else {
            Refusal::failed(error.to_string())
        }
    }
}

impl From<whyso_report::Error> for Refusal {
    fn from(error: whyso_report::Error) -> Refusal {
        Refusal::failed(error.to_string())
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Refusal {
        Refusal::failed(error.to_string())
    }
}

/// The body of a refusal.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Error)]
pub(crate) struct RefusalBody {
    #[schema(min_length = 1)]
    error: String,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(RefusalBody { error: self.why })).into_response()
    }
}

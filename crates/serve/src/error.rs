//! What can go wrong: at the start as an [`Error`], in a request as a [`Refused`], each one sentence.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

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
    Config(PathBuf, String),
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
    /// Whether the command line was wrong, rather than something having failed.
    pub fn is_wrong_use(&self) -> bool {
        match self {
            Error::NoFolder(_)
            | Error::TokenFile(_)
            | Error::TokenFileOpen(_)
            | Error::TokenFileOwner(_)
            | Error::ServersFileOpen(_)
            | Error::Config(..)
            | Error::Plot(_) => true,
            Error::InUse(_) | Error::Listen(..) | Error::Token(_) | Error::Read(_) | Error::Io { .. } => {
                false
            }
        }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        match refused.status.is_client_error() {
            true => Error::Plot(refused.why),
            false => Error::Read(refused.why),
        }
    }
}

/// Why a request is not answered as it was meant.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    why: String,
}

pub(crate) type Answer<T> = Result<T, Refused>;

impl Refused {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Refused {
        Refused { status, why: why.into() }
    }

    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// What was asked makes no sense.
    pub(crate) fn bad(why: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, why)
    }

    pub(crate) fn not_found(why: impl Into<String>) -> Refused {
        Refused::new(StatusCode::NOT_FOUND, why)
    }

    /// Not now.
    pub(crate) fn conflict(why: impl Into<String>) -> Refused {
        Refused::new(StatusCode::CONFLICT, why)
    }

    pub(crate) fn damaged() -> Refused {
        Refused::failed("this could not be read: the recording may be damaged")
    }

    pub(crate) fn busy() -> Refused {
        Refused::new(StatusCode::SERVICE_UNAVAILABLE, "too much is asked at once: ask again in a moment")
    }

    fn failed(why: impl Into<String>) -> Refused {
        Refused::new(StatusCode::INTERNAL_SERVER_ERROR, why)
    }
}

impl From<whyso_record::Error> for Refused {
    fn from(error: whyso_record::Error) -> Refused {
        match error {
            whyso_record::Error::NoSuchSeries(_) | whyso_record::Error::NotARecording(_) => {
                Refused::not_found(error.to_string())
            }
            whyso_record::Error::Newer(_) | whyso_record::Error::Live(_) => {
                Refused::new(StatusCode::CONFLICT, error.to_string())
            }
            whyso_record::Error::Backup(_) | whyso_record::Error::Note(_) => Refused::bad(error.to_string()),
            _ => Refused::failed(error.to_string()),
        }
    }
}

impl From<whyso_query::Error> for Refused {
    fn from(error: whyso_query::Error) -> Refused {
        if error.is_wrong_use() {
            Refused::bad(error.to_string())
        } else {
            Refused::failed(error.to_string())
        }
    }
}

impl From<whyso_report::Error> for Refused {
    fn from(error: whyso_report::Error) -> Refused {
        Refused::failed(error.to_string())
    }
}

impl From<serde_json::Error> for Refused {
    fn from(error: serde_json::Error) -> Refused {
        Refused::failed(error.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.why }))).into_response()
    }
}

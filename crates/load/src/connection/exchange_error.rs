//! Why there is no answer to a command.

use std::io;

use thiserror::Error;
use whyso_http::AnswerError;
use whyso_wire::ProtocolError;

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum ExchangeError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Protocol(#[from] ProtocolError),
    #[error("the server asked for the local file '{0}', which is refused")]
    LocalInfile(String),
    #[error("{0}")]
    Http(#[from] AnswerError),
    #[error("the answer was not complete in time")]
    TimedOut,
}

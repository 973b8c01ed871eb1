//! Why something is not traced.

use std::io;

use thiserror::Error;
use whyso_trace::DispatcherError;

/// Why something is not traced.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    #[error("--no-trace was given")]
    SwitchedOff,
    /// The server's process is not known, with the reason.
    #[error("{0}")]
    NoProcess(String),
    #[error("the tracer's programs are not allowed here")]
    NotAllowed,
    #[error(transparent)]
    Trace(#[from] whyso_trace::Error),
    #[error("{trace}; its threads' states can't be sampled from /proc either: {sampling}")]
    NoSamples { trace: whyso_trace::Error, sampling: io::Error },
    #[error("several processes can't be watched here: {0}")]
    SeveralProcesses(whyso_trace::Error),
    #[error("{no_process}, and the load's side of the wire can't be traced: {trace}")]
    NoWire { no_process: String, trace: whyso_trace::Error },
    #[error("no thread could be started: {0}")]
    Thread(io::Error),
    /// The server's code can't be read.
    #[error(transparent)]
    Code(#[from] whyso_stacks::Error),
    #[error(
        "the server's build does not name its dispatcher (the symbol dispatch_command is stripped): take a build that does"
    )]
    NoDispatcher,
    #[error(transparent)]
    Dispatcher(#[from] DispatcherError),
}

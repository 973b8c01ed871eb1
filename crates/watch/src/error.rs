//! What can go wrong before the watching begins. Later failures are gaps in the recording.

use std::time::Duration;

use crate::samplers::addon::AddOnError;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("an interval of {0:?} is too short: ask for 100ms or more")]
    IntervalTooShort(Duration),
    #[error(
        "the samplers cannot be started: {0}; raise the limits of threads and open files (ulimit -u, -n)"
    )]
    Resources(std::io::Error),
    #[error(transparent)]
    AddOn(#[from] AddOnError),
    #[error("the server cannot be asked: {0}")]
    Server(String),
    #[error("the server did not answer within {0} s: see its log, and try again")]
    NoAnswer(u64),
}

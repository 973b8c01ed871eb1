//! Why a question about a recording has no answer, as one sentence.

use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The question makes no sense for this recording: wrong use.
    #[error("{0}")]
    WrongUse(String),
    /// The recording lacks what the answer needs; the sentence has the reason.
    #[error("{0}")]
    NotRecorded(String),
    #[error(transparent)]
    Record(#[from] whyso_record::Error),
}

impl Error {
    /// Returns whether the command line was wrong, rather than the recording.
    pub fn is_wrong_use(&self) -> bool {
        matches!(self, Error::WrongUse(_))
    }
}

//! What can go wrong in a run, as one sentence that says what to do.

use thiserror::Error;

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan can't be carried out as it is: wrong use.
    #[error("{0}")]
    Plan(String),
    #[error(transparent)]
    Workload(#[from] whyso_workload::WorkloadError),
    #[error(transparent)]
    Server(#[from] whyso_server::Error),
    #[error(transparent)]
    Load(#[from] whyso_load::LoadError),
    #[error(transparent)]
    Record(#[from] whyso_record::Error),
    #[error(transparent)]
    Query(#[from] whyso_query::Error),
    #[error(transparent)]
    Tracing(#[from] whyso_tracing::Error),
    #[error(transparent)]
    Process(#[from] whyso_tracing::ProcessNotFound),
    #[error(transparent)]
    AddOn(#[from] whyso_watch::AddOnError),
    #[error(transparent)]
    Watch(#[from] whyso_watch::Error),
    #[error(transparent)]
    Hub(#[from] whyso_hub::Error),
    #[error("{0}")]
    Failed(String),
    /// Ctrl-C before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
}

impl Error {
    /// Whether the command line was wrong, rather than the run having failed.
    pub fn is_wrong_use(&self) -> bool {
        match self {
            Error::Plan(_) | Error::Workload(_) | Error::Process(_) => true,
            Error::Server(error) => error.is_wrong_use(),
            Error::AddOn(error) => error.is_wrong_use(),
            Error::Query(error) => error.is_wrong_use(),
            _ => false,
        }
    }
}

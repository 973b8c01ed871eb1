//! The threads for control connections and samplers, and the bounds on what they wait for.

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::Error;

/// Bound on the time in which a lost connection is opened again, in runs that restart the server on purpose.
pub(crate) const RECONNECT_TIME_MAX: Duration = Duration::from_secs(60);
/// Bound on the last questions to a server that may be gone.
pub(crate) const GOODBYE_TIME_MAX: Duration = Duration::from_secs(10);

/// The threads for control connections and samplers.
pub(crate) fn runtime() -> Result<Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let built = builder.worker_threads(1).enable_all().build();
    built.map_err(|error| Error::Failed(format!("can't start a thread: {error}")))
}

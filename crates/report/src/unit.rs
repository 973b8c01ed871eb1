//! What a run's throughput and times are of, in the words of its tables.

use whyso_record::run::RunInfo;

/// Something else than whyso loaded the server of this run.
pub(crate) fn is_recorded(run: &RunInfo) -> bool {
    !run.levels.is_empty() && run.levels.iter().all(|level| level.result.is_recorded())
}

/// "transaction", or "request" where something else loaded the server.
pub(crate) fn unit(run: &RunInfo) -> &'static str {
    if is_recorded(run) { "request" } else { "transaction" }
}

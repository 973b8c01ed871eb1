//! Metrics of sampled time, and the states of threads whose time they are.

/// Metrics that have a name of their own, and the states whose time they are.
pub const METRICS: [(&str, &[&str]); 4] = [
    ("cpu", &["cpu"]),
    ("lock", &["lock"]),
    ("io", &["file_read", "file_write", "file_sync"]),
    ("runqueue", &["runqueue"]),
];
/// These are in no profile: an idle CPU that wakes up is nobody's function; waits for a client or for work to come are not sampled.
const UNTOLD: [&str; 3] = ["wakeup", "net_receive", "idle"];

/// The place in [`METRICS`] of the metric that a state's time belongs to; one past the last for other waits, `None` for what is in no profile.
pub fn metric_of(state: &str) -> Option<usize> {
    let of = METRICS.iter().position(|(_, states)| states.contains(&state));
    of.or_else(|| (!UNTOLD.contains(&state)).then_some(METRICS.len()))
}

/// Whether a state is a metric by its own name, next to those of [`METRICS`]: each that is in profiles and is not all of one already.
pub fn is_own_metric(state: &str) -> bool {
    metric_of(state).is_some() && !METRICS.iter().any(|(name, _)| *name == state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_states_time_is_of_one_metric_or_of_other_waits_or_not_told() {
        let told =
            ["cpu", "lock", "file_sync", "page_fault", "runqueue", "net_receive", "idle"].map(metric_of);
        assert_eq!(told, [Some(0), Some(1), Some(2), Some(4), Some(3), None, None]);
        assert_eq!(
            ["cpu", "file_sync", "page_fault", "wakeup"].map(is_own_metric),
            [false, true, true, false]
        );
    }
}

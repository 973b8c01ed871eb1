//! Metrics of sampled time, and the states of threads whose time they are.

/// Metrics that have a name of their own, and the states whose time they are.
pub const METRICS: [(&str, &[&str]); 4] = [
    ("cpu", &["cpu"]),
    ("lock", &["lock"]),
    ("io", &["file_read", "file_write", "file_sync"]),
    ("runqueue", &["runqueue"]),
];
/// These states are in no profile. An idle CPU that wakes up is nobody's function. Waits for a client or for work are not sampled.
const NOT_SAMPLED: [&str; 3] = ["wakeup", "net_receive", "idle"];

/// Returns the place in [`METRICS`] of the metric that a state's time belongs to. Other waits have the place after the last. `None`: the state is in
/// no profile.
pub fn metric_of(state: &str) -> Option<usize> {
    let of = METRICS.iter().position(|(_, states)| states.contains(&state));
    of.or_else(|| (!NOT_SAMPLED.contains(&state)).then_some(METRICS.len()))
}

/// Returns whether a state is a metric by its own name, next to those of [`METRICS`]. Each state in profiles is one, unless it is all of a metric already.
pub fn is_own_metric(state: &str) -> bool {
    metric_of(state).is_some() && !METRICS.iter().any(|(name, _)| *name == state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_states_time_is_of_one_metric_or_of_other_waits_or_of_none() {
        let metrics =
            ["cpu", "lock", "file_sync", "page_fault", "runqueue", "net_receive", "idle"].map(metric_of);
        assert_eq!(metrics, [Some(0), Some(1), Some(2), Some(4), Some(3), None, None]);
        assert_eq!(
            ["cpu", "file_sync", "page_fault", "wakeup"].map(is_own_metric),
            [false, true, true, false]
        );
    }
}

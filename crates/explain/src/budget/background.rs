//! What the server's background threads did meanwhile: the ones that a transaction may have waited for.

use crate::level::Level;
use crate::model::SeriesName;

/// Sampler of the threads' states; the instance is their role.
const SOURCE: &str = "threads";
const CONNECTIONS: &str = "connection";

/// States in which a background thread gets on with its work, as a sentence names them: waiting for work is none of them.
const AT_WORK: [(&str, &str); 7] = [
    ("file_sync_ns", "in fsync"),
    ("file_write_ns", "in writes to files"),
    ("file_read_ns", "in reads of files"),
    ("cpu_ns", "on a CPU"),
    ("runqueue_ns", "waiting for a CPU"),
    ("kernel_lock_ns", "waiting on a lock inside the kernel"),
    ("page_fault_ns", "waiting for memory pages"),
];

/// A role is worth a word from this share of its time.
const SHARE_MIN: f64 = 0.5;

/// A role that spent much of its time in one state.
pub(crate) struct Busy {
    pub(crate) role: String,
    /// Such as "in fsync".
    pub(crate) state: &'static str,
    /// Of its threads' time, 0 to 1.
    pub(crate) share: f64,
    pub(crate) series: SeriesName,
}

/// The background role that spent the largest share of its time at one kind of work; `None` where none spent half of it.
pub(crate) fn busiest(level: &Level) -> Option<Busy> {
    if level.seconds <= 0.0 {
        return None;
    }
    let mut busiest: Option<Busy> = None;
    for counter in level.counters {
        let series = &counter.series;
        if series.source != SOURCE || series.instance == CONNECTIONS {
            continue;
        }
        let Some((_, state)) = AT_WORK.iter().find(|(metric, _)| *metric == series.metric) else {
            continue;
        };
        let threads = level.gauge(SOURCE, "count", &series.instance).map_or(1.0, |gauge| gauge.mean.max(1.0));
        let share = counter.increase / 1e9 / level.seconds / threads;
        let is_most = busiest.as_ref().is_none_or(|busy| share > busy.share);
        if (SHARE_MIN..=1.1).contains(&share) && is_most {
            let share = share.min(1.0);
            busiest = Some(Busy { role: series.instance.clone(), state, share, series: series.clone() });
        }
    }
    busiest
}

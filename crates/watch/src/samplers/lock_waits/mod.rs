//! Who waits for whom. Connections that wait for a lock at the moment of a snapshot go into the text table `lock_waits`. Their number
//! by kind of lock is a gauge.
//!
//! A snapshot of row locks is taken only while InnoDB counts waits for rows (see [`activity`]). The tables of row locks are expensive
//! where many wait: they list each waiter with everyone before it in the queue. Of these, the one that holds the lock is recorded.
//! An expensive snapshot is not repeated soon.

mod activity;
mod metadata;
mod rows;
mod sampler;
mod sources;
mod text;

pub(crate) use activity::{RowLockActivity, RowLockCounts, RowWaiters};
use sampler::{LockWaits, METRICS};
pub use sources::{LockSnapshot, lock_waits};

use std::time::Duration;

use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["lock_waits"],
    counts: "who waits for whom in locks, as a table, while anybody does",
    origin: "InnoDB's and the Performance Schema's tables, the process list",
    metrics: &[&METRICS],
    start,
};

/// Snapshots are this frequent, or more frequent where the interval is shorter.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(500);

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    let sampler = LockWaits::new(sql, context.row_lock_activity.clone());
    vec![ScheduledSampler::of_server(sampler).at_most_every(SNAPSHOT_INTERVAL)]
}

//! Sessions: what every client's connection did when the process list was read, added up by state.
//!
//! A server shows the state of each session to any user with the privilege PROCESS, locally and remotely. Each snapshot counts the
//! sessions that were in a statement: `in_statement` ÷ `looks` is their mean number, and a state's part of `in_statement` is the
//! share of their time that it held, as a sample. No state shows that a session waits for a row. Sessions that wait for one, by InnoDB's
//! lock tables or its count of waits, are put into [`ROW_LOCK`].
//!
//! whyso's own connections and the server's own threads are left out.

mod sampler;
mod states;
mod tally;

use sampler::{METRICS, SessionStates};
pub use tally::SessionSums;
pub(crate) use tally::SessionTally;

use std::time::Duration;

use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["sessions"],
    counts: "what clients' sessions do and wait for, by state, as samples",
    origin: "the process list",
    metrics: &[&METRICS],
    start,
};

/// The process list is a sample of what sessions do: a level of some seconds has too few of them at a slower pace.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);
/// The process list is read this long after the lock tables, which show who of its sessions waits for rows.
const AFTER_LOCK_WAITS_NS: i64 = 50_000_000;

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(sql) = context.sql() else { return Vec::new() };
    let (own, activity) = (context.own_connections.clone(), context.row_lock_activity.clone());
    let sampler = SessionStates::new(sql, own, activity, context.sessions.clone());
    vec![ScheduledSampler::of_server(sampler).at_most_every(SAMPLE_INTERVAL).delayed_by(AFTER_LOCK_WAITS_NS)]
}

//! The Performance Schema, as far as the server counts in it: one source per view, such as `pfs_waits`, counters raw.
//!
//! All views are read by one thread on one connection, one after the other. A summary adds up what every thread of the server has counted,
//! so two of them at a time would only wait for each other. Each question has a bound in the server. What reading a view
//! takes has a budget, and a view that is due beyond it is put off ([`budget`]). Nothing is turned on, nothing is emptied.
//!
//! What there is, is found by asking which tables and columns the server has: 5.5 has waits and files, later servers the rest.

mod budget;
mod digests;
mod growing;
mod own_lines;
mod probe;
mod reader;
mod sampler;
mod sessions;
mod setup;
mod views;

use std::time::Duration;

use digests::Digests;
pub(crate) use reader::{SharedReader, share};
use sampler::Summary;
pub(crate) use sessions::{Session, Sessions};
use setup::Setup;
use views::Frequency;

use crate::sampler_entry::{NOW_AND_THEN, SamplerEntry, ScheduledSampler, StartContext};

/// The thread in which everything that asks the Performance Schema waits for its turn.
pub(crate) const THREAD: &str = "pfs";
/// Between two readings of what has thousands of lines.
const SELDOM: Duration = Duration::from_secs(10);

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["pfs_…"],
    counts: "waits, stages, statements, files, tables, memory and more, one source per view; changes of its setup, as events",
    origin: "the Performance Schema",
    metrics: &[&views::METRICS, &views::LOCK_METRICS],
    start,
};

/// Starts a sampler for each view. One thread reads them in turn.
fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let Some(reader) = context.pfs() else { return Vec::new() };
    let mut samplers = Vec::new();
    for view in &views::VIEWS {
        samplers
            .push(scheduled(view.frequency, ScheduledSampler::of_server(Summary::new(view, reader.clone()))));
    }
    let digests = Digests::new(reader.clone(), context.statements.clone());
    samplers.push(scheduled(Frequency::NowAndThen, ScheduledSampler::of_server(digests)));
    samplers.push(scheduled(Frequency::Slowly, ScheduledSampler::of_server(Setup::new(reader))));
    samplers
}

fn scheduled(frequency: Frequency, scheduled: ScheduledSampler) -> ScheduledSampler {
    let scheduled = scheduled.on_thread(THREAD);
    match frequency {
        Frequency::Always => scheduled,
        Frequency::NowAndThen => scheduled.at_least_every(NOW_AND_THEN),
        Frequency::Seldom => scheduled.at_least_every(SELDOM),
        Frequency::Slowly => scheduled.slowly(),
    }
}

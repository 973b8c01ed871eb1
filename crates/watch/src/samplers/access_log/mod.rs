//! Access logs of web servers, followed as they grow: requests, errors and times by kind of request.
//!
//! Instances are kinds of requests, such as `GET /items/{}`, and `all`. Where several logs are followed, the log's name is before them.
//! Counters count from when the watching began. Quantiles are of the requests whose lines were read in one reading. About once per second, a
//! text table has the requests of that time by kind and by process, with all their durations: so quantiles of any window are known.

mod follower;
mod metrics;
mod rows;
mod sampler;
mod spec;

pub use spec::AccessLog;

use crate::sampler_entry::{SamplerEntry, ScheduledSampler};
use metrics::{COUNTERS, OF_LOG, TIMES};
use sampler::AccessLogSampler;

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["access_log"],
    counts: "requests, errors and times by kind of request",
    origin: "access logs of web servers (`--access-log`)",
    metrics: &[&COUNTERS, &TIMES, &OF_LOG],
    start: |context| match context.spec.access_logs.as_slice() {
        [] => Vec::new(),
        logs => vec![ScheduledSampler::of_machine(AccessLogSampler::new(logs))],
    },
};

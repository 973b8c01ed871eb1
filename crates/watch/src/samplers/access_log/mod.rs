//! Access logs of web servers, followed as they grow: requests, errors and times by kind of request.
//!
//! Instances are kinds of requests, such as `GET /items/{}`, and `all`. Where several logs are followed, the log's name is before them.
//! Counters count from when the watching began. Quantiles are of the requests whose lines were read in one reading.

mod follower;
mod sampler;

use std::path::{Path, PathBuf};

use whyso_access_log::LogFormat;

use crate::metric::{Metric, counter, gauge};
use crate::sampler_entry::{SamplerEntry, ScheduledSampler};
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

pub(crate) const COUNTERS: [Metric; 7] = [
    counter("requests", "1", "requests that ended"),
    counter("errors_4xx", "1", "answers with a status from 400 to 499"),
    counter("errors_5xx", "1", "answers with a status from 500 to 599"),
    counter("aborted", "1", "connections that ended before the answer was complete"),
    counter("sent_bytes", "bytes", "bytes sent to clients"),
    counter("duration_ns", "ns", "durations of requests, added up"),
    counter("upstream_ns", "ns", "time in which servers behind this one answered"),
];

pub(crate) const TIMES: [Metric; 5] = [
    gauge("mean_ns", "ns", "mean duration of the requests since the reading before"),
    gauge("p50_ns", "ns", "duration that half of these requests do not exceed"),
    gauge("p90_ns", "ns", "duration that 90 % of these requests do not exceed"),
    gauge("p99_ns", "ns", "duration that 99 % of these requests do not exceed"),
    gauge("max_ns", "ns", "longest duration of these requests"),
];

pub(crate) const OF_LOG: [Metric; 2] = [
    counter("malformed_lines", "1", "lines that are no requests in the log's format"),
    gauge("unread_bytes", "bytes", "what the log has in addition to what was read"),
];

/// A log that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    pub path: PathBuf,
    /// `None`: it is guessed by the log's lines.
    pub format: Option<LogFormat>,
}

impl AccessLog {
    /// The name of its file.
    fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        Path::new(name).display().to_string()
    }
}

//! The numbers of each kind of request, and of each log.

use crate::metric::{Metric, counter, gauge};

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

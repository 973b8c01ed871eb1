//! What is reported of access logs.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// An access log over a level's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct AccessLogTime {
    /// Name of its file.
    pub log: String,
    /// What was read of it: about the window.
    pub seconds: f64,
    /// Lines that are no requests in its format.
    pub malformed: u64,
    pub all: RequestKind,
    /// Kinds of requests: the one whose requests took the most time together is first.
    pub kinds: Vec<RequestKind>,
    /// Kinds that are left out, because their requests took less time.
    pub left_out: u32,
    /// Requests by the process that served them, where the log has that: the one with the most time is first.
    pub processes: Vec<ServingProcess>,
    /// The same requests as the tracer saw them; `None` where no recorded program is known to have answered them.
    pub traced: Option<TracedRequests>,
}

/// Requests that have something in common, over a level's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct RequestKind {
    /// Such as `GET /items/{}`.
    pub name: String,
    pub requests: u64,
    pub requests_per_s: f64,
    /// Answers with a status from 400 to 499.
    pub errors_4xx: u64,
    /// Answers with a status from 500 to 599.
    pub errors_5xx: u64,
    /// Of the time of all requests, 0 to 1; `None` where the log has no durations.
    pub share: Option<f64>,
    /// `None` where no request has a duration; the same for those that follow.
    pub mean_ms: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p90_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub max_ms: Option<f64>,
}

/// A process that served requests by the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct ServingProcess {
    /// Its number in the log; "other" for those that had no line of their own.
    pub pid: String,
    /// The recorded program that it is of; `None` where none has this process.
    pub program: Option<String>,
    pub requests: u64,
    pub mean_ms: Option<f64>,
}

/// What the tracer saw of a program that wrote the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct TracedRequests {
    pub program: String,
    pub requests_per_s: f64,
    /// From a request's arrival to the end of its answer.
    pub mean_ms: f64,
    /// The program was chosen because processes of the log are its own; else because no other program takes requests from clients.
    pub is_by_process: bool,
}

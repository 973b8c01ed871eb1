//! What is reported of tiers.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::budget::Part;

/// A program or a database server that answers requests, over a level's window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct TierTime {
    pub name: String,
    /// A database server: its requests are commands.
    pub is_database: bool,
    /// Where it takes clients on its machine, such as "tcp 80".
    pub listens: Vec<String>,
    /// No other tier of the recording asks it.
    pub is_first: bool,
    /// The level, such as "64 users"; empty where the recording has one only.
    pub level: String,
    /// Requests that it answered.
    pub requests: f64,
    pub requests_per_s: f64,
    /// Mean time of a request, from its arrival to the end of its answer.
    pub mean_ms: f64,
    /// How long the users of a recorded load on a site waited for it, in the mean; `None` where that is not known.
    pub page_ms: Option<f64>,
    /// What is left of its mean time, with its sign.
    pub unaccounted_ms: f64,
    /// Its own part of a request, the longest first. Requests that waited to be picked up are `transit_in`.
    pub parts: Vec<TierPart>,
    /// What threads that answer requests did outside of them, for each request, such as writing a log after the answer: work on CPUs, files, and
    /// locks inside the kernel; the longest first. Threads that have ended are missing. Empty where that is not known.
    pub after: Vec<TierPart>,
    /// Servers behind it that a request waited for, the longest wait first.
    pub upstreams: Vec<UpstreamTime>,
    /// Share of its requests whose thread worked on others meanwhile, 0 to 1.
    pub interleaved: f64,
    /// Share of its requests whose arrival was not seen, 0 to 1: their wait to be picked up is missing.
    pub unseen: f64,
    /// Its threads, in the mean; 0 where they were not counted.
    pub threads: f64,
    /// Threads that waited for the next request on a connection that stays open, in the mean.
    pub kept_threads: f64,
    /// Connections that waited in its listeners' accept queues, in the mean of samples; `None` where these were not read.
    pub accept_queue: Option<f64>,
    /// Where a request's time went over this tier and all behind it; empty of a tier that another one asks.
    pub lines: Vec<TierLine>,
    /// Which line takes most of the time, of those that no others divide.
    pub longest: Option<u32>,
    /// What that line shows, where it has a name.
    pub cause: Option<TierCause>,
}

impl TierTime {
    /// Of the table of its lines.
    pub fn title(&self) -> String {
        match self.page_ms {
            Some(_) => format!("Where the time went that users of {} waited for", self.name),
            None => format!("Where the time of a request to {} went", self.name),
        }
    }
}

/// What most of a request's time shows, by measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum TierCause {
    /// Requests wait to be picked up, while most threads of a program work on others.
    WorkerPool,
    /// The same, while most of its threads wait for the next request on connections that stay open.
    KeepaliveIdle,
    /// A server behind that was not recorded.
    Upstream,
    /// Requests or answers wait for a thread that works on several requests by turns, and is busy with others.
    EventLoop,
    /// Threads queue for the inode of a folder or file of sessions.
    SessionFiles,
    /// Threads queue for the inode of a log, which one of them writes at a time, within requests or after them.
    LogFile,
    /// Local ports to a server behind ran out, or nearly.
    EphemeralPorts,
    /// Between a load and the first tier, while the kernel acknowledged late at least once for every two requests.
    DelayedAck,
}

impl TierCause {
    /// The name that JSON has.
    pub fn name(self) -> &'static str {
        match self {
            TierCause::WorkerPool => "worker-pool",
            TierCause::KeepaliveIdle => "keepalive-idle",
            TierCause::Upstream => "upstream",
            TierCause::EventLoop => "event-loop",
            TierCause::SessionFiles => "session-files",
            TierCause::LogFile => "log-file",
            TierCause::EphemeralPorts => "ephemeral-ports",
            TierCause::DelayedAck => "delayed-ack",
        }
    }
}

/// A part of a request's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct TierPart {
    pub part: Part,
    pub ms: f64,
    /// The file or folder that its threads waited for most in this way; `None` where that is not known.
    pub file: Option<TierFile>,
}

impl TierPart {
    pub(super) fn new(part: Part, ms: f64) -> TierPart {
        TierPart { part, ms, file: None }
    }
}

/// A file that threads of a tier waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct TierFile {
    /// A folder's ends in a slash.
    pub path: String,
    /// Of the part's time, 0 to 1, at least: other waits of the program's threads may have been for the file, too.
    pub share: f64,
}

/// What a request waited for a server behind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct UpstreamTime {
    /// Where that listens, such as "tcp 3306" or "unix /run/php/fpm.sock".
    pub address: String,
    /// Its name, where it was recorded, too.
    pub tier: Option<String>,
    /// Questions to it for each request.
    pub asked: f64,
    pub ms: f64,
    /// Of a tier whose threads work on several requests by turns, for most of them: for how long answers had arrived before a thread received them.
    pub late_ms: f64,
}

/// A line of the nested budget. Those without lines below them add up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct TierLine {
    /// 0: the page that users waited for, where that is known, or else the request to the first tier. Each server behind is one deeper.
    pub depth: u32,
    /// The tier whose time it is.
    pub tier: String,
    /// What its threads did; `None` of a line that is no part of a tier's own.
    pub part: Option<Part>,
    pub text: String,
    /// For each request to the first tier.
    pub ms: f64,
    /// Of the line at depth 0, 0 to 1.
    pub share: f64,
    /// Lines below divide it.
    pub is_divided: bool,
    /// It is the wait for a server that was not recorded.
    pub is_unrecorded: bool,
}

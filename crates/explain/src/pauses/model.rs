//! Long waits of one thread, and whether they are regular.

use serde::{Deserialize, Serialize};
use whyso_model::Moments;

/// Why a long wait was not counted, as the tracer names it.
pub(crate) const LOST: &str = "no place for a pause";

/// Waits shorter than this are not counted; `bpf/pauses.h` of `whyso_trace` has the same number.
const LENGTH_MIN_NS: f64 = 20e6;

/// This many waits, or times between them, make a pattern.
///
/// Lengths without a pattern are exponential. In one thread of 100,000, eight of these in a row are as close to each other as
/// [`SPREAD_MAX`] asks. With five it is one thread of 900, which a server with 1,000 threads has.
const COUNT_MIN: f64 = 8.0;

/// Largest standard deviation of what is regular, as a share of how far its mean lies above the least that it can be. That share is 1 for
/// a wait that ends by chance, and 0.58 for one that ends anywhere within a fixed time. A timer's is a few per cent.
const SPREAD_MAX: f64 = 0.15;

/// Waits of 20 ms to a minute of one of the server's threads, of one kind, within a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pauses {
    pub tid: u32,
    pub name: String,
    /// Such as "connection".
    pub role: String,
    /// The server's number of the connection that the thread works for, where it works for one and the server reports it.
    pub connection: Option<u64>,
    /// As the tracer names states, such as "net_receive".
    pub state: String,
    /// Name of the system call, such as "poll"; empty where it was none.
    pub call: String,
    /// The thread had received a request and had yet to answer it.
    pub in_request: bool,
    /// Who sent the request before: "load", "own" (whyso itself, asking the server something) or "unknown".
    pub client: String,
    /// Requests that the thread answered in the window.
    pub requests: f64,
    /// How long each wait lasted.
    pub length: Moments,
    /// From the begin of one to the begin of the next.
    pub period: Moments,
}

/// Returns whether times lie so close together that chance is not why.
fn is_regular(times: &Moments, least_ns: f64) -> bool {
    let above_ns = times.mean_ns - least_ns;
    times.is_sane() && times.count >= COUNT_MIN && times.spread_ns <= SPREAD_MAX * above_ns
}

/// What is regular about a thread's waits; one of them at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regular {
    /// Each lasts as long.
    pub length: bool,
    /// They begin at even intervals.
    pub period: bool,
}

/// What a wait stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A connection's thread waits for its client.
    NextCommand,
    /// A connection's thread has a part of what its client sends, and waits for more.
    RestOfRequest,
    /// A connection's thread waits while a client waits for it.
    InRequest,
    /// A background thread; most of them sleep by design.
    Timer,
    /// A thread waits for what whyso itself asks next.
    Own,
    /// A connection's thread without a request waits for something else: in a cache of threads, or in a pool.
    Idle,
}

impl Kind {
    /// As tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NextCommand => "next command",
            Kind::RestOfRequest => "rest of a request",
            Kind::InRequest => "in a request",
            Kind::Timer => "timer",
            Kind::Own => "whyso's own",
            Kind::Idle => "idle",
        }
    }
}

impl Pauses {
    /// What these waits stand for.
    pub fn kind(&self) -> Kind {
        if self.role != "connection" {
            Kind::Timer
        } else if self.client == "own" {
            Kind::Own
        } else {
            match (self.in_request, self.state == "net_receive") {
                (true, true) => Kind::RestOfRequest,
                (true, false) => Kind::InRequest,
                (false, true) => Kind::NextCommand,
                (false, false) => Kind::Idle,
            }
        }
    }

    /// `None` where nothing about them is regular, or there are too few to say.
    pub fn regular(&self) -> Option<Regular> {
        // The next wait can't begin before this one has ended: only the time between them can vary.
        let regular = Regular {
            length: is_regular(&self.length, LENGTH_MIN_NS),
            period: is_regular(&self.period, self.length.mean_ns),
        };
        (self.length.is_sane() && (regular.length || regular.period)).then_some(regular)
    }
}

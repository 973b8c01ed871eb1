//! Where the users of a level were when its window ended, and what they did with their time.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Transactions that were due when a window ended, and had not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct InFlight {
    pub transactions: u64,
    /// Since the oldest was due; 0 where there is none.
    pub oldest_ms: f64,
    /// Of an open loop, those that no user had begun.
    pub not_begun: u64,
    /// Those that were older than any transaction that ended in the window took.
    pub older_than_ended: u64,
}

/// What all users together did with the time of a window, in seconds. `ended`, `in_flight` and `outside` add up to the
/// number of users times the window's length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct UserSeconds {
    /// Within the window, in transactions that ended in it.
    pub ended: f64,
    /// In transactions that were in flight when it ended.
    pub in_flight: f64,
    /// Between transactions: think times, pauses between arrivals, users that had nothing to do.
    pub outside: f64,
    /// Before the window, in transactions that ended in it; no part of the sum.
    pub before: f64,
    /// In pauses within transactions, which a script asks for; a part of `ended` and `in_flight`. 0 in recordings from before it was
    /// measured.
    #[serde(default)]
    pub paused: f64,
}

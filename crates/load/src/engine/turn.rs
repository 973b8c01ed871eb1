//! What a user wants of the loop, or thread, that drives it, and where that reports what has been done.

use crate::engine::shared::LevelState;
use crate::measure::ring::{Event, Ring, What};

/// Where a loop, or thread, reports what has been done.
pub(crate) struct EventWriter<'l> {
    pub(crate) shared: &'l LevelState,
    pub(crate) ring: &'l Ring,
}

impl EventWriter<'_> {
    #[inline]
    pub(crate) fn write(&self, end_ns: i64, endpoint: u16, what: What) {
        let event = Event { end_ns, endpoint, what };
        if !self.ring.push(event) {
            self.shared.drain(self.ring);
            self.ring.push(event);
        }
    }
}

/// What a user needs before its next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A connection; then [`User::go`](super::user::User::go).
    Begin,
    /// Time: ask again then.
    Wait {
        until_ns: i64,
    },
    Out,
}

/// What is to be done for a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Do {
    /// Send [`Session::to_send`](crate::connection::session::Session::to_send), and feed the session with what comes.
    Send,
    /// Call [`User::go`](super::user::User::go) again then.
    Wait { until_ns: i64 },
    /// Close the connection, make a new one, and tell [`User::connected`](super::user::User::connected).
    Reconnect,
    /// The transaction has ended: ask [`User::pace`](super::user::User::pace).
    Ended,
    /// Nothing more.
    Out,
}

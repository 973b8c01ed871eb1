//! The windows of a recording, as its screen shows them.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Error;

/// No window is under way.
const NONE: i64 = 0;

/// The windows of a recording that is shown.
#[derive(Debug)]
pub(super) struct Windows {
    since_ns: AtomicI64,
    trouble: Mutex<Option<String>>,
}

impl Windows {
    pub(super) fn new() -> Windows {
        Windows { since_ns: AtomicI64::new(NONE), trouble: Mutex::default() }
    }

    /// Sets the state. `since_ns`: begin of the window that is under way; `trouble`: why the last one could not begin or end.
    pub(super) fn set(&self, since_ns: Option<i64>, trouble: Option<Error>) {
        self.since_ns.store(since_ns.unwrap_or(NONE), Ordering::Relaxed);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble.map(|error| error.to_string());
    }

    /// Since when, in monotonic nanoseconds, a window is under way.
    pub(super) fn since_ns(&self) -> Option<i64> {
        Some(self.since_ns.load(Ordering::Relaxed)).filter(|since_ns| *since_ns != NONE)
    }

    /// Why the last window could not begin or end.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

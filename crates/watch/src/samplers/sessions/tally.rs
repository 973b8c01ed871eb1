//! What the process list showed, added up.

use std::sync::{Arc, Mutex, PoisonError};

/// Sums since the watching began.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SessionSums {
    /// Times that the process list was read.
    pub snapshots: u64,
    /// Clients' sessions found in a statement, over all snapshots.
    pub in_statement: u64,
    /// Clients' connections, over all snapshots.
    pub clients: u64,
}

/// The sums, for other readers.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionTally(Arc<Mutex<SessionSums>>);

impl SessionTally {
    pub(crate) fn get(&self) -> SessionSums {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, sums: SessionSums) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = sums;
    }
}

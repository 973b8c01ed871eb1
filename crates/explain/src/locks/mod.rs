//! Lock waits by object: which table and index, or which lock of the server's own, connections waited for, and who was in the way.

mod instruments;
mod objects;
mod snapshots;
mod tree;

pub use instruments::{InstrumentWait, TableWait, instruments, is_lock_source, tables};
pub use objects::{LockObject, LockSnapshot, objects};
pub use snapshots::{STALE_S, Snapshots};
pub use tree::{WaitingConnection, WaitingTree, waiting_trees};

pub(crate) use objects::SAMPLES_MIN;

/// Sampler of who waits for whom.
pub(crate) const SOURCE: &str = whyso_model::LockWait::SOURCE;
/// Its gauge of waiting connections, an instance a kind of lock.
pub(crate) const WAITING: &str = whyso_model::LockWait::WAITING;

//! Who waits for whom: connections that wait for a lock at the moment of a look, into the text table `lock_waits`, and their number
//! by kind of lock, as gauges.
//!
//! A look at row locks is taken only while InnoDB says that rows are waited for (see [`activity`]), because the tables that tell of them
//! are dear where many wait: each waiter is listed with everyone before it in the queue. Of these the one that holds the lock is told.
//! A look that was dear is not repeated soon.

mod activity;
mod metadata;
mod rows;
mod sampler;
mod sources;
mod text;

pub(crate) use activity::{Counted, RowLockActivity, RowWaiters};
pub(crate) use sampler::{LockWaits, METRICS};
pub use sources::{LockLook, lock_waits};

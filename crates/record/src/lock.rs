//! The lock that a recorder holds on its folder.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Whether a recorder holds the folder at this moment.
pub(crate) fn is_locked(dir: &Path) -> bool {
    let Ok(handle) = File::open(dir) else { return false };
    // Shared, so that two readers that ask at once don't take each other for a recorder.
    flock(&handle, FlockOperation::NonBlockingLockShared).is_err()
}

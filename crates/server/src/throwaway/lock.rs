//! Who a throw-away server's folder belongs to, and whether its server runs: the process holds a lock on a file in it.
//! A process's number means nothing in another container, or on another host that shares the folder. A lock is held
//! there, too, and ends with its holder.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use crate::error::{Result, io};

const OWNER: &str = "owner.lock";
const SERVER: &str = "server.lock";
const ENDS_WITHIN: Duration = Duration::from_secs(3);

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Takes the folder. It is ours until the file is closed, here and in the process that watches over it.
pub(super) fn own(folder: &Path) -> Result<File> {
    let path = folder.join(OWNER);
    let file = open(&path).map_err(io("cannot make the lock", &path))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|errno| io("cannot take the lock", &path)(errno.into()))?;
    Ok(file)
}

/// Who owns a folder.
pub(super) enum Owner {
    Lives,
    /// Nobody. The folder is ours as long as this is held.
    Gone(File),
    /// There is no lock: the folder is just being created, or an older version created it.
    Unknown,
}

pub(super) fn owner(folder: &Path) -> Owner {
    let Ok(file) = OpenOptions::new().write(true).open(folder.join(OWNER)) else { return Owner::Unknown };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Owner::Gone(file),
        Err(_) => Owner::Lives,
    }
}

/// A lock for one of the server's processes. It is held until the last one that inherits the file has ended.
pub(super) fn for_server(folder: &Path) -> std::io::Result<File> {
    let file = open(&folder.join(SERVER))?;
    flock(&file, FlockOperation::NonBlockingLockShared)?;
    Ok(file)
}

/// Whether a process of the server's still runs after a moment, wherever that is: what it started may end a little later than itself.
pub(super) fn runs(folder: &Path) -> bool {
    let Ok(file) = OpenOptions::new().write(true).open(folder.join(SERVER)) else { return false };
    let deadline = Instant::now() + ENDS_WITHIN;
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if Instant::now() >= deadline {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

//! The folder that is written to, and the reserve that is freed when its disk is full.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::frame;
use crate::layout::{MANIFEST, RESERVE, TEMPORARY_PREFIX};
use crate::{manifest, private};

pub(crate) struct Disk {
    pub(crate) dir: PathBuf,
    /// The folder, open and locked as long as the recorder lives: how a reader knows whether it does.
    handle: File,
    state: Mutex<State>,
    written_bytes: AtomicU64,
}

#[derive(Default)]
struct State {
    reserve: bool,
    failed: Option<String>,
}

impl Disk {
    /// Makes the folder where it does not exist, locks it and sets the reserve aside.
    pub(crate) fn create(dir: &Path, reserve_bytes: u64) -> Result<Disk> {
        let is_new = !dir.exists();
        private::create_folder(dir).map_err(|cause| Error::io(dir, cause))?;
        let handle = File::open(dir).map_err(|cause| Error::io(dir, cause))?;
        let locked = flock(&handle, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|_| Error::Exists(dir.to_path_buf()))?;
        let disk = Disk {
            dir: dir.to_path_buf(),
            handle,
            state: Mutex::default(),
            written_bytes: AtomicU64::new(0),
        };
        if reserve_bytes > 0 {
            disk.set_reserve_aside(reserve_bytes).inspect_err(|_| {
                if is_new {
                    // Only an empty folder is removed.
                    let _ = fs::remove_dir(dir);
                }
            })?;
        }
        Ok(disk)
    }

    fn set_reserve_aside(&self, reserve_bytes: u64) -> Result<()> {
        let path = self.dir.join(RESERVE);
        let reserved = private::create_file(&path).and_then(|file| allocate(&file, reserve_bytes));
        if let Err(cause) = reserved {
            // The cause matters more than whether the rest of the reserve could be removed.
            let _ = fs::remove_file(&path);
            return Err(if is_full(&cause) {
                Error::NoReserve(self.dir.clone(), reserve_bytes >> 20)
            } else {
                Error::io(&path, cause)
            });
        }
        self.state().reserve = true;
        Ok(())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Nothing that holds this lock can panic half way through a change.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Why recording had to stop, if it had.
    pub(crate) fn failed(&self) -> Option<String> {
        self.state().failed.clone()
    }

    pub(crate) fn fail(&self, error: &Error) {
        self.state().failed.get_or_insert_with(|| error.to_string());
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Gives the reserve back to the disk.
    pub(crate) fn free_reserve(&self) {
        let mut state = self.state();
        if state.reserve && fs::remove_file(self.dir.join(RESERVE)).is_ok() {
            state.reserve = false;
        }
    }

    /// Lets go of the folder: the recording is finished.
    pub(crate) fn unlock(&self) -> Result<()> {
        flock(&self.handle, FlockOperation::Unlock).map_err(|errno| Error::io(&self.dir, errno.into()))
    }

    /// Writes a file as a whole, or not at all: to a temporary name, synced, renamed, the folder synced.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.retrying_when_full(&self.dir.join(name), || self.put_once(name, bytes))?;
        self.written_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn put_once(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let temporary = self.dir.join(format!("{TEMPORARY_PREFIX}{name}"));
        let written = private::create_file(&temporary).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        if let Err(cause) = written {
            // Frees what was written of it; the cause is what the caller must know.
            let _ = fs::remove_file(&temporary);
            return Err(cause);
        }
        // First the digest: a file that is not there yet is not missed, and one without a digest would count as it is.
        if let Err(cause) = self.list(name, bytes) {
            let _ = fs::remove_file(&temporary);
            return Err(cause);
        }
        fs::rename(&temporary, self.dir.join(name))?;
        self.handle.sync_all()
    }

    fn list(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.dir.join(MANIFEST);
        let line = format!("{}{}", private::line_break_due(&path)?, manifest::line(name, bytes)?);
        let mut manifest = private::append_to_file(&path)?;
        let whole_bytes = manifest.metadata()?.len();
        manifest.write_all(line.as_bytes()).inspect_err(|_| {
            // Half a line would damage the next one. Shrinking needs no space.
            let _ = manifest.set_len(whole_bytes);
        })?;
        manifest.sync_data()
    }

    pub(crate) fn remove(&self, path: &Path) -> Result<()> {
        match fs::remove_file(path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(Error::io(path, cause)),
            _ => Ok(()),
        }
    }

    /// Runs a write; when the disk is full, frees the reserve, marks the recording as failed and runs it once more.
    fn retrying_when_full(&self, path: &Path, mut write: impl FnMut() -> io::Result<()>) -> Result<()> {
        let Err(first) = write() else { return Ok(()) };
        if !is_full(&first) {
            let error = Error::io(path, first);
            self.fail(&error);
            return Err(error);
        }
        self.fail(&Error::DiskFull(self.dir.clone()));
        self.free_reserve();
        write().map_err(|cause| {
            if is_full(&cause) { Error::DiskFull(self.dir.clone()) } else { Error::io(path, cause) }
        })
    }
}

/// A write-ahead file that is being appended to.
pub(crate) struct Wal {
    path: PathBuf,
    file: File,
    /// Length up to the end of the last whole frame.
    whole_bytes: u64,
    buffer: Vec<u8>,
}

impl Wal {
    pub(crate) fn create(disk: &Disk, name: &str) -> Result<Wal> {
        let path = disk.dir.join(name);
        let opened = private::append_to_file(&path);
        let file = opened.map_err(|cause| {
            if is_full(&cause) { Error::DiskFull(disk.dir.clone()) } else { Error::io(&path, cause) }
        });
        let file = file.inspect_err(|error| disk.fail(error))?;
        Ok(Wal { path, file, whole_bytes: 0, buffer: Vec::new() })
    }

    /// Appends one frame: when this returns, it is in the page cache and survives the end of the process.
    pub(crate) fn append(&mut self, disk: &Disk, payload: &[u8]) -> Result<()> {
        self.buffer.clear();
        if self.whole_bytes == 0 {
            self.buffer.extend_from_slice(frame::MAGIC);
        }
        frame::append(payload, &mut self.buffer);
        let (file, buffer, whole_bytes) = (&mut self.file, &self.buffer, self.whole_bytes);
        disk.retrying_when_full(&self.path, || {
            file.write_all(buffer).inspect_err(|_| {
                // What was written of the frame goes, so that the next one is found. Shrinking needs no space; should it fail
                // all the same, the reader stops here and reports it.
                let _ = file.set_len(whole_bytes);
            })
        })?;
        self.whole_bytes += self.buffer.len() as u64;
        disk.written_bytes.fetch_add(self.buffer.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Takes space from the disk, by writing zeros where the file system can't do it at once.
fn allocate(mut file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = vec![0; 1 << 20];
            let mut left = bytes;
            while left > 0 {
                let now = left.min(zeros.len() as u64);
                file.write_all(&zeros[..now as usize])?;
                left -= now;
            }
            file.sync_all()
        }
        Err(errno) => Err(errno.into()),
    }
}

//! Storage of a throw-away server that can be made slower by a known factor.
//!
//! A library slows each call that reads, writes or syncs a file; the server loads it before its own. A small file says by how much, at any time.
//! Both lie in the server's folder.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, io};

const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slow.so"));
/// What the library reads the path of its small file from.
pub(super) const SPEED_VARIABLE: &str = "WHYSO_STORAGE_SPEED";

/// The library's unit: thousandths of a call's own time that are added.
const THOUSANDTHS: u32 = 1000;
const FULL_SPEED: u8 = 100;

/// Places in a server's folder.
pub(super) struct Files {
    pub(super) library: PathBuf,
    pub(super) speed: PathBuf,
}

impl Files {
    pub(super) fn of(folder: &Path) -> Files {
        Files { library: folder.join("slow.so"), speed: folder.join("storage-speed") }
    }

    /// Writes both. Nothing is slowed yet.
    pub(super) fn write(&self) -> Result<()> {
        std::fs::write(&self.library, LIBRARY).map_err(io("cannot write", &self.library))?;
        std::fs::write(&self.speed, 0_u32.to_ne_bytes()).map_err(io("cannot write", &self.speed))
    }
}

/// Slows the storage of one server. Dropping it ends that.
pub struct SlowStorage {
    speed: File,
    path: PathBuf,
}

impl SlowStorage {
    pub(super) fn open(path: &Path) -> Result<SlowStorage> {
        let speed = OpenOptions::new().write(true).open(path).map_err(io("cannot write", path))?;
        Ok(SlowStorage { speed, path: path.to_path_buf() })
    }

    /// Lets each call take so long that storage has this part of its speed, 1 to 99 per cent; at 100, all of it.
    ///
    /// # Errors
    /// The server's folder is gone.
    pub fn slow_to(&mut self, percent: u8) -> Result<()> {
        let percent = u32::from(percent.clamp(1, FULL_SPEED));
        let added = THOUSANDTHS * (u32::from(FULL_SPEED) - percent) / percent;
        let written = self.speed.write_all_at(&added.to_ne_bytes(), 0);
        written.map_err(|error| Error::Brake(format!("{} can't be written: {error}", self.path.display())))
    }
}

impl Drop for SlowStorage {
    fn drop(&mut self) {
        // The server goes on where it is kept.
        let _ = self.slow_to(FULL_SPEED);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// Writes and syncs a file again and again for a second, and prints how often.
    const SYNCS: &str = "
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
end, count, spent = time.monotonic() + 1, 0, 0.0
while time.monotonic() < end:
    os.pwrite(file, b'x' * 4096, 0)
    os.fsync(file)
    count += 1
print(count)
";

    fn syncs_per_s(files: &Files, at: &Path) -> f64 {
        let child: Child = Command::new("python3")
            .args(["-c", SYNCS])
            .arg(at)
            .env("LD_PRELOAD", &files.library)
            .env(SPEED_VARIABLE, &files.speed)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    }

    #[test]
    fn what_is_written_and_synced_takes_as_much_longer_as_the_speed_says() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let files = Files::of(folder.path());
        files.write().unwrap();
        let mut storage = SlowStorage::open(&files.speed).unwrap();
        let at = folder.path().join("file");
        // Of three rounds the middle one: others use this disk, too.
        let mut ratios: Vec<f64> = (0..3)
            .map(|_| {
                storage.slow_to(100).unwrap();
                let full = syncs_per_s(&files, &at);
                storage.slow_to(25).unwrap();
                syncs_per_s(&files, &at) / full
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        assert!((0.17..0.36).contains(&ratios[1]), "{ratios:?}");
    }

    #[test]
    fn a_change_of_speed_is_seen_by_what_runs_and_errors_stay_what_they_are() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let files = Files::of(folder.path());
        files.write().unwrap();
        let mut storage = SlowStorage::open(&files.speed).unwrap();
        storage.slow_to(1).unwrap();
        let program = "
import os, sys
try:
    os.pread(os.open('/', os.O_RDONLY), 1, 0)
except OSError as error:
    print(error.errno)
";
        let begin = Instant::now();
        let run = Command::new("python3")
            .args(["-c", program])
            .env("LD_PRELOAD", &files.library)
            .env(SPEED_VARIABLE, &files.speed)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(run.stdout).unwrap().trim(), libc::EISDIR.to_string());
        assert!(begin.elapsed() < Duration::from_secs(20));
        drop(storage);
        assert_eq!(std::fs::read(&files.speed).unwrap(), 0_u32.to_ne_bytes());
    }
}

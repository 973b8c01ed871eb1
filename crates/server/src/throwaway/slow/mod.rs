//! A throw-away server that can be made slower by known factors: its storage, and the work of its statements.
//!
//! A library lets calls and statements take longer; the server loads it before its own. A small file says by how much, at any time. Both lie in
//! the server's folder.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, io};

const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slow.so"));
/// What the library reads the path of its small file from.
pub(super) const SPEEDS_VARIABLE: &str = "WHYSO_SPEEDS";

/// The library's unit: thousandths of its own time that are added.
const THOUSANDTHS: u32 = 1000;
const FULL_SPEED: u8 = 100;

/// What is slowed; its place in the small file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPart {
    /// Calls that read, write or sync files.
    Storage = 0,
    /// CPU time of threads that send answers.
    Work = 1,
}

const PARTS: [SlowPart; 2] = [SlowPart::Storage, SlowPart::Work];

/// Places in a server's folder.
pub(super) struct Files {
    pub(super) library: PathBuf,
    pub(super) speeds: PathBuf,
}

impl Files {
    pub(super) fn of(folder: &Path) -> Files {
        Files { library: folder.join("slow.so"), speeds: folder.join("speeds") }
    }

    /// Writes both. Nothing is slowed yet.
    pub(super) fn write(&self) -> Result<()> {
        let nothing = [0; PARTS.len() * size_of::<u32>()];
        std::fs::write(&self.library, LIBRARY).map_err(io("cannot write", &self.library))?;
        std::fs::write(&self.speeds, nothing).map_err(io("cannot write", &self.speeds))
    }
}

/// Slows parts of one server. Dropping it ends that.
pub struct Slower {
    speeds: File,
    path: PathBuf,
}

impl Slower {
    pub(super) fn open(path: &Path) -> Result<Slower> {
        let speeds = OpenOptions::new().write(true).open(path).map_err(io("cannot write", path))?;
        Ok(Slower { speeds, path: path.to_path_buf() })
    }

    /// Gives a part this per cent of its speed, 1 to 99; at 100, all of it.
    ///
    /// # Errors
    /// The server's folder is gone.
    pub fn slow_to(&mut self, part: SlowPart, percent: u8) -> Result<()> {
        let percent = u32::from(percent.clamp(1, FULL_SPEED));
        let added = THOUSANDTHS * (u32::from(FULL_SPEED) - percent) / percent;
        let at = part as u64 * size_of::<u32>() as u64;
        let written = self.speeds.write_all_at(&added.to_ne_bytes(), at);
        written.map_err(|error| Error::Slow(format!("{} can't be written: {error}", self.path.display())))
    }
}

impl Drop for Slower {
    fn drop(&mut self) {
        // A server that is kept has its full speed again.
        for part in PARTS {
            let _ = self.slow_to(part, FULL_SPEED);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output, Stdio};

    use super::*;

    /// Writes and syncs a file as often as it can in a fifth of a second, and prints how often.
    const SYNCS: &str = "
import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
end, count = time.monotonic() + 0.2, 0
while time.monotonic() < end:
    os.pwrite(file, b'x' * 4096, 0)
    os.fsync(file)
    count += 1
print(count)
";

    /// Computes and sends for a second of CPU time, and prints what of that it would have needed by itself.
    const ANSWERS: &str = "
import socket, time
here, there = socket.socketpair()
own, before = 0.0, time.thread_time()
here.send(b'x')
while time.thread_time() < before + 1:
    begin = time.thread_time()
    sum(range(20000))
    own += time.thread_time() - begin
    here.send(b'x')
    there.recv(1)
print(own)
";

    struct Place {
        folder: tempfile::TempDir,
        files: Files,
        slower: Slower,
    }

    impl Place {
        fn new() -> Place {
            let folder = tempfile::tempdir_in("/var/tmp").unwrap();
            let files = Files::of(folder.path());
            files.write().unwrap();
            let slower = Slower::open(&files.speeds).unwrap();
            Place { folder, files, slower }
        }

        fn python(&self, program: &str) -> Output {
            Command::new("python3")
                .args(["-c", program])
                .arg(self.folder.path().join("file"))
                .env("LD_PRELOAD", &self.files.library)
                .env(SPEEDS_VARIABLE, &self.files.speeds)
                .stdin(Stdio::null())
                .output()
                .unwrap()
        }

        fn number(&self, program: &str) -> f64 {
            String::from_utf8(self.python(program).stdout).unwrap().trim().parse().unwrap()
        }
    }

    #[test]
    fn what_is_written_and_synced_takes_as_much_longer_as_the_speed_says() {
        let mut place = Place::new();
        // Of many short rounds the middle one: others use this disk, too.
        let mut ratios: Vec<f64> = (0..15)
            .map(|_| {
                place.slower.slow_to(SlowPart::Storage, 100).unwrap();
                let full = place.number(SYNCS);
                place.slower.slow_to(SlowPart::Storage, 25).unwrap();
                place.number(SYNCS) / full
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        assert!((0.12..0.36).contains(&ratios[7]), "{ratios:?}");
    }

    #[test]
    fn what_is_computed_before_an_answer_takes_as_much_longer_as_the_speed_says() {
        let mut place = Place::new();
        let all = place.number(ANSWERS);
        assert!(all > 0.7, "nearly everything is its own: {all}");
        place.slower.slow_to(SlowPart::Work, 40).unwrap();
        let own = place.number(ANSWERS) / all;
        assert!((0.34..0.46).contains(&own), "{own}");
    }

    #[test]
    fn errors_stay_what_they_are_and_the_end_is_full_speed() {
        let mut place = Place::new();
        place.slower.slow_to(SlowPart::Storage, 1).unwrap();
        let program = "
import os
try:
    os.pread(os.open('/', os.O_RDONLY), 1, 0)
except OSError as error:
    print(error.errno)
";
        let printed = place.python(program).stdout;
        assert_eq!(String::from_utf8(printed).unwrap().trim(), libc::EISDIR.to_string());
        drop(place.slower);
        assert_eq!(std::fs::read(&place.files.speeds).unwrap(), [0; 8]);
    }
}

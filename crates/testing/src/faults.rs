//! Fails one call that changes files, or ends the program there, in an unchanged program: a library for `LD_PRELOAD`, compiled when a test needs it.
//!
//! The calls of `rustix` go to the kernel directly and are not seen: `flock`, `fallocate`, `syncfs` and the ioctls of reflinks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = include_str!("faults.c");

/// What happens at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Half of what is written there reaches the disk, and nothing afterwards that takes space, until a file of 1 MiB or more is removed.
    Full,
    /// The call fails with EIO, and only that one.
    Eio,
    /// From there on every call fails with EIO.
    Dead,
    /// The program is killed: half of what is written there reaches the disk.
    Kill,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 4] = [Fault::Full, Fault::Eio, Fault::Dead, Fault::Kill];

    fn name(self) -> &'static str {
        match self {
            Fault::Full => "full",
            Fault::Eio => "eio",
            Fault::Dead => "dead",
            Fault::Kill => "kill",
        }
    }

    /// Whether it differs, at this call, from the same fault at the next one.
    pub fn matters_at(self, call: &Call) -> bool {
        self != Fault::Full || call.takes_space
    }
}

/// A call that changes files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Such as "write".
    pub name: String,
    /// Below the folder that is watched.
    pub path: String,
    /// Whether it fails where the disk is full.
    pub takes_space: bool,
}

/// The compiled library.
pub struct Faults {
    folder: tempfile::TempDir,
}

impl Faults {
    /// Compiles it. `None` where that is not possible here, which is then reported as not tested.
    pub fn compile() -> Option<Faults> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let source = folder.path().join("faults.c");
        fs::write(&source, SOURCE).expect("a temporary file can be written");
        let compiled = Command::new("clang")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .arg(folder.path().join("faults.so"))
            .arg(&source)
            .args(["-ldl", "-lpthread"])
            .output();
        match compiled {
            Ok(output) if output.status.success() => Some(Faults { folder }),
            Ok(output) => panic!("faults.c: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => {
                crate::not_tested(format!("faults of the file system need clang: {error}"));
                None
            }
        }
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// Has a program fail at the `at`-th call (from 1) that changes a file under `under`; `None`: count only.
    pub fn inject(&self, command: &mut Command, under: &Path, fault: Option<(Fault, usize)>) {
        let _ = fs::remove_file(self.log());
        command
            .env("LD_PRELOAD", self.folder.path().join("faults.so"))
            .env("FAULT_UNDER", under)
            .env("FAULT_LOG", self.log())
            .env("FAULT_AT", fault.map_or(0, |(_, at)| at).to_string())
            .env("FAULT_KIND", fault.map_or("", |(fault, _)| fault.name()));
    }

    /// The calls of the program that was started last.
    pub fn calls(&self) -> Vec<Call> {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let call = |line: &str| {
            let (name, path) = line.split_once(' ')?;
            let takes_space = name.ends_with('+');
            Some(Call { name: name.trim_end_matches('+').to_string(), path: path.to_string(), takes_space })
        };
        log.lines().filter_map(call).collect()
    }
}

/// At most `many` of the numbers from 1 to `last`, evenly spread, the first and the last among them.
pub fn spread(last: usize, many: usize) -> Vec<usize> {
    let many = many.min(last);
    let mut numbers: Vec<usize> = (0..many).map(|n| 1 + n * (last - 1) / (many - 1).max(1)).collect();
    numbers.dedup();
    numbers
}

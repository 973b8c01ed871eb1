//! What was found in runs, kept from one start of the server to the next: a small file in the user's cache, which may go at any time.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// More are not kept: the oldest go.
const KEPT_MAX: usize = 4_000;
const CHARACTERS_MAX: usize = 600;
const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Default, Deserialize, Serialize)]
struct Content {
    /// Another version may find something else.
    program: String,
    verdicts: VecDeque<Kept>,
}

/// One run's, with the stamp of its files.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) stamp: u64,
    pub(crate) verdict: String,
}

/// The file.
pub(crate) struct KeptVerdicts {
    path: Option<PathBuf>,
    program: String,
}

impl KeptVerdicts {
    /// `None`: nothing is kept.
    pub(crate) fn new(path: Option<PathBuf>) -> KeptVerdicts {
        KeptVerdicts { path, program: program() }
    }

    /// Those that this program found. What can't be read counts as not there.
    pub(crate) fn read(&self) -> Vec<Kept> {
        let content = self.path.as_deref().and_then(content).unwrap_or_default();
        if content.program == self.program { content.verdicts.into() } else { Vec::new() }
    }

    /// Adds some to those that the file has meanwhile, be it by another server. That it can't be written costs time, no more.
    pub(crate) fn add(&self, new: &[Kept]) {
        let Some(path) = &self.path else { return };
        let mut verdicts = VecDeque::from(self.read());
        for one in new {
            verdicts.retain(|other| (&other.id, other.stamp) != (&one.id, one.stamp));
            let verdict = one.verdict.chars().take(CHARACTERS_MAX).collect();
            verdicts.push_back(Kept { verdict, ..one.clone() });
        }
        let excess = verdicts.len().saturating_sub(KEPT_MAX);
        verdicts.drain(..excess);
        let _ = write(path, &Content { program: self.program.clone(), verdicts });
    }
}

/// The version, and which build of it: two of one version may differ.
fn program() -> String {
    let built = std::env::current_exe().and_then(fs::metadata).and_then(|about| about.modified());
    let built = built.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    format!("{} {}", env!("CARGO_PKG_VERSION"), built.map_or(0, |since| since.as_millis()))
}

fn content(path: &Path) -> Option<Content> {
    let mut json = Vec::new();
    let read = File::open(path).ok()?.take(FILE_BYTES_MAX + 1).read_to_end(&mut json).ok()?;
    if read as u64 > FILE_BYTES_MAX {
        return None;
    }
    serde_json::from_slice(&json).ok()
}

/// Whole or not at all, and for the user alone.
fn write(path: &Path, content: &Content) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let whole = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&whole)?;
    file.write_all(&serde_json::to_vec(content)?)?;
    fs::rename(&whole, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(id: usize) -> Kept {
        Kept { id: id.to_string(), stamp: id as u64, verdict: "v".repeat(CHARACTERS_MAX + 1) }
    }

    #[test]
    fn verdicts_are_kept_bounded_and_those_of_another_program_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/verdicts.json");
        let file = KeptVerdicts::new(Some(path.clone()));
        assert!(file.read().is_empty());
        file.add(&[kept(1)]);
        KeptVerdicts::new(Some(path.clone())).add(&[kept(2), kept(1)]);
        let read = file.read();
        assert_eq!(read.iter().map(|one| one.stamp).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(read[0].verdict.len(), CHARACTERS_MAX);
        file.add(&(0..KEPT_MAX + 10).map(kept).collect::<Vec<_>>());
        assert_eq!((file.read().len(), file.read()[0].stamp), (KEPT_MAX, 10));
        assert!(fs::metadata(&path).unwrap().len() < FILE_BYTES_MAX);
        let other = KeptVerdicts { path: Some(path), program: "another".into() };
        assert!(other.read().is_empty());
    }

    #[test]
    fn a_damaged_file_is_ignored_and_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("verdicts.json");
        for damaged in ["", "{", "[]", "{\"program\":1}", "\u{0}"] {
            fs::write(&path, damaged).unwrap();
            let file = KeptVerdicts::new(Some(path.clone()));
            assert!(file.read().is_empty(), "{damaged}");
            file.add(&[kept(3)]);
            assert_eq!(file.read().len(), 1, "{damaged}");
        }
        KeptVerdicts::new(None).add(&[kept(1)]);
        KeptVerdicts::new(Some("/proc/nowhere/verdicts.json".into())).add(&[kept(1)]);
    }
}

//! The file that keeps verdicts from one start of the server to the next. It lies in the user's cache, and can vanish at any time.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

/// Verdicts of the file. The oldest ones are dropped. A folder with more runs has some worked out again at each start.
const VERDICTS_MAX: usize = 20_000;
const CHARACTERS_MAX: usize = 600;
/// Room for as many of the longest ones.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Default, Deserialize, Serialize)]
struct Content {
    /// The program that found them: another version may find something else.
    program: String,
    verdicts: VecDeque<StoredVerdict>,
}

/// The verdict of one run, with the stamp of its files.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct StoredVerdict {
    pub(crate) id: String,
    pub(crate) stamp: u64,
    pub(crate) verdict: Verdict,
}

/// What was found of a run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// The answer in a sentence.
    pub(crate) words: String,
    /// The first suspect.
    pub(crate) cause: Option<FoundCause>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct FoundCause {
    pub(crate) id: String,
    pub(crate) words: String,
    pub(crate) share: f64,
}

/// The file of verdicts.
pub(crate) struct VerdictFile {
    path: Option<PathBuf>,
    program: String,
}

impl VerdictFile {
    /// `None`: nothing is read or written.
    pub(crate) fn new(path: Option<PathBuf>) -> VerdictFile {
        VerdictFile { path, program: program() }
    }

    /// Reads the verdicts that this program found. A file that can't be read counts as missing.
    pub(crate) fn read(&self) -> Vec<StoredVerdict> {
        let content = self.path.as_deref().and_then(content).unwrap_or_default();
        if content.program == self.program { content.verdicts.into() } else { Vec::new() }
    }

    /// Adds verdicts to the file, which another server may have changed. A file that can't be written only costs time.
    pub(crate) fn add(&self, new: &[StoredVerdict]) {
        let Some(path) = &self.path else { return };
        let mut verdicts = VecDeque::from(self.read());
        let replaced: HashSet<(&str, u64)> =
            new.iter().map(|added| (added.id.as_str(), added.stamp)).collect();
        verdicts.retain(|other| !replaced.contains(&(other.id.as_str(), other.stamp)));
        for added in new {
            let mut added = added.clone();
            added.verdict.words = added.verdict.words.chars().take(CHARACTERS_MAX).collect();
            verdicts.push_back(added);
        }
        let excess = verdicts.len().saturating_sub(VERDICTS_MAX);
        verdicts.drain(..excess);
        let _ = write(path, &Content { program: self.program.clone(), verdicts });
    }
}

/// Returns the version and the time of the build: two builds of one version can differ.
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

/// Writes the whole file or nothing. Only the user can read it.
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

    fn stored(id: usize) -> StoredVerdict {
        StoredVerdict {
            id: id.to_string(),
            stamp: id as u64,
            verdict: Verdict { words: "v".repeat(CHARACTERS_MAX + 1), cause: None },
        }
    }

    #[test]
    fn the_number_of_verdicts_is_bounded_and_those_of_another_program_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache/verdicts.json");
        let file = VerdictFile::new(Some(path.clone()));
        assert!(file.read().is_empty());
        file.add(&[stored(1)]);
        VerdictFile::new(Some(path.clone())).add(&[stored(2), stored(1)]);
        let read = file.read();
        assert_eq!(read.iter().map(|verdict| verdict.stamp).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(read[0].verdict.words.len(), CHARACTERS_MAX);
        file.add(&(0..VERDICTS_MAX + 10).map(stored).collect::<Vec<_>>());
        assert_eq!((file.read().len(), file.read()[0].stamp), (VERDICTS_MAX, 10));
        assert!(fs::metadata(&path).unwrap().len() < FILE_BYTES_MAX);
        let other = VerdictFile { path: Some(path), program: "another".into() };
        assert!(other.read().is_empty());
    }

    #[test]
    fn a_damaged_file_is_ignored_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("verdicts.json");
        for damaged in ["", "{", "[]", "{\"program\":1}", "\u{0}"] {
            fs::write(&path, damaged).unwrap();
            let file = VerdictFile::new(Some(path.clone()));
            assert!(file.read().is_empty(), "{damaged}");
            file.add(&[stored(3)]);
            assert_eq!(file.read().len(), 1, "{damaged}");
        }
        VerdictFile::new(None).add(&[stored(1)]);
        VerdictFile::new(Some("/proc/nowhere/verdicts.json".into())).add(&[stored(1)]);
    }
}

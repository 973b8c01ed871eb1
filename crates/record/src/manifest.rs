//! Digests of a recording's finished files. Parquet has no checksum of its own here, so that a flipped bit would be another number.
//!
//! `manifest.jsonl` has a line for each time that a file was finished: the line's own checksum, then a JSON object. Files that are written ahead
//! have checksums in their frames; notes, reports and the server's log are not in it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::folder::FileIdentity;
use crate::{layout, private};

/// More of a manifest is not read: a line has some hundred bytes, and a recording at most some ten thousand files.
const BYTES_MAX: u64 = 64 << 20;
const PIECE_BYTES: usize = 256 << 10;
/// Files that are remembered as checked.
const CHECKED_MAX: usize = 100_000;

#[derive(Deserialize, Serialize)]
pub(crate) struct Line {
    pub(crate) file: String,
    #[serde(flatten)]
    pub(crate) digest: Digest,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Digest {
    pub(crate) bytes: u64,
    pub(crate) crc32c: u32,
}

/// The line that lists a file with this content.
pub(crate) fn line(name: &str, content: &[u8]) -> io::Result<String> {
    let digest = Digest { bytes: content.len() as u64, crc32c: crc32c::crc32c(content) };
    let json = serde_json::to_string(&Line { file: name.to_string(), digest })?;
    Ok(checked_line(&json))
}

/// A line of a JSON text after its checksum.
pub(crate) fn checked_line(json: &str) -> String {
    format!("{:08x} {json}\n", crc32c::crc32c(json.as_bytes()))
}

/// The JSON text of such a line; `None` where it is not whole.
pub(crate) fn checked_json(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (sum, json) = text.split_once(' ')?;
    // As text: a letter in the other case is a flipped bit, too.
    (sum == format!("{:08x}", crc32c::crc32c(json.as_bytes()))).then_some(json)
}

/// What a recording's files should be.
#[derive(Default)]
pub(crate) struct Manifest {
    /// A file may have been written several times. One that was to be replaced when the recorder was killed is the one before.
    digests: HashMap<String, Vec<Digest>>,
}

impl Manifest {
    /// Reads it; empty where there is none, as in recordings of older versions. Also returns what is wrong with it.
    pub(crate) fn read(dir: &Path, is_live: bool) -> (Manifest, Vec<String>) {
        let path = dir.join(layout::MANIFEST);
        let mut content = Vec::new();
        let read = private::open_file(&path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut content));
        let mut manifest = Manifest::default();
        let mut problems = Vec::new();
        match read {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return (manifest, problems),
            Err(cause) => problems.push(format!("{} can't be read: {cause}", path.display())),
            Ok(_) => {}
        }
        let mut unreadable = 0;
        for (at, bytes) in content.split_inclusive(|byte| *byte == b'\n').enumerate() {
            match listed(bytes) {
                Some(line) => manifest.digests.entry(line.file).or_default().push(line.digest),
                // What is being written just now.
                None if is_live && at > 0 && !bytes.ends_with(b"\n") => {}
                None => unreadable += 1,
            }
        }
        if unreadable > 0 {
            problems.push(format!(
                "{unreadable} lines of {} are damaged: whether the files that they list are as they were recorded is not known",
                path.display()
            ));
        }
        (manifest, problems)
    }

    /// Checks a file, once in this process as long as it stays as it is. One that is not listed counts as it is.
    ///
    /// # Errors
    /// [`Error::Changed`] where it is not what was recorded, [`Error::Io`] where it can't be read.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(listed) = self.digests.get(name.as_ref()) else { return Ok(()) };
        let file = private::open_file(path).map_err(|cause| Error::io(path, cause))?;
        let about = file.metadata().map_err(|cause| Error::io(path, cause))?;
        let identity = FileIdentity::of(&about);
        if checked().contains(&identity) {
            return Ok(());
        }
        let digest = digest_of(file).map_err(|cause| Error::io(path, cause))?;
        if !listed.contains(&digest) {
            return Err(Error::Changed(path.to_path_buf()));
        }
        let mut checked = checked();
        if checked.len() >= CHECKED_MAX {
            checked.clear();
        }
        checked.insert(identity);
        Ok(())
    }

    /// Names of the files that are listed.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.digests.keys().map(String::as_str)
    }
}

/// The line with these bytes; `None` where it is damaged.
pub(crate) fn listed(bytes: &[u8]) -> Option<Line> {
    serde_json::from_str(checked_json(bytes)?).ok()
}

/// The digest of what is left of a file.
pub(crate) fn digest_of(mut file: File) -> io::Result<Digest> {
    let mut digest = Digest { bytes: 0, crc32c: 0 };
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(digest),
            read => {
                digest.bytes += read as u64;
                digest.crc32c = crc32c::crc32c_append(digest.crc32c, &piece[..read]);
            }
        }
    }
}

fn checked() -> std::sync::MutexGuard<'static, HashSet<FileIdentity>> {
    static CHECKED: LazyLock<Mutex<HashSet<FileIdentity>>> = LazyLock::new(Mutex::default);
    // A set that was left half changed misses an entry at most.
    CHECKED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What a check of a whole recording found.
#[derive(Debug)]
pub struct CheckResult {
    /// Files that are as they were recorded.
    pub files: usize,
    /// In sentences; empty where all is well.
    pub problems: Vec<String>,
}

/// Checks every finished file of a recording against its digest.
///
/// # Errors
/// The folder is no recording.
pub fn check_run(dir: &Path) -> Result<CheckResult> {
    if !dir.join(layout::RUN).is_file() {
        return Err(Error::NotARecording(dir.to_path_buf()));
    }
    let (manifest, mut problems) = Manifest::read(dir, crate::lock::is_locked(dir));
    let mut files = 0;
    let mut names: Vec<&str> = manifest.names().collect();
    names.sort_unstable();
    if names.is_empty() {
        problems.push(format!("{} has no digests: it was recorded by an older version", dir.display()));
    }
    // Compacted and pruned files are listed, and gone.
    for path in names.iter().map(|name| dir.join(name)).filter(|path| path.exists()) {
        match manifest.check(&path) {
            Ok(()) => files += 1,
            Err(error) => problems.push(error.to_string()),
        }
    }
    Ok(CheckResult { files, problems })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_flipped_bit_is_found_in_a_file_and_in_the_manifest_itself() {
        let place = tempfile::tempdir().unwrap();
        let (file, manifest) = (place.path().join("a.parquet"), place.path().join(layout::MANIFEST));
        let content: Vec<u8> = (0..=255).cycle().take(1_000).collect();
        let listed = line("a.parquet", b"before").unwrap() + &line("a.parquet", &content).unwrap();
        fs::write(&manifest, &listed).unwrap();
        let check = |content: &[u8]| {
            fs::write(&file, content).unwrap();
            let (manifest, problems) = Manifest::read(place.path(), false);
            (manifest.check(&file).is_ok(), problems.len())
        };
        assert_eq!(check(&content), (true, 0));
        assert_eq!(check(b"before"), (true, 0));
        assert_eq!(check(&content[..999]), (false, 0));
        for bit in [0, 7, 4_000, 7_999] {
            let mut flipped = content.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(check(&flipped), (false, 0), "bit {bit}");
        }
        for bit in 0..listed.len() * 8 {
            let mut flipped = listed.clone().into_bytes();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&manifest, &flipped).unwrap();
            assert_eq!(Manifest::read(place.path(), false).1.len(), 1, "bit {bit} of the manifest");
        }
    }
}

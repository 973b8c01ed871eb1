//! Recordings that go to storage and come back: which files they have, and what is checked when they arrive.
//!
//! A copy in storage has one file in addition, [`FILE_LIST`]. It lists every other file with its digest, in lines like a manifest's. The
//! list is complete, a manifest is not: it also has files that were compacted or pruned, and lacks notes. What arrives is a stranger's.
//! It counts only if it is what both lists say.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::coming::{Coming, is_plain_name};
use crate::error::{Error, Result};
use crate::manifest::{Digest, Line, check_run, checked_line, digest_of, listed};
use crate::{backup, layout, private};

/// Name of the list of files, in storage only.
pub const FILE_LIST: &str = "files.jsonl";

/// Files that describe a run to a list. The first makes a folder a recording.
pub const DESCRIPTION_FILES: [&str; 3] = [layout::RUN, layout::MANIFEST, layout::LABELS];

/// A file of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedFile {
    /// A plain name: it leads to no other folder.
    pub name: String,
    pub bytes: u64,
    pub crc32c: u32,
}

/// The files of a recording that goes to storage.
#[derive(Clone, Debug, PartialEq)]
pub struct RunFiles {
    pub id: String,
    /// In the order in which they are sent. The last one is what makes a folder a recording: until it is there, nothing is.
    pub files: Vec<ListedFile>,
    /// Content of the file list, which is sent before the last file.
    pub list: String,
}

impl RunFiles {
    /// Lists the files of the recording in `dir`, and checks that they are as they were recorded.
    ///
    /// # Errors
    /// It is no recording, is being recorded, is damaged or has no digests, or its files can't be read.
    pub fn of(dir: &Path) -> Result<RunFiles> {
        backup::check(std::slice::from_ref(&dir.to_path_buf()))?;
        if let Some(problem) = check_run(dir)?.problems.first() {
            return Err(Error::Transfer(format!(
                "{problem}; a copy of it could not be checked: keep it as a file with `whyso runs backup`"
            )));
        }
        let id = dir.file_name().and_then(|name| name.to_str()).filter(|id| is_run_id(id));
        let id = id.ok_or_else(|| Error::NotARecording(dir.to_path_buf()))?;
        let (mut files, mut list) = (Vec::new(), String::new());
        for path in backup::files_of(dir)? {
            let io = |cause| Error::io(&path, cause);
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A name that no whyso gives would be refused where it arrives.
            if !is_plain_name(name) || name == FILE_LIST {
                continue;
            }
            let digest = digest_of(private::open_file(&path).map_err(io)?).map_err(io)?;
            let line = Line { file: name.to_string(), digest };
            list.push_str(&checked_line(&serde_json::to_string(&line).map_err(|cause| io(cause.into()))?));
            files.push(ListedFile { name: line.file, bytes: digest.bytes, crc32c: digest.crc32c });
        }
        files.sort_by_key(|file| file.name == layout::RUN);
        Ok(RunFiles { id: id.to_string(), files, list })
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Whether a folder of a recording may be called so.
fn is_run_id(id: &str) -> bool {
    is_plain_name(id) && !id.starts_with('.')
}

/// Reads a file list of somebody else's, of the run `id`.
///
/// # Errors
/// It is damaged, names a file twice or none that a recording has, or names more files than a recording may have.
pub fn parse_file_list(id: &str, content: &[u8]) -> Result<Vec<ListedFile>> {
    let broken = |why: &str| {
        Error::Transfer(format!("the list of the files of {} {why}: push the run again", id.escape_debug()))
    };
    if !is_run_id(id) {
        return Err(broken("is of a folder that no run has"));
    }
    let mut files = Vec::new();
    let mut names = HashSet::new();
    for bytes in content.split_inclusive(|byte| *byte == b'\n') {
        let line = listed(bytes).ok_or_else(|| broken("is damaged"))?;
        if !is_plain_name(&line.file) || line.file == FILE_LIST || line.file.starts_with('.') {
            return Err(broken("names what is no file of a recording"));
        }
        if !names.insert(line.file.clone()) {
            return Err(broken("names a file twice"));
        }
        if files.len() >= backup::FILES_MAX {
            return Err(broken("is longer than that of any recording"));
        }
        files.push(ListedFile { name: line.file, bytes: line.digest.bytes, crc32c: line.digest.crc32c });
    }
    match names.contains(layout::RUN) {
        true => Ok(files),
        false => Err(broken("lacks the run's description")),
    }
}

/// A recording that is arriving in a folder of runs. Until [`Arrival::finish`] it is not there. What did not finish is removed.
pub struct Arrival {
    coming: Coming,
    runs: PathBuf,
    id: String,
    files: Vec<ListedFile>,
}

impl Arrival {
    /// Makes room for a run with these files.
    ///
    /// # Errors
    /// The folder can't be written, or has a run of that name.
    pub fn create(runs: &Path, id: &str, files: Vec<ListedFile>) -> Result<Arrival> {
        if !is_run_id(id) {
            return Err(Error::Transfer(format!("{} is no name of a run", id.escape_debug())));
        }
        fs::create_dir_all(runs).map_err(|cause| Error::io(runs, cause))?;
        let place = runs.join(id);
        if place.exists() {
            return Err(Error::Exists(place));
        }
        let coming = Coming::create(runs)?;
        private::create_folder(&coming.dir.join(id)).map_err(|cause| Error::io(&coming.dir, cause))?;
        Ok(Arrival { coming, runs: runs.to_path_buf(), id: id.to_string(), files })
    }

    /// The files that are to come.
    pub fn files(&self) -> &[ListedFile] {
        &self.files
    }

    /// Opens a file of the run to write it.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn create_file(&self, file: &ListedFile) -> Result<File> {
        let path = self.folder().join(&file.name);
        private::create_new_file(&path).map_err(|cause| Error::io(&path, cause))
    }

    fn folder(&self) -> PathBuf {
        self.coming.dir.join(&self.id)
    }

    /// Checks every file against the file list and the manifest, and lets the run appear. Returns its folder.
    ///
    /// # Errors
    /// Something is not what was recorded, or can't be read or written.
    pub fn finish(self) -> Result<PathBuf> {
        let folder = self.folder();
        for file in &self.files {
            let path = folder.join(&file.name);
            let io = |cause| Error::io(&path, cause);
            let content = private::open_file(&path).map_err(io)?;
            content.sync_all().map_err(io)?;
            let digest = digest_of(content).map_err(io)?;
            if digest != (Digest { bytes: file.bytes, crc32c: file.crc32c }) {
                return Err(self.refused(&format!("{} is not what was sent", file.name.escape_debug())));
            }
        }
        if !check_run(&folder)?.problems.is_empty() {
            return Err(self.refused("its files are not what its manifest lists"));
        }
        let place = self.runs.join(&self.id);
        fs::rename(&folder, &place).map_err(|cause| Error::io(&place, cause))?;
        Ok(place)
    }

    fn refused(&self, why: &str) -> Error {
        Error::Transfer(format!("{} was not taken in: {why}; push the run again", self.id.escape_debug()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::{Options, Recorder, Recording, add_note};

    fn recorded(dir: &Path) {
        Recorder::create(dir, Options::default()).unwrap().finish().unwrap();
        add_note(dir, 5, "a note").unwrap();
    }

    fn send(from: &Path, arrival: &Arrival, change: impl Fn(&str, Vec<u8>) -> Vec<u8>) {
        for file in arrival.files() {
            let content = change(&file.name, fs::read(from.join(&file.name)).unwrap());
            arrival.create_file(file).unwrap().write_all(&content).unwrap();
        }
    }

    #[test]
    fn a_run_arrives_whole_with_its_notes() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from/one"), place.path().join("to"));
        recorded(&from);
        let sent = RunFiles::of(&from).unwrap();
        assert_eq!(sent.files.last().unwrap().name, layout::RUN);
        let mut files = parse_file_list("one", sent.list.as_bytes()).unwrap();
        files.sort_by(|a, b| a.name.cmp(&b.name));
        let mut listed = sent.files.clone();
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(files, listed);
        let arrival = Arrival::create(&to, "one", files.clone()).unwrap();
        send(&from, &arrival, |_, content| content);
        assert!(crate::list_runs(&to).unwrap().is_empty(), "it is not there before its end");
        let dir = arrival.finish().unwrap();
        assert_eq!(Recording::open(&dir).unwrap().events().unwrap()[0].text, "a note");
        assert_eq!(fs::read_dir(&to).unwrap().count(), 1);
        assert!(matches!(Arrival::create(&to, "one", files), Err(Error::Exists(_))));
    }

    #[test]
    fn what_is_not_what_was_sent_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from/one"), place.path().join("to"));
        recorded(&from);
        let files = RunFiles::of(&from).unwrap().files;
        for changed in files.iter().map(|file| file.name.as_str()) {
            let arrival = Arrival::create(&to, "one", files.clone()).unwrap();
            send(&from, &arrival, |name, mut content| {
                if name == changed {
                    content.push(b' ');
                }
                content
            });
            let error = arrival.finish().unwrap_err().to_string();
            assert!(error.contains(changed) && error.ends_with("push the run again"), "{error}");
            assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
        }
        // A list that agrees with itself, and not with the manifest.
        let other: Vec<u8> = b"{}".to_vec();
        let forged: Vec<ListedFile> = files
            .iter()
            .map(|file| match file.name == layout::RUN {
                true => ListedFile { bytes: 2, crc32c: crc32c::crc32c(&other), ..file.clone() },
                false => file.clone(),
            })
            .collect();
        let arrival = Arrival::create(&to, "one", forged).unwrap();
        send(&from, &arrival, |name, content| if name == layout::RUN { other.clone() } else { content });
        assert!(arrival.finish().unwrap_err().to_string().contains("manifest"));
        assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    }

    #[test]
    fn a_list_of_files_leads_nowhere_else() {
        let line = |name: &str| {
            let line = Line { file: name.to_string(), digest: Digest { bytes: 1, crc32c: 2 } };
            checked_line(&serde_json::to_string(&line).unwrap())
        };
        let whole = line(layout::RUN);
        assert_eq!(parse_file_list("one", whole.as_bytes()).unwrap().len(), 1);
        for name in
            ["../run.json", "/etc/passwd", "a/b", "..", ".", "", "a\nb", ".reserve", FILE_LIST, layout::RUN]
        {
            assert!(parse_file_list("one", (whole.clone() + &line(name)).as_bytes()).is_err(), "{name:?}");
        }
        for id in ["..", "", "a/b", ".importing-1"] {
            assert!(parse_file_list(id, whole.as_bytes()).is_err(), "{id:?}");
        }
        assert!(parse_file_list("one", b"").is_err());
        assert!(parse_file_list("one", &whole.as_bytes()[..whole.len() - 2]).is_err());
    }
}

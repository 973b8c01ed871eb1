//! What was done of a study: a folder that a crash at any moment leaves whole.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cells::Start;
use crate::{Error, Spec};

const SPEC: &str = "study.json";
const STARTS: &str = "starts.jsonl";
/// The recordings, a folder each.
const RUNS: &str = "runs";

/// A start that has come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub start: Start,
    /// Name of its recording within the study's `runs`.
    pub run: String,
}

/// A study's folder.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    pub spec: Spec,
    done: Vec<Done>,
}

impl Journal {
    /// Begins a study in a folder that does not exist yet.
    ///
    /// # Errors
    /// It exists, or can't be written.
    pub fn create(dir: &Path, spec: Spec) -> Result<Journal, Error> {
        if dir.join(SPEC).exists() {
            return Err(Error::Spec(format!(
                "{} is a study already: `whyso study resume` goes on with it",
                dir.display()
            )));
        }
        fs::create_dir_all(dir.join(RUNS)).map_err(|cause| Error::io(dir, cause))?;
        let text = serde_json::to_string_pretty(&spec).map_err(|error| Error::Spec(error.to_string()))?;
        // Whole or not at all: what can't be read later is no study.
        let (path, begun) = (dir.join(SPEC), dir.join(".study.json"));
        let written = File::create(&begun).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&begun, &path)).map_err(|cause| Error::io(&path, cause))?;
        Ok(Journal { dir: dir.to_path_buf(), spec, done: Vec::new() })
    }

    /// Of a study that was begun. A line that a crash cut is left out: its start was not finished.
    ///
    /// # Errors
    /// It is no study's folder, or can't be read.
    pub fn open(dir: &Path) -> Result<Journal, Error> {
        let path = dir.join(SPEC);
        let text = fs::read_to_string(&path).map_err(|_| {
            Error::Spec(format!(
                "{} is no study's folder: name one that `whyso study list` shows",
                dir.display()
            ))
        })?;
        let spec: Spec = serde_json::from_str(&text)
            .map_err(|error| Error::Spec(format!("{}: {error}", path.display())))?;
        let lines = fs::read(dir.join(STARTS)).unwrap_or_default();
        let text = String::from_utf8_lossy(&lines);
        let mut done: Vec<Done> = Vec::new();
        for one in text.lines().filter_map(|line| serde_json::from_str::<Done>(line).ok()) {
            if !done.iter().any(|before| before.start == one.start) && dir.join(RUNS).join(&one.run).is_dir()
            {
                done.push(one);
            }
        }
        Ok(Journal { dir: dir.to_path_buf(), spec, done })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where recordings go.
    pub fn runs(&self) -> PathBuf {
        self.dir.join(RUNS)
    }

    pub fn done(&self) -> &[Done] {
        &self.done
    }

    /// What is still to be done, in order.
    pub fn todo(&self) -> Vec<Start> {
        let all = self.spec.blocks().into_iter().flatten();
        all.filter(|start| !self.done.iter().any(|done| done.start == *start)).collect()
    }

    /// A start has come to its end: it is on the disk when this returns.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn finish(&mut self, done: Done) -> Result<(), Error> {
        let path = self.dir.join(STARTS);
        let line = serde_json::to_string(&done).map_err(|error| Error::Spec(error.to_string()))?;
        // A line that a crash cut has no end: this one must not become a part of it.
        let cut = fs::read(&path).is_ok_and(|before| before.last().is_some_and(|last| *last != b'\n'));
        let written = OpenOptions::new().append(true).create(true).open(&path).and_then(|mut file| {
            let begin = if cut { "\n" } else { "" };
            file.write_all(format!("{begin}{line}\n").as_bytes())?;
            file.sync_all()
        });
        written.map_err(|cause| Error::io(&path, cause))?;
        self.done.push(done);
        Ok(())
    }

    /// Removes recordings of starts that did not come to their end.
    ///
    /// # Errors
    /// A folder can't be removed.
    pub fn remove_unfinished(&self) -> Result<(), Error> {
        let runs = self.runs();
        for entry in fs::read_dir(&runs).map_err(|cause| Error::io(&runs, cause))?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !self.done.iter().any(|done| done.run == name) {
                let path = entry.path();
                fs::remove_dir_all(&path).map_err(|cause| Error::io(&path, cause))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec(repeats: u32) -> Spec {
        let text = format!(
            "title = 't'\nquestion = 'q'\nusers = [1]\nrepeats = {repeats}\nbaseline = 'a'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[[variant]]\nname = 'c'\n"
        );
        Spec::parse(&text, false).unwrap()
    }

    fn finish(journal: &mut Journal, start: Start) {
        let run = format!("run-{}-{}", start.block, start.cell);
        fs::create_dir_all(journal.runs().join(&run)).unwrap();
        journal.finish(Done { start, run }).unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// A crash cuts the file anywhere: what was finished before is never done again, and nothing is left out.
        #[test]
        fn a_study_that_was_cut_anywhere_does_each_start_once(cuts in prop::collection::vec(0usize..400, 0..6)) {
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path().join("study");
            let mut journal = Journal::create(&dir, spec(4)).unwrap();
            let mut cuts = cuts.into_iter();
            while let Some(start) = journal.todo().first().copied() {
                finish(&mut journal, start);
                if let Some(bytes) = cuts.next() {
                    let path = dir.join(STARTS);
                    let mut text = fs::read(&path).unwrap();
                    // Only what the last write added can be lost: the file was synced before.
                    let whole = text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    text.truncate(whole + bytes.min(text.len() - whole));
                    fs::write(&path, &text).unwrap();
                    let before: Vec<Done> = journal.done()[..journal.done().len() - 1].to_vec();
                    journal = Journal::open(&dir).unwrap();
                    prop_assert!(journal.done().starts_with(&before));
                    journal.remove_unfinished().unwrap();
                }
            }
            let journal = Journal::open(&dir).unwrap();
            let mut starts: Vec<Start> = journal.done().iter().map(|done| done.start).collect();
            starts.sort();
            let mut all: Vec<Start> = spec(4).blocks().into_iter().flatten().collect();
            all.sort();
            prop_assert_eq!(starts, all);
            prop_assert!(journal.todo().is_empty());
        }
    }

    #[test]
    fn a_folder_is_one_study_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        Journal::create(folder.path(), spec(1)).unwrap();
        assert!(Journal::create(folder.path(), spec(2)).unwrap_err().to_string().contains("resume"));
        assert_eq!(Journal::open(folder.path()).unwrap().spec, spec(1));
        assert!(
            Journal::open(&folder.path().join("x")).unwrap_err().to_string().contains("no study's folder")
        );
    }
}

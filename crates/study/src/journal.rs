//! What was done of a study: a folder that a crash at any moment leaves whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::cells::Start;
use crate::{Error, Spec};

const SPEC: &str = "study.json";
const STARTS: &str = "starts.jsonl";
/// Holds its name among machines that carry it out together.
const WORK: &str = "work-id";
const WORK_LETTERS: usize = 32;
/// A study of its own.
const SUGGESTED: &str = "suggested";
/// Longest file of a study, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// The recordings, one folder each.
const RUNS: &str = "runs";

/// A start that has ended, and what was measured in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartRecord {
    pub start: Start,
    /// Name of its recording within the study's `runs`; empty where there is none.
    pub run: String,
    /// The machine that it was carried out on; empty where that is the one of the study's folder.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// As the server reports it.
    #[serde(default)]
    pub version: String,
    /// How long it took, the server's start and the restoring of its data included.
    #[serde(default)]
    pub seconds: f64,
    /// Warm-ups and measured windows in that.
    #[serde(default)]
    pub measured_s: f64,
    /// What the machine was like before it.
    #[serde(default)]
    pub machine: Machine,
    #[serde(default)]
    pub levels: Vec<LevelRecord>,
    /// Where throughput peaked, and the cause that is suspected to limit it.
    #[serde(default)]
    pub peak: Option<PeakRecord>,
    /// Of a knob that was swept within the start.
    #[serde(default)]
    pub points: Vec<PointRecord>,
    /// Knobs that this server does not know.
    #[serde(default)]
    pub unknown_knobs: Vec<String>,
    /// What the Performance Schema counted most; only of the first block.
    #[serde(default)]
    pub tops: Vec<Top>,
    /// How evenly the instances of the study's locks were used.
    #[serde(default)]
    pub evenness: Vec<LockEvenness>,
    /// What its readers have to know, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// The first lines of a view of the Performance Schema, at the level with the highest throughput.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Top {
    /// "waits", "stages" or "statements".
    pub view: String,
    /// "count" or "time".
    pub by: String,
    pub users: u32,
    pub lines: Vec<TopLine>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopLine {
    pub name: String,
    pub per_s: f64,
    /// By statement that clients sent; `None` where those were not counted.
    pub per_statement: Option<f64>,
    /// Milliseconds in each second; `None` where it was not timed.
    pub ms_per_s: Option<f64>,
}

/// The instances of one lock, at one level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockEvenness {
    pub users: u32,
    pub lock: String,
    /// Those that counted anything.
    pub instances: u32,
    pub per_s: f64,
    /// Milliseconds waited in each second; `None` where that was not timed.
    pub ms_per_s: Option<f64>,
    /// The busiest one's part of the count.
    pub busiest_percent: f64,
    /// 1 where all are used alike, 1/instances where one has everything.
    pub even: f64,
}

/// What distinguishes a machine from itself at another time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// A fixed piece of arithmetic, in milliseconds: the median of some.
    pub arithmetic_ms: f64,
    /// Mean clock of its CPUs; `None` where the kernel does not say.
    pub mhz: Option<f64>,
    /// Times that its CPUs were slowed down for their heat, since it was started; `None` where the kernel does not say.
    pub throttled: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelRecord {
    pub users: u32,
    /// By their names, as [`whyso_model::measures`] has them.
    pub measures: BTreeMap<String, f64>,
    /// Half the width of the throughput's 95 % interval within this start, in per cent of it.
    #[serde(default)]
    pub half_width_percent: Option<f64>,
    /// Why its number says nothing of the server; empty where it does.
    #[serde(default)]
    pub invalid_why: String,
    /// "ramping up", "peak" or "degrading"; empty where that is not known.
    #[serde(default)]
    pub regime: String,
    #[serde(default)]
    pub over_time: Vec<Moment>,
}

/// A short part of a level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct Moment {
    /// Its middle, in seconds from the window's begin.
    pub at_s: f64,
    pub measures: BTreeMap<String, f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakRecord {
    pub users: u32,
    /// Lowest and highest number of users that may be the peak; no upper end where it may lie beyond all that were tested.
    pub users_interval: (u32, Option<u32>),
    /// The first suspect's cause, as a text; empty where there is none.
    pub suspect: String,
}

/// One value of a knob that was swept within a start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointRecord {
    pub value: i64,
    /// Of one execution: the median.
    pub ms: f64,
    /// Growth of the session's counters by execution.
    pub status: BTreeMap<String, f64>,
}

/// A study's folder.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    study: StoredStudy,
    done: Vec<StartRecord>,
}

/// A study as its folder stores it. Later changes of its file, and of the files that this names, have no effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredStudy {
    pub spec: Spec,
    /// Texts of workloads that are files, by the names that the study has for them.
    pub files: BTreeMap<String, String>,
    /// What its readers have to know, such as what was left out.
    pub notes: Vec<String>,
    /// The server of the user's own that it is carried out on; empty where whyso starts the servers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub endpoint: String,
}

impl StoredStudy {
    /// Reads what a folder, or another machine, has of a study.
    ///
    /// # Errors
    /// It is no study, or one of too many cells.
    pub fn parse(json: &[u8]) -> Result<StoredStudy, Error> {
        let study: StoredStudy =
            serde_json::from_slice(json).map_err(|error| Error::Spec(format!("it is no study: {error}")))?;
        study.spec.check_size()?;
        Ok(study)
    }
}

impl Journal {
    /// Begins a study in a folder that does not exist yet.
    ///
    /// # Errors
    /// It exists, or can't be written.
    pub fn create(dir: &Path, study: StoredStudy) -> Result<Journal, Error> {
        if dir.join(SPEC).exists() {
            return Err(Error::Spec(format!(
                "{} is a study already: `whyso study resume` continues it",
                dir.display()
            )));
        }
        fs::create_dir_all(dir.join(RUNS)).map_err(|cause| Error::io(dir, cause))?;
        let text = serde_json::to_string_pretty(&study).map_err(|error| Error::Spec(error.to_string()))?;
        // Whole or not at all: what can't be read later is no study.
        let (path, begun) = (dir.join(SPEC), dir.join(".study.json"));
        let written = File::create(&begun).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&begun, &path)).map_err(|cause| Error::io(&path, cause))?;
        Ok(Journal { dir: dir.to_path_buf(), study, done: Vec::new() })
    }

    /// Opens the journal of a study that was begun. A line that a crash cut is left out: its start was not finished.
    ///
    /// # Errors
    /// It is no study's folder, or can't be read.
    pub fn open(dir: &Path) -> Result<Journal, Error> {
        let path = dir.join(SPEC);
        let text = read_plain(&path).map_err(|_| {
            Error::Spec(format!(
                "{} is no study's folder: name one that `whyso study list` shows",
                dir.display()
            ))
        })?;
        let study: StoredStudy = serde_json::from_slice(&text)
            .map_err(|error| Error::Spec(format!("{}: {error}", path.display())))?;
        study.spec.check_size()?;
        let lines = match read_plain(&dir.join(STARTS)) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(|cause| Error::io(&dir.join(STARTS), cause))?,
        };
        let text = String::from_utf8_lossy(&lines);
        let mut done: Vec<StartRecord> = Vec::new();
        for record in text.lines().filter_map(|line| serde_json::from_str::<StartRecord>(line).ok()) {
            if !done.iter().any(|before| before.start == record.start) {
                done.push(record);
            }
        }
        Ok(Journal { dir: dir.to_path_buf(), study, done })
    }

    /// Returns the study that tests a suggested limit, where it was begun.
    ///
    /// # Errors
    /// It can't be read.
    pub fn suggested(&self) -> Result<Option<Journal>, Error> {
        let dir = self.dir.join(SUGGESTED);
        if dir.join(SPEC).exists() { Journal::open(&dir).map(Some) } else { Ok(None) }
    }

    /// Begins that study.
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin_suggested(&self, study: StoredStudy) -> Result<Journal, Error> {
        Journal::create(&self.dir.join(SUGGESTED), study)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn stored(&self) -> &StoredStudy {
        &self.study
    }

    pub fn spec(&self) -> &Spec {
        &self.study.spec
    }

    pub fn notes(&self) -> &[String] {
        &self.study.notes
    }

    /// By which the machines that carry it out together know it. It stays the same for the folder.
    ///
    /// # Errors
    /// It can't be read or written.
    pub fn work_id(&self) -> Result<String, Error> {
        let path = self.dir.join(WORK);
        let is_id = |id: &str| id.len() == WORK_LETTERS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        match read_plain(&path) {
            Ok(bytes) if std::str::from_utf8(&bytes).is_ok_and(is_id) => {
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            }
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(Error::io(&path, cause)),
            _ => {
                let mut random = [0; WORK_LETTERS / 2];
                let filled = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut random));
                filled.map_err(|cause| Error::io(Path::new("/dev/urandom"), cause))?;
                let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
                fs::write(&path, &id).map_err(|cause| Error::io(&path, cause))?;
                Ok(id)
            }
        }
    }

    /// Returns the folder of the recordings.
    pub fn runs(&self) -> PathBuf {
        self.dir.join(RUNS)
    }

    pub fn finished_starts(&self) -> &[StartRecord] {
        &self.done
    }

    /// Returns what is still to be done of this number of blocks, in order: the pair first.
    pub fn todo(&self, blocks: u32) -> Vec<Start> {
        let blocks = (0..blocks).flat_map(|block| self.study.spec.block(block));
        let all = self.study.spec.pair().into_iter().chain(blocks);
        all.filter(|start| !self.done.iter().any(|done| done.start == *start)).collect()
    }

    /// Returns the time that it has taken so far, in seconds, all its parts added up.
    pub fn seconds(&self) -> f64 {
        self.done.iter().map(|done| done.seconds).sum()
    }

    /// Adds a start that has ended. It is on the disk when this returns.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn finish(&mut self, done: StartRecord) -> Result<(), Error> {
        self.finish_all(vec![done])
    }

    /// Adds starts that have ended, in one write.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn finish_all(&mut self, done: Vec<StartRecord>) -> Result<(), Error> {
        let path = self.dir.join(STARTS);
        let lines = lines_of(&done)?;
        // A line that a crash cut has no end: this one must not become a part of it.
        let cut = fs::read(&path).is_ok_and(|before| before.last().is_some_and(|last| *last != b'\n'));
        let written = OpenOptions::new().append(true).create(true).open(&path).and_then(|mut file| {
            let begin = if cut { "\n" } else { "" };
            file.write_all(format!("{begin}{lines}").as_bytes())?;
            file.sync_all()
        });
        written.map_err(|cause| Error::io(&path, cause))?;
        // As it will be read: the last digit of a number may differ from the one that was written.
        for (line, done) in lines.lines().zip(done) {
            self.done.push(serde_json::from_str(line).unwrap_or(done));
        }
        Ok(())
    }

    /// Forgets the starts of units that were carried out in part: a unit is done on one machine as a whole.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn forget_unfinished_units(&mut self) -> Result<(), Error> {
        let units: BTreeSet<u32> = self.done.iter().map(|done| done.start.unit()).collect();
        let is_unfinished = |unit: &u32| self.todo(*unit).iter().any(|start| start.unit() == *unit);
        let unfinished: BTreeSet<u32> = units.into_iter().filter(is_unfinished).collect();
        if unfinished.is_empty() {
            return Ok(());
        }
        let kept: Vec<StartRecord> =
            self.done.iter().filter(|done| !unfinished.contains(&done.start.unit())).cloned().collect();
        let (path, begun) = (self.dir.join(STARTS), self.dir.join(".starts.jsonl"));
        let written = File::create(&begun).and_then(|mut file| {
            file.write_all(lines_of(&kept).map_err(io::Error::other)?.as_bytes())?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&begun, &path)).map_err(|cause| Error::io(&path, cause))?;
        self.done = kept;
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

/// A line for each start.
fn lines_of(done: &[StartRecord]) -> Result<String, Error> {
    let mut lines = String::new();
    for record in done {
        lines += &serde_json::to_string(record).map_err(|error| Error::Spec(error.to_string()))?;
        lines.push('\n');
    }
    Ok(lines)
}

/// Reads a file. A study may come from elsewhere: a pipe may never answer, and a link may lead out of the folder.
pub(crate) fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        let why = format!("it is longer than {BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
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

    fn stored(repeats: u32) -> StoredStudy {
        StoredStudy {
            spec: spec(repeats),
            files: BTreeMap::new(),
            notes: Vec::new(),
            endpoint: String::new(),
        }
    }

    fn record_of(start: Start) -> StartRecord {
        serde_json::from_value(serde_json::json!({ "start": start, "run": "" })).unwrap()
    }

    fn finish(journal: &mut Journal, start: Start) {
        let run = format!("run-{}-{}-{}", start.block, start.cell, start.pair);
        fs::create_dir_all(journal.runs().join(&run)).unwrap();
        journal.finish(StartRecord { run, ..record_of(start) }).unwrap();
    }

    #[test]
    fn a_study_of_more_cells_than_memory_holds_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let values = (0..100).map(|value| value.to_string()).collect::<Vec<_>>().join(", ");
        let grid: String = (0..8).map(|knob| format!("k{knob} = [{values}]\n")).collect();
        let text = "title = 't'\nquestion = 'q'\nbaseline = 'a'\n[[variant]]\nname = 'a'\n";
        let parsed = Spec::parse(&format!("{text}[grid]\n{grid}"), false);
        assert!(parsed.is_err_and(|error| error.to_string().contains("cells")));
        let dir = folder.path().join("study");
        Journal::create(
            &dir,
            StoredStudy { spec: spec(1), files: BTreeMap::new(), notes: Vec::new(), endpoint: String::new() },
        )
        .unwrap();
        let text = fs::read_to_string(dir.join(SPEC)).unwrap();
        let changed = text.replace("\"repeats\": 1", "\"repeats\": 4000000000");
        assert_ne!(changed, text);
        fs::write(dir.join(SPEC), changed).unwrap();
        assert!(Journal::open(&dir).is_err());
    }

    #[test]
    fn only_plain_files_of_a_bounded_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("study");
        Journal::create(
            &dir,
            StoredStudy { spec: spec(1), files: BTreeMap::new(), notes: Vec::new(), endpoint: String::new() },
        )
        .unwrap();
        let starts = dir.join(STARTS);
        std::os::unix::fs::symlink("/dev/zero", &starts).unwrap();
        assert!(Journal::open(&dir).is_err());
        fs::remove_file(&starts).unwrap();
        File::create(&starts).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(Journal::open(&dir).is_err());
        fs::remove_file(&starts).unwrap();
        assert!(Journal::open(&dir).is_ok());
        fs::rename(dir.join(SPEC), dir.join("elsewhere.json")).unwrap();
        std::os::unix::fs::symlink("elsewhere.json", dir.join(SPEC)).unwrap();
        assert!(Journal::open(&dir).is_err());
    }

    #[test]
    fn a_block_that_was_done_in_part_is_forgotten_and_whole_ones_stay() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("study");
        let mut journal = Journal::create(&dir, stored(3)).unwrap();
        let unit = |journal: &Journal, unit: u32| {
            journal.todo(3).into_iter().filter(|start| start.unit() == unit).collect::<Vec<_>>()
        };
        let (first, second) = (unit(&journal, 1), unit(&journal, 2));
        journal.finish_all(first.iter().map(|start| record_of(*start)).collect()).unwrap();
        finish(&mut journal, second[0]);
        journal.forget_unfinished_units().unwrap();
        for journal in [&journal, &Journal::open(&dir).unwrap()] {
            let done: Vec<Start> = journal.finished_starts().iter().map(|done| done.start).collect();
            assert_eq!(done, first);
            assert_eq!(unit(journal, 2).len(), second.len());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// A crash cuts the file anywhere: what was finished before is never done again, and nothing is left out.
        #[test]
        fn a_study_that_was_cut_anywhere_does_each_start_once(cuts in prop::collection::vec(0usize..700, 0..6)) {
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path().join("study");
            let mut journal = Journal::create(&dir, stored(4)).unwrap();
            let mut cuts = cuts.into_iter();
            while let Some(start) = journal.todo(4).first().copied() {
                finish(&mut journal, start);
                if let Some(bytes) = cuts.next() {
                    let path = dir.join(STARTS);
                    let mut text = fs::read(&path).unwrap();
                    // Only what the last write added can be lost: the file was synced before.
                    let whole = text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                    text.truncate(whole + bytes.min(text.len() - whole));
                    fs::write(&path, &text).unwrap();
                    let before: Vec<StartRecord> = journal.finished_starts()[..journal.finished_starts().len() - 1].to_vec();
                    journal = Journal::open(&dir).unwrap();
                    prop_assert!(journal.finished_starts().starts_with(&before));
                    journal.remove_unfinished().unwrap();
                }
            }
            let journal = Journal::open(&dir).unwrap();
            let mut starts: Vec<Start> = journal.finished_starts().iter().map(|done| done.start).collect();
            starts.sort();
            let mut all = spec(4).all_starts();
            all.sort();
            prop_assert_eq!(all.len(), 14);
            prop_assert_eq!(starts, all);
            prop_assert!(journal.todo(4).is_empty());
        }
    }

    #[test]
    fn a_folder_is_one_study_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        Journal::create(folder.path(), stored(1)).unwrap();
        assert!(Journal::create(folder.path(), stored(2)).unwrap_err().to_string().contains("resume"));
        assert_eq!(Journal::open(folder.path()).unwrap().study, stored(1));
        assert!(
            Journal::open(&folder.path().join("x")).unwrap_err().to_string().contains("no study's folder")
        );
    }
}

//! The studies in a folder, for the list next to the runs.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

use serde::Serialize;
use ts_rs::TS;
use utoipa::ToSchema;
use whyso_study::{Journal, journal_answer};

use crate::error::{Answer, Refusal};
use crate::recordings::lock;

/// Studies that are listed; those that began last.
const STUDIES_MAX: usize = 500;
/// Bytes of the files of a study beyond which only its plan is listed.
const READ_BYTES_MAX: u64 = 16 << 20;
/// The plan of a study.
const PLAN: &str = "study.json";
/// What was done of it.
const STARTS: &str = "starts.jsonl";

/// A study as the list shows it.
#[derive(Clone, Serialize, ToSchema, TS)]
#[serde(deny_unknown_fields)]
#[schema(as = Study)]
pub(crate) struct ListedStudy {
    /// The name of its folder.
    id: String,
    title: String,
    question: String,
    workload: String,
    /// Versions of the servers that were started; before the first start, what the study names them.
    servers: Vec<String>,
    /// Wall time in milliseconds; null if the folder does not show it.
    #[schema(required)]
    began_ms: Option<i64>,
    /// Starts of servers that have ended, and those that are planned.
    done: usize,
    starts: usize,
    /// The first sentence of what it has found; empty if there is none yet.
    verdict: String,
}

/// The folder of studies, with what was read of them.
pub(crate) struct Studies {
    folder: PathBuf,
    /// By folder, with the stamp of the files that were read.
    known: Mutex<HashMap<PathBuf, (StudyStamp, ListedStudy)>>,
}

/// Sizes and times of change of a study's files.
type StudyStamp = [(u64, u128); 2];

impl Studies {
    pub(crate) fn new(folder: PathBuf) -> Studies {
        Studies { folder, known: Mutex::default() }
    }

    /// Lists the studies, the newest first. A folder that can't be read has none.
    pub(crate) fn list(&self) -> Vec<ListedStudy> {
        let mut known = lock(&self.known);
        let mut found: Vec<(PathBuf, StudyStamp)> =
            self.dirs().map(|dir| (dir.clone(), stamp(&dir))).collect();
        found.sort_by_key(|(_, stamp)| std::cmp::Reverse(stamp[0].1));
        found.truncate(STUDIES_MAX);
        known.retain(|dir, _| found.iter().any(|(other, _)| other == dir));
        let mut listed = Vec::new();
        for (dir, stamp) in found {
            let study = match known.get(&dir) {
                Some((before, study)) if *before == stamp => Some(study.clone()),
                _ => read(&dir, &stamp),
            };
            if let Some(study) = study {
                known.insert(dir, (stamp, study.clone()));
                listed.push(study);
            }
        }
        listed
    }

    /// Returns what the page of a study shows, as JSON. The id is compared with the names in the folder, and never becomes part of a path.
    ///
    /// # Errors
    /// 404 if there is no such study.
    pub(crate) fn head(&self, id: &str) -> Answer<String> {
        let dir = self.dirs().find(|dir| name_of(dir) == id);
        let dir =
            dir.ok_or_else(|| Refusal::not_found("there is no such study: it may have been removed"))?;
        let refused = |error: whyso_study::Error| Refusal::not_found(error.to_string());
        let journal = Journal::open(&dir).map_err(refused)?;
        Ok(whyso_report::study_head_json(&journal_answer(&journal).map_err(refused)?)?)
    }

    fn dirs(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|dir| !name_of(dir).starts_with('.') && dir.join(PLAN).is_file())
    }
}

fn name_of(dir: &Path) -> String {
    dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn stamp(dir: &Path) -> StudyStamp {
    [PLAN, STARTS].map(|name| {
        let Ok(about) = fs::metadata(dir.join(name)) else { return (0, 0) };
        let changed = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        (about.len(), changed.map_or(0, |since| since.as_millis()))
    })
}

/// Reads a study. `None`: it can't be read.
fn read(dir: &Path, stamp: &StudyStamp) -> Option<ListedStudy> {
    if stamp.iter().map(|(bytes, _)| bytes).sum::<u64>() > READ_BYTES_MAX {
        return None;
    }
    let journal = Journal::open(dir).ok()?;
    let spec = journal.spec();
    let done = journal.finished_starts().len();
    let mut servers: Vec<String> = Vec::new();
    for start in journal.finished_starts() {
        if !start.version.is_empty() && !servers.contains(&start.version) {
            servers.push(start.version.clone());
        }
    }
    if servers.is_empty() {
        servers = spec.servers.iter().filter(|server| !server.is_empty()).cloned().collect();
    }
    let found = journal_answer(&journal).ok().map(|answer| whyso_report::study_found(&answer));
    Some(ListedStudy {
        id: name_of(dir),
        title: spec.title.clone(),
        question: spec.question.clone(),
        workload: spec.workload.clone(),
        servers,
        began_ms: i64::try_from(stamp[0].1).ok().filter(|ms| *ms > 0),
        done,
        starts: done + journal.todo(spec.blocks_least()).len(),
        verdict: found.into_iter().flatten().next().unwrap_or_default(),
    })
}

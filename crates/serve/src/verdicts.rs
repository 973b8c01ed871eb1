//! The first finding of each run, for the list of runs. A thread works out one run after the other, and a file keeps the results.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use whyso_record::{Recording, RunSummary};

use crate::recordings::lock;
use crate::verdict_file::{FoundCause, StoredVerdict, Verdict, VerdictFile};

/// Bytes beyond which a recording is not read for the list.
const BYTES_MAX: u64 = 64 << 20;
/// Runs that can wait.
const WAITING_MAX: usize = 2_000;
/// Verdicts that are written to the file together, while runs wait.
const BATCH_MAX: usize = 50;

/// The first finding of runs.
pub(crate) struct Verdicts {
    state: Arc<Mutex<VerdictState>>,
    worker: Mutex<Option<Sender<(PathBuf, u64)>>>,
    file: Arc<VerdictFile>,
}

#[derive(Default)]
struct VerdictState {
    /// Verdicts by the run's id and the stamp of its recording.
    verdicts: HashMap<(String, u64), Verdict>,
    waiting: HashSet<PathBuf>,
}

impl Verdicts {
    /// Reads the verdicts of `file`. `None`: verdicts are not stored.
    pub(crate) fn new(file: Option<PathBuf>) -> Verdicts {
        let file = VerdictFile::new(file);
        let verdicts =
            file.read().into_iter().map(|stored| ((stored.id, stored.stamp), stored.verdict)).collect();
        let state = VerdictState { verdicts, waiting: HashSet::new() };
        Verdicts { state: Arc::new(Mutex::new(state)), worker: Mutex::default(), file: Arc::new(file) }
    }

    /// Returns the verdict if it is known. Otherwise a thread will work it out.
    pub(crate) fn of(&self, run: &RunSummary) -> Option<Verdict> {
        let RunSummary { path, bytes, stamp, .. } = run;
        {
            let mut state = lock(&self.state);
            if let Some(verdict) = state.verdicts.get(&(id(path), *stamp)) {
                return Some(verdict.clone());
            }
            let may_wait = *bytes <= BYTES_MAX && state.waiting.len() < WAITING_MAX;
            if !may_wait || !state.waiting.insert(path.clone()) {
                return None;
            }
        }
        let mut worker = lock(&self.worker);
        let start = || start(Arc::clone(&self.state), Arc::clone(&self.file));
        if worker.get_or_insert_with(start).send((path.clone(), *stamp)).is_err() {
            *worker = None;
        }
        None
    }

    /// Returns whether verdicts are still being worked out.
    pub(crate) fn are_coming(&self) -> bool {
        !lock(&self.state).waiting.is_empty()
    }
}

fn start(state: Arc<Mutex<VerdictState>>, file: Arc<VerdictFile>) -> Sender<(PathBuf, u64)> {
    let (sender, receiver): (_, Receiver<(PathBuf, u64)>) = channel();
    // It ends with the sender.
    thread::spawn(move || {
        let mut unwritten = Vec::new();
        for (path, stamp) in receiver {
            let verdict = verdict(&path);
            let is_readable = verdict.is_some();
            let stored = StoredVerdict { id: id(&path), stamp, verdict: verdict.unwrap_or_default() };
            let are_waiting = {
                let mut state = lock(&state);
                state.waiting.remove(&path);
                state.verdicts.insert((stored.id.clone(), stamp), stored.verdict.clone());
                !state.waiting.is_empty()
            };
            // A run that can't be read now may be readable later.
            unwritten.extend(is_readable.then_some(stored));
            if !are_waiting || unwritten.len() >= BATCH_MAX {
                file.add(&std::mem::take(&mut unwritten));
            }
        }
    });
    sender
}

fn id(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns what was found. `None`: the run can't be read.
fn verdict(path: &Path) -> Option<Verdict> {
    let recording = Recording::open(path).ok()?;
    let explanation = whyso_query::explain(&recording).ok()?;
    let answer = whyso_report::answer(recording.run(), &explanation);
    let cause = answer.causes.first().map(|cause| FoundCause {
        id: cause.id.name().to_string(),
        words: cause.words.clone(),
        share: cause.share,
    });
    Some(Verdict { words: answer.sentence(), cause })
}

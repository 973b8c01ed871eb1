//! What was found in each run, in a sentence, for the list: worked out one run after the other while the list is looked at, and kept for the next start.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use whyso_record::{Recording, stamp};

use crate::kept::{Kept, KeptVerdicts};
use crate::open::lock;

/// A larger recording is not read for the list: its verdict comes when it is opened.
const BYTES_MAX: u64 = 64 << 20;
/// Runs that may wait.
const WAITING_MAX: usize = 2_000;
/// So many are written to the file together; fewer once none waits.
const WRITTEN_TOGETHER: usize = 50;

/// The first finding of runs.
pub(crate) struct Verdicts {
    known: Arc<Mutex<Known>>,
    worker: Mutex<Option<Sender<(PathBuf, u64)>>>,
    file: Arc<KeptVerdicts>,
}

#[derive(Default)]
struct Known {
    /// By the run's id and the stamp of the recording that it was read from.
    verdicts: HashMap<(String, u64), String>,
    waiting: HashSet<PathBuf>,
}

impl Verdicts {
    /// `file`: where they are kept; `None`: nowhere.
    pub(crate) fn new(file: Option<PathBuf>) -> Verdicts {
        let file = KeptVerdicts::new(file);
        let verdicts = file.read().into_iter().map(|kept| ((kept.id, kept.stamp), kept.verdict)).collect();
        let known = Known { verdicts, waiting: HashSet::new() };
        Verdicts { known: Arc::new(Mutex::new(known)), worker: Mutex::default(), file: Arc::new(file) }
    }

    /// The verdict, where it is known; else it will be, after others that wait.
    pub(crate) fn of(&self, path: &Path, bytes: u64) -> Option<String> {
        let stamp = stamp(path);
        {
            let mut known = lock(&self.known);
            if let Some(verdict) = known.verdicts.get(&(id(path), stamp)) {
                return Some(verdict.clone());
            }
            let may_wait = bytes <= BYTES_MAX && known.waiting.len() < WAITING_MAX;
            if !may_wait || !known.waiting.insert(path.to_path_buf()) {
                return None;
            }
        }
        let mut worker = lock(&self.worker);
        let start = || start(Arc::clone(&self.known), Arc::clone(&self.file));
        if worker.get_or_insert_with(start).send((path.to_path_buf(), stamp)).is_err() {
            *worker = None;
        }
        None
    }

    /// Whether some are still being worked out.
    pub(crate) fn are_coming(&self) -> bool {
        !lock(&self.known).waiting.is_empty()
    }
}

fn start(known: Arc<Mutex<Known>>, file: Arc<KeptVerdicts>) -> Sender<(PathBuf, u64)> {
    let (sender, receiver): (_, Receiver<(PathBuf, u64)>) = channel();
    // It ends with the sender.
    thread::spawn(move || {
        let mut unwritten = Vec::new();
        for (path, stamp) in receiver {
            let found = verdict(&path);
            let is_known = found.is_some();
            let kept = Kept { id: id(&path), stamp, verdict: found.unwrap_or_default() };
            let are_waiting = {
                let mut known = lock(&known);
                known.waiting.remove(&path);
                known.verdicts.insert((kept.id.clone(), stamp), kept.verdict.clone());
                !known.waiting.is_empty()
            };
            // That a run could not be read may be another time's trouble: it is not kept.
            unwritten.extend(is_known.then_some(kept));
            if !are_waiting || unwritten.len() >= WRITTEN_TOGETHER {
                file.add(&std::mem::take(&mut unwritten));
            }
        }
    });
    sender
}

fn id(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The headline, empty where there is none; `None`: it can't be read.
fn verdict(path: &Path) -> Option<String> {
    let explained = Recording::open(path)
        .map_err(whyso_query::Error::from)
        .and_then(|recording| whyso_query::explain(&recording));
    Some(explained.ok()?.headline)
}

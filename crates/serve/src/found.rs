//! What was found in each run, in a sentence, for the list: worked out one run after the other while the list is looked at.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use whyso_record::{Recording, stamp};

use crate::open::lock;

/// A larger recording is not read for the list: its verdict comes when it is opened.
const BYTES_MAX: u64 = 64 << 20;
/// Runs that may wait.
const WAITING_MAX: usize = 2_000;

/// The first finding of runs, by their folders.
#[derive(Default)]
pub(crate) struct Verdicts {
    known: Arc<Mutex<Known>>,
    worker: Mutex<Option<Sender<(PathBuf, u64)>>>,
}

#[derive(Default)]
struct Known {
    /// With the stamp of the recording that it was read from.
    verdicts: HashMap<PathBuf, (u64, String)>,
    waiting: HashSet<PathBuf>,
}

impl Verdicts {
    /// The verdict, where it is known; else it will be, after others that wait.
    pub(crate) fn of(&self, path: &PathBuf, bytes: u64) -> Option<String> {
        let stamp = stamp(path);
        {
            let mut known = lock(&self.known);
            if let Some((of, verdict)) = known.verdicts.get(path).filter(|(of, _)| *of == stamp) {
                let _ = of;
                return Some(verdict.clone());
            }
            if bytes > BYTES_MAX || known.waiting.len() >= WAITING_MAX || !known.waiting.insert(path.clone())
            {
                return None;
            }
        }
        let mut worker = lock(&self.worker);
        let sender = worker.get_or_insert_with(|| start(Arc::clone(&self.known)));
        if sender.send((path.clone(), stamp)).is_err() {
            *worker = None;
        }
        None
    }

    /// Whether some are still being worked out.
    pub(crate) fn are_coming(&self) -> bool {
        !lock(&self.known).waiting.is_empty()
    }
}

fn start(known: Arc<Mutex<Known>>) -> Sender<(PathBuf, u64)> {
    let (sender, receiver): (_, Receiver<(PathBuf, u64)>) = channel();
    // It ends with the sender.
    thread::spawn(move || {
        for (path, stamp) in receiver {
            let verdict = verdict(&path);
            let mut known = lock(&known);
            known.waiting.remove(&path);
            known.verdicts.insert(path, (stamp, verdict));
        }
    });
    sender
}

/// The first of the findings; what can't be read has none.
fn verdict(path: &Path) -> String {
    let explained = Recording::open(path)
        .map_err(whyso_lab::Error::from)
        .and_then(|recording| whyso_lab::explain(&recording));
    let first = explained.ok().and_then(|explained| explained.findings.into_iter().next());
    first.map_or(String::new(), |finding| finding.text)
}

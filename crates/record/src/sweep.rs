//! Removes what a recorder or a command leaves in a folder of recordings when it is killed. Only names that nothing else has are removed, and only
//! where nobody holds the recording's lock.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use crate::layout::{MANIFEST, RESERVE, RUN, TEMPORARY_PREFIX};

/// A recording that is being removed has this before its name: what is left after a crash is no recording.
pub(crate) const GOING: &str = ".removing-";

/// Sweeps the recordings in a folder. What can't be removed is left to the next sweep.
pub(crate) fn sweep(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        // The entry's own type: a link may lead elsewhere.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let is_going = entry.file_name().as_encoded_bytes().starts_with(GOING.as_bytes());
            sweep_one(&entry.path(), is_going);
        }
    }
}

fn sweep_one(dir: &Path, is_going: bool) {
    let names: Vec<String> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let is_left_over = |name: &&String| *name == RESERVE || name.starts_with(TEMPORARY_PREFIX);
    let left_over: Vec<&String> = names.iter().filter(is_left_over).collect();
    // Killed before there was a `run.json`: a recording that never began.
    let has_begun = names.iter().any(|name| name == RUN);
    let is_unborn = !has_begun && !names.is_empty() && names.len() == left_over.len() + listed(&names);
    if !is_going && !is_unborn && (left_over.is_empty() || !has_begun) {
        return;
    }
    // A recorder locks its folder before it writes a file to it.
    let Ok(lock) = File::open(dir) else { return };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return;
    }
    if is_going {
        let _ = fs::remove_dir_all(dir);
        return;
    }
    for name in left_over {
        let _ = fs::remove_file(dir.join(name));
    }
    if is_unborn {
        let _ = fs::remove_file(dir.join(MANIFEST));
        let _ = fs::remove_dir(dir);
    }
}

fn listed(names: &[String]) -> usize {
    names.iter().filter(|name| *name == MANIFEST).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_recorder_left_goes() {
        let runs = tempfile::tempdir().unwrap();
        let make = |name: &str, files: &[&str]| {
            let dir = runs.path().join(name);
            fs::create_dir(&dir).unwrap();
            files.iter().for_each(|file| fs::write(dir.join(file), "x").unwrap());
            dir
        };
        let killed =
            make("killed", &[RUN, MANIFEST, RESERVE, ".new-samples-000001.parquet", "samples-000001.wal"]);
        let unborn = make("unborn", &[MANIFEST, RESERVE, ".new-run.json"]);
        let going = make(".removing-a", &[RUN]);
        let alive = make("alive", &[RUN, RESERVE]);
        let stranger = make("stranger", &[RESERVE, "thesis.tex"]);
        let just_made = make("just-made", &[]);
        let lock = File::open(&alive).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        sweep(runs.path());
        let files = |dir: &Path| fs::read_dir(dir).map(Iterator::count).ok();
        assert_eq!((files(&killed), files(&unborn), files(&going)), (Some(3), None, None));
        assert_eq!((files(&alive), files(&stranger), files(&just_made)), (Some(2), Some(2), Some(0)));
    }
}

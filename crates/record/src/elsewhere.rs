//! Runs in storage, as the catalogue there has them: what they are and what they hold, without their files.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use crate::catalogue::{self, Entry};
use crate::error::{Error, Result};
use crate::list::{RunSummary, entry_of};
use crate::segment_facts::segments_of;
use crate::sql::{Selection, Source, Views, views_of};

/// Name of the catalogue next to the runs.
pub const CATALOGUE: &str = crate::layout::CATALOGUE;

/// Runs that are elsewhere. What a catalogue claims of them is checked once their files are here, and not before.
#[derive(Default)]
pub struct RunsElsewhere {
    entries: Vec<Entry>,
}

impl RunsElsewhere {
    /// Reads a catalogue that came from there. One that is damaged or of another version has no runs.
    pub fn read(catalogue: &Path) -> RunsElsewhere {
        RunsElsewhere { entries: catalogue::foreign_entries(catalogue).unwrap_or_default() }
    }

    pub fn ids(&self) -> HashSet<&str> {
        self.entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    /// Forgets the runs that are no longer there.
    pub fn retain(&mut self, ids: &BTreeSet<String>) {
        self.entries.retain(|entry| ids.contains(&entry.name));
    }

    /// Adds a run by a folder with its description, or with all its files. `bytes`: its size there.
    ///
    /// # Errors
    /// The folder is no recording.
    pub fn add(&mut self, dir: &Path, bytes: u64) -> Result<()> {
        let mut entry = entry_of(dir).ok_or_else(|| Error::NotARecording(dir.to_path_buf()))?;
        entry.of_folder.bytes = bytes;
        entry.of_folder.segments = Some(segments_of(dir));
        self.entries.retain(|other| other.name != entry.name);
        self.entries.push(entry);
        Ok(())
    }

    /// The catalogue of these runs, for the place where they are.
    ///
    /// # Errors
    /// It can't be encoded.
    pub fn catalogue(&self) -> Result<Vec<u8>> {
        catalogue::encode(&self.entries.iter().collect::<Vec<_>>())
    }

    /// The runs as a list shows them, oldest first. `place`: stands before their ids.
    pub fn summaries(&self, place: &Path) -> Vec<RunSummary> {
        let mut runs: Vec<RunSummary> = self.entries.iter().map(|entry| summary(entry, place)).collect();
        runs.sort_by_key(|run| (run.facts.began_wall_ns.unwrap_or(0), run.id.clone()));
        runs
    }

    /// Ids and sizes of the runs that a selection has.
    pub fn selected(&self, selection: &Selection) -> Vec<(String, u64)> {
        let chosen = self.entries.iter().filter(|entry| selection.has_run(entry));
        chosen.map(|entry| (entry.name.clone(), entry.of_folder.bytes)).collect()
    }

    /// Makes views over the selected runs, with the files of those that are in `folder`. See [`crate::sql::views`].
    ///
    /// # Errors
    /// The catalogue can't be encoded.
    pub fn views(
        mut self,
        folder: &Path,
        here: BTreeSet<String>,
        selection: &Selection,
        catalogue: &Path,
    ) -> Result<Views> {
        self.entries.retain(|entry| selection.has_run(entry));
        for entry in self.entries.iter_mut().filter(|entry| here.contains(&entry.name)) {
            entry.of_folder.segments = Some(segments_of(&folder.join(&entry.name)));
        }
        let source = Source { folder, catalogue, live: BTreeSet::new(), here: Some(here) };
        views_of(self.entries, &source, selection)
    }
}

fn summary(entry: &Entry, place: &Path) -> RunSummary {
    let unfinished = entry.facts.ended.is_none().then(|| crate::list::UNFINISHED.to_string());
    RunSummary {
        id: entry.name.clone(),
        path: PathBuf::from(format!("{}/{}", place.display(), entry.name)),
        facts: entry.facts.clone(),
        bytes: entry.of_folder.bytes,
        stamp: entry.of_folder.stamp,
        labels: entry.of_folder.labels.clone(),
        live: false,
        problem: entry.problem.clone().or(unfinished),
    }
}

//! The catalogue of a folder of recordings: a file with the facts about each run that a list needs, so that a list reads no `run.json`.
//!
//! It is only a memory of what was read. A line counts if its `run.json` and manifest still have the identity that they had before they
//! were read, see [`FileIdentity`]. So a catalogue that is damaged, foreign or old costs time, and never changes what is listed. A line
//! holds no path: it counts only for a folder that is there and has its name.
//!
//! The file is like a manifest. Each line is its own checksum, then a JSON object. The first line is [`Head`].

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::folder::{FileIdentity, FolderScan};
use crate::run_facts::RunFacts;
use crate::{layout, manifest, private};

/// Rises when lines have another form or another meaning.
const FORMAT: u32 = 1;
/// A larger file is neither read nor written.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// A longer line is not written: its run is read each time.
const LINE_BYTES_MAX: usize = 16 << 10;
/// A temporary file of this age belongs to a program that was killed.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(600);

/// The first line.
#[derive(Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Head {
    whyso_catalogue: u32,
    /// The program that read the recordings. Another one may understand other parts of a `run.json`.
    program: String,
}

impl Head {
    fn of_this_program() -> Head {
        Head { whyso_catalogue: FORMAT, program: PROGRAM.clone() }
    }
}

/// Version of this program, and the time of its build.
static PROGRAM: LazyLock<String> = LazyLock::new(|| {
    let built = std::env::current_exe().and_then(fs::metadata).and_then(|about| about.modified());
    let built = built.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    format!("{} {}", env!("CARGO_PKG_VERSION"), built.map_or(0, |since| since.as_nanos()))
});

/// The line of one run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Name of the run's folder.
    name: String,
    run: FileIdentity,
    manifest: Option<FileIdentity>,
    pub(crate) facts: RunFacts,
    /// What this version can't read of the `run.json`.
    pub(crate) problem: Option<String>,
}

impl Entry {
    /// Describes a run that was read after `scan`. `None`: its folder's name is no text.
    pub(crate) fn new(
        name: Option<&str>,
        scan: &FolderScan,
        facts: RunFacts,
        problem: Option<String>,
    ) -> Option<Entry> {
        Some(Entry { name: name?.to_string(), run: scan.run?, manifest: scan.manifest, facts, problem })
    }

    /// Whether the files had been quiet for `quiet` at the moment `now`.
    pub(crate) fn is_settled(&self, now: SystemTime, quiet: Duration) -> bool {
        self.run.is_settled(now, quiet)
            && self.manifest.is_none_or(|manifest| manifest.is_settled(now, quiet))
    }
}

/// What a folder's catalogue holds.
#[derive(Default)]
pub(crate) struct Catalogue {
    entries: HashMap<String, Entry>,
}

impl Catalogue {
    /// Reads the catalogue of a folder. It is empty if there is none, or none of this program's and this user's.
    pub(crate) fn read(runs: &Path) -> Catalogue {
        let mut catalogue = Catalogue::default();
        let Some(content) = own_content(&runs.join(layout::CATALOGUE)) else { return catalogue };
        let mut lines = content.split_inclusive(|byte| *byte == b'\n');
        if lines.next().and_then(parse::<Head>) != Some(Head::of_this_program()) {
            return catalogue;
        }
        for entry in lines.filter_map(parse::<Entry>) {
            catalogue.entries.insert(entry.name.clone(), entry);
        }
        catalogue
    }

    /// Takes out the entry of a run, if the run's files are still the ones that it describes.
    pub(crate) fn take(&mut self, name: Option<&str>, scan: &FolderScan) -> Option<Entry> {
        let entry = self.entries.remove(name?)?;
        (Some(entry.run) == scan.run && entry.manifest == scan.manifest).then_some(entry)
    }

    /// Entries that nobody took.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Reads a file that belongs to this user: what others left in a shared folder is not believed.
fn own_content(path: &Path) -> Option<Vec<u8>> {
    let about = fs::symlink_metadata(path).ok()?;
    let is_ours = about.uid() == user() && about.len() <= FILE_BYTES_MAX;
    is_ours.then(|| private::read_file(path, FILE_BYTES_MAX).ok()).flatten()
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_str(manifest::checked_json(line)?).ok()
}

/// Writes the catalogue of a folder that belongs to this user. A folder that can't be written has none.
///
/// Two programs may write at once: each writes a file of its own and renames it, and either result is right.
pub(crate) fn write<'e>(runs: &Path, entries: impl Iterator<Item = &'e Entry>) {
    if fs::metadata(runs).is_ok_and(|about| about.uid() == user()) {
        remove_left_overs(runs);
        let temporary = runs.join(temporary_name());
        let written = private::create_new_file(&temporary)
            .and_then(|file| write_all(file, entries))
            .and_then(|()| fs::rename(&temporary, runs.join(layout::CATALOGUE)));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
    }
}

fn temporary_name() -> String {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    format!("{}{}-{number}", layout::CATALOGUE_TEMPORARY_PREFIX, std::process::id())
}

/// It is not synced to the disk: after a crash, what is missing of it is read again.
fn write_all<'e>(mut file: File, entries: impl Iterator<Item = &'e Entry>) -> io::Result<()> {
    let mut content = line(&Head::of_this_program())?;
    for entry in entries {
        let line = line(entry)?;
        let fits = line.len() <= LINE_BYTES_MAX && (content.len() + line.len()) as u64 <= FILE_BYTES_MAX;
        if fits {
            content.push_str(&line);
        }
    }
    file.write_all(content.as_bytes())
}

fn line(value: &impl Serialize) -> io::Result<String> {
    Ok(manifest::checked_line(&serde_json::to_string(value)?))
}

fn remove_left_overs(runs: &Path) {
    let is_left_over = |path: &PathBuf| {
        let age = fs::symlink_metadata(path).and_then(|about| about.modified()).ok()?.elapsed().ok()?;
        Some(age > LEFT_OVER_AFTER)
    };
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_temporary = name.as_encoded_bytes().starts_with(layout::CATALOGUE_TEMPORARY_PREFIX.as_bytes());
        if is_temporary && is_left_over(&entry.path()) == Some(true) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

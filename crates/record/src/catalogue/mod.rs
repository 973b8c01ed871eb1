//! The catalogue of a folder of recordings: a Parquet file with a row per run. It has the facts that a list needs, so that a list reads no
//! `run.json`. It has what each run's finished files hold, too, so that SQL over many runs opens only the files that it needs.
//!
//! It is only a memory of what was read. A row counts if its `run.json` and manifest still have the identity that they had before they
//! were read, see [`FileIdentity`]. So a catalogue that is damaged, foreign or old costs time, and never changes what is listed. A row
//! holds no path: it counts only for a folder that is there and has its name.
//!
//! Any Parquet reader reads the file. It has a checksum of itself, see [`checksum`].

mod checksum;
mod entry;
mod rows;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use parquet::file::metadata::KeyValue;

use crate::error::{Error, Result};
use crate::folder::FolderScan;
use crate::parquet_file::{Encoder, ParquetFile, properties};
use crate::{layout, private};

pub(crate) use entry::Entry;

/// Rises when columns have another form or another meaning.
const FORMAT: u32 = 2;
/// Key of the format and the program, in the footer.
const PROGRAM_KEY: &str = "whyso.catalogue";
/// A larger file is neither read nor written.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Levels and anchors of a run in the catalogue. One with more is read each time.
const PARTS_MAX: usize = 50_000;
/// A temporary file of this age belongs to a program that was killed.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(600);

/// The format, the version of this program, and the time of its build: another program may understand other parts of a `run.json`.
static PROGRAM: LazyLock<String> = LazyLock::new(|| {
    let built = std::env::current_exe().and_then(fs::metadata).and_then(|about| about.modified());
    let built = built.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    format!("{FORMAT} {} {}", env!("CARGO_PKG_VERSION"), built.map_or(0, |since| since.as_nanos()))
});

/// What a folder's catalogue holds.
#[derive(Default)]
pub(crate) struct Catalogue {
    entries: HashMap<String, Entry>,
}

impl Catalogue {
    /// Reads the catalogue of a folder. It is empty if there is none, or none of this program's and this user's.
    pub(crate) fn read(runs: &Path) -> Catalogue {
        let entries = own_entries(&runs.join(layout::CATALOGUE)).unwrap_or_default();
        Catalogue { entries: entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect() }
    }

    /// Takes out the entry of a run, if the run's files are still the ones that it describes.
    pub(crate) fn take(&mut self, name: Option<&str>, scan: &FolderScan) -> Option<Entry> {
        let entry = self.entries.remove(name?)?;
        (Some(entry.run) == scan.run && entry.manifest == scan.manifest).then_some(entry)
    }

    #[cfg(test)]
    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries.into_values().collect()
    }

    /// Entries that nobody took.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// Reads a file that belongs to this user: what others left in a shared folder is not believed.
fn own_entries(path: &Path) -> Option<Vec<Entry>> {
    let file = private::open_file(path).ok()?;
    (file.metadata().ok()?.uid() == user()).then(|| entries(path, file, |program| program == *PROGRAM))?
}

/// Reads the catalogue of another place, written by any program of this format.
pub(crate) fn foreign_entries(path: &Path) -> Option<Vec<Entry>> {
    let is_format = |program: &str| program.split(' ').next() == Some(&FORMAT.to_string());
    entries(path, private::open_file(path).ok()?, is_format)
}

fn entries(path: &Path, file: File, is_ours: impl Fn(&str) -> bool) -> Option<Vec<Entry>> {
    let mut content = Vec::new();
    (&file).take(FILE_BYTES_MAX + 1).read_to_end(&mut content).ok()?;
    if content.len() as u64 > FILE_BYTES_MAX || !checksum::is_whole(&content) {
        return None;
    }
    let table = ParquetFile::of(path, file).ok()?;
    if !table.note(PROGRAM_KEY).is_some_and(is_ours) {
        return None;
    }
    let rows = 0..table.row_count();
    let batches = table.read(std::slice::from_ref(&rows), Some(&rows::READ)).ok()?;
    Some(batches.iter().flat_map(rows::entries_of).collect())
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Writes the catalogue of a folder that belongs to this user.
///
/// Two programs may write at once: each writes a file of its own and renames it, and either result is right.
///
/// # Errors
/// The folder is another user's, or it can't be written.
pub(crate) fn write(runs: &Path, entries: &[&Entry]) -> Result<()> {
    let failed = |cause| Error::io(&runs.join(layout::CATALOGUE), cause);
    if fs::metadata(runs).map_err(failed)?.uid() != user() {
        return Err(failed(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the folder belongs to another user: only that user's whyso writes its catalogue",
        )));
    }
    remove_left_overs(runs);
    let kept: Vec<&Entry> = entries.iter().copied().filter(|entry| entry.parts.len() <= PARTS_MAX).collect();
    let content = encode(&kept)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(io::ErrorKind::FileTooLarge.into()));
    }
    let temporary = runs.join(temporary_name());
    // It is not synced to the disk: after a crash, what is missing of it is read again.
    let written = private::create_new_file(&temporary)
        .and_then(|mut file: File| file.write_all(&content))
        .and_then(|()| fs::rename(&temporary, runs.join(layout::CATALOGUE)));
    written.map_err(|cause| {
        let _ = fs::remove_file(&temporary);
        failed(cause)
    })
}

fn temporary_name() -> String {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    format!("{}{}-{number}", layout::CATALOGUE_TEMPORARY_PREFIX, std::process::id())
}

/// The file of these entries.
///
/// # Errors
/// They can't be encoded.
pub(crate) fn encode(entries: &[&Entry]) -> Result<Vec<u8>> {
    let failed = |cause: &dyn std::fmt::Display| Error::damaged(Path::new("the catalogue"), "Parquet", cause);
    let rows = rows::batch(entries).map_err(|cause| failed(&cause))?;
    let notes = vec![
        KeyValue::new(PROGRAM_KEY.to_string(), PROGRAM.clone()),
        // Last: the checksum is found from the end.
        KeyValue::new(checksum::KEY.to_string(), checksum::BLANK.to_string()),
    ];
    let properties = properties(&rows.schema(), &[]).set_key_value_metadata(Some(notes)).build();
    let mut encoder = Encoder::new(rows.schema(), properties)?;
    encoder.group(&rows)?;
    checksum::seal(encoder.finish()?).ok_or_else(|| failed(&"its footer has no place for a checksum"))
}

fn remove_left_overs(runs: &Path) {
    let _ = fs::remove_file(runs.join(layout::OLD_CATALOGUE));
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

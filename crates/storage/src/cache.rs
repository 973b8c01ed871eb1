//! Copies of runs in storage, for commands that read them: bounded, and each checked against the list that lies there now.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use whyso_record::sql::{Selection, Views};

use crate::bucket::Bucket;
use crate::error::{Error, Result};

/// Copies of all places together. The ones that were not used for the longest time go first.
const BYTES_MAX: u64 = 20 << 30;
/// Has the file list of a copy, next to the copies.
const LISTS: &str = ".lists";

/// Where copies are: `~/.cache/whyso/storage`.
fn folder() -> Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    Ok(cache.ok_or(Error::NoCache)?.join("whyso/storage"))
}

impl Bucket {
    /// Where the copies of this place's runs are.
    fn copies(&self) -> Result<PathBuf> {
        let endpoint = std::env::var("AWS_ENDPOINT_URL").unwrap_or_default();
        let sum = crc32c::crc32c(format!("{endpoint} {}", self.place).as_bytes());
        Ok(folder()?.join(format!("{}-{sum:08x}", self.place.bucket)))
    }

    /// Copies a run into the cache, unless the copy there is of the same files. Returns its folder.
    ///
    /// # Errors
    /// As of [`Bucket::pull`].
    pub fn copy(&self, id: &str) -> Result<PathBuf> {
        let copies = self.copies()?;
        let list = self.runtime.block_on(self.list_of_run(id))?;
        let (dir, kept_list) = (copies.join(id), copies.join(LISTS).join(id));
        let is_same = fs::read(&kept_list).is_ok_and(|kept| kept == list.content);
        if is_same && dir.is_dir() {
            touch(&kept_list);
            return Ok(dir);
        }
        if dir.is_dir() {
            whyso_record::remove_run(&dir)?;
        }
        if list.bytes() > BYTES_MAX {
            let (what, bytes) = (format!("{id} of {}", self.place), list.bytes());
            return Err(Error::TooLarge { what, bytes, bytes_max: BYTES_MAX });
        }
        make_room(list.bytes())?;
        let content = list.content.clone();
        let dir = self.fetch(id, list, &copies, BYTES_MAX)?;
        let io = |cause| Error::io(&kept_list, cause);
        fs::create_dir_all(copies.join(LISTS)).map_err(io)?;
        fs::write(&kept_list, content).map_err(io)?;
        Ok(dir)
    }

    /// Makes views over the runs of this place. Facts about runs, levels and files come from its catalogue. With `with_files`, the
    /// selected runs are copied, and the other views have their rows.
    ///
    /// # Errors
    /// The storage fails, or the selected runs are more than the cache may hold.
    pub fn views(&self, selection: &Selection, with_files: bool, catalogue: &Path) -> Result<Views> {
        let runs = self.runs()?;
        let copies = self.copies()?;
        let mut here = BTreeSet::new();
        if with_files {
            let selected = runs.selected(selection);
            let bytes = selected.iter().fold(0, |sum: u64, run| sum.saturating_add(run.1));
            if bytes > BYTES_MAX {
                let what = format!("{} runs of {}", selected.len(), self.place);
                return Err(Error::TooLarge { what, bytes, bytes_max: BYTES_MAX });
            }
            for (id, _) in selected {
                self.copy(&id)?;
                here.insert(id);
            }
        }
        Ok(runs.views(&copies, here, selection, catalogue)?)
    }
}

/// Makes a copy the one that was used last. Where that fails, it goes earlier.
fn touch(list: &Path) {
    let _ = File::options().append(true).open(list).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Removes copies until `bytes` more fit.
fn make_room(bytes: u64) -> Result<()> {
    let mut copies: Vec<(SystemTime, PathBuf, u64)> = Vec::new();
    for place in fs::read_dir(folder()?).into_iter().flatten().flatten() {
        for run in whyso_record::list_runs(&place.path())? {
            let used =
                fs::metadata(place.path().join(LISTS).join(&run.id)).and_then(|about| about.modified());
            copies.push((used.unwrap_or(SystemTime::UNIX_EPOCH), run.path, run.bytes));
        }
    }
    copies.sort();
    let mut held = copies.iter().fold(bytes, |sum, copy| sum.saturating_add(copy.2));
    for (_, dir, bytes) in copies {
        if held <= BYTES_MAX {
            return Ok(());
        }
        whyso_record::remove_run(&dir)?;
        held = held.saturating_sub(bytes);
    }
    Ok(())
}

//! Lists and fetches recordings of a place. What comes from there is a stranger's: nothing of it counts before it was checked.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;
use whyso_record::{Arrival, FILE_LIST, ListedFile, RunSummary, RunsElsewhere, parse_file_list};

use crate::bucket::{Bucket, PIECE_BYTES};
use crate::error::{Error, Result};

/// Files that are fetched at once.
const AT_ONCE: usize = 4;
/// Descriptions of runs that are fetched at once.
const DESCRIPTIONS_AT_ONCE: usize = 16;
/// A longer file list is of no recording.
const LIST_BYTES_MAX: u64 = 64 << 20;
/// Of a file that describes a run. A larger one is not read for a list.
const DESCRIPTION_BYTES_MAX: u64 = 64 << 20;
/// Files that describe a run to a list.
const DESCRIPTION: [&str; 3] = whyso_record::DESCRIPTION_FILES;

/// The file list of a run, as it lies there.
pub(crate) struct FileList {
    pub(crate) content: Vec<u8>,
    pub(crate) files: Vec<ListedFile>,
}

impl FileList {
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }
}

impl Bucket {
    /// Lists the runs of this place, oldest first. Those that its catalogue lacks are described one by one.
    ///
    /// # Errors
    /// The storage fails.
    pub fn list(&self) -> Result<Vec<RunSummary>> {
        Ok(self.runs()?.summaries(Path::new(&self.place.to_string())))
    }

    /// The same, as the catalogue has them.
    pub(crate) fn runs(&self) -> Result<RunsElsewhere> {
        let place = tempfile::tempdir().map_err(|cause| Error::io(&std::env::temp_dir(), cause))?;
        self.runtime.block_on(self.read_runs(place.path()))
    }

    async fn read_runs(&self, place: &Path) -> Result<RunsElsewhere> {
        let there: BTreeSet<String> = self.folders().await?.into_iter().collect();
        let (mut runs, _) = self.catalogue(place).await?;
        runs.retain(&there);
        let lacking: Vec<String> = {
            let catalogued = runs.ids();
            there.into_iter().filter(|id| !catalogued.contains(id.as_str())).collect()
        };
        let described: Vec<Option<(PathBuf, u64)>> = stream::iter(&lacking)
            .map(|id| self.describe(place, id))
            .buffer_unordered(DESCRIPTIONS_AT_ONCE)
            .try_collect()
            .await?;
        for (dir, bytes) in described.into_iter().flatten() {
            // A folder that is no recording is left out, as in a folder on disk.
            let _ = runs.add(&dir, bytes);
        }
        Ok(runs)
    }

    /// Fetches what describes a run. `None`: the folder is no run, or not yet.
    async fn describe(&self, place: &Path, id: &str) -> Result<Option<(PathBuf, u64)>> {
        let list = match self.file_list(id).await {
            Ok(Some(list)) => list,
            // Somebody else's folder, or a damaged one.
            Ok(None) | Err(Error::Record(_) | Error::Broken(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let dir = place.join(id);
        std::fs::create_dir_all(&dir).map_err(|cause| Error::io(&dir, cause))?;
        for name in DESCRIPTION {
            if let Some(fetched) = self.get(&[id, name], DESCRIPTION_BYTES_MAX).await? {
                let path = dir.join(name);
                std::fs::write(&path, &fetched.content).map_err(|cause| Error::io(&path, cause))?;
            }
        }
        Ok(Some((dir, list.bytes())))
    }

    /// Reads the file list of a run. `None`: there is none.
    pub(crate) async fn file_list(&self, id: &str) -> Result<Option<FileList>> {
        let Some(fetched) = self.get(&[id, FILE_LIST], LIST_BYTES_MAX).await? else { return Ok(None) };
        let content = fetched.content.to_vec();
        let files = parse_file_list(id, &content)?;
        Ok(Some(FileList { content, files }))
    }

    /// Fetches a run into a folder of runs. Returns its folder there. `bytes_max`: of all its files.
    ///
    /// # Errors
    /// The run is not there, is larger than `bytes_max`, or is not what its lists say; or the storage or the folder fails.
    pub fn pull(&self, id: &str, runs: &Path, bytes_max: u64) -> Result<PathBuf> {
        let list = self.runtime.block_on(self.list_of_run(id))?;
        self.fetch(id, list, runs, bytes_max)
    }

    pub(crate) async fn list_of_run(&self, id: &str) -> Result<FileList> {
        let list = self.file_list(id).await?;
        list.ok_or_else(|| Error::NoRun { id: id.to_string(), place: self.place.to_string() })
    }

    pub(crate) fn fetch(&self, id: &str, list: FileList, runs: &Path, bytes_max: u64) -> Result<PathBuf> {
        if list.bytes() > bytes_max {
            return Err(Error::TooLarge {
                what: format!("{}/{id}", self.place),
                bytes: list.bytes(),
                bytes_max,
            });
        }
        let arrival = Arrival::create(runs, id, list.files)?;
        self.runtime.block_on(async {
            stream::iter(arrival.files())
                .map(|file| self.fetch_file(&arrival, id, file))
                .buffer_unordered(AT_ONCE)
                .try_collect::<Vec<()>>()
                .await
        })?;
        Ok(arrival.finish()?)
    }

    async fn fetch_file(&self, arrival: &Arrival, id: &str, file: &ListedFile) -> Result<()> {
        let mut out = arrival.create_file(file)?;
        let key = self.key(&[id, &file.name])?;
        let what = || format!("{}/{id}", self.place);
        let mut begin = 0;
        while begin < file.bytes {
            let end = file.bytes.min(begin + PIECE_BYTES as u64);
            let piece = match self.store.get_range(&key, begin..end).await {
                Ok(piece) => piece,
                Err(object_store::Error::NotFound { .. }) => return Err(Error::Broken(what())),
                Err(error) => return Err(self.failed(&error)),
            };
            // Shorter: the object is not the one that is listed. Longer: that server gave more than was asked for.
            if piece.len() as u64 != end - begin {
                return Err(Error::Broken(what()));
            }
            out.write_all(&piece)
                .map_err(|cause| Error::Io(format!("{} can't be written: {cause}", file.name)))?;
            begin = end;
        }
        Ok(())
    }
}

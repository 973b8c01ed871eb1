//! Sends recordings to storage.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{MultipartUpload, PutPayload};
use whyso_record::private::open_file;
use whyso_record::{CATALOGUE, FILE_LIST, ListedFile, RunFiles, RunsElsewhere};

use crate::bucket::{Bucket, PIECE_BYTES};
use crate::error::{Error, Result};

/// Files that are sent at once.
const AT_ONCE: usize = 4;
/// How often the catalogue is written again where others write it at the same time.
const TRIES: usize = 10;
/// A larger catalogue is not read.
pub(crate) const CATALOGUE_BYTES_MAX: u64 = 256 << 20;

/// What was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushResult {
    /// Ids of runs that were sent.
    pub sent: Vec<String>,
    /// Ids of runs that were there already, and stay as they are.
    pub there_already: Vec<String>,
    pub bytes: u64,
}

/// A file, read in pieces.
struct Pieces<'p> {
    path: &'p Path,
    content: File,
    sent: u64,
    sum: u32,
}

impl Pieces<'_> {
    /// The next piece; empty at the end.
    fn next(&mut self) -> Result<Bytes> {
        let mut piece = Vec::new();
        let read = (&mut self.content).take(PIECE_BYTES as u64).read_to_end(&mut piece);
        read.map_err(|cause| Error::io(self.path, cause))?;
        self.sent += piece.len() as u64;
        self.sum = crc32c::crc32c_append(self.sum, &piece);
        Ok(Bytes::from(piece))
    }

    /// Checks that what was read is what was listed.
    fn check(&self, file: &ListedFile) -> Result<()> {
        match (self.sent, self.sum) == (file.bytes, file.crc32c) {
            true => Ok(()),
            false => Err(Error::Changed(self.path.display().to_string())),
        }
    }
}

impl Bucket {
    /// Sends recordings to this place, then adds them to its catalogue. A run is there once its last file is, which describes it.
    ///
    /// # Errors
    /// A recording is damaged, is being recorded or can't be read, or the storage fails. Runs that were sent before stay there.
    pub fn push(&self, dirs: &[PathBuf]) -> Result<PushResult> {
        let mut pushed = PushResult::default();
        let mut outcome = Ok(());
        let mut sent = Vec::new();
        for dir in dirs {
            match self.runtime.block_on(self.push_one(dir)) {
                Ok((files, true)) => {
                    pushed.bytes += files.bytes();
                    sent.push((dir.clone(), files.bytes()));
                    pushed.sent.push(files.id);
                }
                Ok((files, false)) => pushed.there_already.push(files.id),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        if !sent.is_empty() {
            self.runtime.block_on(self.add_to_catalogue(&sent))?;
        }
        outcome.map(|()| pushed)
    }

    async fn push_one(&self, dir: &Path) -> Result<(RunFiles, bool)> {
        let files = RunFiles::of(dir)?;
        let Some((last, before)) = files.files.split_last() else {
            return Err(whyso_record::Error::NotARecording(dir.to_path_buf()).into());
        };
        if self.has(&[&files.id, &last.name]).await? {
            return Ok((files, false));
        }
        stream::iter(before)
            .map(|file| self.push_file(dir, &files.id, file))
            .buffer_unordered(AT_ONCE)
            .try_collect::<Vec<()>>()
            .await?;
        self.put(&[&files.id, FILE_LIST], Bytes::from(files.list.clone())).await?;
        self.push_file(dir, &files.id, last).await?;
        Ok((files, true))
    }

    async fn push_file(&self, dir: &Path, id: &str, file: &ListedFile) -> Result<()> {
        let path = dir.join(&file.name);
        let content = open_file(&path).map_err(|cause| Error::io(&path, cause))?;
        let mut pieces = Pieces { path: &path, content, sent: 0, sum: 0 };
        let parts = [id, file.name.as_str()];
        if file.bytes <= PIECE_BYTES as u64 {
            let whole = pieces.next()?;
            pieces.check(file)?;
            return self.put(&parts, whole).await;
        }
        let mut upload = self.start(&parts).await?;
        let sent = self.push_pieces(&mut pieces, upload.as_mut()).await.and_then(|()| pieces.check(file));
        if sent.is_err() {
            // Its pieces would be kept, and paid for.
            let _ = upload.abort().await;
            return sent;
        }
        upload.complete().await.map(|_| ()).map_err(|error| self.failed(&error))
    }

    async fn push_pieces(&self, pieces: &mut Pieces<'_>, upload: &mut dyn MultipartUpload) -> Result<()> {
        loop {
            let piece = pieces.next()?;
            if piece.is_empty() {
                return Ok(());
            }
            upload.put_part(PutPayload::from_bytes(piece)).await.map_err(|error| self.failed(&error))?;
        }
    }

    /// Adds runs to the catalogue of this place. What others write to it at the same time stays.
    async fn add_to_catalogue(&self, dirs: &[(PathBuf, u64)]) -> Result<()> {
        let place = tempfile::tempdir().map_err(|cause| Error::io(&std::env::temp_dir(), cause))?;
        for _ in 0..TRIES {
            let there: BTreeSet<String> = self.folders().await?.into_iter().collect();
            let (mut runs, version) = self.catalogue(place.path()).await?;
            runs.retain(&there);
            for (dir, bytes) in dirs {
                runs.add(dir, *bytes)?;
            }
            if self.replace(&[CATALOGUE], Bytes::from(runs.catalogue()?), version).await? {
                return Ok(());
            }
        }
        // A list reads what the catalogue lacks.
        Ok(())
    }

    /// Reads the catalogue of this place by a file in `place`; a damaged one is empty.
    pub(crate) async fn catalogue(
        &self,
        place: &Path,
    ) -> Result<(RunsElsewhere, Option<object_store::UpdateVersion>)> {
        let Some(fetched) = self.get(&[CATALOGUE], CATALOGUE_BYTES_MAX).await? else {
            return Ok((RunsElsewhere::default(), None));
        };
        let file = place.join(CATALOGUE);
        std::fs::write(&file, &fetched.content).map_err(|cause| Error::io(&file, cause))?;
        Ok((RunsElsewhere::read(&file), Some(fetched.version)))
    }
}

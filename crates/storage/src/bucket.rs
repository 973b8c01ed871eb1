//! Requests to one place in storage, each with a bound.

use std::time::Duration;

use bytes::Bytes;
use object_store::aws::AmazonS3;
use object_store::path::Path as Key;
use object_store::{
    MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use tokio::runtime::Runtime;

use crate::error::{Error, Result};
use crate::place::Place;
use crate::settings;

/// How long a request may take, with its answer. It sends or receives a piece at most.
const REQUEST: Duration = Duration::from_secs(60);
/// Of a file, in one request.
pub(crate) const PIECE_BYTES: usize = 8 << 20;
/// How long all pages of one list may take.
const LIST_TIME_MAX: Duration = Duration::from_secs(120);
/// Runs of one place.
const RUNS_MAX: usize = 1_000_000;

/// A place in storage that holds runs.
pub struct Bucket {
    pub(crate) place: Place,
    pub(crate) runtime: Runtime,
    pub(crate) store: AmazonS3,
}

/// An object, and the version of it that was read.
pub(crate) struct Object {
    pub(crate) content: Bytes,
    pub(crate) version: UpdateVersion,
}

impl Bucket {
    /// Prepares to ask for a place. Nothing is asked yet. Keys and the endpoint come from the environment.
    ///
    /// # Errors
    /// The environment has no keys, or names an endpoint that can't be used.
    pub fn open(place: &Place) -> Result<Bucket> {
        Bucket::open_within(place, REQUEST)
    }

    /// The same, with another bound of a request.
    pub(crate) fn open_within(place: &Place, request: Duration) -> Result<Bucket> {
        let store = settings::connect(place, request, |name| std::env::var(name).ok())?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|cause| Error::Io(format!("no connection can be made: {cause}; try again")))?;
        Ok(Bucket { place: place.clone(), runtime, store })
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The key of a file. `parts`: the run and the file, or only a file.
    pub(crate) fn key(&self, parts: &[&str]) -> Result<Key> {
        Key::parse(self.place.key(parts))
            .map_err(|_| Error::Broken(format!("{}/{}", self.place, parts.join("/"))))
    }

    pub(crate) fn failed(&self, error: &object_store::Error) -> Error {
        Error::of_request(&self.place.to_string(), error)
    }

    /// Whether an object is there. A bucket that is missing is no error: the answer to this request has no text.
    pub(crate) async fn has(&self, parts: &[&str]) -> Result<bool> {
        match self.store.head(&self.key(parts)?).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Reads an object. `None`: it is not there. `bytes_max`: a larger one is refused.
    pub(crate) async fn get(&self, parts: &[&str], bytes_max: u64) -> Result<Option<Object>> {
        let found = match self.store.get(&self.key(parts)?).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.failed(&error)),
        };
        if found.meta.size > bytes_max {
            return Err(Error::Broken(format!("{}/{}", self.place, parts.join("/"))));
        }
        let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        let content = found.bytes().await.map_err(|error| self.failed(&error))?;
        // The size was that server's word.
        match content.len() as u64 > bytes_max {
            true => Err(Error::Broken(format!("{}/{}", self.place, parts.join("/")))),
            false => Ok(Some(Object { content, version })),
        }
    }

    pub(crate) async fn put(&self, parts: &[&str], content: Bytes) -> Result<()> {
        let put = self.store.put(&self.key(parts)?, PutPayload::from_bytes(content)).await;
        put.map(|_| ()).map_err(|error| self.failed(&error))
    }

    /// Replaces an object only if it is still of this version, `None`: only if it is not there. Returns whether it was replaced.
    /// Storage that can't do that replaces it in any case.
    pub(crate) async fn replace(
        &self,
        parts: &[&str],
        content: Bytes,
        version: Option<UpdateVersion>,
    ) -> Result<bool> {
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let options = PutOptions { mode, ..PutOptions::default() };
        let key = self.key(parts)?;
        match self.store.put_opts(&key, PutPayload::from_bytes(content.clone()), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(false)
            }
            Err(object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. }) => {
                self.put(parts, content).await.map(|()| true)
            }
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Begins to write an object in pieces.
    pub(crate) async fn start(&self, parts: &[&str]) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart(&self.key(parts)?).await.map_err(|error| self.failed(&error))
    }

    /// The names of the folders in this place: its runs, and those that are being sent.
    pub(crate) async fn folders(&self) -> Result<Vec<String>> {
        let folder = match self.place.folder.is_empty() {
            true => None,
            false => Some(self.key(&[])?),
        };
        // A place that always has another page would be asked for ever.
        let listed =
            tokio::time::timeout(LIST_TIME_MAX, self.store.list_with_delimiter(folder.as_ref())).await;
        let endless = || Error::NoAnswer {
            place: self.place.to_string(),
            cause: format!("its list has no end after {} s", LIST_TIME_MAX.as_secs()),
        };
        let listed = listed.map_err(|_| endless())?.map_err(|error| self.failed(&error))?;
        let names = listed.common_prefixes.iter().filter_map(|prefix| prefix.filename());
        Ok(names.take(RUNS_MAX).map(str::to_string).collect())
    }
}

//! Loaded data folders, kept to be restored in seconds.
//!
//! A snapshot is a copy of the data folder of a server that was shut down cleanly. It is found by everything that its
//! bytes depend on. These are the server program, the data set, and those knobs that change what lies on disk.

pub(crate) mod copy;
#[cfg(test)]
mod faults;

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::answers::{answered, log_out};
use crate::dataset::{Dataset, LoadSummary, OnProgress, ensure};
use crate::error::{Error, Result, io, refused};
use crate::find::{Binary, Flavor};
use crate::paths::{cache_dir, unique_name};
use crate::throwaway::option_file::server_settings;
use crate::throwaway::{Origin, StartSpec, ThrowAway};
use copy::copy_folder;

/// Changes when a snapshot's layout does.
const FORMAT: u32 = 1;
const FACTS_FILE: &str = "snapshot.json";
const DATA_FOLDER: &str = "data";
/// Snapshots that are being written.
const UNFINISHED_PREFIX: &str = "unfinished";
/// Default bound on the size of a store.
pub const DEFAULT_MAX_BYTES: u64 = 20 << 30;
/// An unfinished snapshot that nobody has touched for so long was left by a crash.
const UNFINISHED_BOUND_SECONDS: u64 = 3600;

/// Beginnings of the names of knobs that change what lies on disk.
const KNOBS_OF_DATA: [&str; 26] = [
    "innodb_page_size",
    "innodb_data_file_path",
    "innodb_file_per_table",
    "innodb_undo_tablespaces",
    "innodb_undo_directory",
    "innodb_checksum",
    "innodb_full_crc32",
    "innodb_log_checksums",
    "innodb_log_group_home_dir",
    "innodb_log_files_in_group",
    "innodb_default_row_format",
    "innodb_file_format",
    "innodb_compression",
    "innodb_encrypt",
    "innodb_redo_log_encrypt",
    "innodb_undo_log_encrypt",
    "innodb_dedicated_server",
    "innodb_fill_factor",
    "default_storage_engine",
    "default_table_encryption",
    "lower_case_table_names",
    "character_set_server",
    "collation_server",
    "aria_log_",
    "plugin_load",
    "rocksdb",
];

/// What a snapshot is of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Facts {
    format: u32,
    binary: Binary,
    /// Size and time of change of the server program: another build under the same name differs.
    binary_bytes: u64,
    binary_changed_s: i64,
    dataset: Dataset,
    knobs: Vec<(String, String)>,
}

impl Facts {
    fn of(spec: &StartSpec, dataset: &Dataset) -> Result<Facts> {
        use std::os::unix::fs::MetadataExt;
        let program = std::fs::metadata(&spec.binary.path)
            .map_err(io("cannot examine the server", &spec.binary.path))?;
        let mut knobs = match &spec.defaults_file {
            Some(file) => server_settings(file)?,
            None => Vec::new(),
        };
        for (name, value) in &spec.set {
            let name = crate::throwaway::normal_name(name)?;
            knobs.retain(|(before, _)| *before != name);
            knobs.push((name, value.clone()));
        }
        knobs.retain(|(name, _)| KNOBS_OF_DATA.iter().any(|beginning| name.starts_with(beginning)));
        knobs.sort();
        Ok(Facts {
            format: FORMAT,
            binary: spec.binary.clone(),
            binary_bytes: program.len(),
            binary_changed_s: program.mtime(),
            dataset: dataset.clone(),
            knobs,
        })
    }

    /// Of the snapshot in a folder; `None` where they can't be read.
    fn read(folder: &Path) -> Option<Facts> {
        serde_json::from_str(&std::fs::read_to_string(folder.join(FACTS_FILE)).ok()?).ok()
    }

    fn key(&self) -> Result<String> {
        let text = serde_json::to_string(self)
            .map_err(|error| Error::Dataset(format!("cannot name the snapshot: {error}")))?;
        let digest = Sha256::digest(text.as_bytes());
        Ok(digest[..12].iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// A folder of snapshots, bounded in size: the longest unused go first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    pub folder: PathBuf,
    pub max_bytes: u64,
}

/// One snapshot, as [`Store::list`] shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub key: String,
    pub server_version: String,
    pub dataset: Dataset,
    /// Knobs that its data depends on.
    pub knobs: Vec<(String, String)>,
    /// On disk; a reflinked one may share them with others.
    pub bytes: u64,
    pub last_used: SystemTime,
}

impl Store {
    /// The user's own: `~/.cache/whyso/snapshots`, at most [`DEFAULT_MAX_BYTES`].
    pub fn of_user() -> Result<Store> {
        Ok(Store { folder: cache_dir()?.join("snapshots"), max_bytes: DEFAULT_MAX_BYTES })
    }

    /// The snapshots, the longest unused first. What can't be read is none.
    pub fn list(&self) -> Result<Vec<Snapshot>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io("cannot list", &self.folder)(error)),
        };
        let mut snapshots = Vec::new();
        for entry in entries.flatten() {
            let facts_path = entry.path().join(FACTS_FILE);
            let Ok(text) = std::fs::read_to_string(&facts_path) else { continue };
            let Ok(facts) = serde_json::from_str::<Facts>(&text) else { continue };
            let key = entry.file_name().to_string_lossy().into_owned();
            if key.starts_with(UNFINISHED_PREFIX) {
                continue;
            }
            let last_used = std::fs::metadata(&facts_path)
                .and_then(|facts| facts.modified())
                .unwrap_or(SystemTime::UNIX_EPOCH);
            snapshots.push(Snapshot {
                key,
                server_version: facts.binary.version,
                dataset: facts.dataset,
                knobs: facts.knobs,
                bytes: bytes_of(&entry.path()),
                last_used,
            });
        }
        snapshots.sort_by_key(|snapshot| snapshot.last_used);
        Ok(snapshots)
    }

    /// Removes a snapshot; one that does not exist is removed already.
    ///
    /// # Errors
    ///
    /// [`Error::Dataset`] where `key` is none, [`Error::Io`].
    pub fn remove(&self, key: &str) -> Result<()> {
        if key.is_empty() || !key.chars().all(|character| character.is_ascii_hexdigit()) {
            return Err(Error::Dataset(format!("'{}' is no snapshot's key", key.escape_default())));
        }
        // first out of sight, so that no half of it is ever restored
        let folder = self.folder.join(key);
        let hidden = self.folder.join(unique_name(UNFINISHED_PREFIX));
        match std::fs::rename(&folder, &hidden) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            renamed => renamed.map_err(io("cannot remove the snapshot", &folder))?,
        }
        std::fs::remove_dir_all(&hidden).map_err(io("cannot remove the snapshot", &hidden))
    }

    /// Copies a stopped server's data folder into the store.
    fn save(&self, facts: &Facts, data: &Path) -> Result<()> {
        std::fs::create_dir_all(&self.folder).map_err(io("cannot make the folder", &self.folder))?;
        let unfinished = self.folder.join(unique_name(UNFINISHED_PREFIX));
        let saved = self.save_into(&unfinished, facts, data);
        if saved.is_err() {
            let _ = std::fs::remove_dir_all(&unfinished);
        }
        saved
    }

    fn save_into(&self, unfinished: &Path, facts: &Facts, data: &Path) -> Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        let copy = unfinished.join(DATA_FOLDER);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&copy)
            .map_err(io("cannot make the folder", &copy))?;
        copy_folder(data, &copy, left_out)?;
        let facts_path = unfinished.join(FACTS_FILE);
        let text = serde_json::to_string_pretty(facts)
            .map_err(|error| io("cannot write", &facts_path)(error.into()))?;
        std::fs::write(&facts_path, text).map_err(io("cannot write", &facts_path))?;
        // on disk before its name says that it is whole: after a power cut a name without bytes would lie
        let folder = std::fs::File::open(unfinished).map_err(io("cannot read", unfinished))?;
        rustix::fs::syncfs(&folder).map_err(|errno| io("cannot write", unfinished)(errno.into()))?;
        let folder = self.folder.join(facts.key()?);
        match std::fs::rename(unfinished, &folder) {
            // another whyso was faster: one is as good as the other
            Err(_) if Facts::read(&folder).is_some() => {
                std::fs::remove_dir_all(unfinished).map_err(io("cannot remove", unfinished))
            }
            // what can't be read was damaged, and is in the way
            Err(_) if folder.exists() => {
                self.remove(&facts.key()?)?;
                std::fs::rename(unfinished, &folder).map_err(io("cannot write the snapshot", &folder))
            }
            renamed => renamed.map_err(io("cannot write the snapshot", &folder)),
        }
    }

    /// Copies a snapshot into an empty data folder; `false` where there is none.
    fn restore(&self, facts: &Facts, data: &Path) -> Result<bool> {
        let folder = self.folder.join(facts.key()?);
        let facts_path = folder.join(FACTS_FILE);
        let Ok(text) = std::fs::read_to_string(&facts_path) else { return Ok(false) };
        if serde_json::from_str::<Facts>(&text).ok().as_ref() != Some(facts) {
            return Ok(false);
        }
        let skip = if recreates_redo(&facts.binary) { is_redo_of_old } else { left_out };
        copy_folder(&folder.join(DATA_FOLDER), data, skip)?;
        // says that it was used, without writing to it: half a file would be a snapshot no more. A store that can't be written is still good to read
        let _ = std::fs::File::open(&facts_path).and_then(|file| file.set_modified(SystemTime::now()));
        Ok(true)
    }

    /// Removes the longest unused snapshots until the rest fits the bound, but never `keep`; and what
    /// a crash left unfinished.
    fn trim(&self, keep: &str) -> Result<()> {
        let snapshots = self.list()?;
        let mut total: u64 = snapshots.iter().map(|snapshot| snapshot.bytes).sum();
        for snapshot in snapshots.iter().filter(|snapshot| snapshot.key != keep) {
            if total <= self.max_bytes {
                break;
            }
            self.remove(&snapshot.key)?;
            total = total.saturating_sub(snapshot.bytes);
        }
        for entry in std::fs::read_dir(&self.folder).map_err(io("cannot list", &self.folder))?.flatten() {
            let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED_PREFIX);
            let age = entry
                .metadata()
                .and_then(|facts| facts.modified())
                .ok()
                .and_then(|changed| changed.elapsed().ok());
            if unfinished && age.is_some_and(|age| age.as_secs() > UNFINISHED_BOUND_SECONDS) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        Ok(())
    }
}

fn bytes_of(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let mut bytes = 0;
    for entry in entries.flatten() {
        let Ok(facts) = entry.metadata() else { continue };
        bytes += if facts.is_dir() { bytes_of(&entry.path()) } else { facts.blocks() * 512 };
    }
    bytes
}

/// What belongs to one life of a server and not to its data. A server that is given a MySQL data
/// folder without `auto.cnf` makes itself a new identity.
fn left_out(name: &str) -> bool {
    name == "auto.cnf"
        || name == "ib_buffer_pool"
        || name.ends_with(".pid")
        || name.starts_with("ibtmp")
        || name.starts_with("server.log")
}

/// MySQL before 5.6.8 refuses a redo log of another size than its option, and makes a missing one
/// after a clean shutdown.
fn recreates_redo(binary: &Binary) -> bool {
    binary.flavor == Flavor::MySQL && binary.version_numbers() < (5, 6, 8)
}

fn is_redo_of_old(name: &str) -> bool {
    left_out(name) || name.starts_with("ib_logfile")
}

/// How a server got its data set.
#[derive(Clone, Debug, PartialEq)]
pub enum Provision {
    /// From a snapshot, with the seconds of copying.
    Restored { seconds: f64 },
    /// Loaded, and kept as a snapshot unless `not_kept` says why not.
    Loaded { loaded: LoadSummary, snapshot_seconds: f64, not_kept: Option<String> },
}

impl ThrowAway {
    /// Starts a server that holds the data set, from the store's snapshot where there is one. Else it loads the data,
    /// shuts the server down, saves a snapshot, and starts it again. A snapshot that can't be saved is reported, and is
    /// no failure.
    pub async fn start_with_dataset(
        mut spec: StartSpec,
        dataset: &Dataset,
        store: &Store,
        progress: OnProgress<'_>,
    ) -> Result<(ThrowAway, Provision)> {
        dataset.check()?;
        if spec.data_bytes == 0 {
            spec.data_bytes = dataset.bytes_estimate();
        }
        let facts = Facts::of(&spec, dataset)?;
        let mut server = ThrowAway::prepare(spec)?;
        let begin = Instant::now();
        let restored = {
            let (store, facts, data) = (store.clone(), facts.clone(), server.data_dir());
            in_background(move || store.restore(&facts, &data)).await?
        };
        if restored {
            let seconds = begin.elapsed().as_secs_f64();
            server.start_server().await?;
            return Ok((server, Provision::Restored { seconds }));
        }
        server.initialise().await?;
        server.start_server().await?;
        let loaded = ensure(&server.dsn(), dataset, progress).await?;
        let begin = Instant::now();
        settle_before_shutdown(&server).await;
        let ended_cleanly = server.stop_server().await?;
        let not_kept = if ended_cleanly {
            let (store, data) = (store.clone(), server.data_dir());
            let saving = in_background(move || {
                store.save(&facts, &data)?;
                store.trim(&facts.key()?)
            });
            saving.await.err().map(|error| error.to_string())
        } else {
            Some("the server did not shut down cleanly".to_string())
        };
        let snapshot_seconds = begin.elapsed().as_secs_f64();
        server.start_server().await?;
        Ok((server, Provision::Loaded { loaded, snapshot_seconds, not_kept }))
    }
}

/// Asks for a shutdown that leaves nothing to be purged or merged. Where the server does not have the
/// knob, its usual shutdown is clean too, only with a little left to do.
async fn settle_before_shutdown(server: &ThrowAway) {
    use mysql_async::prelude::Queryable;
    let user_chose = server
        .settings()
        .iter()
        .any(|setting| setting.origin == Origin::Asked && setting.name == "innodb_fast_shutdown");
    if user_chose {
        return;
    }
    let dsn = server.dsn();
    if let Ok(mut connection) = dsn.connect_without_schema().await {
        let _ = answered(&dsn, "asking for a full shutdown", async {
            let set = connection.query_drop("SET GLOBAL innodb_fast_shutdown = 0");
            set.await.map_err(refused("shut down in full"))
        })
        .await;
        log_out(connection).await;
    }
}

/// Copying blocks: it is done on a thread of its own.
async fn in_background<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::Dataset(format!("copying broke off: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn facts(rows: u64) -> Facts {
        let binary = Binary {
            path: "/x/mysqld".into(),
            basedir: "/x".into(),
            version: "8.4.3".into(),
            flavor: Flavor::MySQL,
            launch: Default::default(),
        };
        let dataset = Dataset { rows, ..Dataset::default() };
        Facts { format: FORMAT, binary, binary_bytes: 1, binary_changed_s: 2, dataset, knobs: Vec::new() }
    }

    fn store(max_bytes: u64) -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store { folder: folder.path().join("snapshots"), max_bytes };
        (folder, store)
    }

    fn data_of(bytes: usize) -> tempfile::TempDir {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("ibdata1"), vec![1_u8; bytes]).unwrap();
        data
    }

    #[test]
    fn only_a_whole_snapshot_of_the_same_facts_is_restored() {
        let (_folder, store) = store(u64::MAX);
        let target = tempfile::tempdir().unwrap();
        assert!(!store.restore(&facts(1), target.path()).unwrap());
        store.save(&facts(1), data_of(10).path()).unwrap();
        assert!(!store.restore(&facts(2), target.path()).unwrap());

        // a crash in the middle of a save leaves a folder under another name
        let unfinished = store.folder.join(format!("{UNFINISHED_PREFIX}-1"));
        std::fs::create_dir_all(unfinished.join(DATA_FOLDER)).unwrap();
        std::fs::write(unfinished.join(FACTS_FILE), serde_json::to_string(&facts(2)).unwrap()).unwrap();
        assert!(!store.restore(&facts(2), target.path()).unwrap());
        assert_eq!(store.list().unwrap().len(), 1);

        assert!(store.restore(&facts(1), target.path()).unwrap());
        assert_eq!(std::fs::read(target.path().join("ibdata1")).unwrap(), vec![1_u8; 10]);
    }

    #[test]
    fn the_longest_unused_go_when_the_bound_is_reached() {
        let (_folder, store) = store(250_000);
        for (rows, age_s) in [(1, 300), (2, 200), (3, 100)] {
            store.save(&facts(rows), data_of(100_000).path()).unwrap();
            let path = store.folder.join(facts(rows).key().unwrap()).join(FACTS_FILE);
            let then = SystemTime::now() - std::time::Duration::from_secs(age_s);
            std::fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
        }
        store.trim(&facts(1).key().unwrap()).unwrap();
        let left: Vec<u64> = store.list().unwrap().iter().map(|snapshot| snapshot.dataset.rows).collect();
        assert_eq!(left, [1, 3], "the first is kept, as it is the one in use");
        store.remove(&facts(3).key().unwrap()).unwrap();
        store.remove(&facts(3).key().unwrap()).unwrap();
        assert_eq!(store.list().unwrap().len(), 1);
        assert!(store.remove("../x").unwrap_err().is_wrong_use());
    }

    #[test]
    fn the_key_depends_on_what_the_data_depends_on_and_on_nothing_else() {
        let mut spec = StartSpec::new(crate::find(None).unwrap());
        let dataset = Dataset::default();
        let key = |spec: &StartSpec| Facts::of(spec, &dataset).unwrap().key().unwrap();
        let plain = key(&spec);
        spec.set = vec![
            ("innodb-flush-log-at-trx-commit".into(), "2".into()),
            ("innodb_log_file_size".into(), "1G".into()),
        ];
        assert_eq!(key(&spec), plain);
        spec.set.push(("INNODB-page-size".into(), "8K".into()));
        assert_ne!(key(&spec), plain);
    }
}

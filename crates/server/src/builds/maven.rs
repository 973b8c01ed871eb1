//! Fetches an artifact through the machine's own Maven, with whatever repository, mirror and proxy
//! its settings name.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::bounded::{self, Bounds};
use super::folder_size::bytes_below;
use crate::error::{Error, Result, io};

const BOUNDS: Bounds = Bounds { all: Duration::from_secs(30 * 60), stall: Duration::from_secs(180) };
/// The plugin that gets one artifact. Its version is fixed, so that the same is done tomorrow.
const PLUGIN: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:get";

/// An artifact's coordinates, and the checksum of its jar in hexadecimal.
pub(super) struct Artifact<'a> {
    pub(super) group: &'a str,
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) sha256: &'a str,
}

impl Artifact<'_> {
    /// The folder of the artifact in a Maven repository.
    fn folder(&self, repository: &Path) -> PathBuf {
        repository.join(self.group.replace('.', "/")).join(self.name).join(self.version)
    }

    /// Downloads the jar into a repository of our own, and checks it. What was begun before is gone on
    /// with, where the repository's server can.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where there is no Maven, it fails, or the jar is not the one expected.
    pub(super) fn get(&self, repository: &Path, log: &Path, on_bytes: &dyn Fn(u64)) -> Result<PathBuf> {
        let folder = self.folder(repository);
        let jar = folder.join(format!("{}-{}.jar", self.name, self.version));
        if !jar.is_file() {
            let empty = log.with_extension("empty");
            std::fs::create_dir_all(&empty).map_err(io("cannot make the folder", &empty))?;
            let mut command = Command::new("mvn");
            command
                .args(["-B", PLUGIN, "-Dtransitive=false"])
                .arg(format!("-Dmaven.repo.local={}", repository.display()))
                .arg(format!("-Dartifact={}:{}:{}", self.group, self.name, self.version))
                // Maven reads a project that it stands in
                .current_dir(&empty);
            let mut step = || {
                on_bytes(bytes_below(&folder));
                bytes_below(repository)
            };
            bounded::run(command, log, BOUNDS, &mut step)?;
        }
        let found = sha256_of(&jar)?;
        if found != self.sha256 {
            self.forget(repository);
            return Err(Error::Build(format!(
                "the download of {}:{}:{} was refused: its SHA-256 is {found} instead of {}, so it was removed and nothing of it was run; try again, or ask whoever runs this machine's Maven mirror",
                self.group, self.name, self.version, self.sha256
            )));
        }
        Ok(jar)
    }

    /// Removes the jar from the repository; Maven's own parts stay there for the next time.
    pub(super) fn forget(&self, repository: &Path) {
        // what stays is only in the way of disk space
        let _ = std::fs::remove_dir_all(self.folder(repository));
    }
}

fn sha256_of(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).map_err(io("cannot read the download", path))?;
    let mut digest = Sha256::new();
    let mut chunk = vec![0; 1 << 20];
    loop {
        match file.read(&mut chunk).map_err(io("cannot read the download", path))? {
            0 => break,
            bytes => digest.update(&chunk[..bytes]),
        }
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository in which a jar lies already: Maven is not asked.
    fn repository(jar: &[u8]) -> tempfile::TempDir {
        let repository = tempfile::tempdir().unwrap();
        let folder = repository.path().join("a/b/c/1");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("c-1.jar"), jar).unwrap();
        repository
    }

    #[test]
    fn only_the_jar_that_is_expected_is_taken() {
        // SHA-256 of "abc", from FIPS 180-2
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let artifact = Artifact { group: "a.b", name: "c", version: "1", sha256 };
        let good = repository(b"abc");
        let log = good.path().join("log");
        assert!(artifact.get(good.path(), &log, &|_| ()).unwrap().ends_with("a/b/c/1/c-1.jar"));

        let bad = repository(b"abd");
        let error = artifact.get(bad.path(), &log, &|_| ()).unwrap_err().to_string();
        assert!(error.contains("was refused: its SHA-256 is"), "{error}");
        assert!(!bad.path().join("a/b/c/1").exists());
    }
}

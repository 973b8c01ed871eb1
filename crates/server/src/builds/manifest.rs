//! The description of a build on this machine.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::elf::Symbols;
use crate::error::{Error, Result, io};
use crate::find::{Binary, Flavor};

const FILE: &str = "build.json";

/// A build on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// As the server itself says it.
    pub version: String,
    pub flavor: Flavor,
    /// Where it is from: "Maven: …", "Debian sid: …", or the folder that was added.
    pub from: String,
    /// The unpacked server.
    pub tree: PathBuf,
    pub program: PathBuf,
    pub symbols: Symbols,
    /// What was checked when it was fetched: the jar's SHA-256, or the packages with their versions.
    pub checked: String,
}

impl Manifest {
    pub(super) fn of(binary: &Binary, from: String, tree: PathBuf, checked: String) -> Manifest {
        Manifest {
            version: binary.version.clone(),
            flavor: binary.flavor,
            from,
            tree,
            program: binary.path.clone(),
            symbols: Symbols::of(&binary.path),
            checked,
        }
    }

    /// `Ok(None)` where there is none.
    pub(super) fn read(folder: &Path) -> Result<Option<Manifest>> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(io("cannot read", &path)(error)),
        };
        let mut manifest: Manifest = serde_json::from_str(&text).map_err(|error| {
            Error::Build(format!(
                "'{}' can't be understood ({error}): remove its folder, and fetch or add the build again",
                path.display()
            ))
        })?;
        // below the folder itself, so that the cache may be moved
        manifest.tree = folder.join(&manifest.tree);
        manifest.program = folder.join(&manifest.program);
        Ok(Some(manifest))
    }

    /// Writes the manifest so that a reader sees the old one or the new one.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let within = |path: &Path| path.strip_prefix(folder).unwrap_or(path).to_path_buf();
        let written = Manifest { tree: within(&self.tree), program: within(&self.program), ..self.clone() };
        let path = folder.join(FILE);
        let unfinished = folder.join(format!("{FILE}.new"));
        let text = serde_json::to_string_pretty(&written)
            .map_err(|error| io("cannot write", &path)(error.into()))?;
        std::fs::write(&unfinished, text).map_err(io("cannot write", &unfinished))?;
        std::fs::rename(&unfinished, &path).map_err(io("cannot write", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(tree: PathBuf) -> Manifest {
        Manifest {
            version: "8.4.3".into(),
            flavor: Flavor::MySQL,
            from: "/opt/mysql".into(),
            program: tree.join("bin/mysqld"),
            tree,
            symbols: Symbols::Table,
            checked: String::new(),
        }
    }

    #[test]
    fn what_was_fetched_moves_with_its_folder_and_what_was_added_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        std::fs::create_dir(&here).unwrap();
        manifest(here.join("tree")).write(&here).unwrap();
        std::fs::rename(&here, &there).unwrap();
        assert_eq!(Manifest::read(&there).unwrap().unwrap(), manifest(there.join("tree")));
        manifest("/opt/mysql".into()).write(&there).unwrap();
        assert_eq!(Manifest::read(&there).unwrap().unwrap().program, Path::new("/opt/mysql/bin/mysqld"));
    }

    #[test]
    fn a_folder_without_one_is_no_build_and_a_broken_one_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::read(folder.path()).unwrap(), None);
        std::fs::write(folder.path().join(FILE), "{").unwrap();
        let error = Manifest::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("fetch or add the build again"), "{error}");
    }
}

//! Source files that a program was built from, where the user names a place on this machine.
//!
//! The path of a file comes from the recording, which may be a stranger's: it does not decide by itself what is read. Only files below a folder that
//! the user names are read.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::Error;

/// What is longer is no source file that anybody reads.
const BYTES_MAX: u64 = 32 << 20;

/// Where sources are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourcePath {
    /// What begins with one path begins with another here.
    Instead { built_as: String, here: PathBuf },
    /// A folder: of a file's path as the build has it, the longest end counts that is there.
    Within(PathBuf),
}

impl FromStr for SourcePath {
    type Err = String;

    /// `OLD=NEW`, or a folder.
    fn from_str(text: &str) -> Result<SourcePath, String> {
        match text.split_once('=') {
            Some((old, new)) if old.is_empty() || new.is_empty() => {
                Err(format!("{text:?} is no source path: give OLD=NEW, or a folder"))
            }
            Some((old, new)) => {
                Ok(SourcePath::Instead { built_as: old.trim_end_matches('/').to_string(), here: new.into() })
            }
            None if text.is_empty() => {
                Err("a source path must not be empty: give OLD=NEW, or a folder".to_string())
            }
            None => Ok(SourcePath::Within(text.into())),
        }
    }
}

impl SourcePath {
    /// Where a file may be, the likeliest first.
    fn candidates(&self, file: &str) -> Vec<PathBuf> {
        match self {
            SourcePath::Instead { built_as, here } => {
                let rest = file.strip_prefix(built_as.as_str()).and_then(|rest| rest.strip_prefix('/'));
                rest.map(|rest| here.join(names(rest).collect::<PathBuf>())).into_iter().collect()
            }
            SourcePath::Within(folder) => {
                let parts: Vec<Component<'_>> = names(file).collect();
                (0..parts.len()).map(|from| folder.join(parts[from..].iter().collect::<PathBuf>())).collect()
            }
        }
    }

    /// Whether a file that was found lies below the folder that the user named, links followed.
    fn holds(&self, path: &Path) -> bool {
        let (SourcePath::Instead { here: folder, .. } | SourcePath::Within(folder)) = self;
        let real = |path: &Path| fs::canonicalize(path).ok();
        real(folder).zip(real(path)).is_some_and(|(folder, path)| path.starts_with(folder))
    }

    /// The first candidate that is a plain file below the folder.
    fn find(&self, file: &str) -> Option<PathBuf> {
        let is_file = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.is_file());
        self.candidates(file).into_iter().find(|path| is_file(path) && self.holds(path))
    }
}

/// The names in a path: nothing that leads to its root, or out of a folder.
fn names(path: &str) -> impl Iterator<Item = Component<'_>> {
    Path::new(path).components().filter(|part| matches!(part, Component::Normal(_)))
}

/// A source file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    pub path: PathBuf,
    pub lines: Vec<String>,
}

/// The text of a source file, by its path as the build has it; `None` where it is in none of the folders that `paths` name.
///
/// # Errors
/// It is there, and can't be read.
pub fn source_file(file: &str, paths: &[SourcePath]) -> Result<Option<SourceFile>, Error> {
    let Some(path) = paths.iter().find_map(|path| path.find(file)) else { return Ok(None) };
    let mut bytes = Vec::new();
    let unreadable = |error| Error::NotRecorded(format!("can't read {}: {error}", path.display()));
    let opened = File::open(&path).map_err(unreadable)?;
    opened.take(BYTES_MAX).read_to_end(&mut bytes).map_err(unreadable)?;
    let lines = String::from_utf8_lossy(&bytes).lines().map(str::to_string).collect();
    Ok(Some(SourceFile { path, lines }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test makes its own files")]

    use super::*;

    #[test]
    fn a_file_is_found_by_what_stands_instead_or_by_the_end_of_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let sql = folder.path().join("sql");
        fs::create_dir(&sql).unwrap();
        fs::write(sql.join("log.cc"), "one\ntwo\n").unwrap();
        let here = folder.path().display().to_string();
        let found = |file: &str, paths: &[&str]| {
            let paths: Vec<SourcePath> = paths.iter().map(|path| path.parse().unwrap()).collect();
            source_file(file, &paths).unwrap().map(|found| (found.path, found.lines.len()))
        };
        let there = Some((sql.join("log.cc"), 2));
        assert_eq!(found(&sql.join("log.cc").display().to_string(), &[&here]), there);
        assert_eq!(found("/build/mariadb/sql/log.cc", &[&format!("/build/mariadb={here}")]), there);
        assert_eq!(found("./sql/log.cc", &["/nowhere", &here]), there);
        assert_eq!(found("/build/../sql/log.cc", &[&here]), there);
        assert_eq!(found("/build/mariadb-10/sql/log.cc", &[&format!("/build/mariadb={here}")]), None);
        assert_eq!(found("sql/log.cc", &[]), None);
        assert_eq!(found("", &[&here]), None);
        assert_eq!(found(&sql.join("log.cc").display().to_string(), &[]), None, "a recording's word alone");
        assert!("=x".parse::<SourcePath>().unwrap_err().ends_with("give OLD=NEW, or a folder"));
    }

    #[test]
    fn nothing_outside_the_folder_is_read_whatever_a_recording_names() {
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join("sources");
        fs::create_dir(&sources).unwrap();
        fs::write(folder.path().join("key"), "private\n").unwrap();
        std::os::unix::fs::symlink(folder.path().join("key"), sources.join("link")).unwrap();
        let here: SourcePath = format!("/build={}", sources.display()).parse().unwrap();
        let within: SourcePath = sources.display().to_string().parse().unwrap();
        let key = folder.path().join("key").display().to_string();
        for file in ["/build/../key", "/build/link", &key, "../key", "link", "/build//../../key"] {
            assert_eq!(source_file(file, &[here.clone(), within.clone()]).unwrap(), None, "{file}");
        }
    }
}

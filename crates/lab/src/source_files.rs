//! Source files that a build was made of, where they are on this machine.

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
    /// A folder: of a file's path as the build has it, the longest end that is there is taken.
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
                rest.map(|rest| here.join(rest)).into_iter().collect()
            }
            SourcePath::Within(folder) => {
                let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_));
                let parts: Vec<Component<'_>> = Path::new(file).components().filter(is_name).collect();
                (0..parts.len()).map(|from| folder.join(parts[from..].iter().collect::<PathBuf>())).collect()
            }
        }
    }
}

/// A source file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    pub path: PathBuf,
    pub lines: Vec<String>,
}

/// The text of a source file, by its path as the build has it; `None` where it is not on this machine.
///
/// # Errors
/// It is there, and can't be read.
pub fn source_file(file: &str, paths: &[SourcePath]) -> Result<Option<SourceFile>, Error> {
    let mut candidates: Vec<PathBuf> = paths.iter().flat_map(|path| path.candidates(file)).collect();
    // Relative to where it was built, which is nowhere here.
    candidates.extend(Some(PathBuf::from(file)).filter(|path| path.is_absolute()));
    let is_file = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.is_file());
    let Some(path) = candidates.into_iter().find(is_file) else { return Ok(None) };
    let mut bytes = Vec::new();
    let unreadable = |error| Error::Failed(format!("can't read {}: {error}", path.display()));
    let opened = File::open(&path).map_err(unreadable)?;
    opened.take(BYTES_MAX).read_to_end(&mut bytes).map_err(unreadable)?;
    let lines = String::from_utf8_lossy(&bytes).lines().map(str::to_string).collect();
    Ok(Some(SourceFile { path, lines }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_where_it_was_built_or_by_what_stands_instead_or_by_the_end_of_its_path() {
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
        assert_eq!(found(&sql.join("log.cc").display().to_string(), &[]), there);
        assert_eq!(found("/build/mariadb/sql/log.cc", &[&format!("/build/mariadb={here}")]), there);
        assert_eq!(found("./sql/log.cc", &["/nowhere", &here]), there);
        assert_eq!(found("/build/../sql/log.cc", &[&here]), there);
        assert_eq!(found("/build/mariadb-10/sql/log.cc", &[&format!("/build/mariadb={here}")]), None);
        assert_eq!(found("sql/log.cc", &[]), None);
        assert_eq!(found("", &[&here]), None);
        assert!("=x".parse::<SourcePath>().unwrap_err().ends_with("give OLD=NEW, or a folder"));
    }
}

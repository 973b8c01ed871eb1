//! Whether a program with capabilities is safe in a folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::error::Error;

const WRITABLE_BY_GROUP: u32 = 0o020;
const WRITABLE_BY_ALL: u32 = 0o002;
/// In such a folder only a file's owner may rename or remove it.
const STICKY: u32 = 0o1000;

/// The path with the links of its folder resolved.
pub(super) fn resolved(to: &Path) -> Result<PathBuf, Error> {
    let name = to.file_name();
    let Some(name) = name else {
        return Err(Error::Plan(format!("{} names no file: give one with --to", to.display())));
    };
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = fs::canonicalize(folder).map_err(|error| {
        Error::Plan(format!(
            "the folder {} can't be used: {error}; give another path with --to",
            folder.display()
        ))
    })?;
    Ok(folder.join(name))
}

/// The same, where nobody but root can put another file there, and capabilities count.
pub(super) fn checked(to: &Path) -> Result<PathBuf, Error> {
    let to = resolved(to)?;
    let folder = to.parent().unwrap_or(Path::new("/"));
    for (depth, ancestor) in folder.ancestors().enumerate() {
        let about = fs::metadata(ancestor).map_err(|error| {
            Error::Plan(format!("the folder {} can't be used: {error}", ancestor.display()))
        })?;
        if is_writable_by_others(about.uid(), about.gid(), about.mode(), depth > 0) {
            return Err(Error::Plan(format!(
                "others than root may write to the folder {}, and could put a program of their own there: give a path with --to in a folder that \
                 only root may write to, such as /usr/local/bin",
                ancestor.display()
            )));
        }
    }
    let mount = statvfs(folder)
        .map_err(|error| Error::Plan(format!("can't look at {}: {error}", folder.display())))?;
    if mount.f_flag.intersects(StatVfsMountFlags::NOSUID | StatVfsMountFlags::NOEXEC) {
        return Err(Error::Plan(format!(
            "{} is on a file system that is mounted with nosuid or noexec, where capabilities of programs do not count: give a path on another one \
             with --to",
            folder.display()
        )));
    }
    Ok(to)
}

/// `holds_a_folder`: what lies in it belongs to root, which was looked at before.
fn is_writable_by_others(owner: u32, group: u32, mode: u32, holds_a_folder: bool) -> bool {
    let by_group = mode & WRITABLE_BY_GROUP != 0 && group != 0;
    let by_all = mode & WRITABLE_BY_ALL != 0;
    let is_kept = holds_a_folder && mode & STICKY != 0;
    owner != 0 || ((by_group || by_all) && !is_kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_root_alone_writes_are_safe() {
        for (owner, group, mode, holds_a_folder, expected) in [
            (0, 0, 0o755, false, false),
            (0, 0, 0o775, false, false),
            (0, 50, 0o2775, false, true),
            (0, 0, 0o777, true, true),
            (0, 0, 0o1777, true, false),
            (0, 0, 0o1777, false, true),
            (1000, 0, 0o755, true, true),
        ] {
            assert_eq!(
                is_writable_by_others(owner, group, mode, holds_a_folder),
                expected,
                "{owner} {group} {mode:o}"
            );
        }
        assert!(resolved(Path::new("/")).is_err() && resolved(Path::new("/no/such/folder/x")).is_err());
    }
}

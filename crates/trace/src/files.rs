//! Which path a waited-for file has.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::mounts::Mounts;

/// Descriptors of a process that are read, at most.
const DESCRIPTORS_MAX: usize = 100_000;
/// `PARTS_MAX` and `PART_BYTES` of `bpf/account.h`.
const PARTS_MAX: usize = 12;
const PART_BYTES: usize = 64;

/// Paths of files by device and inode, from the descriptors that the watched processes have open.
#[derive(Default)]
pub(crate) struct Paths {
    by_inode: HashMap<(u64, u64), PathBuf>,
}

impl Paths {
    /// The path, where a watched process has the file open now or had it open at an earlier reading.
    pub(crate) fn of(&self, device: u32, inode: u64) -> Option<&PathBuf> {
        self.by_inode.get(&(to_user(device), inode))
    }

    /// Reads the paths of all files that a process has open.
    pub(crate) fn read_descriptors(&mut self, pid: u32) {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return };
        for entry in entries.flatten().take(DESCRIPTORS_MAX) {
            let Ok(found) = std::fs::metadata(entry.path()) else { continue };
            if !found.is_file() && !found.is_dir() {
                continue;
            }
            if let Ok(path) = std::fs::read_link(entry.path()) {
                let path = if found.is_dir() { as_folder(path) } else { path };
                self.by_inode.insert((found.dev(), found.ino()), path);
            }
        }
    }
}

/// A file's path within its file system, from `struct file_path` of `bpf/account.h`, and whether it is a folder's. What is left out
/// of it, at its begin where it is deep or at the end of long names, stands as "…".
pub(crate) fn path_within(value: &[u8]) -> Option<(PathBuf, bool)> {
    let int = |at: usize| Some(u32::from_ne_bytes(value.get(at..at + 4)?.try_into().ok()?));
    let (is_folder, parts) = (int(0)? == 1, (int(4)? as usize).min(PARTS_MAX));
    let mut path = PathBuf::from("/");
    for part in (0..parts).rev() {
        let bytes = value.get(8 + part * PART_BYTES..8 + (part + 1) * PART_BYTES)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let name = &bytes[..end];
        if part + 1 == parts && name != b"/" {
            path.push("…");
        }
        // The root is called "/", which begins the path again.
        path.push(OsStr::from_bytes(name));
        if end + 1 == PART_BYTES {
            path.as_mut_os_string().push("…");
        }
    }
    (parts > 0).then_some((path, is_folder))
}

/// The path by which people know a file, where its file system is mounted.
pub(crate) fn path_here(mounts: &Mounts, device: u32, within: &Path) -> Option<PathBuf> {
    mounts.path(device >> 20, device & 0xf_ffff, within)
}

/// Returns a folder's path, which differs from a file's by the slash at its end.
pub(crate) fn as_folder(mut path: PathBuf) -> PathBuf {
    path.push("");
    path
}

/// The kernel keeps a device as 12 bits of major and 20 of minor number; stat gives it in another order.
fn to_user(device: u32) -> u64 {
    rustix::fs::makedev(device >> 20, device & 0xf_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_that_is_open_is_found_by_its_inode() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"x").unwrap();
        let found = file.as_file().metadata().unwrap();
        let device = (rustix::fs::major(found.dev()) << 20) | rustix::fs::minor(found.dev());
        let mut paths = Paths::default();
        assert_eq!(paths.of(device, found.ino()), None);
        paths.read_descriptors(std::process::id());
        assert_eq!(paths.of(device, found.ino()), Some(&file.path().to_path_buf()));
    }

    fn value(is_folder: u32, names: &[&str]) -> Vec<u8> {
        let mut value = vec![0; 8 + PARTS_MAX * PART_BYTES];
        value[..4].copy_from_slice(&is_folder.to_ne_bytes());
        value[4..8].copy_from_slice(&(names.len() as u32).to_ne_bytes());
        for (part, name) in names.iter().enumerate() {
            let cut = &name.as_bytes()[..name.len().min(PART_BYTES - 1)];
            value[8 + part * PART_BYTES..][..cut.len()].copy_from_slice(cut);
        }
        value
    }

    #[test]
    fn a_path_is_put_together_from_what_the_programs_walked_up() {
        let path_of = |value: &[u8]| {
            path_within(value).map(|(path, is_folder)| (path.display().to_string(), is_folder))
        };
        assert_eq!(
            path_of(&value(0, &["access.log", "log", "/"])),
            Some(("/log/access.log".to_string(), false))
        );
        assert_eq!(path_of(&value(1, &["/"])), Some(("/".to_string(), true)));
        assert_eq!(
            path_of(&value(1, &["l", "k", "j"])),
            Some(("/…/j/k/l".to_string(), true)),
            "deeper than the programs walk"
        );
        let long = "x".repeat(100);
        assert_eq!(
            path_of(&value(0, &[&long, "/"])),
            Some((format!("/{}…", &long[..PART_BYTES - 1]), false))
        );
        assert_eq!(path_of(&value(0, &[])), None);
        assert_eq!(path_of(&[0; 7]), None);
        let mut many = value(0, &["a", "/"]);
        many[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert!(path_of(&many).is_some(), "no more parts than there are");
    }

    #[test]
    fn a_folder_has_a_slash_at_its_end() {
        assert_eq!(as_folder(PathBuf::from("/tmp")).to_str(), Some("/tmp/"));
        assert_eq!(as_folder(PathBuf::from("/")).to_str(), Some("/"));
    }

    #[test]
    fn a_process_that_is_gone_has_no_files() {
        let mut paths = Paths::default();
        paths.read_descriptors(u32::MAX);
        assert!(paths.by_inode.is_empty());
    }
}

//! Which path a waited-for file has.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Descriptors of a process that are looked at, at most.
const DESCRIPTORS_MAX: usize = 100_000;

/// Paths of files by device and inode, learnt from the descriptors that the watched processes have open.
#[derive(Default)]
pub(crate) struct Paths {
    known: HashMap<(u64, u64), PathBuf>,
}

impl Paths {
    /// The path, where a watched process has the file open now or had it at an earlier look.
    pub(crate) fn of(&self, device: u32, inode: u64) -> Option<&PathBuf> {
        self.known.get(&(to_user(device), inode))
    }

    /// Looks at all that a process has open.
    pub(crate) fn look(&mut self, pid: u32) {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return };
        for entry in entries.flatten().take(DESCRIPTORS_MAX) {
            let Ok(found) = std::fs::metadata(entry.path()) else { continue };
            if !found.is_file() && !found.is_dir() {
                continue;
            }
            if let Ok(path) = std::fs::read_link(entry.path()) {
                self.known.insert((found.dev(), found.ino()), path);
            }
        }
    }
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
        paths.look(std::process::id());
        assert_eq!(paths.of(device, found.ino()), Some(&file.path().to_path_buf()));
    }

    #[test]
    fn a_process_that_is_gone_has_no_files() {
        let mut paths = Paths::default();
        paths.look(u32::MAX);
        assert!(paths.known.is_empty());
    }
}

//! Where whyso keeps things, and on what.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Error, Result, io};

/// `$XDG_CACHE_HOME/whyso`, else `~/.cache/whyso`.
pub fn cache_dir() -> Result<PathBuf> {
    user_dir("XDG_CACHE_HOME", ".cache")
}

/// `$XDG_STATE_HOME/whyso`, else `~/.local/state/whyso`.
pub fn state_dir() -> Result<PathBuf> {
    user_dir("XDG_STATE_HOME", ".local/state")
}

fn user_dir(variable: &str, below_home: &str) -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable)
        .or_else(|| absolute("HOME").map(|home| home.join(below_home)))
        .map(|base| base.join("whyso"))
        .ok_or_else(|| {
            Error::Binary(format!("neither HOME nor {variable} names a folder to keep things in: set one"))
        })
}

/// A name that no other process and no other call uses: PREFIX-PID-NANOSECONDS-COUNT, in base 36.
pub(crate) fn unique_name(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanoseconds = whyso_clock::wall_ns() as u64;
    format!("{prefix}-{}-{}-{count}", std::process::id(), base36(nanoseconds))
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while number > 0 {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(number % 36) as usize]);
        number /= 36;
    }
    digits.reverse();
    String::from_utf8(digits).unwrap_or_default()
}

/// The file system that a folder lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Such as "ext4", "xfs", "tmpfs".
    pub kind: String,
    /// Such as "/dev/nvme0n1p2".
    pub device: String,
    /// It keeps its files in memory, so fsync costs nothing there and findings are false.
    pub in_memory: bool,
    pub free_bytes: u64,
}

const TMPFS_MAGIC: i64 = 0x0102_1994;
const RAMFS_MAGIC: i64 = 0x8584_58f6;

/// Looks up the file system of an existing path.
pub fn file_system(path: &Path) -> Result<FileSystem> {
    let path = path.canonicalize().map_err(io("cannot find", path))?;
    let facts = rustix::fs::statfs(&path).map_err(|errno| io("cannot examine", &path)(errno.into()))?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let (kind, device) = mount_of(&mounts, &path).unwrap_or(("unknown".to_string(), "unknown".to_string()));
    Ok(FileSystem {
        kind,
        device,
        in_memory: matches!(facts.f_type as i64, TMPFS_MAGIC | RAMFS_MAGIC),
        free_bytes: facts.f_bavail as u64 * facts.f_bsize as u64,
    })
}

/// Type and device of the mount with the longest mount point above `path`; of several, the last.
fn mount_of(mountinfo: &str, path: &Path) -> Option<(String, String)> {
    let mut best: Option<(usize, String, String)> = None;
    for line in mountinfo.lines() {
        let Some((before, after)) = line.split_once(" - ") else { continue };
        let Some(mount_point) = before.split(' ').nth(4) else { continue };
        let mount_point = mount_point.replace("\\040", " ");
        let mut fields = after.split(' ');
        let (Some(kind), Some(device)) = (fields.next(), fields.next()) else { continue };
        let length = mount_point.len();
        let longest = best.as_ref().is_none_or(|(so_far, _, _)| length >= *so_far);
        if longest && path.starts_with(&mount_point) {
            best = Some((length, kind.to_string(), device.to_string()));
        }
    }
    best.map(|(_, kind, device)| (kind, device))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mount_point_wins_and_of_equals_the_last() {
        let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /home rw shared:3 - xfs /dev/sdb rw\n\
            3 1 0:6 / /home rw - tmpfs none rw\n4 1 0:7 / /home\\040x rw - btrfs /dev/sdc rw\n";
        let found = |path: &str| mount_of(mounts, Path::new(path)).unwrap();
        assert_eq!(found("/var/tmp"), ("ext4".to_string(), "/dev/sda1".to_string()));
        assert_eq!(found("/home/me"), ("tmpfs".to_string(), "none".to_string()));
        assert_eq!(found("/home x/me").0, "btrfs");
        assert_eq!(found("/homes").0, "ext4");
    }

    #[test]
    fn names_are_unique() {
        assert_ne!(unique_name("a"), unique_name("a"));
    }
}

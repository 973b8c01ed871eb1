//! Where file systems are mounted, as a watched process sees it: what a path within a file system is called by people.

use std::path::{Path, PathBuf};

/// One line of `/proc/PID/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    major: u32,
    minor: u32,
    /// Which folder of the file system is mounted.
    root: PathBuf,
    point: PathBuf,
}

/// Mounts, in the order in which they were made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mounts {
    mounts: Vec<Mount>,
}

impl Mounts {
    /// The mounts that a process sees; none where it is gone.
    pub(crate) fn of(pid: u32) -> Mounts {
        let text = std::fs::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        Mounts::parse(&String::from_utf8_lossy(&text))
    }

    /// Lines that are not understood are left out.
    fn parse(text: &str) -> Mounts {
        Mounts { mounts: text.lines().filter_map(mount).collect() }
    }

    /// What is called `within` on the file system of this device, where that is mounted. It takes the mount that shows most of the path.
    /// Of mounts that lie one over the other, it takes the last.
    pub(crate) fn path(&self, major: u32, minor: u32, within: &Path) -> Option<PathBuf> {
        let of_device = self.mounts.iter().filter(|mount| (mount.major, mount.minor) == (major, minor));
        let rests = of_device.filter_map(|mount| Some((mount, within.strip_prefix(&mount.root).ok()?)));
        let (mount, rest) = rests.max_by_key(|(_, rest)| std::cmp::Reverse(rest.components().count()))?;
        Some(if rest.as_os_str().is_empty() { mount.point.clone() } else { mount.point.join(rest) })
    }
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn mount(line: &str) -> Option<Mount> {
    let mut words = line.split(' ').skip(2);
    let (major, minor) = words.next()?.split_once(':')?;
    Some(Mount {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
        root: PathBuf::from(unescaped(words.next()?)),
        point: PathBuf::from(unescaped(words.next()?)),
    })
}

/// Blanks, tabs, ends of lines and backslashes are written as three octal digits after a backslash.
fn unescaped(word: &str) -> String {
    let mut parts = word.split('\\');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match digits {
            Some(byte) => {
                out.push(char::from(byte));
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:25 / /tmp rw,nosuid - tmpfs tmpfs rw
31 22 254:0 /srv/logs /var/log/with\\040blank rw,relatime - ext4 /dev/vda rw
nonsense
32 22 x:y / / rw
";

    fn path(major: u32, minor: u32, within: &str) -> Option<String> {
        let found = Mounts::parse(MOUNTINFO).path(major, minor, Path::new(within))?;
        Some(found.display().to_string())
    }

    #[test]
    fn a_path_within_a_file_system_begins_where_that_is_mounted() {
        assert_eq!(path(254, 0, "/var/www").as_deref(), Some("/var/www"));
        assert_eq!(path(0, 25, "/").as_deref(), Some("/tmp"));
        assert_eq!(path(0, 25, "/sess/1").as_deref(), Some("/tmp/sess/1"));
        assert_eq!(path(254, 0, "/srv/logs/access.log").as_deref(), Some("/var/log/with blank/access.log"));
        assert_eq!(path(8, 1, "/x"), None, "a device that is not mounted here");
    }

    #[test]
    fn a_process_that_is_gone_has_no_mounts() {
        assert_eq!(Mounts::of(u32::MAX).path(254, 0, Path::new("/")), None);
        assert!(Mounts::of(std::process::id()).mounts.iter().any(|mount| mount.point == Path::new("/")));
    }
}

//! Where processes take clients: the ports and paths of sockets at which they listen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// Processes whose descriptors are read, at most: those that do the same work listen at the same sockets.
const PROCESSES_READ_MAX: usize = 64;
/// State of a TCP socket that listens, in `/proc/net/tcp`.
const TCP_LISTEN: &str = "0A";
/// Flags of a Unix socket that listens, in `/proc/net/unix`.
const UNIX_LISTENS: &str = "00010000";

/// Sockets at which some processes listen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listeners {
    /// TCP ports.
    pub ports: BTreeSet<u16>,
    /// Paths of sockets in the file system.
    pub paths: BTreeSet<String>,
}

impl Listeners {
    /// Reads those of the processes. What can't be read is left out.
    pub fn of(pids: &[u32]) -> Listeners {
        let mut found = Listeners::default();
        // The sockets of processes in one network namespace stand in the same tables.
        let mut of_namespaces: BTreeMap<PathBuf, (u32, BTreeSet<u64>)> = BTreeMap::new();
        for pid in pids.iter().take(PROCESSES_READ_MAX) {
            let namespace = fs::read_link(format!("/proc/{pid}/ns/net")).unwrap_or_default();
            of_namespaces.entry(namespace).or_insert((*pid, BTreeSet::new())).1.extend(sockets(*pid));
        }
        for (pid, inodes) in of_namespaces.into_values() {
            // Names of sockets are any bytes.
            let table = |name: &str| {
                let bytes = fs::read(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            };
            for name in ["tcp", "tcp6"] {
                found.ports.extend(table(name).lines().filter_map(|line| tcp_port(line, &inodes)));
            }
            found.paths.extend(table("unix").lines().filter_map(|line| unix_path(line, &inodes)));
        }
        found
    }

    /// Returns them as an upstream is named: "tcp 80", "unix /run/a.sock".
    pub fn addresses(&self) -> Vec<String> {
        let ports = self.ports.iter().map(|port| format!("tcp {port}"));
        ports.chain(self.paths.iter().map(|path| format!("unix {path}"))).collect()
    }
}

/// Inodes of a process's sockets.
fn sockets(pid: u32) -> BTreeSet<u64> {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return BTreeSet::new() };
    let inode = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    descriptors.flatten().filter_map(inode).collect()
}

/// A line of `/proc/net/tcp`, where one of these sockets listens.
fn tcp_port(line: &str, inodes: &BTreeSet<u64>) -> Option<u16> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (columns.get(1)?, columns.get(3)?, columns.get(9)?);
    let is_ours = *state == TCP_LISTEN && inodes.contains(&inode.parse().ok()?);
    is_ours.then(|| u16::from_str_radix(local.rsplit(':').next()?, 16).ok())?
}

/// A line of `/proc/net/unix`, where one of these sockets listens.
fn unix_path(line: &str, inodes: &BTreeSet<u64>) -> Option<String> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let (flags, inode) = (columns.get(3)?, columns.get(6)?);
    // A path may have blanks.
    let path = &line[line.find(" /")? + 1..];
    let is_ours = *flags == UNIX_LISTENS && inodes.contains(&inode.parse().ok()?);
    is_ours.then(|| path.to_string())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn own_listeners_are_found_and_what_only_connects_is_none() {
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a name.sock");
        let _unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
        // One whose name is no text hides no other.
        let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
        let _odd = std::os::unix::net::UnixListener::bind(odd).unwrap();
        let found = Listeners::of(&[std::process::id()]);
        assert!(found.ports.contains(&port), "{found:?}");
        assert!(!found.ports.contains(&client.local_addr().unwrap().port()), "{found:?}");
        let addresses = found.addresses();
        for address in [format!("tcp {port}"), format!("unix {}", path.display())] {
            assert!(addresses.contains(&address), "{address} in {addresses:?}");
        }
    }

    #[test]
    fn odd_lines_are_no_listeners() {
        for line in
            ["", "sl local", "0: 0100007F:ZZZZ 0:0 0A 0:0 0:0 0 0 0 7", "0: 0100007F:0050 0:0 01 0 0 0 0 0 7"]
        {
            assert_eq!(tcp_port(line, &BTreeSet::from([7])), None, "{line}");
            assert_eq!(unix_path(line, &BTreeSet::from([7])), None, "{line}");
        }
    }
}

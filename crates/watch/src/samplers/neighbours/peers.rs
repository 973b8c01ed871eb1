//! The other ends of the server's sockets.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use super::diag::unix_sockets;

/// Descriptors of a process that are read, at most.
const DESCRIPTORS_MAX: usize = 20_000;

/// How the server's sockets are recognised where its descriptors may not be read.
#[derive(Clone, Debug, Default)]
pub(super) struct Address {
    pub(super) port: Option<u16>,
    pub(super) socket: Option<PathBuf>,
}

/// Sockets that are connected with the server.
#[derive(Clone, Debug, Default)]
pub(super) struct Peers {
    inodes: HashSet<u64>,
    /// Users that own TCP sockets among them; `None` where there are others, whose owner is not shown.
    users: Option<BTreeSet<u32>>,
}

/// What a process is to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Client,
    Stranger,
    /// Its descriptors may not be read.
    Unclear,
    /// It has ended meanwhile.
    Gone,
}

impl Peers {
    /// Reads who is connected with the server now.
    pub(super) fn read(server: u32, address: &Address) -> Peers {
        let own = sockets_of(server).ok();
        let mut peers = Peers::default();
        let is_unix = |path: &[u8]| {
            address.socket.as_ref().is_some_and(|socket| socket.as_os_str().as_encoded_bytes() == path)
        };
        for socket in unix_sockets().unwrap_or_default() {
            let is_servers = match &own {
                Some(own) => own.contains(&u64::from(socket.inode)),
                None => is_unix(&socket.path),
            };
            if is_servers && socket.peer != 0 {
                peers.inodes.insert(u64::from(socket.peer));
            }
        }
        let has_unix = !peers.inodes.is_empty();
        let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{server}/net/{table}")));
        let lines: Vec<Tcp> =
            tables.iter().flatten().flat_map(|text| text.lines().filter_map(parse_tcp)).collect();
        let is_servers = |line: &Tcp| match &own {
            Some(own) => own.contains(&line.inode),
            None => address.port == Some(line.local.1),
        };
        let theirs: HashSet<(&Address4Or6, &Address4Or6)> =
            lines.iter().filter(|line| is_servers(line)).map(|line| (&line.remote, &line.local)).collect();
        let mut users = BTreeSet::new();
        for line in lines.iter().filter(|line| theirs.contains(&(&line.local, &line.remote))) {
            peers.inodes.insert(line.inode);
            users.insert(line.user);
        }
        peers.users = (!has_unix).then_some(users);
        peers
    }

    /// What this process is to the server.
    pub(super) fn relation(&self, pid: u32) -> Relation {
        match sockets_of(pid) {
            Ok(sockets) if sockets.iter().any(|inode| self.inodes.contains(inode)) => Relation::Client,
            Ok(_) => Relation::Stranger,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                match (&self.users, user_of(pid)) {
                    // None of the server's clients is of its user.
                    (Some(users), Some(user)) if !users.contains(&user) => Relation::Stranger,
                    _ => Relation::Unclear,
                }
            }
            Err(_) => Relation::Gone,
        }
    }
}

fn user_of(pid: u32) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(fs::metadata(format!("/proc/{pid}")).ok()?.uid())
}

fn sockets_of(pid: u32) -> io::Result<HashSet<u64>> {
    let mut found = HashSet::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.take(DESCRIPTORS_MAX).flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let inode: Option<u64> =
            target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok());
        found.extend(inode);
    }
    Ok(found)
}

/// An address as the kernel prints it, one of IPv4 that is written as one of IPv6 as that of IPv4, and a port.
type Address4Or6 = (String, u16);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tcp {
    local: Address4Or6,
    remote: Address4Or6,
    user: u32,
    inode: u64,
}

/// A connection that is established; `None` for any other line. See proc_net_tcp in the kernel's documentation.
fn parse_tcp(line: &str) -> Option<Tcp> {
    const ESTABLISHED: &str = "01";
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    if *words.get(3)? != ESTABLISHED {
        return None;
    }
    let address = |word: &str| {
        let (host, port) = word.split_once(':')?;
        let host = host.strip_prefix("0000000000000000FFFF0000").unwrap_or(host);
        Some((host.to_string(), u16::from_str_radix(port, 16).ok()?))
    };
    Some(Tcp {
        local: address(words.get(1)?)?,
        remote: address(words.get(2)?)?,
        user: words.get(7)?.parse().ok()?,
        inode: words.get(9)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_line_of_a_connection_is_read_also_where_ipv4_is_written_as_ipv6() {
        let four = "  1: 0100007F:0CEA 0100007F:B1C2 01 00000000:00000000 02:00000000 00000000  1000        0 4711 2 0 20 4 30 10 -1";
        let six = "  0: 0000000000000000FFFF00000100007F:0CEA 0000000000000000FFFF00000100007F:B1C2 01 00000000:00000000 00:0 0 999 0 4712";
        let (four, six) = (parse_tcp(four).unwrap(), parse_tcp(six).unwrap());
        assert_eq!((four.local.1, four.user, four.inode), (3306, 1000, 4711));
        assert_eq!((&four.local, &four.remote), (&six.local, &six.remote));
        assert_eq!(parse_tcp("  sl  local_address rem_address   st tx_queue"), None);
        let listens = "  0: 0100007F:0CEA 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1";
        assert_eq!(parse_tcp(listens), None);
    }

    #[test]
    fn of_our_own_sockets_the_other_ends_are_found_and_another_process_is_a_stranger() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_server, _) = listener.accept().unwrap();
        let peers = Peers::read(std::process::id(), &Address::default());
        let inode = fs::metadata(format!("/proc/self/fd/{}", client.as_raw_fd())).unwrap().ino();
        assert!(peers.inodes.contains(&inode));
        assert_eq!(peers.relation(std::process::id()), Relation::Client, "both ends are ours");
        let mut other = Command::new("sleep").arg("30").spawn().unwrap();
        assert_eq!(peers.relation(other.id()), Relation::Stranger);
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

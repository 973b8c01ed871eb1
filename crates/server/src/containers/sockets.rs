//! The Unix socket that a server listens on, as another root folder has it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Longest path of a socket, in bytes.
const PATH_MAX: usize = 107;
/// In `/proc/PID/net/unix`: it accepts connections.
const LISTENS: &str = "00010000";

/// A path of this machine's for the socket that process `pid` listens on.
pub(super) fn listening_socket(pid: u32) -> Result<PathBuf, String> {
    let read = |what: &str| {
        let path = format!("/proc/{pid}/{what}");
        std::fs::read_to_string(&path).map_err(|error| format!("{path} can't be read: {error}"))
    };
    let own = own_sockets(pid)?;
    let table = read("net/unix")?;
    let Some(path) = of_server(&table, &own) else {
        return Err("it listens on no Unix socket: give its address with --dsn".to_string());
    };
    let path = Path::new(&format!("/proc/{pid}/root")).join(path.trim_start_matches('/'));
    match path.as_os_str().len() {
        0..=PATH_MAX => Ok(path),
        length => Err(format!("the path of its socket has {length} bytes, and {PATH_MAX} are possible")),
    }
}

/// The numbers of a process's sockets.
fn own_sockets(pid: u32) -> Result<HashSet<String>, String> {
    let path = format!("/proc/{pid}/fd");
    let entries = std::fs::read_dir(&path).map_err(|error| format!("{path} can't be read: {error}"))?;
    let links = entries.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let number = |link: PathBuf| {
        let text = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_string();
        Some(text)
    };
    Ok(links.filter_map(number).collect())
}

/// Of the sockets that a process listens on, that of the classic protocol: MySQL has another one for its X protocol.
fn of_server(table: &str, own: &HashSet<String>) -> Option<String> {
    let mut paths: Vec<&str> = table
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(3);
            let (flags, number) = (words.next()?, words.nth(2)?);
            let path = words.next().filter(|path| path.starts_with('/'))?;
            (flags == LISTENS && own.contains(number)).then_some(path)
        })
        .collect();
    paths.sort_unstable_by_key(|path| (path.contains("mysqlx"), path.len()));
    paths.first().map(|path| path.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_servers_socket_is_the_one_it_listens_on() {
        let table = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 101 /run/mysqld/mysqlx.sock
0000000000000000: 00000002 00000000 00010000 0001 01 102 /run/mysqld/mysqld.sock
0000000000000000: 00000003 00000000 00000000 0001 03 103 /run/mysqld/mysqld.sock
0000000000000000: 00000002 00000000 00010000 0001 01 104 /run/other.sock
0000000000000000: 00000002 00000000 00010000 0001 01 105 @abstract
";
        let own: HashSet<String> = ["101", "102", "103", "105"].map(str::to_string).into();
        assert_eq!(of_server(table, &own).as_deref(), Some("/run/mysqld/mysqld.sock"));
        assert_eq!(of_server(table, &["105".to_string()].into()), None);
        assert_eq!(of_server("", &own), None);
    }

    #[test]
    fn our_own_socket_is_reached_through_our_root() {
        let folder = tempfile::Builder::new().prefix("s").tempdir_in("/tmp").unwrap();
        let place = folder.path().join("s.sock");
        let _listener = UnixListener::bind(&place).unwrap();
        let own = own_sockets(std::process::id()).unwrap();
        let table = std::fs::read_to_string("/proc/self/net/unix").unwrap();
        let mine = table
            .lines()
            .find(|line| line.ends_with("s.sock") && line.contains(place.to_str().unwrap()))
            .unwrap();
        assert_eq!(of_server(mine, &own).as_deref(), place.to_str());
    }
}

//! Which Unix sockets are connected with which: the kernel's answer over netlink (`linux/unix_diag.h`).

use std::io;

use crate::sock_diag::{self, aligned, u16_at, u32_at};

/// One socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnixSocket {
    pub(super) inode: u32,
    /// Inode of the socket that it is connected with; 0: with none.
    pub(super) peer: u32,
    /// The path that it is bound to, also of those that were accepted there; empty: to none.
    pub(super) path: Vec<u8>,
}

const SHOW_NAME: u32 = 1;
const SHOW_PEER: u32 = 4;
const ATTRIBUTE_NAME: u16 = 0;
const ATTRIBUTE_PEER: u16 = 2;
/// Of the socket's part of a message, in bytes.
const MESSAGE: usize = 16;
const SOCKETS_MAX: usize = 200_000;

/// Every Unix socket of our network namespace.
///
/// # Errors
/// The kernel has no such answer (module `unix_diag`), or gives none in time.
pub(super) fn unix_sockets() -> io::Result<Vec<UnixSocket>> {
    let mut found = Vec::new();
    let asked = sock_diag::of_unix(u32::MAX, SHOW_NAME | SHOW_PEER);
    sock_diag::dump(&asked, SOCKETS_MAX, |message| found.extend(parse_socket(message)))?;
    Ok(found)
}

fn parse_socket(message: &[u8]) -> Option<UnixSocket> {
    let mut socket = UnixSocket { inode: u32_at(message, 4)?, ..UnixSocket::default() };
    let mut rest = message.get(MESSAGE..)?;
    while let Some((length, kind)) = u16_at(rest, 0).zip(u16_at(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else { break };
        match kind {
            ATTRIBUTE_NAME => {
                socket.path = value.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
            }
            ATTRIBUTE_PEER => socket.peer = u32_at(value, 0).unwrap_or(0),
            _ => {}
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    Some(socket)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::{UnixListener, UnixStream};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_ends_of_a_connection_are_found_and_the_path_of_the_one_that_was_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let client = UnixStream::connect(&path).unwrap();
        let (server, _) = listener.accept().unwrap();
        let inode = |fd: i32| std::fs::metadata(format!("/proc/self/fd/{fd}")).unwrap().ino() as u32;
        let (client, server) = (inode(client.as_raw_fd()), inode(server.as_raw_fd()));
        let sockets = unix_sockets().unwrap();
        let accepted = sockets.iter().find(|socket| socket.inode == server).unwrap();
        assert_eq!(accepted.peer, client);
        assert_eq!(accepted.path, path.to_str().unwrap().as_bytes());
    }

    proptest! {
        #[test]
        fn any_message_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            parse_socket(&bytes);
        }
    }
}

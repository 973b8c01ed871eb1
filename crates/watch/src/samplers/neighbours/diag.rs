//! Which Unix sockets are connected with which: the kernel's answer over netlink (sock_diag(7), `linux/unix_diag.h`). It takes no rights.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// One socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnixSocket {
    pub(super) inode: u32,
    /// Inode of the socket that it is connected with; 0: with none.
    pub(super) peer: u32,
    /// The path that it is bound to, also of those that were accepted there; empty: to none.
    pub(super) path: Vec<u8>,
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_DONE: u16 = 3;
const NLMSG_ERROR: u16 = 2;
const SHOW_NAME: u32 = 1;
const SHOW_PEER: u32 = 4;
const ATTRIBUTE_NAME: u16 = 0;
const ATTRIBUTE_PEER: u16 = 2;
/// Of a netlink message and of the socket's part of it, in bytes.
const HEADER: usize = 16;
const MESSAGE: usize = 16;
/// How long the kernel may take for a part of its answer.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(500);
const SOCKETS_MAX: usize = 200_000;

/// Every Unix socket of our network namespace.
///
/// # Errors
/// The kernel has no such answer (module `unix_diag`), or gives none in time.
pub(super) fn unix_sockets() -> io::Result<Vec<UnixSocket>> {
    const NETLINK_SOCK_DIAG: i32 = 4;
    // SAFETY: no pointers are passed; the descriptor is owned from here on.
    let socket = unsafe {
        let raw = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(raw)
    };
    let bound = libc::timeval { tv_sec: 0, tv_usec: ANSWER_TIME_MAX.subsec_micros().into() };
    let asked = request();
    // SAFETY: both pointers are to values that outlive the calls, with their lengths.
    let sent = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const bound).cast(),
            size_of::<libc::timeval>() as libc::socklen_t,
        );
        libc::send(socket.as_raw_fd(), asked.as_ptr().cast(), asked.len(), 0)
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        // SAFETY: the buffer is ours and has this length.
        let length = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let Ok(length) = usize::try_from(length) else { return Err(io::Error::last_os_error()) };
        match messages(&buffer[..length.min(buffer.len())], &mut found) {
            Answer::More if length > 0 && found.len() < SOCKETS_MAX => {}
            Answer::More | Answer::Done => return Ok(found),
            Answer::Error => return Err(io::Error::other("the kernel does not list Unix sockets")),
        }
    }
}

fn request() -> Vec<u8> {
    const REQUEST_AND_DUMP: u16 = 0x1 | 0x300;
    const ALL_STATES: u32 = u32::MAX;
    let length = (HEADER + 24) as u32;
    let mut bytes = Vec::with_capacity(HEADER + 24);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST_AND_DUMP.to_ne_bytes());
    bytes.extend([0_u8; 8]);
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    bytes.extend(ALL_STATES.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend((SHOW_NAME | SHOW_PEER).to_ne_bytes());
    bytes.extend([0_u8; 8]);
    bytes
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    More,
    Done,
    Error,
}

fn messages(mut bytes: &[u8], found: &mut Vec<UnixSocket>) -> Answer {
    while let Some((length, kind)) = u32_at(bytes, 0).zip(u16_at(bytes, 4)) {
        let length = length as usize;
        if length < HEADER || length > bytes.len() {
            return Answer::More;
        }
        match kind {
            NLMSG_DONE => return Answer::Done,
            NLMSG_ERROR => return Answer::Error,
            _ => found.extend(parse_socket(&bytes[HEADER..length])),
        }
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
    }
    Answer::More
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

fn aligned(length: usize) -> usize {
    length.div_ceil(4) * 4
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
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
        fn any_answer_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 0_u32..220) {
            let mut bytes = bytes;
            if bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&length.to_ne_bytes());
            }
            messages(&bytes, &mut Vec::new());
        }
    }
}

//! Lists of sockets, as the kernel gives them over netlink (sock_diag(7)): of our network namespace. It takes no rights.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_DONE: u16 = 3;
const NLMSG_ERROR: u16 = 2;
/// Of a netlink message, in bytes.
const HEADER: usize = 16;
/// How long the kernel may take for a part of its answer.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(500);

/// Asks for Unix sockets: those in these states (a bit each), with what `show` names (`linux/unix_diag.h`).
pub(crate) fn of_unix(states: u32, show: u32) -> Vec<u8> {
    let mut bytes = vec![libc::AF_UNIX as u8, 0, 0, 0];
    bytes.extend(states.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(show.to_ne_bytes());
    bytes.extend([0_u8; 8]);
    request(&bytes)
}

/// Asks for TCP sockets of a family in these states (a bit each), as `linux/inet_diag.h` has it.
pub(crate) fn of_tcp(family: i32, states: u32) -> Vec<u8> {
    let mut bytes = vec![family as u8, libc::IPPROTO_TCP as u8, 0, 0];
    bytes.extend(states.to_ne_bytes());
    bytes.extend([0_u8; 48]);
    request(&bytes)
}

fn request(body: &[u8]) -> Vec<u8> {
    const REQUEST_AND_DUMP: u16 = 0x1 | 0x300;
    let length = (HEADER + body.len()) as u32;
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(length.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(REQUEST_AND_DUMP.to_ne_bytes());
    bytes.extend([0_u8; 8]);
    bytes.extend(body);
    bytes
}

/// Hands over what the kernel has of each socket, up to about `sockets_max`. False: there are more.
///
/// # Errors
/// The kernel has no such answer, or gives none in time.
pub(crate) fn dump(asked: &[u8], sockets_max: usize, mut take: impl FnMut(&[u8])) -> io::Result<bool> {
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
    let mut count = 0;
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        // SAFETY: the buffer is ours and has this length.
        let length = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let Ok(length) = usize::try_from(length) else { return Err(io::Error::last_os_error()) };
        let answer = messages(&buffer[..length.min(buffer.len())], |message| {
            count += 1;
            take(message);
        });
        match answer {
            Answer::More if length > 0 && count < sockets_max => {}
            Answer::More => return Ok(false),
            Answer::Done => return Ok(true),
            Answer::Error => return Err(io::Error::other("the kernel does not list sockets of this kind")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    More,
    Done,
    Error,
}

fn messages(mut bytes: &[u8], mut take: impl FnMut(&[u8])) -> Answer {
    while let Some((length, kind)) = u32_at(bytes, 0).zip(u16_at(bytes, 4)) {
        let length = length as usize;
        if length < HEADER || length > bytes.len() {
            return Answer::More;
        }
        match kind {
            NLMSG_DONE => return Answer::Done,
            NLMSG_ERROR => return Answer::Error,
            _ => take(&bytes[HEADER..length]),
        }
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
    }
    Answer::More
}

/// Netlink puts everything at places that four divides.
pub(crate) fn aligned(length: usize) -> usize {
    length.div_ceil(4) * 4
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_answer_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 0_u32..220) {
            let mut bytes = bytes;
            if bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&length.to_ne_bytes());
            }
            messages(&bytes, |_| {});
        }
    }
}

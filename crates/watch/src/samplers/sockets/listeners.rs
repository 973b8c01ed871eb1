//! How many connections wait to be accepted at each listener.

use std::collections::BTreeMap;

use super::{LISTENERS, failure};
use crate::sampler::{Failure, Sampler};
use crate::sink::Batch;
use crate::sock_diag::{self, aligned, u16_at, u32_at};

/// Of `include/net/tcp_states.h`, which Unix sockets have, too.
const LISTEN_BIT: u32 = 1 << 10;
const LISTEN: u8 = 10;
const SHOW_NAME: u32 = 1;
const SHOW_QUEUES: u32 = 0x10;
const ATTRIBUTE_NAME: u16 = 0;
const ATTRIBUTE_QUEUES: u16 = 4;
/// Of a Unix socket's part of a message, in bytes.
const UNIX_MESSAGE: usize = 16;
/// Where `struct inet_diag_msg` has the length of the queue, and after it the most that it may have.
const TCP_QUEUE_AT: usize = 56;
const SOCKETS_MAX: usize = 20_000;
/// Listeners that are recorded, at most: those with the longest queues.
const LISTENERS_MAX: usize = 64;

/// Length of the queue, and its bound.
type Queue = (u64, u64);

pub(super) struct Listeners;

impl Sampler for Listeners {
    fn source(&self) -> &'static str {
        "listeners"
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        // By where they listen. Several sockets at one port share what arrives.
        let mut found: BTreeMap<String, Queue> = BTreeMap::new();
        let mut add = |listener: Option<(String, Queue)>| {
            if let Some((address, (length, bound))) = listener {
                let queue = found.entry(address).or_default();
                queue.0 += length;
                queue.1 += bound;
            }
        };
        for family in [libc::AF_INET, libc::AF_INET6] {
            let asked = sock_diag::of_tcp(family, LISTEN_BIT);
            let listed = sock_diag::dump(&asked, SOCKETS_MAX, |message| add(tcp(message)));
            // A kernel without IPv6 has none of these.
            listed
                .map(|_| ())
                .or_else(|error| if family == libc::AF_INET { Err(failure(&error)) } else { Ok(()) })?;
        }
        let asked = sock_diag::of_unix(LISTEN_BIT, SHOW_NAME | SHOW_QUEUES);
        // The kernel may have no list of these: those of TCP are there.
        if let Err(error) = sock_diag::dump(&asked, SOCKETS_MAX, |message| add(unix(message))) {
            batch.absent(format!("listeners in the file system can't be listed: {error}"));
        }
        let mut listeners: Vec<(String, Queue)> = found.into_iter().collect();
        listeners.sort_by_key(|(_, (length, _))| std::cmp::Reverse(*length));
        listeners.truncate(LISTENERS_MAX);
        listeners.sort();
        for (address, (length, bound)) in listeners {
            batch.put(&LISTENERS[0], &address, length);
            batch.put(&LISTENERS[1], &address, bound);
        }
        Ok(())
    }
}

/// A `struct inet_diag_msg` as "tcp 80" with its queue.
fn tcp(message: &[u8]) -> Option<(String, Queue)> {
    let port = u16::from_be_bytes(message.get(4..6)?.try_into().ok()?);
    let (length, bound) = (u32_at(message, TCP_QUEUE_AT)?, u32_at(message, TCP_QUEUE_AT + 4)?);
    (message.get(1) == Some(&LISTEN)).then(|| (format!("tcp {port}"), (length.into(), bound.into())))
}

/// A `struct unix_diag_msg` as "unix /run/a.sock" with its queue. `None`: it has no path.
fn unix(message: &[u8]) -> Option<(String, Queue)> {
    let mut path = String::new();
    let mut queue = None;
    let mut rest = message.get(UNIX_MESSAGE..)?;
    while let Some((length, kind)) = u16_at(rest, 0).zip(u16_at(rest, 2)) {
        let length = usize::from(length);
        let Some(value) = rest.get(4..length) else { break };
        match kind {
            ATTRIBUTE_NAME => {
                let bytes = value.split(|byte| *byte == 0).next().unwrap_or_default();
                path = String::from_utf8_lossy(bytes).into_owned();
            }
            ATTRIBUTE_QUEUES => queue = u32_at(value, 0).zip(u32_at(value, 4)),
            _ => {}
        }
        rest = rest.get(aligned(length)..).unwrap_or_default();
    }
    let (length, bound) = queue?;
    let is_listener = message.get(2) == Some(&LISTEN) && path.starts_with('/');
    is_listener.then(|| (format!("unix {path}"), (length.into(), bound.into())))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::{UnixListener, UnixStream};

    use proptest::prelude::*;

    use super::*;
    use crate::sink::memory::collect;

    #[test]
    fn connections_that_nobody_accepts_stand_in_their_listeners_queue() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = tcp.local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let unix = UnixListener::bind(&path).unwrap();
        let _clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(to).unwrap()).collect();
        let _client = UnixStream::connect(&path).unwrap();
        let read = || collect(|batch| Listeners.read(batch).map_err(|_| "read").unwrap());
        let values = read();
        let (by_tcp, by_unix) = (format!("tcp {}", to.port()), format!("unix {}", path.display()));
        assert_eq!(values[&format!("accept_queue {by_tcp}")], 3.0, "{values:?}");
        assert_eq!(values[&format!("accept_queue {by_unix}")], 1.0);
        assert!(values[&format!("backlog {by_tcp}")] >= 3.0);
        let _accepted = (tcp.accept().unwrap(), unix.accept().unwrap());
        let values = read();
        assert_eq!(values[&format!("accept_queue {by_tcp}")], 2.0);
        assert_eq!(values[&format!("accept_queue {by_unix}")], 0.0);
    }

    proptest! {
        #[test]
        fn any_message_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            tcp(&bytes);
            unix(&bytes);
        }
    }
}

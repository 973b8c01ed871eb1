//! One thread's loop over its connections: epoll, one read and one write a request.

use std::convert::Infallible;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::answers::{AnswerCatalogue, greeting};
use crate::session::{Session, Then};

const EVENTS_AT_ONCE: usize = 1024;
const RECEIVE_BYTES: usize = 64 * 1024;
/// How long accepting pauses where no more files may be opened.
const PAUSE_WITHOUT_FILES: Duration = Duration::from_millis(10);
/// Set in the data of a listener's events, whose rest is its place.
const IS_LISTENER: u64 = 1 << 63;

pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Listener::Unix(listener) => listener.set_nonblocking(true),
            Listener::Tcp(listener) => listener.set_nonblocking(true),
        }
    }

    fn accept(&self) -> io::Result<Socket> {
        match self {
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Socket::Unix(stream))
            }
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// As in "unix:/tmp/s" and "tcp:127.0.0.1:3306".
impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = match self {
            Listener::Unix(listener) => listener.local_addr().ok(),
            Listener::Tcp(listener) => {
                return match listener.local_addr() {
                    Ok(address) => write!(f, "tcp:{address}"),
                    Err(error) => write!(f, "tcp:{error}"),
                };
            }
        };
        match path.as_ref().and_then(|address| address.as_pathname()) {
            Some(path) => write!(f, "unix:{}", path.display()),
            None => f.write_str("unix:"),
        }
    }
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.read(buffer),
            Socket::Tcp(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => stream.write(bytes),
            Socket::Tcp(stream) => stream.write(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

struct Connection {
    socket: Socket,
    session: Session,
    /// What the client has not taken yet. While there is something, nothing is read from it.
    unsent: Vec<u8>,
}

struct Loop<'a> {
    epoll: std::os::fd::OwnedFd,
    listeners: &'a [Listener],
    canned: &'a AnswerCatalogue,
    greeting: Vec<u8>,
    connections: Vec<Option<Connection>>,
    /// Places among the connections that are empty.
    free: Vec<usize>,
    received: Box<[u8]>,
    out: Vec<u8>,
}

/// Serves every client that connects.
///
/// # Errors
/// What the kernel refuses; a client that goes wrong is no error.
pub(crate) fn run(listeners: &[Listener], canned: &AnswerCatalogue, spins: bool) -> io::Result<Infallible> {
    let mut serving = Loop {
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        listeners,
        canned,
        greeting: greeting(),
        connections: Vec::new(),
        free: Vec::new(),
        received: vec![0; RECEIVE_BYTES].into_boxed_slice(),
        out: Vec::new(),
    };
    for (place, listener) in listeners.iter().enumerate() {
        listener.set_nonblocking()?;
        let data = epoll::EventData::new_u64(IS_LISTENER | place as u64);
        let flags = epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE;
        epoll::add(&serving.epoll, listener, data, flags)?;
    }
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let timeout = spins.then_some(&at_once);
    let mut events = Vec::with_capacity(EVENTS_AT_ONCE);
    loop {
        events.clear();
        match epoll::wait(&serving.epoll, spare_capacity(&mut events), timeout) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        for event in &events {
            let data = event.data.u64();
            match data & IS_LISTENER {
                0 => serving.serve(data as usize)?,
                _ => serving.accept((data & !IS_LISTENER) as usize)?,
            }
        }
    }
}

impl Loop<'_> {
    fn accept(&mut self, listener: usize) -> io::Result<()> {
        let mut socket = match self.listeners[listener].accept() {
            Ok(socket) => socket,
            Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                eprintln!("null_server: {error}: raise the hard limit on open files (ulimit -Hn)");
                std::thread::sleep(PAUSE_WITHOUT_FILES);
                return Ok(());
            }
            // Another thread has taken it, or the client has gone again.
            Err(_) => return Ok(()),
        };
        if !matches!(socket.write(&self.greeting), Ok(count) if count == self.greeting.len()) {
            return Ok(());
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let data = epoll::EventData::new_u64(place as u64);
        epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN)?;
        self.connections[place] =
            Some(Connection { socket, session: Session::default(), unsent: Vec::new() });
        Ok(())
    }

    /// The socket has something to read, or takes more again.
    fn serve(&mut self, place: usize) -> io::Result<()> {
        let Some(connection) = &mut self.connections[place] else { return Ok(()) };
        let was_full = !connection.unsent.is_empty();
        self.out.clear();
        self.out.append(&mut connection.unsent);
        if !was_full {
            let count = match connection.socket.read(&mut self.received) {
                Ok(count) => count,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return Ok(());
                }
                Err(_) => 0,
            };
            let then = connection.session.receive(self.canned, &self.received[..count], &mut self.out);
            if count == 0 || then == Then::Close {
                self.close(place);
                return Ok(());
            }
        }
        if self.out.is_empty() {
            return Ok(());
        }
        let sent = match connection.socket.write(&self.out) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => 0,
            Err(_) => {
                self.close(place);
                return Ok(());
            }
        };
        connection.unsent.extend_from_slice(&self.out[sent..]);
        let is_full = !connection.unsent.is_empty();
        if is_full != was_full {
            let flags = if is_full { epoll::EventFlags::OUT } else { epoll::EventFlags::IN };
            epoll::modify(&self.epoll, &connection.socket, epoll::EventData::new_u64(place as u64), flags)?;
        }
        Ok(())
    }

    /// Which takes it out of the epoll set.
    fn close(&mut self, place: usize) {
        self.connections[place] = None;
        self.free.push(place);
    }
}

//! A scripted peer: a server that does to each connection what a test says, and keeps what it was sent.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use whyso_load::{Address, Target, Tls};

/// Time between two checks of a listener whether someone connects, or whether it is to close.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// One side of a connection, as the peer sees it.
pub(crate) trait Wire: Read + Write {
    /// Closes it so that the other side gets a reset: over TCP by RST, over a Unix socket as far as possible.
    fn reset(&self);
}

impl Wire for TcpStream {
    fn reset(&self) {
        let _ = socket2::SockRef::from(self).set_linger(Some(Duration::ZERO));
    }
}

impl Wire for UnixStream {
    fn reset(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// What the peer does with each connection; it is closed when the script ends.
type Script = dyn Fn(&mut dyn Wire) + Send + Sync;

pub(crate) struct Peer {
    _folder: tempfile::TempDir,
    path: PathBuf,
    address: SocketAddr,
    shared: Arc<PeerState>,
}

struct PeerState {
    script: Box<Script>,
    is_up: AtomicBool,
    is_over: AtomicBool,
    /// Number of connections that were ever accepted.
    accepted: AtomicU32,
    /// Those of TCP that are open, to be shut down with the peer.
    streams: Mutex<Vec<(u32, TcpStream)>>,
}

impl Peer {
    /// Listens on a Unix socket and on TCP; each connection gets the script in a thread of its own.
    pub(crate) fn start(script: impl Fn(&mut dyn Wire) + Send + Sync + 'static) -> Peer {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let unix = UnixListener::bind(&path).unwrap();
        let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = tcp.local_addr().unwrap();
        let shared = Arc::new(PeerState {
            script: Box::new(script),
            is_up: AtomicBool::new(true),
            is_over: AtomicBool::new(false),
            accepted: AtomicU32::new(0),
            streams: Mutex::new(Vec::new()),
        });
        let (for_unix, for_tcp) = (shared.clone(), shared.clone());
        std::thread::spawn(move || for_unix.serve_unix(&unix));
        std::thread::spawn(move || for_tcp.serve_tcp(tcp, address));
        Peer { _folder: folder, path, address, shared }
    }

    pub(crate) fn on_unix(&self) -> Target {
        target(Address::Unix(self.path.clone()))
    }

    pub(crate) fn on_tcp(&self) -> Target {
        target(Address::Tcp { host: self.address.ip().to_string(), port: self.address.port() })
    }

    /// Number of connections that were ever accepted.
    pub(crate) fn connections_taken(&self) -> u32 {
        self.shared.accepted.load(SeqCst)
    }

    /// Dies, over TCP: no one listens any more, and the connections are shut down.
    pub(crate) fn go_down(&self) {
        self.shared.is_up.store(false, SeqCst);
        // The listener closes within its next check; nobody may be let in meanwhile.
        while TcpStream::connect(self.address).is_ok() {
            std::thread::sleep(POLL_INTERVAL);
        }
        for (_, stream) in self.shared.streams().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Comes back at the same address.
    pub(crate) fn come_up(&self) {
        self.shared.is_up.store(true, SeqCst);
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, SeqCst);
    }
}

impl PeerState {
    fn streams(&self) -> MutexGuard<'_, Vec<(u32, TcpStream)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve_unix(self: Arc<PeerState>, listener: &UnixListener) {
        listener.set_nonblocking(true).unwrap();
        while !self.is_over.load(SeqCst) {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).unwrap();
                    let number = self.accepted.fetch_add(1, SeqCst);
                    self.serve(number, stream);
                }
                Err(_) => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    fn serve_tcp(self: Arc<PeerState>, listener: TcpListener, address: SocketAddr) {
        let mut listener = Some(listener);
        while !self.is_over.load(SeqCst) {
            if !self.is_up.load(SeqCst) {
                listener = None;
                std::thread::sleep(POLL_INTERVAL);
                continue;
            }
            let listening = listener.get_or_insert_with(|| TcpListener::bind(address).unwrap());
            listening.set_nonblocking(true).unwrap();
            match listening.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).unwrap();
                    stream.set_nodelay(true).unwrap();
                    let number = self.accepted.fetch_add(1, SeqCst);
                    self.streams().push((number, stream.try_clone().unwrap()));
                    self.serve(number, stream);
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                    std::thread::sleep(POLL_INTERVAL);
                }
            }
        }
    }

    fn serve(self: &Arc<PeerState>, number: u32, mut stream: impl Wire + Send + 'static) {
        let shared = self.clone();
        std::thread::spawn(move || {
            (shared.script)(&mut stream);
            // A connection is closed with its last descriptor.
            shared.streams().retain(|(other, _)| *other != number);
        });
    }
}

fn target(address: Address) -> Target {
    let (user, password) = ("bench".to_string(), "sesame".to_string());
    Target { address, user, password, schema: "whyso".to_string(), tls: Tls::Off }
}

pub(crate) fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(sequence);
    packet.extend_from_slice(payload);
    packet
}

/// As MySQL greets: protocol 10, CLIENT_DEPRECATE_EOF and all that the load asks for.
pub(crate) fn greeting(plugin: &str) -> Vec<u8> {
    let capabilities: u32 =
        0x0001 | 0x0008 | 0x0200 | 0x2000 | 0x8000 | 0x2_0000 | 0x4_0000 | 0x8_0000 | 0x100_0000;
    let mut payload = b"\x0a8.0.0-peer\0\x01\0\0\0abcdefgh\0".to_vec();
    payload.extend_from_slice(&capabilities.to_le_bytes()[..2]);
    payload.extend_from_slice(&[45, 2, 0]);
    payload.extend_from_slice(&capabilities.to_le_bytes()[2..]);
    payload.push(21);
    payload.extend_from_slice(&[0; 10]);
    payload.extend_from_slice(b"ijklmnopqrst\0");
    payload.extend_from_slice(plugin.as_bytes());
    payload.push(0);
    packet(0, &payload)
}

/// Reads a packet's payload; empty where the other side has gone.
pub(crate) fn read_packet(stream: &mut dyn Wire) -> Vec<u8> {
    let mut header = [0; 4];
    if stream.read_exact(&mut header).is_err() {
        return Vec::new();
    }
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    if stream.read_exact(&mut payload).is_err() {
        return Vec::new();
    }
    payload
}

pub(crate) fn send(stream: &mut dyn Wire, bytes: &[u8]) {
    // The other side may have given up already.
    let _ = stream.write_all(bytes);
}

pub(crate) const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

/// Whether the peer continues with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    GoOn,
    HangUp,
}

/// Logs anyone in.
pub(crate) fn let_in(stream: &mut dyn Wire) {
    send(stream, &greeting("mysql_native_password"));
    read_packet(stream);
    send(stream, &packet(2, OK));
}

/// Logs anyone in, prepares anything, and has executions answered; `execute` gets the command's payload.
pub(crate) fn server(stream: &mut dyn Wire, mut execute: impl FnMut(&mut dyn Wire, &[u8]) -> Then) {
    let_in(stream);
    let mut statements = 0u8;
    loop {
        let payload = read_packet(stream);
        match payload.first() {
            Some(0x16) => {
                statements += 1;
                send(stream, &packet(1, &[0, statements, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
            }
            Some(0x17) => {
                if execute(stream, &payload) == Then::HangUp {
                    return;
                }
            }
            Some(0x01) | None => return,
            Some(_) => send(stream, &packet(1, OK)),
        }
    }
}

/// One column, two rows.
pub(crate) fn rows() -> Vec<u8> {
    let definition = packet(2, b"\x03def\0\0\0\x01c\0\x0c\x2d\0\x78\0\0\0\xfd\0\0\0\0\0");
    let end = packet(5, &[0xfe, 0, 0, 2, 0, 0, 0]);
    [packet(1, &[1]), definition, packet(3, &[0, 0, 1, b'x']), packet(4, &[0, 0, 1, b'y']), end].concat()
}

/// The value of the one parameter of a point select's execution, its last four bytes.
pub(crate) fn id_of(payload: &[u8]) -> i32 {
    let bytes = payload.last_chunk().expect("an execution has a parameter");
    i32::from_le_bytes(*bytes)
}

//! A connection that is logged in and has one statement prepared.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use whyso_wire::{ExecuteTemplate, ParamType, encode};

const SQL: &[u8] = b"SELECT c FROM sbtest1 WHERE id=?";
const ID: i32 = 50_000;
/// As whyso asks for: 4.1 protocol, transactions, multiple results, plugins, a schema, no EOF packets.
const CAPABILITIES: u32 = 0x0008 | 0x0200 | 0x2000 | 0x8000 | 0x2_0000 | 0x4_0000 | 0x8_0000 | 0x100_0000;
/// MariaDB's own: no column definitions with executions.
const CACHE_METADATA: u32 = 1 << 4;
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

pub(crate) struct Peer {
    socket: Socket,
    /// The request, always the same.
    pub(crate) request: Vec<u8>,
    /// Length of its answer.
    pub(crate) answer_bytes: usize,
}

impl Peer {
    /// Connects as root without a password to the schema `whyso`, and prepares.
    pub(crate) fn connect(address: &Address) -> io::Result<Peer> {
        let socket = match address {
            Address::Unix(path) => Socket::Unix(UnixStream::connect(path)?),
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
        };
        let mut peer = Peer { socket, request: Vec::new(), answer_bytes: 0 };
        peer.bound_reads(Some(LOGIN_TIMEOUT))?;
        peer.packet()?;
        let mut login = CAPABILITIES.to_le_bytes().to_vec();
        login.extend_from_slice(&[0, 0, 0, 1, 45]);
        login.extend_from_slice(&[0; 19]);
        login.extend_from_slice(&CACHE_METADATA.to_le_bytes());
        login.extend_from_slice(b"root\0\0whyso\0mysql_native_password\0");
        let mut out = Vec::new();
        encode::packet(&mut out, 1, &login);
        peer.send(&out)?;
        if peer.packet()?.first() != Some(&0) {
            return Err(io::Error::other("the server refused root without a password"));
        }
        out.clear();
        encode::prepare(&mut out, SQL);
        peer.send(&out)?;
        let statement_id = match peer.packet()?.as_slice() {
            [0, a, b, c, d, ..] => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => return Err(io::Error::other("the server refused to prepare the statement")),
        };
        // The definitions of a parameter and a column.
        for _ in 0..2 {
            peer.packet()?;
        }
        let template = ExecuteTemplate::new(&[ParamType::Int32]);
        let execute = |types_known: bool| {
            let mut bytes = Vec::new();
            let mut writer = template.begin(&mut bytes, statement_id, types_known);
            writer.int32(ID);
            writer.finish();
            bytes
        };
        peer.send(&execute(false))?;
        peer.answer_bytes = peer.read_answer()?;
        peer.request = execute(true);
        peer.bound_reads(None)?;
        Ok(peer)
    }

    /// Reads packets up to the one that ends the rows; gives the bytes that they have.
    fn read_answer(&mut self) -> io::Result<usize> {
        let mut bytes = 0;
        loop {
            let packet = self.packet()?;
            bytes += packet.len() + 4;
            match packet.first() {
                Some(0xfe) if packet.len() < 9 => return Ok(bytes),
                Some(0xff) => return Err(io::Error::other("the server answered with an error")),
                _ => {}
            }
        }
    }

    fn packet(&mut self) -> io::Result<Vec<u8>> {
        let mut header = [0; 4];
        self.read_exact(&mut header)?;
        let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        self.read_exact(&mut payload)?;
        Ok(payload)
    }

    pub(crate) fn set_nonblocking(&self) -> io::Result<()> {
        match &self.socket {
            Socket::Unix(stream) => stream.set_nonblocking(true),
            Socket::Tcp(stream) => stream.set_nonblocking(true),
        }
    }

    fn bound_reads(&self, limit: Option<Duration>) -> io::Result<()> {
        match &self.socket {
            Socket::Unix(stream) => stream.set_read_timeout(limit),
            Socket::Tcp(stream) => stream.set_read_timeout(limit),
        }
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match &mut self.socket {
            Socket::Unix(stream) => stream.read_exact(buffer),
            Socket::Tcp(stream) => stream.read_exact(buffer),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.socket {
            Socket::Unix(stream) => stream.write_all(bytes),
            Socket::Tcp(stream) => stream.write_all(bytes),
        }
    }

    /// Sends the request; a socket that has sent all before takes so few bytes at once.
    pub(crate) fn send_request(&mut self) -> io::Result<()> {
        match &mut self.socket {
            Socket::Unix(stream) => stream.write_all(&self.request),
            Socket::Tcp(stream) => stream.write_all(&self.request),
        }
    }

    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.socket {
            Socket::Unix(stream) => stream.read(buffer),
            Socket::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl AsRawFd for Peer {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

//! A TCP proxy in front of a real server: from the n-th answer on, over all its control connections, it misbehaves. What the load's own
//! connections are answered is passed on.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::sleep;
use std::time::Duration;

const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// Bytes of a packet's header: three of its length, one of its number.
const HEADER_BYTES: usize = 4;

/// Where a login says how large packets may grow: after the header and the capabilities.
const PACKET_BYTES_MAX: std::ops::Range<usize> = HEADER_BYTES + 4..HEADER_BYTES + 8;
/// What the load's connections say there; the driver of control connections says another number.
const OF_LOAD: u32 = 16 << 20;

/// What the proxy does with the n-th answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It keeps the answer, and passes nothing on any more. New connections are accepted, and get no answer.
    Stall,
    /// It sends this in place of the answer, and closes the connection. The function gets the answer.
    Instead(fn(&[u8]) -> Vec<u8>),
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<ProxyState>,
}

struct ProxyState {
    server: PathBuf,
    /// The answer that is the first to go wrong, from 1; `usize::MAX`: none.
    nth: usize,
    fault: Fault,
    answers: AtomicUsize,
    is_over: AtomicBool,
}

impl Proxy {
    pub(crate) fn start(server: &Path, nth: usize, fault: Fault) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let answers = AtomicUsize::new(0);
        let shared =
            Arc::new(ProxyState { server: server.to_path_buf(), nth, fault, answers, is_over: false.into() });
        let listening = Arc::clone(&shared);
        std::thread::spawn(move || {
            while !listening.is_over.load(SeqCst) {
                match listener.accept() {
                    Ok((client, _)) => carry(&listening, client),
                    Err(_) => sleep(CHECK_INTERVAL),
                }
            }
        });
        Proxy { port, shared }
    }

    /// Number of answers so far.
    pub(crate) fn answers(&self) -> usize {
        self.shared.answers.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, SeqCst);
    }
}

fn carry(shared: &Arc<ProxyState>, mut client: TcpStream) {
    client.set_nonblocking(false).unwrap();
    client.set_nodelay(true).unwrap();
    let Ok(mut server) = UnixStream::connect(&shared.server) else { return };
    let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let is_load = Arc::new(AtomicBool::new(false));
    let is_gone = Arc::new(AtomicBool::new(false));
    let (learnt, gone) = (Arc::clone(&is_load), Arc::clone(&is_gone));
    std::thread::spawn(move || {
        let mut login = vec![0; 1 << 12];
        if let Ok(length) = from_client.read(&mut login) {
            learnt.store(login[PACKET_BYTES_MAX] == OF_LOAD.to_le_bytes(), SeqCst);
            let _ = to_server.write_all(&login[..length]);
            let _ = std::io::copy(&mut from_client, &mut to_server);
        }
        // The server may have closed its side.
        let _ = std::io::copy(&mut from_client, &mut std::io::sink());
        gone.store(true, SeqCst);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let shared = Arc::clone(shared);
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = server.read(&mut bytes) {
            let answer = &bytes[..length];
            let sent = match shared.fault_of_next(is_load.load(SeqCst)) {
                Some(Fault::Stall) => continue,
                Some(Fault::Instead(other)) => {
                    let _ = client.write_all(&other(answer));
                    break;
                }
                None => client.write_all(answer),
            };
            if sent.is_err() {
                break;
            }
        }
        // What is stalled does not show that the server is gone.
        while shared.is_stalled() && !is_gone.load(SeqCst) && !shared.is_over.load(SeqCst) {
            sleep(CHECK_INTERVAL);
        }
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    });
}

impl ProxyState {
    fn is_stalled(&self) -> bool {
        matches!(self.fault, Fault::Stall) && self.answers.load(SeqCst) >= self.nth
    }

    fn fault_of_next(&self, is_load: bool) -> Option<Fault> {
        if is_load {
            return None;
        }
        let number = self.answers.fetch_add(1, SeqCst) + 1;
        let is_faulty = match self.fault {
            Fault::Stall => number >= self.nth,
            Fault::Instead(_) => number == self.nth,
        };
        is_faulty.then_some(self.fault)
    }
}

/// A packet that takes the number of an answer's first one.
pub(crate) fn packet_like(answer: &[u8], body: &[u8]) -> Vec<u8> {
    let mut packet = (body.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(answer.get(3).copied().unwrap_or(1));
    packet.extend_from_slice(body);
    packet
}

/// The body of an answer's first packet.
pub(crate) fn first_body(answer: &[u8]) -> &[u8] {
    let length = answer.get(..3).map_or(0, |length| u32::from_le_bytes([length[0], length[1], length[2], 0]));
    answer.get(HEADER_BYTES..).map_or(&[], |body| &body[..body.len().min(length as usize)])
}

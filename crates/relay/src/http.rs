//! One page over HTTP/1.1: `/metrics`. Every wait has a bound, and so has what a client may send.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;
use crate::latest::Latest;
use crate::openmetrics;

const REQUEST_BYTES_MAX: usize = 8 << 10;
/// A client that is slower is left.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(1);
/// Between two looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    pub(crate) fn start(address: &str, latest: Arc<Latest>) -> Result<Endpoint, Error> {
        let refused = |cause| Error::Listen { address: address.to_string(), cause };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("openmetrics".to_string())
            .spawn(move || serve(&listener, &latest, &stopped))
            .map_err(Error::Thread)?;
        Ok(Endpoint { address: bound, stop, thread: Some(thread) })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, latest: &Latest, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            // A client that goes away in mid-answer is its own affair.
            Ok((client, _)) => drop(answer(client, latest)),
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

fn answer(mut client: TcpStream, latest: &Latest) -> std::io::Result<()> {
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(CLIENT_TIME_MAX))?;
    let Some(head) = head(&mut client)? else { return Ok(()) };
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => (
            "200 OK",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            openmetrics::text(&latest.all()),
        ),
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "there is /metrics here\n".to_string()),
        _ => ("405 Method Not Allowed", "text/plain", "ask with GET\n".to_string()),
    };
    let length = body.len();
    let answered = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(answered.as_bytes())?;
    if method != "HEAD" {
        client.write_all(body.as_bytes())?;
    }
    client.flush()
}

/// What a client asks; `None` where it does not end within its bounds.
fn head(client: &mut TcpStream) -> std::io::Result<Option<String>> {
    let until = Instant::now() + CLIENT_TIME_MAX;
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 1024];
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || bytes.len() > REQUEST_BYTES_MAX {
            return Ok(None);
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut buffer)? {
            0 => return Ok(None),
            count => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

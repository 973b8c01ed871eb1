//! One page over HTTP/1.1: `/metrics`. Every wait has a bound, and so has what a client may send.

use std::io::{ErrorKind, Read, Result as IoResult, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;
use crate::latest::Latest;
use crate::openmetrics;

const REQUEST_BYTES_MAX: usize = 8 << 10;
/// A client that is slower is left.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(5);
/// Clients at a time. For one more, the oldest is left.
const CLIENTS_MAX: usize = 16;
/// Between two looks whether there is something to do.
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
        let hosts = Hosts::new(address, bound);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("openmetrics".to_string())
            .spawn(move || serve(&listener, &latest, &hosts, &stopped))
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

/// Names by which it may be asked for: a page of the web could else ask in a browser on this machine, by a name of its own for this address.
struct Hosts {
    /// As the user named it, as it is bound, and what every machine is to itself; without ports.
    names: Vec<String>,
    /// It listens at every address of the machine.
    is_any_address: bool,
}

impl Hosts {
    fn new(asked: &str, bound: SocketAddr) -> Hosts {
        let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut names = vec![
            without_port(asked),
            bound.ip().to_string(),
            "localhost".to_string(),
            own.trim().to_string(),
        ];
        names.extend(["127.0.0.1".to_string(), "::1".to_string()]);
        names.iter_mut().for_each(|name| name.make_ascii_lowercase());
        Hosts { names, is_any_address: bound.ip().is_unspecified() }
    }

    fn is_known(&self, head: &str) -> bool {
        let named = head.lines().filter_map(|line| line.split_once(':'));
        let mut hosts =
            named.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, value)| value.trim());
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let host = without_port(host).to_ascii_lowercase();
        let is_own_address = self.is_any_address && host.parse::<IpAddr>().is_ok();
        !host.is_empty() && (is_own_address || self.names.contains(&host))
    }
}

/// The name in `name:port`, `[address]:port` or `name`.
fn without_port(host: &str) -> String {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address.to_string(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name).to_string(),
    }
}

/// One who asks: first what came is read, then what is to be answered is written.
struct Client {
    stream: TcpStream,
    until: Instant,
    asked: Vec<u8>,
    /// What is left to be written; `None` while it asks.
    answer: Option<Vec<u8>>,
}

fn serve(listener: &TcpListener, latest: &Latest, hosts: &Hosts, stop: &AtomicBool) {
    let mut clients: Vec<Client> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if clients.len() >= CLIENTS_MAX {
                clients.remove(0);
            }
            let until = Instant::now() + CLIENT_TIME_MAX;
            clients.push(Client { stream, until, asked: Vec::new(), answer: None });
        }
        // A client that goes away in mid-answer is its own affair.
        clients.retain_mut(|client| {
            client.until > Instant::now() && client.go_on(latest, hosts).unwrap_or(false)
        });
        std::thread::sleep(LOOK);
    }
}

impl Client {
    /// Reads and writes what is possible now; whether there is more to do.
    fn go_on(&mut self, latest: &Latest, hosts: &Hosts) -> IoResult<bool> {
        let mut buffer = [0_u8; 1024];
        while self.answer.is_none() {
            if let Some(head) = self.head() {
                self.answer = Some(answer(&head, latest, hosts));
                break;
            }
            if self.asked.len() > REQUEST_BYTES_MAX {
                return Ok(false);
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => self.asked.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        let Some(left) = &mut self.answer else { return Ok(true) };
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(0) => return Ok(false),
                Ok(count) => drop(left.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// What it asks, once that is whole.
    fn head(&self) -> Option<String> {
        let is_whole = self.asked.windows(4).any(|four| four == b"\r\n\r\n");
        is_whole.then(|| String::from_utf8_lossy(&self.asked).into_owned())
    }
}

fn answer(head: &str, latest: &Latest, hosts: &Hosts) -> Vec<u8> {
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        _ if !hosts.is_known(head) => (
            "403 Forbidden",
            "text/plain",
            "ask by this machine's address or name, or name another one with --openmetrics NAME:PORT\n"
                .to_string(),
        ),
        ("GET" | "HEAD", "/metrics") => (
            "200 OK",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            openmetrics::text(&latest.all()),
        ),
        ("GET" | "HEAD", _) => ("404 Not Found", "text/plain", "there is /metrics here\n".to_string()),
        _ => ("405 Method Not Allowed", "text/plain", "ask with GET\n".to_string()),
    };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if method != "HEAD" {
        answer.push_str(&body);
    }
    answer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(endpoint: &Endpoint, request: &str) -> String {
        let mut client = TcpStream::connect(endpoint.address).unwrap();
        client.set_read_timeout(Some(CLIENT_TIME_MAX)).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer);
        answer
    }

    /// Whether it is closed within so long: silence is not that.
    fn is_closed(mut client: &TcpStream, within: Duration) -> bool {
        client.set_read_timeout(Some(within)).unwrap();
        match client.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    #[test]
    fn silent_clients_keep_nobody_from_an_answer() {
        let endpoint = Endpoint::start("127.0.0.1:0", Arc::default()).unwrap();
        let silent: Vec<_> = (0..60).map(|_| TcpStream::connect(endpoint.address).unwrap()).collect();
        let begin = Instant::now();
        let answer = ask(&endpoint, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        // The oldest were left at once, for those who came after them; the others when their time was over.
        let (oldest, others) = silent.split_at(silent.len() + 1 - CLIENTS_MAX);
        for (number, client) in oldest.iter().enumerate() {
            assert!(is_closed(client, Duration::from_millis(50)), "{number} is not left");
        }
        assert!(begin.elapsed() < CLIENT_TIME_MAX, "{:?}", begin.elapsed());
        for (number, client) in others.iter().enumerate() {
            assert!(is_closed(client, 2 * CLIENT_TIME_MAX), "{number} of the others is never left");
        }
    }

    #[test]
    fn only_who_asks_by_a_name_of_this_machine_is_answered() {
        let endpoint = Endpoint::start("127.0.0.1:0", Arc::default()).unwrap();
        let port = endpoint.address.port();
        let status = |host: &str| {
            ask(&endpoint, &format!("GET /metrics HTTP/1.1\r\n{host}\r\n\r\n"))[9..12].to_string()
        };
        for host in ["Host: localhost", "host: 127.0.0.1:1", "Host: [::1]:9104", "HOST: LOCALHOST:80"] {
            assert_eq!(status(host), "200", "{host}");
        }
        let attacks = [
            "Host: evil.example",
            "Accept: */*",
            "Host: localhost\r\nHost: evil.example",
            "Host: 10.0.0.1",
            "Host:",
        ];
        for host in attacks {
            assert_eq!(status(host), "403", "{host}");
        }
        assert_eq!(status(&format!("Host: localhost.evil.example:{port}")), "403");
        let any = Hosts::new("db1.example:9104", "0.0.0.0:9104".parse().unwrap());
        let is_known = |host: &str| any.is_known(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n"));
        assert!(is_known("10.0.0.1:9104") && is_known("db1.example") && is_known("[fe80::1]:9104"));
        assert!(!is_known("db1.evil.example"));
    }
}

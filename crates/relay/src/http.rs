//! One page over HTTP/1.1: `/metrics`. Every wait has a bound, and so has what a client may send.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::Error;
use crate::latest::Latest;
use crate::openmetrics;

/// The least that hyper allows.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// From connecting to the end of the answer. A client that is slower is left.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(5);
/// Clients at a time. For one more, the oldest is left.
const CLIENTS_MAX: usize = 16;
/// Pause after a client could not be accepted, as where descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    /// Dropping it ends the thread.
    running: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    pub(crate) fn start(address: &str, latest: Arc<Latest>) -> Result<Endpoint, Error> {
        let refused = |cause| Error::Listen { address: address.to_string(), cause };
        let listener = std::net::TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let bound = listener.local_addr().map_err(refused)?;
        let hosts = Arc::new(Hosts::new(address, bound));
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Thread)?;
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener).map_err(refused)?
        };
        let (running, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("openmetrics".to_string())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serve(listener, latest, hosts) => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(Error::Thread)?;
        Ok(Endpoint { address: bound, running: Some(running), thread: Some(thread) })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // It returns nothing.
            let _ = thread.join();
        }
    }
}

/// Names by which a client may ask for it. Otherwise a web page in a browser on this machine could ask, by a name of its own for this
/// address.
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

    fn is_known(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter().map(HeaderValue::to_str);
        let (Some(Ok(host)), None) = (hosts.next(), hosts.next()) else { return false };
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

async fn serve(listener: TcpListener, latest: Arc<Latest>, hosts: Arc<Hosts>) {
    let mut clients: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        clients.retain(|client| !client.is_finished());
        if clients.len() >= CLIENTS_MAX
            && let Some(oldest) = clients.pop_front()
        {
            oldest.abort();
        }
        let (latest, hosts) = (latest.clone(), hosts.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = answer(&request, &latest, &hosts);
            async { Ok::<_, Infallible>(answer) }
        });
        let connection = http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(REQUEST_BYTES_MAX)
            // The bound below holds for the whole connection.
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(stream), service);
        let client = tokio::spawn(async {
            // A client that goes away in mid-answer is its own affair.
            let _ = tokio::time::timeout(CLIENT_TIME_MAX, connection).await;
        });
        clients.push_back(client.abort_handle());
    }
}

fn answer<B>(request: &Request<B>, latest: &Latest, hosts: &Hosts) -> Response<String> {
    const TEXT: &str = "text/plain";
    let (status, kind, body) = match (request.method(), request.uri().path()) {
        _ if !hosts.is_known(request.headers()) => (
            StatusCode::FORBIDDEN,
            TEXT,
            "ask by this machine's address or name, or name another one with --openmetrics NAME:PORT\n"
                .to_string(),
        ),
        (&Method::GET | &Method::HEAD, "/metrics") => (
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            openmetrics::text(&latest.all()),
        ),
        (&Method::GET | &Method::HEAD, _) => {
            (StatusCode::NOT_FOUND, TEXT, "there is /metrics here\n".to_string())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, TEXT, "ask with GET\n".to_string()),
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;

    fn ask(endpoint: &Endpoint, request: &str) -> String {
        let mut client = TcpStream::connect(endpoint.address).unwrap();
        client.set_read_timeout(Some(CLIENT_TIME_MAX)).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer);
        answer
    }

    /// Whether it is closed within this time. Silence is not that.
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
        // The oldest were closed at once, for newer ones; the others when their time was over.
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
    fn what_is_asked_has_a_bound_and_no_request_is_answered_twice() {
        let endpoint = Endpoint::start("127.0.0.1:0", Arc::default()).unwrap();
        let asked = |method: &str, path: &str, more: &str| {
            let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
            let answer = ask(&endpoint, &request);
            answer.split(' ').nth(1).unwrap_or("none").to_string()
        };
        for (method, path, status) in [
            ("GET", "/metrics?since=1", "200"),
            ("HEAD", "/metrics", "200"),
            ("GET", "/", "404"),
            ("POST", "/metrics", "405"),
        ] {
            assert_eq!(asked(method, path, ""), status, "{method} {path}");
        }
        let long = format!("X: {}\r\n", "a".repeat(REQUEST_BYTES_MAX));
        assert_eq!(asked("GET", "/metrics", &long), "431");
        let begin = Instant::now();
        let twice = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(2);
        assert_eq!(ask(&endpoint, &twice).matches("HTTP/1.1 200").count(), 1);
        // A client that sends a byte now and then is left, too.
        let mut slow = TcpStream::connect(endpoint.address).unwrap();
        while slow.write_all(b"G").is_ok() && begin.elapsed() < 3 * CLIENT_TIME_MAX {
            std::thread::sleep(Duration::from_millis(200));
        }
        assert!(begin.elapsed() < 2 * CLIENT_TIME_MAX, "{:?}", begin.elapsed());
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
        let is_known = |host| any.is_known(&HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]));
        assert!(is_known("10.0.0.1:9104") && is_known("db1.example") && is_known("[fe80::1]:9104"));
        assert!(!is_known("db1.evil.example"));
    }
}

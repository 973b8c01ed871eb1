//! What Apache and the kernel report of the sample application while it is loaded.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;

const INTERVAL: Duration = Duration::from_millis(500);
/// A worker has to be free for the status, so this is longer than the usual time that connections are kept open.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: u64 = 1 << 20;
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// States in /proc/net/tcp.
const ESTABLISHED: &str = "01";
const TIME_WAIT: &str = "06";
/// The inode of a connection that no process has accepted.
const NO_INODE: &str = "0";

/// Connections of the application's port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Connections {
    /// A process of Apache has accepted them.
    held: f64,
    /// No process has.
    waiting: f64,
    /// They have ended, and hold the port of their client for a while.
    time_wait: f64,
}

/// Apache's workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Workers {
    /// They work on a request.
    busy: f64,
    /// They wait for the next request of a connection.
    kept: f64,
}

/// What was read of a level; `None` where nothing was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LevelMeans {
    /// In the mean.
    pub(super) busy: Option<f64>,
    pub(super) kept: Option<f64>,
    pub(super) held: Option<f64>,
    pub(super) waiting: Option<f64>,
    /// The most at one time.
    pub(super) time_wait: Option<f64>,
}

/// All readings of a start.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    /// What Apache calls itself; empty where it did not answer.
    pub(super) version: String,
    /// Each with its time. Apache's own may be missing for as long as no worker is free.
    workers: Vec<(i64, Workers)>,
    connections: Vec<(i64, Connections)>,
}

impl Samples {
    /// Returns what was read within a level's window.
    pub(super) fn within(&self, begin_ns: i64, end_ns: i64) -> LevelMeans {
        let is_within = |at_ns: i64| (begin_ns..end_ns).contains(&at_ns);
        let of_workers = |of: fn(&Workers) -> f64| -> Vec<f64> {
            self.workers
                .iter()
                .filter(|(at_ns, _)| is_within(*at_ns))
                .map(|(_, workers)| of(workers))
                .collect()
        };
        let of_connections = |of: fn(&Connections) -> f64| -> Vec<f64> {
            let within = self.connections.iter().filter(|(at_ns, _)| is_within(*at_ns));
            within.map(|(_, connections)| of(connections)).collect()
        };
        LevelMeans {
            busy: mean(&of_workers(|workers| workers.busy)),
            kept: mean(&of_workers(|workers| workers.kept)),
            held: mean(&of_connections(|connections| connections.held)),
            waiting: mean(&of_connections(|connections| connections.waiting)),
            time_wait: of_connections(|connections| connections.time_wait).into_iter().reduce(f64::max),
        }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// What a thread of the sampler returns.
type Readings<T> = JoinHandle<Vec<(i64, T)>>;

/// Reads until it is ended or dropped: the connections all the time, and Apache's status as often as a worker is free for that.
pub(super) struct Sampler {
    end: EndAtDrop,
    statuses: Readings<(Option<Workers>, Option<String>)>,
    connections: Readings<Connections>,
}

impl Sampler {
    /// Begins to read. `url`: the application's home page on loopback.
    ///
    /// # Errors
    /// The address has no port.
    pub(super) fn start(url: &str) -> Result<Sampler, Error> {
        let port = url.trim_end_matches('/').rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        let port: u16 = port.ok_or_else(|| Error::Failed(format!("{url} has no port")))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let of_status = move || {
            let status = status(port)?;
            Some((workers(&status), version(&status)))
        };
        Ok(Sampler {
            statuses: read_until(is_over.clone(), of_status),
            connections: read_until(is_over.clone(), move || connections(port)),
            end: EndAtDrop(is_over),
        })
    }

    /// Ends the readings, and returns them.
    pub(super) fn end(self) -> Samples {
        drop(self.end);
        let statuses = self.statuses.join().unwrap_or_default();
        Samples {
            version: statuses.iter().find_map(|(_, (_, version))| version.clone()).unwrap_or_default(),
            workers: statuses
                .iter()
                .filter_map(|(at_ns, (workers, _))| Some((*at_ns, (*workers)?)))
                .collect(),
            connections: self.connections.join().unwrap_or_default(),
        }
    }
}

/// Ends the threads that read, also where nobody asks for what they have read.
struct EndAtDrop(Arc<AtomicBool>);

impl Drop for EndAtDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Reads again and again in a thread of its own; each reading with the time at which it began.
fn read_until<T: Send + 'static>(
    is_over: Arc<AtomicBool>,
    read: impl Fn() -> Option<T> + Send + 'static,
) -> Readings<T> {
    std::thread::spawn(move || {
        let mut readings = Vec::new();
        while !is_over.load(Ordering::SeqCst) {
            let (at_ns, next) = (whyso_clock::monotonic_ns(), Instant::now() + INTERVAL);
            readings.extend(read().map(|reading| (at_ns, reading)));
            while Instant::now() < next && !is_over.load(Ordering::SeqCst) {
                std::thread::sleep(CHECK_INTERVAL);
            }
        }
        readings
    })
}

/// Apache's status as text; `None` where it did not answer in time.
fn status(port: u16) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, ANSWERS_WITHIN).ok()?;
    stream.set_read_timeout(Some(ANSWERS_WITHIN)).ok()?;
    stream.set_write_timeout(Some(ANSWERS_WITHIN)).ok()?;
    stream.write_all(b"GET /server-status?auto HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).into_owned())
}

fn line<'a>(status: &'a str, begin: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(begin)).map(str::trim)
}

fn version(status: &str) -> Option<String> {
    line(status, "ServerVersion:").map(str::to_string)
}

fn workers(status: &str) -> Option<Workers> {
    let scoreboard = line(status, "Scoreboard:")?;
    let count = |states: &str| scoreboard.chars().filter(|state| states.contains(*state)).count() as f64;
    // Reading, sending, looking up a name, closing, logging; one of them answers this.
    Some(Workers { busy: (count("RWDCL") - 1.0).max(0.0), kept: count("K") })
}

/// The connections of this port on loopback, by the kernel's own table.
fn connections(port: u16) -> Option<Connections> {
    std::fs::read_to_string("/proc/net/tcp").ok().map(|table| count_connections(&table, port))
}

fn count_connections(table: &str, port: u16) -> Connections {
    let end = format!(":{port:04X}");
    let mut counts = Connections::default();
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, remote, state, _, _, _, _, _, inode, ..] = fields[..] else { continue };
        match state {
            TIME_WAIT if local.ends_with(&end) || remote.ends_with(&end) => counts.time_wait += 1.0,
            ESTABLISHED if local.ends_with(&end) && inode == NO_INODE => counts.waiting += 1.0,
            ESTABLISHED if local.ends_with(&end) => counts.held += 1.0,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_counted_without_the_one_that_answers() {
        let status = "HTTP/1.1 200 OK\r\n\r\nServerVersion: Apache/2.4.66 (Debian)\nScoreboard: WKK_R.W...\n";
        assert_eq!(workers(status), Some(Workers { busy: 2.0, kept: 2.0 }));
        assert_eq!(version(status).as_deref(), Some("Apache/2.4.66 (Debian)"));
        assert_eq!(workers("HTTP/1.1 503 Service Unavailable\r\n"), None);
    }

    #[test]
    fn connections_are_those_of_the_application() {
        let line = |local: &str, remote: &str, state: &str, inode: u32| {
            format!(
                "   0: 0100007F:{local} 0100007F:{remote} {state} 0:0 00:0 0 0 0 {inode} 1 f 20 4 30 10 -1\n"
            )
        };
        let table = [
            "  sl  local_address rem_address   st\n".to_string(),
            line("1F90", "C001", "06", 0),
            line("C002", "1F90", "06", 0),
            line("1F90", "C003", "01", 77),
            line("1F90", "C004", "01", 78),
            line("1F90", "C005", "01", 0),
            line("C003", "1F90", "01", 79),
            line("0050", "C006", "06", 0),
        ];
        let counts = count_connections(&table.concat(), 8080);
        assert_eq!(counts, Connections { held: 2.0, waiting: 1.0, time_wait: 2.0 });
    }

    #[test]
    fn a_level_has_what_was_read_in_its_window() {
        let of_workers = |at_ns, busy| (at_ns, Workers { busy, kept: 1.0 });
        let of_ports = |at_ns, time_wait| (at_ns, Connections { time_wait, ..Connections::default() });
        let samples = Samples {
            version: String::new(),
            workers: vec![of_workers(1, 9.0), of_workers(10, 2.0), of_workers(19, 4.0), of_workers(20, 9.0)],
            connections: vec![of_ports(1, 90.0), of_ports(10, 5.0), of_ports(19, 3.0), of_ports(20, 90.0)],
        };
        let means = samples.within(10, 20);
        assert_eq!((means.busy, means.kept, means.time_wait), (Some(3.0), Some(1.0), Some(5.0)));
        assert_eq!(Samples::default().within(0, 9), LevelMeans::default());
    }
}

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
/// The state TIME_WAIT in /proc/net/tcp.
const TIME_WAIT: &str = "06";

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sample {
    at_ns: i64,
    workers: Option<Workers>,
    time_wait: Option<f64>,
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
    /// The most at one time.
    pub(super) time_wait: Option<f64>,
}

/// All readings of a start.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    /// What Apache calls itself; empty where it did not answer.
    pub(super) version: String,
    each: Vec<Sample>,
}

impl Samples {
    /// Returns what was read within a level's window.
    pub(super) fn within(&self, begin_ns: i64, end_ns: i64) -> LevelMeans {
        let each: Vec<&Sample> =
            self.each.iter().filter(|sample| (begin_ns..end_ns).contains(&sample.at_ns)).collect();
        let mean = |of: fn(&Workers) -> f64| {
            let values: Vec<f64> = each.iter().filter_map(|sample| sample.workers.as_ref().map(of)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        LevelMeans {
            busy: mean(|workers| workers.busy),
            kept: mean(|workers| workers.kept),
            time_wait: each.iter().filter_map(|sample| sample.time_wait).reduce(f64::max),
        }
    }
}

/// Reads until it is ended or dropped.
pub(super) struct Sampler {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Samples>>,
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
        let of_thread = is_over.clone();
        let thread = std::thread::spawn(move || {
            let mut samples = Samples::default();
            while !of_thread.load(Ordering::SeqCst) {
                let next = Instant::now() + INTERVAL;
                let time_wait = ports_in_time_wait(port);
                let status = status(port);
                samples.each.push(Sample {
                    at_ns: whyso_clock::monotonic_ns(),
                    workers: status.as_deref().and_then(workers),
                    time_wait,
                });
                if samples.version.is_empty() {
                    samples.version = status.as_deref().and_then(version).unwrap_or_default();
                }
                while Instant::now() < next && !of_thread.load(Ordering::SeqCst) {
                    std::thread::sleep(CHECK_INTERVAL);
                }
            }
            samples
        });
        Ok(Sampler { is_over, thread: Some(thread) })
    }

    /// Ends the readings, and returns them.
    pub(super) fn end(mut self) -> Samples {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
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

/// Connections of this port that have ended, and hold the port of their client for a while.
fn ports_in_time_wait(port: u16) -> Option<f64> {
    // Where IPv6 is used, the application is not: it listens on 127.0.0.1.
    std::fs::read_to_string("/proc/net/tcp").ok().map(|table| count_time_wait(&table, port))
}

fn count_time_wait(table: &str, port: u16) -> f64 {
    let end = format!(":{port:04X}");
    let is_of_port = |line: &&str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        fields.next() == Some(TIME_WAIT) && (local.ends_with(&end) || remote.ends_with(&end))
    };
    table.lines().skip(1).filter(is_of_port).count() as f64
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
    fn ports_in_time_wait_are_those_of_the_application() {
        let table = "  sl  local_address rem_address   st\n\
             0: 0100007F:1F90 0100007F:C001 06 0\n\
             1: 0100007F:C002 0100007F:1F90 06 0\n\
             2: 0100007F:1F90 0100007F:C003 01 0\n\
             3: 0100007F:0050 0100007F:C004 06 0\n";
        assert_eq!(count_time_wait(table, 8080), 2.0);
    }

    #[test]
    fn a_level_has_what_was_read_in_its_window() {
        let sample = |at_ns, busy, time_wait| Sample {
            at_ns,
            workers: Some(Workers { busy, kept: 1.0 }),
            time_wait: Some(time_wait),
        };
        let each =
            vec![sample(1, 9.0, 90.0), sample(10, 2.0, 5.0), sample(19, 4.0, 3.0), sample(20, 9.0, 90.0)];
        let seen = Samples { version: String::new(), each }.within(10, 20);
        assert_eq!(seen, LevelMeans { busy: Some(3.0), kept: Some(1.0), time_wait: Some(5.0) });
        assert_eq!(Samples::default().within(0, 9), LevelMeans::default());
    }
}

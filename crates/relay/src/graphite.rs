//! Graphite's plain protocol: one line `PATH VALUE SECONDS` per sample, over TCP.

use std::fmt::Write as _;
use std::io::Write;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whyso_clock::{monotonic_ns, wall_ns};
use whyso_record::data::{LoadInterval, Reading, SeriesKey};

use crate::Error;
use crate::latest::{Latest, LoadSums, load_key};

/// Readings that wait; some minutes of them at one second.
const QUEUE_MAX: usize = 4_096;
const CONNECT_TIME_MAX: Duration = Duration::from_secs(1);
const WRITE_TIME_MAX: Duration = Duration::from_secs(2);
const FIRST_DELAY: Duration = Duration::from_millis(250);
const DELAY_MAX: Duration = Duration::from_secs(15);
/// At the end the queue may still be sent for this long.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(1);
const WAIT_STEP: Duration = Duration::from_millis(50);

enum Message {
    Reading(Reading),
    Load { end_ns: i64, statement: String, sums: LoadSums },
}

pub(crate) struct Graphite {
    receiver: String,
    queue: SyncSender<Message>,
    shared: Arc<SenderState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct SenderState {
    stop: AtomicBool,
    /// Samples that did not arrive, as far as is known here.
    dropped: AtomicU64,
}

impl Graphite {
    pub(crate) fn start(receiver: &str, prefix: &str, latest: Arc<Latest>) -> Result<Graphite, Error> {
        let port = receiver.rsplit_once(':').and_then(|(host, port)| (!host.is_empty()).then_some(port));
        if port.and_then(|port| port.parse::<u16>().ok()).is_none_or(|port| port == 0) {
            return Err(Error::Receiver(receiver.to_string()));
        }
        let allowed = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
        if prefix.is_empty() || !prefix.chars().all(allowed) {
            return Err(Error::Prefix(prefix.to_string()));
        }
        let (queue, waiting) = sync_channel(QUEUE_MAX);
        let shared = Arc::new(SenderState::default());
        let sender = Sender {
            receiver: receiver.to_string(),
            prefix: prefix.to_string(),
            latest,
            shared: shared.clone(),
            stream: None,
            delay: FIRST_DELAY,
            next_try: Instant::now(),
        };
        let thread = std::thread::Builder::new()
            .name("graphite".to_string())
            .spawn(move || sender.run(&waiting))
            .map_err(Error::Thread)?;
        Ok(Graphite { receiver: receiver.to_string(), queue, shared, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn reading(&self, reading: &Reading) {
        if !reading.values.is_empty() {
            self.give(Message::Reading(reading.clone()), reading.values.len());
        }
    }

    pub(crate) fn load(&self, interval: &LoadInterval, sums: LoadSums) {
        let statement = interval.statement.clone();
        let samples = sums.values().len();
        self.give(Message::Load { end_ns: interval.end_ns, statement, sums }, samples);
    }

    fn give(&self, message: Message, samples: usize) {
        if self.queue.try_send(message).is_err() {
            self.shared.dropped.fetch_add(samples as u64, Ordering::Relaxed);
        }
    }

    /// Sends what waits, for a second at most. Returns what did not arrive.
    pub(crate) fn finish(&self) -> Option<String> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let thread = match self.thread.lock() {
            Ok(mut thread) => thread.take(),
            Err(poisoned) => poisoned.into_inner().take(),
        };
        if let Some(thread) = thread {
            let until = Instant::now() + GOODBYE_TIME_MAX + WAIT_STEP * 4;
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        (dropped > 0).then(|| {
            format!(
                "Graphite at {}: {dropped} samples were dropped, since it was away or too slow",
                self.receiver
            )
        })
    }
}

struct Sender {
    receiver: String,
    prefix: String,
    latest: Arc<Latest>,
    shared: Arc<SenderState>,
    stream: Option<TcpStream>,
    delay: Duration,
    next_try: Instant,
}

impl Sender {
    fn run(mut self, waiting: &Receiver<Message>) {
        let mut ends_at = None;
        loop {
            if ends_at.is_none() && self.shared.stop.load(Ordering::Relaxed) {
                ends_at = Some(Instant::now() + GOODBYE_TIME_MAX);
                self.next_try = Instant::now();
            }
            let is_over = ends_at.is_some_and(|at| Instant::now() >= at);
            if is_over || (ends_at.is_some() && !self.is_connected()) {
                break;
            }
            if !self.is_connected() {
                std::thread::sleep(WAIT_STEP);
                continue;
            }
            match waiting.recv_timeout(WAIT_STEP) {
                Ok(message) => self.send(&message),
                Err(RecvTimeoutError::Timeout) if ends_at.is_some() => break,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        for message in waiting.try_iter() {
            self.drop_samples(samples(&message));
        }
    }

    /// Connects where it is time to try again.
    fn is_connected(&mut self) -> bool {
        if self.stream.is_some() {
            return true;
        }
        if Instant::now() < self.next_try {
            return false;
        }
        self.stream = connect(&self.receiver).ok();
        if self.stream.is_none() {
            self.back_off();
        }
        self.stream.is_some()
    }

    fn back_off(&mut self) {
        self.next_try = Instant::now() + self.delay;
        self.delay = (self.delay * 2).min(DELAY_MAX);
    }

    fn send(&mut self, message: &Message) {
        let text = self.lines(message);
        let Some(stream) = &mut self.stream else { return };
        match stream.write_all(text.as_bytes()) {
            Ok(()) => self.delay = FIRST_DELAY,
            Err(_) => {
                self.stream = None;
                self.drop_samples(samples(message));
                self.back_off();
            }
        }
    }

    fn drop_samples(&self, count: u64) {
        self.shared.dropped.fetch_add(count, Ordering::Relaxed);
    }

    fn lines(&self, message: &Message) -> String {
        let mut text = String::new();
        match message {
            Message::Reading(reading) => {
                let seconds = wall_seconds(reading.end_ns);
                for (id, value) in &reading.values {
                    let Some(key) = self.latest.key(*id) else { continue };
                    let value = value.as_f64();
                    if value.is_finite() {
                        let _ = writeln!(text, "{} {value} {seconds}", path(&self.prefix, &key));
                    }
                }
            }
            Message::Load { end_ns, statement, sums } => {
                let seconds = wall_seconds(*end_ns);
                for (metric, kind, unit, value) in sums.values() {
                    let key = load_key(statement, metric, kind, unit);
                    let _ = writeln!(text, "{} {value} {seconds}", path(&self.prefix, &key));
                }
            }
        }
        text
    }
}

fn samples(message: &Message) -> u64 {
    match message {
        Message::Reading(reading) => reading.values.len() as u64,
        Message::Load { sums, .. } => sums.values().len() as u64,
    }
}

fn connect(receiver: &str) -> std::io::Result<TcpStream> {
    let mut failure = std::io::Error::other("the name has no address");
    for address in receiver.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIME_MAX) {
            Ok(stream) => {
                stream.set_write_timeout(Some(WRITE_TIME_MAX))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// PREFIX.HOST.SOURCE.METRIC or PREFIX.HOST.SOURCE.METRIC.INSTANCE.
fn path(prefix: &str, key: &SeriesKey) -> String {
    let mut path = prefix.to_string();
    for part in [&key.host, &key.source, &key.metric, &key.instance] {
        if part.is_empty() {
            continue;
        }
        path.push('.');
        path.extend(part.chars().map(|char| {
            let is_allowed = char.is_ascii_alphanumeric() || char == '-' || char == '_';
            if is_allowed { char } else { '_' }
        }));
    }
    path
}

fn wall_seconds(t_ns: i64) -> i64 {
    (wall_ns() - (monotonic_ns() - t_ns)) / 1_000_000_000
}

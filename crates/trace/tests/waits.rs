//! What a thread waits for where one system call has several reasons: a lock, work to come, or a client that does not read.

// Runs alone: it judges times.

mod support;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use support::{Between, Subject, alone, tracer};
use whyso_model::{Role, State};
use whyso_trace::{Reading, Tracer};

const COM_QUERY: &[u8] = b"\x09\0\0\0\x03SELECT 1";
const COM_QUIT: &[u8] = &[1, 0, 0, 0, 1];
const GREETING: usize = 8;

struct Server {
    _subject: Subject,
    tracer: Tracer,
    client: UnixStream,
}

impl Server {
    fn start(folder: &Path, options: &[&str]) -> Option<Server> {
        let path = folder.join("s");
        let unix = format!("unix={}", path.display());
        let mut subject = Subject::start(&[&["serve", unix.as_str()], options].concat(), folder);
        assert_eq!(subject.line()[0], "ready");
        let tracer = tracer(&[subject.pid()])?;
        let mut client = UnixStream::connect(path).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client.read_exact(&mut [0; GREETING]).unwrap();
        Some(Server { _subject: subject, tracer, client })
    }

    /// Runs in a thread that the tracer takes for the generator's. Returns what requests were in, by state.
    fn measure(&mut self, work: impl FnOnce(&mut UnixStream) + Send) -> ReadingPair {
        let before = self.tracer.read();
        let client = &mut self.client;
        std::thread::scope(|scope| {
            let load = std::thread::Builder::new().name("load-0".to_string());
            load.spawn_scoped(scope, || work(client)).unwrap().join().unwrap();
        });
        ReadingPair { before, after: self.tracer.read() }
    }
}

struct ReadingPair {
    before: Reading,
    after: Reading,
}

impl ReadingPair {
    fn time_in(&self, state: State) -> Duration {
        let of = |reading: &Reading| reading.server.in_requests[state as usize];
        Duration::from_nanos(of(&self.after) - of(&self.before))
    }

    fn of_connections(&self, state: State) -> Duration {
        let of = |reading: &Reading| {
            let states = reading.roles.get(&Role::Connection).map(|(_, states)| states[state as usize]);
            states.unwrap_or_default()
        };
        Duration::from_nanos(of(&self.after).saturating_sub(of(&self.before)))
    }
}

#[test]
fn a_server_that_polls_until_its_client_reads_is_sending() {
    const ANSWER: usize = 4_000_000;
    const READ: usize = 100_000;
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let bytes = format!("bytes={ANSWER}");
    let Some(mut server) = Server::start(folder.path(), &[&bytes, "polls"]) else { return };
    let counted = server.measure(|client| {
        client.write_all(COM_QUERY).unwrap();
        let mut part = vec![0; READ];
        for _ in 0..ANSWER / READ {
            std::thread::sleep(Duration::from_millis(5));
            client.read_exact(&mut part).unwrap();
        }
        client.write_all(COM_QUIT).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    });
    let sending = counted.time_in(State::NetSend);
    assert!(sending > Duration::from_millis(100), "{sending:?}");
    assert_eq!(counted.time_in(State::NetReceive), Duration::ZERO);
}

#[test]
fn a_wait_on_a_condition_is_a_lock_within_a_request_and_idle_once_the_client_has_gone() {
    const REQUESTS: u32 = 20;
    const WAIT: Duration = Duration::from_millis(5);
    const IDLE: Duration = Duration::from_millis(300);
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut server) = Server::start(folder.path(), &["wait=5000", "stays"]) else { return };
    let counted = server.measure(|client| {
        for _ in 0..REQUESTS {
            client.write_all(COM_QUERY).unwrap();
            client.read_exact(&mut [0; 64]).unwrap();
        }
    });
    let waited = counted.time_in(State::Lock);
    assert!(waited > (REQUESTS - 1) * WAIT, "{waited:?}");
    assert_eq!(counted.of_connections(State::Idle), Duration::ZERO);
    let began = Instant::now();
    let counted = server.measure(|client| {
        client.write_all(COM_QUIT).unwrap();
        std::thread::sleep(IDLE);
    });
    let (idle, locked) = (counted.of_connections(State::Idle), counted.of_connections(State::Lock));
    assert!(idle > IDLE / 2 && idle < began.elapsed(), "{idle:?}");
    assert!(locked < IDLE / 10, "{locked:?}");
}

#[test]
fn a_thread_without_clients_that_sleeps_until_it_is_woken_is_idle_from_its_first_sleep_on() {
    const SLEEP: Duration = Duration::from_millis(300);
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut subject = Subject::start(&["sleeper"], folder.path());
    let Some(mut tracer) = tracer(&[subject.pid()]) else { return };
    subject.go(1);
    let line = subject.line();
    let tid = line[1].parse().unwrap();
    let born = tracer.read();
    for _ in 0..2 {
        // In the middle of its sleep, and after it was woken.
        std::thread::sleep(SLEEP / 2);
        assert_eq!(Between::of(&born, &tracer.read(), tid).ns(State::Lock), 0);
        std::thread::sleep(SLEEP / 2);
        subject.go(1);
    }
    std::thread::sleep(SLEEP);
    let whole = Between::of(&born, &tracer.read(), tid);
    assert_eq!(whole.ns(State::Lock), 0, "{whole:?}");
    let idle = Duration::from_nanos(whole.ns(State::Idle));
    assert!(idle > SLEEP * 5 / 2, "{whole:?}");
}

//! Requests as the tracer counts them agree with what client and server measured themselves. This holds for every kind of socket, for
//! any number of parts of a request or an answer, and for every kind of server.

// Runs alone: it judges times.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use support::{Subject, agree, alone, tracer};
use whyso_model::State;
use whyso_trace::{Reading, Tracer};

const REQUESTS: usize = 300;
const COM_QUIT: &[u8] = &[1, 0, 0, 0, 1];
const COM_STMT_CLOSE: &[u8] = &[5, 0, 0, 0, 0x19, 1, 0, 0, 0];
const COM_QUERY: &[u8] = b"\x09\0\0\0\x03SELECT 1";
const ANSWER: usize = 64;
const GREETING: usize = 8;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

trait Socket: Read + Write + Send {}
impl<T: Read + Write + Send> Socket for T {}

/// A server under the tracer, and how to connect to it.
struct Peer {
    subject: Subject,
    tracer: Tracer,
    address: Address,
}

enum Address {
    Unix(std::path::PathBuf),
    Port(u16),
}

impl Peer {
    fn start(folder: &Path, link: Link, options: &[&str]) -> Option<Peer> {
        let socket = folder.join("s");
        let unix = format!("unix={}", socket.display());
        let mut arguments = vec!["serve", if link == Link::Unix { &unix } else { "tcp" }];
        arguments.extend_from_slice(options);
        let mut subject = Subject::start(&arguments, folder);
        let address = match link {
            Link::Unix => Address::Unix(socket),
            Link::Tcp => Address::Port(subject.line()[1].parse().unwrap()),
        };
        assert_eq!(subject.line()[0], "ready");
        let tracer = tracer(&[subject.pid()])?;
        Some(Peer { subject, tracer, address })
    }
}

impl Address {
    fn connect(&self) -> Box<dyn Socket> {
        let mut socket = self.open();
        socket.read_exact(&mut [0; GREETING]).unwrap();
        socket
    }

    fn open(&self) -> Box<dyn Socket> {
        match self {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).unwrap();
                stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
                Box::new(stream)
            }
            Address::Port(port) => {
                let stream = TcpStream::connect(("127.0.0.1", *port)).unwrap();
                stream.set_nodelay(true).unwrap();
                stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
                Box::new(stream)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Unix,
    Tcp,
}

const LINKS: [Link; 2] = [Link::Unix, Link::Tcp];

/// When a request was sent and answered, as the client and the server saw it.
#[derive(Clone, Copy, Debug)]
struct RequestTimes {
    sending_ns: u64,
    picked_ns: u64,
    replying_ns: u64,
    received_ns: u64,
}

fn exchange(socket: &mut dyn Socket, answer_bytes: usize) -> RequestTimes {
    let sending_ns = now_ns();
    socket.write_all(COM_QUERY).unwrap();
    let mut answer = vec![0; answer_bytes];
    socket.read_exact(&mut answer).unwrap();
    let received_ns = now_ns();
    let number = |at: usize| u64::from_le_bytes(answer[at..at + 8].try_into().unwrap());
    RequestTimes {
        sending_ns,
        picked_ns: number(answer_bytes - 16),
        replying_ns: number(answer_bytes - 8),
        received_ns,
    }
}

fn now_ns() -> u64 {
    whyso_clock::monotonic_ns() as u64
}

/// Allows this process as many files and sockets as its hard limit does.
fn raise_files_max() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is written and read, and lives through the calls.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit), 0);
        limit.rlim_cur = limit.rlim_max;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
}

/// Runs in a thread that the tracer takes for the generator's.
fn as_load<T: Send>(number: usize, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let name = format!("load-{number}");
        std::thread::Builder::new().name(name).spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

/// What the tracer counted between two readings.
#[derive(Debug)]
struct RequestCounts {
    requests: u64,
    request_ns: u64,
    transit_ns: u64,
    in_requests: [u64; whyso_model::STATES],
    answers: u64,
    cycle_ns: u64,
    wire_ns: u64,
    unseen: u64,
    others: u64,
}

impl RequestCounts {
    fn of(before: &Reading, after: &Reading) -> RequestCounts {
        let (s, t, c, d) = (&before.server, &after.server, &before.client, &after.client);
        assert_eq!(after.lost, before.lost);
        let mut in_requests = t.in_requests;
        for (state, before) in in_requests.iter_mut().zip(s.in_requests) {
            *state -= before;
        }
        RequestCounts {
            requests: t.requests - s.requests,
            request_ns: t.request_ns - s.request_ns,
            transit_ns: t.transit_ns - s.transit_ns,
            in_requests,
            answers: d.answers - c.answers,
            cycle_ns: (d.held_ns + d.wire_ns + d.delay_ns) - (c.held_ns + c.wire_ns + c.delay_ns),
            wire_ns: d.wire_ns - c.wire_ns,
            unseen: t.unseen - s.unseen,
            others: t.others - s.others,
        }
    }

    fn ns(&self, state: State) -> u64 {
        self.in_requests[state as usize]
    }

    /// What holds whatever is served: all parts add up, on both sides of the wire.
    fn check(&self, requests: usize) {
        self.check_with(requests, 1, 1_000);
    }

    /// The same where answers come in several parts. Over TCP a part may come while the client holds the socket, to receive the part
    /// before it. Such a part waits in the socket's backlog, and arrives in the client's own time. That is some microseconds from the
    /// server's send, or as long as either of them has no CPU meanwhile. The arrival of an answer in one part is one event for both sides.
    fn check_parts(&self, link: Link, requests: usize) {
        self.check_with(requests, 1, if link == Link::Tcp { 8_000 } else { 1_000 });
    }

    /// `apart_ns` is by how much the two sides of the wire may differ, per request.
    fn check_with(&self, requests: usize, unseen_percent: u64, apart_ns: u64) {
        let whole = self.transit_ns + self.request_ns;
        let difference = self.wire_ns.abs_diff(whole);
        assert!(difference <= apart_ns * requests as u64, "wire is not transit and request: {self:?}");
        self.check_counted(requests as u64, unseen_percent, "");
        assert_eq!(self.answers, requests as u64, "{self:?}");
        assert!(
            agree(self.in_requests.iter().sum(), self.request_ns, 0.001, 1000),
            "states do not add up: {self:?}"
        );
    }

    /// Every request once. On a machine whose CPUs are taken by others an arrival may go unseen, which is counted.
    fn check_counted(&self, requests: u64, unseen_percent: u64, what: &str) {
        assert_eq!((self.requests, self.others), (requests, 0), "{what} {self:?}");
        assert!(self.unseen * 100 <= requests * unseen_percent, "{what} {self:?}");
    }
}

fn run(link: Link, options: &[&str], answer_bytes: usize) -> Option<(RequestCounts, Vec<RequestTimes>)> {
    run_many(REQUESTS, link, options, answer_bytes)
}

fn run_many(
    requests: usize,
    link: Link,
    options: &[&str],
    answer_bytes: usize,
) -> Option<(RequestCounts, Vec<RequestTimes>)> {
    let folder = tempfile::tempdir().unwrap();
    let mut peer = Peer::start(folder.path(), link, options)?;
    let before = peer.tracer.read();
    let mut socket = peer.address.connect();
    let exchanges = as_load(0, || {
        let exchanges = (0..requests).map(|_| exchange(&mut *socket, answer_bytes)).collect();
        // An answer counts once something follows it.
        socket.write_all(COM_STMT_CLOSE).unwrap();
        exchanges
    });
    let after = peer.tracer.read();
    Some((RequestCounts::of(&before, &after), exchanges))
}

#[test]
fn a_request_lies_between_the_times_that_client_and_server_saw() {
    let _alone = alone();
    for link in LINKS {
        let Some((counted, exchanges)) = run(link, &["sleep=200", "spin=100"], ANSWER) else { return };
        counted.check(REQUESTS);
        let sum = |of: fn(&RequestTimes) -> u64| exchanges.iter().map(of).sum::<u64>();
        let within = sum(|times| times.replying_ns - times.picked_ns);
        let around = sum(|times| times.received_ns - times.sending_ns);
        assert!((within..around).contains(&counted.request_ns), "{within} to {around}: {counted:?}");
        assert!(counted.transit_ns <= sum(|times| times.picked_ns - times.sending_ns), "{counted:?}");
        let slept = REQUESTS as u64 * 200_000;
        assert!(
            counted.ns(State::Sleep) >= slept && counted.ns(State::Sleep) < within,
            "{slept}: {counted:?}"
        );
        assert!(counted.ns(State::Cpu) < within - slept, "{counted:?}");
        let cycles = exchanges[REQUESTS - 1].received_ns - exchanges[0].sending_ns;
        assert!(agree(counted.cycle_ns, cycles, 0.01, 200_000), "cycles of {cycles}: {counted:?}");
    }
}

/// For each request: the sums before it and after it are read, and compared with both sides' own times.
#[test]
fn sent_picked_replied_and_received_come_in_this_order_in_each_request() {
    let _alone = alone();
    for link in LINKS {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut peer) = Peer::start(folder.path(), link, &["sleep=50"]) else { return };
        let mut socket = peer.address.connect();
        let tracer = &mut peer.tracer;
        let good = as_load(0, || {
            exchange(&mut *socket, ANSWER);
            let mut before = tracer.read();
            let mut good = 0;
            for _ in 0..REQUESTS {
                let exchange_times = exchange(&mut *socket, ANSWER);
                let after = tracer.read();
                let counted = RequestCounts::of(&before, &after);
                before = after;
                good += usize::from(
                    counted.requests == 1
                        && counted.transit_ns > 0
                        && counted.transit_ns <= exchange_times.picked_ns - exchange_times.sending_ns
                        && counted.request_ns >= exchange_times.replying_ns - exchange_times.picked_ns
                        && counted.transit_ns + counted.request_ns
                            <= exchange_times.received_ns - exchange_times.sending_ns,
                );
            }
            good
        });
        assert!(good * 1000 >= REQUESTS * 999, "{link:?}: {good} of {REQUESTS} requests are in order");
    }
}

#[test]
fn an_answer_in_parts_ends_with_its_last() {
    let _alone = alone();
    for link in LINKS {
        let Some((counted, exchanges)) = run(link, &["parts=4", "spin=50"], ANSWER) else { return };
        let within: u64 = exchanges.iter().map(|times| times.replying_ns - times.picked_ns).sum();
        counted.check_parts(link, REQUESTS);
        assert!(counted.request_ns >= within, "{within}: {counted:?}");
    }
}

#[test]
fn an_answer_of_many_segments_is_one() {
    let _alone = alone();
    for link in LINKS {
        let bytes = 300_000;
        let Some((counted, _)) = run(link, &["bytes=300000"], bytes) else { return };
        counted.check_counted(REQUESTS as u64, 1, &format!("{link:?}"));
        assert!(agree(counted.in_requests.iter().sum(), counted.request_ns, 0.001, 1000), "{counted:?}");
    }
}

#[test]
fn a_request_that_is_received_in_two_parts_is_one() {
    let _alone = alone();
    for link in LINKS {
        let Some((counted, _)) = run(link, &["apart", "spin=50"], ANSWER) else { return };
        counted.check(REQUESTS);
    }
}

/// Sometimes the server receives a request before its arrival is traced: once in some thousand times, or once in forty where others use
/// the CPUs. The test sends enough requests to see it.
#[test]
fn a_server_that_does_not_wait_for_requests_has_each_once() {
    let requests = 20_000;
    let _alone = alone();
    for link in LINKS {
        let Some((counted, _)) = run_many(requests, link, &["eager", "spin=20"], ANSWER) else { return };
        counted.check_with(requests, 10, 1_000);
    }
}

#[test]
fn one_thread_that_serves_several_connections_has_each_request_once() {
    const CONNECTIONS: usize = 4;
    let _alone = alone();
    for link in LINKS {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut peer) = Peer::start(folder.path(), link, &["together=4", "spin=100", "sleep=100"])
        else {
            return;
        };
        let before = peer.tracer.read();
        std::thread::scope(|scope| {
            for number in 0..CONNECTIONS {
                let address = &peer.address;
                let requests = move || {
                    let mut socket = address.connect();
                    for _ in 0..REQUESTS {
                        exchange(&mut *socket, ANSWER);
                    }
                    socket.write_all(COM_STMT_CLOSE).unwrap();
                };
                let name = format!("load-{number}");
                std::thread::Builder::new().name(name).spawn_scoped(scope, requests).unwrap();
            }
        });
        let counted = RequestCounts::of(&before, &peer.tracer.read());
        counted.check(REQUESTS * CONNECTIONS);
        assert!(counted.ns(State::NetReceive) == 0, "waiting for requests is in none: {counted:?}");
    }
}

/// The maps for them have room for as many connections as the server may open when the tracer begins.
#[test]
fn requests_and_clients_that_found_no_place_are_counted() {
    const CONNECTIONS: usize = 18_000;
    const ROUNDS: usize = 3;
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let together = format!("together={CONNECTIONS}");
    let Some(mut peer) = Peer::start(folder.path(), Link::Unix, &[&together, "later"]) else { return };
    raise_files_max();
    let before = peer.tracer.read();
    as_load(0, || {
        let mut sockets: Vec<_> = (0..CONNECTIONS).map(|_| peer.address.open()).collect();
        for socket in &mut sockets {
            socket.read_exact(&mut [0; GREETING]).unwrap();
        }
        for _ in 0..ROUNDS {
            for socket in &mut sockets {
                socket.write_all(COM_QUERY).unwrap();
            }
            for socket in &mut sockets {
                socket.read_exact(&mut [0; ANSWER]).unwrap();
            }
        }
    });
    let after = peer.tracer.read();
    let lost = |why| {
        let count = |reading: &Reading| reading.lost.iter().find(|(reason, _)| *reason == why).unwrap().1;
        (count(&after) - count(&before)) as usize
    };
    let counted = (after.server.requests - before.server.requests) as usize;
    let requests_lost = lost("no place for a request");
    assert_eq!(counted + requests_lost, CONNECTIONS * ROUNDS, "{requests_lost} lost");
    // There are 8,192 and 16,384 places.
    assert!(requests_lost >= (CONNECTIONS - 8_192) * ROUNDS, "{requests_lost}");
    assert!(lost("no place for a client") >= CONNECTIONS - 16_384, "{}", lost("no place for a client"));
    assert_eq!(lost("no account"), 0);
}

#[test]
fn commands_that_are_never_answered_are_no_requests() {
    let requests = 100;
    let _alone = alone();
    for link in LINKS {
        for options in [&["sleep=100"][..], &["apart", "sleep=100"]] {
            let folder = tempfile::tempdir().unwrap();
            let Some(mut peer) = Peer::start(folder.path(), link, options) else { return };
            let mut socket = peer.address.connect();
            let before = peer.tracer.read();
            let exchanges = as_load(0, || {
                let mut exchanges = Vec::new();
                for _ in 0..requests {
                    exchanges.push(exchange(&mut *socket, ANSWER));
                    socket.write_all(COM_STMT_CLOSE).unwrap();
                    // The server is back in its receive: the close is not part of the next request's transit.
                    std::thread::sleep(Duration::from_millis(3));
                }
                socket.write_all(COM_QUIT).unwrap();
                std::thread::sleep(Duration::from_millis(20));
                exchanges
            });
            let counted = RequestCounts::of(&before, &peer.tracer.read());
            let what = format!("{link:?} {options:?}: {counted:?}");
            counted.check_counted(requests, 1, &what);
            // A close that counted as the beginning of a request would add the 3 ms that follow it.
            let most: u64 = exchanges.iter().map(|times| times.received_ns - times.sending_ns).sum();
            assert!(counted.request_ns < most, "{most}: {what}");
            assert!(agree(counted.in_requests.iter().sum(), counted.request_ns, 0.001, 1000), "{what}");
            assert!(counted.ns(State::NetReceive) == 0, "{what}");
            drop(peer.subject);
        }
    }
}

#[test]
fn requests_of_this_programs_other_threads_are_not_the_loads() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let Some(mut peer) = Peer::start(folder.path(), Link::Unix, &[]) else { return };
    let mut socket = peer.address.connect();
    let before = peer.tracer.read();
    for _ in 0..10 {
        exchange(&mut *socket, ANSWER);
    }
    let counted = RequestCounts::of(&before, &peer.tracer.read());
    assert_eq!((counted.requests, counted.others), (0, 10), "{counted:?}");
}

//! Programs that ask a server behind them: what a request waited for it agrees with what the program measured itself.

// Runs alone: it judges times.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use support::{Subject, agree, alone};
use whyso_model::State;
use whyso_trace::{Error, Program, Reading, ServerSums, TraceSpec, Tracer};

const REQUESTS: usize = 150;
const ANSWER: usize = 32;
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// What the server behind sleeps for each request.
const SLEEP_US: u64 = 3_000;
const SPIN_US: u64 = 1_000;
const THINK: Duration = Duration::from_millis(2);

fn tracer(pid: u32) -> Option<Tracer> {
    let program = Program { pids: vec![pid], ..Program::default() };
    match Tracer::start(&TraceSpec { program: Some(program), ..TraceSpec::default() }) {
        Ok(tracer) => Some(tracer),
        Err(why @ (Error::NotAllowed | Error::NoBtf)) => {
            whyso_testing::tracer_not_tested(why);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// What the program measured itself.
#[derive(Clone, Copy, Debug, Default)]
struct Truth {
    request_ns: u64,
    upstream_ns: u64,
}

fn client(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(ANSWER_TIMEOUT)).unwrap();
    stream
}

fn ask(client: &mut TcpStream, requests: usize) -> Truth {
    let mut truth = Truth::default();
    let mut answer = [0; ANSWER];
    for _ in 0..requests {
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        client.read_exact(&mut answer).unwrap();
        let number = |at: usize| u64::from_le_bytes(answer[at..at + 8].try_into().unwrap());
        truth.request_ns += number(8) - number(0);
        truth.upstream_ns += number(16);
        std::thread::sleep(THINK);
    }
    truth
}

/// All at the same time, from threads that the tracer takes for a generator's.
fn ask_all(clients: &mut [TcpStream], requests: usize) -> Truth {
    std::thread::scope(|scope| {
        let begin = |(number, client): (usize, _)| {
            let named = std::thread::Builder::new().name(format!("load-{number}"));
            named.spawn_scoped(scope, move || ask(client, requests)).unwrap()
        };
        let asking: Vec<_> = clients.iter_mut().enumerate().map(begin).collect();
        let truths = asking.into_iter().map(|asking| asking.join().unwrap());
        truths.fold(Truth::default(), |sum, truth| Truth {
            request_ns: sum.request_ns + truth.request_ns,
            upstream_ns: sum.upstream_ns + truth.upstream_ns,
        })
    })
}

struct TracedRequests {
    truth: Truth,
    before: Reading,
    after: Reading,
    upstream: String,
}

impl TracedRequests {
    fn sums(&self) -> ServerSums {
        let mut sums = self.after.server;
        sums.requests -= self.before.server.requests;
        sums.request_ns -= self.before.server.request_ns;
        sums.transit_ns -= self.before.server.transit_ns;
        sums.unseen -= self.before.server.unseen;
        sums.interleaved -= self.before.server.interleaved;
        for (sum, before) in sums.in_requests.iter_mut().zip(self.before.server.in_requests) {
            *sum -= before;
        }
        sums
    }
}

/// `clients` ask `REQUESTS` each, at the same time.
fn traced(folder: &Path, unix: bool, options: &[&str], clients: usize) -> Option<TracedRequests> {
    let path = folder.join("back.sock").display().to_string();
    let sleep = format!("sleep={SLEEP_US}");
    let listen = if unix { format!("unix={path}") } else { "tcp".to_string() };
    let mut back = Subject::start(&["serve", &listen, &sleep], folder);
    let port = if unix { String::new() } else { back.line()[1].clone() };
    assert_eq!(back.line()[0], "ready");
    let (place, upstream) = match unix {
        true => (path.clone(), format!("unix {path}")),
        false => (port.clone(), format!("tcp {port}")),
    };
    let (place, spin) = (format!("upstream={place}"), format!("spin={SPIN_US}"));
    let together = format!("together={clients}");
    let mut arguments = vec!["web", &place, &spin];
    arguments.extend(options.iter().map(|option| if *option == "together" { &together } else { *option }));
    let mut web = Subject::start(&arguments, folder);
    let port = web.line()[1].parse().unwrap();
    assert_eq!(web.line()[0], "ready");
    let mut tracer = tracer(web.pid())?;
    let mut clients: Vec<TcpStream> = (0..clients).map(|_| client(port)).collect();
    // The first request of a client: its thread begins, and connects to the server behind.
    ask_all(&mut clients, 1);
    let before = tracer.read();
    let truth = ask_all(&mut clients, REQUESTS);
    let after = tracer.read();
    Some(TracedRequests { truth, before, after, upstream })
}

fn questions_to(reading: &Reading, address: &str) -> (u64, u64) {
    let found = reading.upstreams.iter().find(|upstream| upstream.address == address);
    found.map_or((0, 0), |upstream| (upstream.asked, upstream.wait_ns))
}

fn late_ns(reading: &Reading, address: &str) -> u64 {
    let found = reading.upstreams.iter().find(|upstream| upstream.address == address);
    found.map_or(0, |upstream| upstream.late_ns)
}

fn check_threads(unix: bool, options: &[&str]) {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    const CLIENTS: usize = 3;
    let Some(traced) = traced(folder.path(), unix, options, CLIENTS) else { return };
    let (sums, truth) = (traced.sums(), traced.truth);
    let count = (CLIENTS * REQUESTS) as u64;
    println!("{truth:?} {sums:?} {:?}", traced.after.upstreams);
    assert_eq!(sums.requests, count);
    assert_eq!((sums.interleaved, sums.unseen), (0, 0));
    assert!(
        agree(sums.request_ns, truth.request_ns, 0.03, 0),
        "{} is not {}",
        sums.request_ns,
        truth.request_ns
    );
    // A thread that times its wait sees also how long it took to run again, and the calls themselves.
    let waited = sums.in_requests[State::Upstream as usize];
    let ready = [State::Runqueue, State::Wakeup, State::Cpu].map(|state| sums.in_requests[state as usize]);
    assert!(waited <= truth.upstream_ns, "{waited} ns of {}", truth.upstream_ns);
    assert!(
        waited + ready.iter().sum::<u64>() >= truth.upstream_ns,
        "{waited} and {ready:?} of {}",
        truth.upstream_ns
    );
    // While the server behind sleeps, the thread may still be about to wait.
    assert!(waited >= count * SLEEP_US * 1000 / 3, "{waited} ns: the server behind sleeps");
    let [(first, first_ns), (last, last_ns)] =
        [&traced.before, &traced.after].map(|reading| questions_to(reading, &traced.upstream));
    assert_eq!(last - first, count, "each request asks once");
    assert!(agree(last_ns - first_ns, waited, 0.01, 0), "{} is not {waited}", last_ns - first_ns);
    let parts: u64 = sums.in_requests.iter().sum();
    assert!(agree(parts, sums.request_ns, 0.001, 0), "{parts} is not {}", sums.request_ns);
}

#[test]
fn the_wait_for_a_server_behind_is_a_state_of_its_own_over_tcp() {
    check_threads(false, &[]);
}

#[test]
fn the_wait_for_a_server_behind_is_a_state_of_its_own_over_a_unix_socket() {
    check_threads(true, &[]);
}

#[test]
fn what_a_request_waits_for_the_first_words_of_a_server_is_within_it() {
    check_threads(false, &["connects"]);
}

#[test]
fn the_first_words_of_a_server_at_a_unix_socket_are_within_the_request_too() {
    check_threads(true, &["connects"]);
}

#[test]
fn connections_that_stay_open_between_requests_are_counted_apart() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = traced(folder.path(), false, &[], 2) else { return };
    let kept = traced.after.kept_ns - traced.before.kept_ns;
    let thought = 2 * REQUESTS as u64 * THINK.as_nanos() as u64;
    println!("{kept} ns of waits for the next request, {thought} ns of pauses");
    assert!(kept >= thought, "{kept} of {thought}");
}

#[test]
fn requests_that_one_thread_works_on_by_turns_are_counted_and_their_time_is_whole() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let Some(traced) = traced(folder.path(), false, &["together"], 4) else { return };
    let (sums, truth) = (traced.sums(), traced.truth);
    println!("{truth:?} {sums:?} {:?}", traced.after.upstreams);
    assert_eq!(sums.requests, 4 * REQUESTS as u64);
    assert!(sums.interleaved > REQUESTS as u64, "{}", sums.interleaved);
    assert!(
        agree(sums.request_ns, truth.request_ns, 0.1, 0),
        "{} is not {}",
        sums.request_ns,
        truth.request_ns
    );
    let waited = sums.in_requests[State::Upstream as usize];
    assert!(agree(waited, truth.upstream_ns, 0.2, 0), "{waited} is not {}", truth.upstream_ns);
    // The server behind sleeps for each, and what is left of the waits are answers that the busy thread read late, and the ways.
    let [before, after] = [&traced.before, &traced.after].map(|reading| late_ns(reading, &traced.upstream));
    let (late, left) =
        (after - before, truth.upstream_ns.saturating_sub(4 * REQUESTS as u64 * SLEEP_US * 1000));
    println!("answers were {late} ns late, of {left} ns that the server behind did not sleep");
    assert!(late <= left && late >= left / 4, "{late} of {left}");
}

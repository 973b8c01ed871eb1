//! Servers whose answers are no MySQL protocol: each costs one sentence, never a panic, and `whyso serve` records others after it.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use common::proxy::{Fault, Proxy, first_body, packet_like};
use common::served::RunServer;
use common::{OwnServer, Place, finish, spawn, text, wait_until};

/// Time enough for six times the `connect_timeout` of a second, and to record on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
/// Answers to a command's first questions: greeting, login, what the driver asks, the schema, settings that were left.
const FIRST_ANSWERS: usize = 9;
const AT_ONCE: usize = 4;

/// What comes in place of an answer, by that answer.
type Broken = fn(&[u8]) -> Vec<u8>;

const BROKEN: [(&str, Broken); 8] = [
    ("an empty packet", |answer| packet_like(answer, &[])),
    ("2^40 columns", |answer| packet_like(answer, &[0xfe, 0, 0, 0, 0, 0, 1, 0, 0])),
    ("2^63 columns", |answer| packet_like(answer, &[0xfe, 0, 0, 0, 0, 0, 0, 0, 0x80])),
    ("a string longer than its packet", |answer| {
        [packet_like(answer, &[1]), packet_like(&[0, 0, 0, 2], &[0xfd, 0xff, 0xff, 0xff, 1, 2, 3])].concat()
    }),
    ("one byte of its first packet", |answer| packet_like(answer, &first_body(answer)[..1])),
    ("its first packet with every bit turned", |answer| {
        let turned: Vec<u8> = first_body(answer).iter().map(|byte| !byte).collect();
        packet_like(answer, &turned)
    }),
    ("a packet of 16 MiB that does not come", |answer| {
        [&[0xfe, 0xff, 0xff, answer.get(3).copied().unwrap_or(1)], &answer[4.min(answer.len())..]].concat()
    }),
    ("two columns and an empty packet", |answer| {
        [packet_like(answer, &[2]), packet_like(&[0, 0, 0, 2], &[])].concat()
    }),
];

/// One case: the arguments of the program, the answer that is broken, and how.
type Case = (Vec<&'static str>, usize, usize);

fn dsn(proxy: &Proxy) -> String {
    format!("mysql://root@127.0.0.1:{}/?connect_timeout=1", proxy.port)
}

fn check(done: &Output, took: Duration, case: &str) {
    let complaint = text(&done.stderr);
    assert!(took < BOUND, "{case}: it took {took:?}");
    assert!(matches!(done.status.code(), Some(0..=2)), "{case}: {:?}\n{complaint}", done.status);
    assert!(!complaint.contains("panicked") && !complaint.contains("RUST_BACKTRACE"), "{case}: {complaint}");
    if !done.status.success() {
        assert!(complaint.lines().any(|line| line.len() > 30), "{case}: {complaint}");
    }
}

/// Every program over every answer, several at once.
fn each(server: &OwnServer, cases: Vec<Case>) {
    let left = Mutex::new(cases);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((args, nth, kind)) = left.lock().unwrap().pop() else { return };
                    let (name, broken) = BROKEN[kind];
                    let place = Place::new();
                    let proxy = Proxy::start(&server.socket(), nth, Fault::Instead(broken));
                    let dsn = dsn(&proxy);
                    let args = [args.as_slice(), &["--dsn", &dsn]].concat();
                    let begin = Instant::now();
                    let done = finish(spawn(&mut place.whyso(&args)), BOUND);
                    let case = format!("{} with {name} as answer {nth}", args[0]);
                    check(&done, begin.elapsed(), &case);
                }
            });
        }
    });
}

const RECORD: [&str; 4] = ["record", "--for", "1s", "--no-trace"];
const LOAD: [&str; 8] = ["load", "oltp-point-select", "--seconds", "1", "--tables", "1", "--rows", "50"];

#[test]
fn record_and_load_end_in_a_sentence_whatever_a_first_answer_is() {
    let server = OwnServer::start();
    let mut cases: Vec<Case> = Vec::new();
    for kind in 0..BROKEN.len() {
        for nth in 1..=FIRST_ANSWERS {
            // The other half is for the long form.
            if (nth + kind) % 2 == 0 {
                cases.push((RECORD.to_vec(), nth, kind));
            } else if nth <= 4 || kind < 3 {
                cases.push((LOAD.to_vec(), nth, kind));
            }
        }
    }
    each(&server, cases);
}

#[test]
#[ignore = "long: make test-hard"]
fn record_and_load_end_in_a_sentence_whatever_any_answer_is() {
    let server = OwnServer::start();
    let mut cases: Vec<Case> = Vec::new();
    for kind in 0..BROKEN.len() {
        cases.extend((1..=60).map(|nth| (RECORD.to_vec(), nth, kind)));
        cases.extend((1..=60).map(|nth| (LOAD.to_vec(), nth, kind)));
    }
    each(&server, cases);
}

#[test]
fn an_answer_that_can_t_be_read_is_reported_with_its_server() {
    let server = OwnServer::start();
    let place = Place::new();
    for (nth, kind) in [(1, 0), (3, 1), (4, 0)] {
        let proxy = Proxy::start(&server.socket(), nth, Fault::Instead(BROKEN[kind].1));
        let dsn = dsn(&proxy);
        let args = [RECORD.as_slice(), &["--dsn", &dsn]].concat();
        let done = finish(spawn(&mut place.whyso(&args)), BOUND);
        let complaint = text(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{complaint}");
        for part in ["no MySQL protocol", &format!("127.0.0.1:{}", proxy.port)] {
            assert!(complaint.contains(part), "answer {nth}: {part}: {complaint}");
        }
    }
}

/// The page stayed at "starting", and no other server could be recorded.
#[test]
fn serve_records_another_server_after_one_that_speaks_no_protocol() {
    let server = OwnServer::start();
    let place = Place::new();
    fs::create_dir_all(place.runs()).unwrap();
    // After the login a number of columns, too, which would end the whole process.
    let after_login = [(3, 0), (3, 1), (5, 1), (5, 2)];
    let faults = (0..BROKEN.len()).map(|kind| (1 + kind % 5, kind)).chain(after_login);
    let proxies: Vec<Proxy> = faults
        .map(|(nth, kind)| Proxy::start(&server.socket(), nth, Fault::Instead(BROKEN[kind].1)))
        .collect();
    let entry = |name: &str, dsn: &str| {
        format!("[[server]]\nname = \"{name}\"\ndsn = \"{dsn}\"\ntrace = false\ninterval_ms = 200\n")
    };
    let mut servers: String =
        proxies.iter().enumerate().map(|(at, proxy)| entry(&format!("bad{at}"), &dsn(proxy))).collect();
    servers += &entry("good", &server.dsn("root", ""));
    let file = place.path().join("servers.toml");
    fs::write(&file, servers).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

    let served = RunServer::start(&place, &["--servers", file.to_str().unwrap()]);
    let live_server = |name: &str| {
        let (_, listed) = served.get("/live");
        let listed = listed.as_array().or_else(|| listed["servers"].as_array()).cloned().unwrap_or_default();
        listed.into_iter().find(|entry| entry["name"] == name).unwrap_or_default()
    };
    let start = |name: &str| served.send("POST", &format!("/live/{name}/start"), "");
    for at in 0..proxies.len() {
        let name = format!("bad{at}");
        let (status, why) = start(&name);
        assert!(status < 300, "{name}: {status} {why}");
        assert!(
            wait_until(BOUND, || live_server(&name)["phase"] == "failed"),
            "{name}: {}",
            live_server(&name)
        );
        assert!(
            live_server(&name)["words"].as_str().is_some_and(|words| words.len() > 30),
            "{}",
            live_server(&name)
        );
    }
    let (status, why) = start("good");
    assert!(status < 300, "{status} {why}");
    assert!(wait_until(BOUND, || live_server("good")["phase"] == "recording"), "{}", live_server("good"));
    assert!(served.send("POST", "/live/good/stop", "").0 < 300);
    assert!(wait_until(BOUND, || live_server("good")["phase"] == "idle"), "{}", live_server("good"));
}

//! What a server spent by its own clocks is what the tracer counts: the short version of bench/accounting.

// Runs alone: it judges CPU time and waits.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{agree, alone, stolen_ns, tracer};
use whyso_model::State;

const REQUESTS: usize = 500;
const QUERY: &[u8] = b"\x09\0\0\0\x03SELECT 1";
/// Protocol 4.1 and authentication by plugin; the server lets anyone in.
const CAPABILITIES: u32 = 0x0200 | 0x8000 | 0x8_0000;

/// The load: logs in, asks, and waits for each answer.
fn load(socket: &Path) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = [0; 4096];
    let mut login = [0; 36];
    login[0] = 32;
    login[3] = 1;
    login[4..8].copy_from_slice(&CAPABILITIES.to_le_bytes());
    assert!(stream.read(&mut answer).unwrap() > 0);
    stream.write_all(&login).unwrap();
    assert!(stream.read(&mut answer).unwrap() > 0);
    for _ in 0..REQUESTS {
        stream.write_all(QUERY).unwrap();
        assert!(stream.read(&mut answer).unwrap() > 0);
    }
}

#[test]
fn each_part_is_what_the_server_spent() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    // target/release/deps/planted-… and target/release/examples/planted_server
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/planted_server");
    assert!(program.exists(), "build it: cargo build --release -p whyso-trace --examples");
    let mut server = Command::new(program)
        .arg("--unix")
        .arg(&socket)
        .args([
            "--sleep-us",
            "500",
            "--lock-us",
            "500",
            "--sync-kib",
            "4",
            "--user-us",
            "500",
            "--kernel-us",
            "300",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = BufReader::new(server.stdout.take().unwrap());
    let mut ready = String::new();
    printed.read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let Some(mut tracer) = tracer(&[server.id()]) else {
        drop(server.stdin.take());
        server.wait().unwrap();
        return;
    };
    let stolen = stolen_ns();
    let before = tracer.read().server;
    std::thread::scope(|scope| {
        std::thread::Builder::new().name("load-0".to_string()).spawn_scoped(scope, || load(&socket)).unwrap();
    });
    let after = tracer.read().server;
    let stolen = stolen_ns() - stolen;
    drop(server.stdin.take());
    let mut spent = String::new();
    printed.read_to_string(&mut spent).unwrap();
    server.wait().unwrap();
    let planted = |part: &str| {
        let value = spent.lines().find_map(|line| line.strip_prefix(part)?.trim().parse::<u64>().ok());
        value.unwrap_or_else(|| panic!("no {part} in {spent}"))
    };
    let counted = |states: &[State]| {
        states
            .iter()
            .map(|state| after.in_requests[*state as usize] - before.in_requests[*state as usize])
            .sum::<u64>()
    };
    // The login is a request too.
    assert_eq!(
        (planted("requests"), after.requests - before.requests),
        (REQUESTS as u64, REQUESTS as u64 + 1)
    );
    let parts = [
        ("sleep", counted(&[State::Sleep])),
        ("lock", counted(&[State::Lock])),
        ("cpu", counted(&[State::Cpu])),
        ("elapsed", after.request_ns - before.request_ns),
    ];
    // The server times a sleep and a lock up to when its thread runs again: until then it is woken, and waits for a CPU.
    let late_ns = counted(&[State::Wakeup, State::Runqueue]);
    for (part, counted) in parts {
        // In addition to 3 %: receiving, sending and two switches, which the server can't time, of some us per request.
        let tolerance_ns = REQUESTS as u64 * 10_000 + stolen;
        let is_late = ["sleep", "lock"].contains(&part) && counted < planted(part);
        let counted = if is_late { planted(part).min(counted + late_ns) } else { counted };
        assert!(
            agree(counted, planted(part), 0.03, tolerance_ns),
            "{part}: {counted} ns, planted {}",
            planted(part)
        );
    }
}

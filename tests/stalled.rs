//! Servers that let whyso log in, and then do not answer: it ends within a bound, and says why.

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::proxy::{Fault, Proxy};
use common::{OwnServer, Place, SOON, output, text, wait_until};

/// Six times the `connect_timeout` of a second, and time to start and to say so.
const BOUND: Duration = Duration::from_secs(20);

/// A client that holds the global read lock until it is dropped.
struct GlobalReadLock(std::process::Child);

impl GlobalReadLock {
    fn take(server: &OwnServer) -> GlobalReadLock {
        let client = Command::new("mariadb")
            .args([
                "--no-defaults",
                "--user=root",
                "--execute",
                "FLUSH TABLES WITH READ LOCK; SELECT SLEEP(90)",
            ])
            .arg(format!("--socket={}", server.socket().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let sleeps = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'";
        let lock = GlobalReadLock(client);
        assert!(wait_until(SOON, || server.sql(sleeps) == "1"), "nobody holds the lock");
        lock
    }
}

impl Drop for GlobalReadLock {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `run` waited without a word for as long as somebody held FLUSH TABLES WITH READ LOCK.
#[test]
fn a_run_behind_a_global_read_lock_ends_and_names_what_it_waits_for() {
    let (place, server) = (Place::new(), OwnServer::start());
    let dsn = format!("{}&connect_timeout=1", server.dsn("root", "whyso"));
    let load = |rows: &str| {
        let args =
            ["load", "oltp-point-select", "--dsn", &dsn, "--users", "1", "--seconds", "1", "--rows", rows];
        output(&mut place.whyso(&args))
    };
    assert!(load("100").status.success());

    let lock = GlobalReadLock::take(&server);
    let begin = Instant::now();
    // Another number of rows: the table is to be created again.
    let args = ["run", "oltp-point-select", "--dsn", &dsn, "--users", "1", "--seconds", "1", "--rows", "200"];
    let done = output(&mut place.whyso(&args));
    assert!(begin.elapsed() < BOUND, "it took {:?}", begin.elapsed());
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let complaint = text(&done.stderr);
    for part in ["did not answer within 6 s", "creating the table", "FLUSH TABLES WITH READ LOCK"] {
        assert!(complaint.contains(part), "{part}: {complaint}");
    }
    drop(lock);
    let after = load("200");
    assert!(after.status.success(), "{}", text(&after.stderr));
}

#[test]
fn a_recording_reports_meanwhile_that_a_server_stopped_answering() {
    let (place, server) = (Place::new(), OwnServer::start());
    // After a second or two: a reading is abandoned after five.
    let proxy = Proxy::start(&server.socket(), 120, Fault::Stall);
    let dsn = format!("mysql://root@127.0.0.1:{}/?connect_timeout=1", proxy.port);
    let args = ["record", "--for", "10s", "--no-trace", "--interval-ms", "500", "--dsn", &dsn];
    let done = output(&mut place.whyso(&args));
    let folder = std::fs::read_dir(place.runs()).unwrap().next().expect("a recording").unwrap().path();
    let events = whyso_record::Recording::open(&folder).unwrap().events().unwrap();
    let is_said = events.iter().any(|event| event.text.contains("did not answer within 5 s"));
    assert!(is_said, "{} {} {events:#?}", text(&done.stdout), text(&done.stderr));
}

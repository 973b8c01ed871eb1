//! Sources of the user's own, and samples that are given on: in a recording of a real server.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use common::{OwnServer, Place, finish, output, spawn, text, wait_until};

const BOUND: Duration = Duration::from_secs(60);

const ASKS: &str = r#"
name = "asks"
sql = "SELECT id AS which, n, NULL AS nothing FROM shop.numbers"
instance = "which"
interval_ms = 500

[[column]]
name = "which"

[[column]]
name = "n"
kind = "counter"
unit = "bytes"

[[column]]
name = "nothing"
"#;

const DIES: &str = r#"
name = "dies"
command = ["sh", "-c", "echo 7; echo it broke >&2; exit 3"]
header = false
interval_ms = 500

[[column]]
name = "seven"
"#;

const HANGS: &str = r#"
name = "hangs"
command = ["sh", "-c", "sleep 3600 & wait"]
header = false
interval_ms = 500
timeout_ms = 700

[[column]]
name = "never"
"#;

/// Values of a series in the recording, in order of time.
fn values(place: &Place, run: &str, source: &str, metric: &str, instance: &str) -> Vec<f64> {
    let csv = output(&mut place.whyso(&["export", run, "--format", "csv"]));
    assert!(csv.status.success(), "{csv:?}");
    let wanted = format!(",{source},{metric},{instance},");
    let lines = text(&csv.stdout);
    let found = lines.lines().filter(|line| line.contains(&wanted));
    found.map(|line| line.rsplit(',').next().unwrap().parse().unwrap()).collect()
}

/// A port of the loopback that nobody listens on just now.
fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

fn get(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut page = String::new();
    stream.read_to_string(&mut page).ok()?;
    Some(page)
}

#[test]
fn sources_of_ones_own_are_recorded_and_broken_ones_disturb_nothing() {
    let place = Place::new();
    let server = OwnServer::start();
    server.sql("CREATE DATABASE shop");
    server.sql("CREATE TABLE shop.numbers (id VARCHAR(9), n BIGINT UNSIGNED)");
    server.sql("INSERT INTO shop.numbers VALUES ('one', 1), ('max', 9223372036854775807)");
    let files = [("asks", ASKS), ("dies", DIES), ("hangs", HANGS)].map(|(name, content)| {
        let path = place.path().join(format!("{name}.toml"));
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_string()
    });
    let dsn = server.dsn("root", "");

    // Tried first, as the guide says.
    let checked = output(&mut place.whyso(&["add-on", "check", &files[0], "--dsn", &dsn]));
    assert!(text(&checked.stdout).contains("9223372036854775807"), "{checked:?}");

    let graphite = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let graphite_at = graphite.local_addr().unwrap().to_string();
    let received = thread::spawn(move || {
        // The first connection is cut in mid-run; the second gets the rest.
        let (first, _) = graphite.accept().unwrap();
        let mut first = BufReader::new(first).lines();
        let begun = first.next().unwrap().unwrap();
        drop(first);
        let (second, _) = graphite.accept().unwrap();
        let lines: Vec<String> = BufReader::new(second).lines().map_while(Result::ok).collect();
        (begun, lines)
    });
    let port = free_port();
    let openmetrics = format!("127.0.0.1:{port}");
    let mut arguments = vec!["record", "--dsn", &dsn, "--for", "6s", "--no-trace"];
    for file in &files {
        arguments.extend(["--add-on", file]);
    }
    arguments.extend(["--openmetrics", &openmetrics, "--graphite", &graphite_at]);
    let child = spawn(&mut place.whyso(&arguments));

    let mut page = String::new();
    let is_whole = |page: &str| {
        page.contains("whyso_status_questions_total{") && page.contains("whyso_addon_asks_n_bytes_total{")
    };
    assert!(
        wait_until(BOUND, || {
            page = get(port).unwrap_or_default();
            is_whole(&page)
        }),
        "{page}"
    );
    assert!(page.trim_end().ends_with("# EOF"), "{page}");
    assert!(page.contains("application/openmetrics-text"), "{page}");
    let began = Instant::now();
    let done = finish(child, BOUND);
    assert!(done.status.success() && began.elapsed() < BOUND, "{done:?}");

    let run = place.only_run();
    let run = run.to_str().unwrap();
    let one = values(&place, run, "addon.asks", "n", "one");
    assert!(one.len() >= 8 && one.iter().all(|value| *value == 1.0), "{one:?}");
    let csv = text(&output(&mut place.whyso(&["export", run, "--format", "csv"])).stdout);
    assert!(csv.contains(",addon.asks,n,max,counter,bytes,9223372036854775807\n"), "the last digit is lost");
    // The server's own status went on meanwhile, a reading a second.
    assert!(values(&place, run, "status", "Questions", "").len() >= 5);
    assert!(values(&place, run, "addon.hangs", "never", "").is_empty());

    let report = place.path().join("report.html");
    output(&mut place.whyso(&["report", run, "-o", report.to_str().unwrap()]));
    let page = fs::read_to_string(&report).unwrap();
    for told in ["addon.dies: ", "it broke", "addon.hangs: "] {
        assert!(page.contains(told), "no event says {told:?}");
    }

    let (begun, lines) = received.join().unwrap();
    assert!(begun.starts_with("whyso.") && begun.split(' ').count() == 3, "{begun}");
    let is_good = |line: &String| {
        let mut words = line.split(' ');
        let (name, value, t) = (words.next(), words.next(), words.next());
        name.is_some_and(|name| name.starts_with("whyso."))
            && value.is_some_and(|value| value.parse::<f64>().is_ok())
            && t.is_some_and(|t| t.parse::<u64>().is_ok_and(|t| t > 1_700_000_000))
    };
    assert!(lines.len() > 100, "{} lines after the receiver came back", lines.len());
    let bad: Vec<&String> = lines.iter().filter(|line| !is_good(line)).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn a_file_with_a_fault_is_refused_before_anything_starts() {
    let place = Place::new();
    let path = place.path().join("wrong.toml");
    for (content, says) in [
        ("name = \"x\"\ncomand = [\"true\"]\n", "command"),
        ("name = \"x\"\nsql = \"DELETE FROM shop.numbers\"\n", "SELECT"),
        ("name = [1\n", "wrong.toml"),
    ] {
        fs::write(&path, content).unwrap();
        let said = output(&mut place.whyso(&[
            "record",
            "--dsn",
            "mysql://x@localhost/?socket=/nowhere",
            "--add-on",
            path.to_str().unwrap(),
        ]));
        assert_eq!(said.status.code(), Some(2), "{said:?}");
        assert!(text(&said.stderr).contains(says), "{said:?}");
    }
    let missing = output(&mut place.whyso(&[
        "record",
        "--dsn",
        "mysql://x@localhost/?socket=/nowhere",
        "--add-on",
        "iostatt",
    ]));
    assert!(text(&missing.stderr).contains("iostat"), "{missing:?}");
}

//! Sources of the user's own, and samples that are relayed: in a recording of a real server.

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
    // The server's own status was read meanwhile, once per second.
    assert!(values(&place, run, "status", "Questions", "").len() >= 5);
    assert!(values(&place, run, "addon.hangs", "never", "").is_empty());

    let report = place.path().join("report.html");
    output(&mut place.whyso(&["report", run, "-o", report.to_str().unwrap()]));
    let page = fs::read_to_string(&report).unwrap();
    for expected_text in ["addon.dies: ", "it broke", "addon.hangs: "] {
        assert!(page.contains(expected_text), "no event says {expected_text:?}");
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
    assert!(lines.len() > 100, "{} lines after the receiver was back", lines.len());
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
        let result = output(&mut place.whyso(&[
            "record",
            "--dsn",
            "mysql://x@localhost/?socket=/nowhere",
            "--add-on",
            path.to_str().unwrap(),
        ]));
        assert_eq!(result.status.code(), Some(2), "{result:?}");
        assert!(text(&result.stderr).contains(says), "{result:?}");
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

/// ndbinfo's tables with the columns that NDB Cluster's manual lists, as a data node would fill them.
const NDBINFO: [&str; 9] = [
    "CREATE DATABASE ndbinfo",
    "CREATE TABLE ndbinfo.diskpagebuffer (node_id INT UNSIGNED, block_instance INT UNSIGNED, pages_written BIGINT UNSIGNED, \
     pages_written_lcp BIGINT UNSIGNED, pages_read BIGINT UNSIGNED, log_waits BIGINT UNSIGNED, page_requests_direct_return BIGINT UNSIGNED, \
     page_requests_wait_queue BIGINT UNSIGNED, page_requests_wait_io BIGINT UNSIGNED)",
    "INSERT INTO ndbinfo.diskpagebuffer VALUES (5,1,0,0,0,0,600,0,50), (5,2,0,0,0,0,300,7,50), (6,1,0,0,0,0,0,0,0)",
    "CREATE TABLE ndbinfo.cpustat (node_id INT UNSIGNED, thr_no INT UNSIGNED, OS_user INT UNSIGNED, OS_system INT UNSIGNED, \
     OS_idle INT UNSIGNED, thread_exec INT UNSIGNED, thread_sleeping INT UNSIGNED, thread_spinning INT UNSIGNED, thread_send INT UNSIGNED, \
     thread_buffer_full INT UNSIGNED, elapsed_time INT UNSIGNED)",
    "INSERT INTO ndbinfo.cpustat VALUES (5,0,61,9,30,55,40,5,3,0,1000000), (5,1,2,1,97,1,99,0,0,0,1000000)",
    "CREATE TABLE ndbinfo.threadstat (node_id INT UNSIGNED, thr_no INT UNSIGNED, thr_nm VARCHAR(10), c_loop BIGINT UNSIGNED, \
     c_exec BIGINT UNSIGNED, c_wait BIGINT UNSIGNED, c_l_sent_prioa BIGINT UNSIGNED, c_l_sent_priob BIGINT UNSIGNED, c_r_sent_prioa BIGINT UNSIGNED, \
     c_r_sent_priob BIGINT UNSIGNED, os_tid BIGINT UNSIGNED, os_now BIGINT UNSIGNED, os_ru_utime BIGINT UNSIGNED, os_ru_stime BIGINT UNSIGNED, \
     os_ru_minflt BIGINT UNSIGNED, os_ru_majflt BIGINT UNSIGNED, os_ru_nvcsw BIGINT UNSIGNED, os_ru_nivcsw BIGINT UNSIGNED)",
    "INSERT INTO ndbinfo.threadstat VALUES (5,0,'main',100,7000,11,1,1,1,1,77,5,123456,789,1,1,1,1), (5,1,'ldm',9,8,7,1,1,1,1,78,5,3,2,1,1,1,1)",
    "CREATE TABLE ndbinfo.logbuffers (node_id INT UNSIGNED, log_type VARCHAR(20), log_id INT UNSIGNED, log_part INT UNSIGNED, \
     total BIGINT UNSIGNED, used BIGINT UNSIGNED)",
    "INSERT INTO ndbinfo.logbuffers VALUES (5,'REDO',0,1,67108864,262144), (5,'DD-UNDO',4,0,8388608,0)",
];

/// "METRIC INSTANCE VALUE" of each line that `whyso add-on check` prints.
fn checked(command: &mut std::process::Command) -> Vec<String> {
    let done = output(command);
    assert!(done.status.success(), "{done:?}");
    let lines = text(&done.stdout);
    let line = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
    lines.lines().skip(1).map(line).collect()
}

#[test]
fn the_tables_of_an_ndb_cluster_are_read_as_its_manual_has_them() {
    let (place, server) = (Place::new(), OwnServer::start());
    let dsn = server.dsn("root", "");
    let refused = output(&mut place.whyso(&["add-on", "check", "ndb-threads", "--dsn", &dsn]));
    assert!(!refused.status.success() && text(&refused.stderr).contains("ndbinfo"), "{refused:?}");
    for sql in NDBINFO {
        server.sql(sql);
    }
    let check = |name: &str| checked(&mut place.whyso(&["add-on", "check", name, "--dsn", &dsn]));
    assert_eq!(
        check("ndb-disk-page-buffer"),
        [
            "direct_return 5 900",
            "wait_io 5 100",
            "hit_ratio_since_start 5 0.9",
            "direct_return 6 0",
            "wait_io 6 0"
        ],
        "a node that was asked for no page has no ratio"
    );
    let threads = check("ndb-threads");
    for line in [
        "OS_user 5/0 61",
        "thread_spinning 5/0 5",
        "c_exec 5/0 7000",
        "os_ru_utime 5/0 123456",
        "OS_idle 5/1 97",
    ] {
        assert!(threads.iter().any(|printed| printed == line), "no {line:?} in {threads:?}");
    }
    let mut buffers = check("ndb-log-buffers");
    buffers.sort();
    assert_eq!(
        buffers,
        [
            "total_bytes 5/DD-UNDO/4/0 8388608",
            "total_bytes 5/REDO/0/1 67108864",
            "used_bytes 5/DD-UNDO/4/0 0",
            "used_bytes 5/REDO/0/1 262144"
        ]
    );
}

#[test]
fn lines_of_a_data_nodes_log_become_microseconds_a_contention_and_cpu_time() {
    let place = Place::new();
    let log = place.path().join("ndb_5_out.log");
    let lines = "\
        2011-10-05 07:57:30 [ndbd] INFO     -- something else\n\
        jbalock thr: 1 waiting for lock, contentions: 1000 spins: 40000\n\
        jbalock thr: 1 waiting for lock, contentions: 2000 spins: 120000\n\
        2011-10-05 07:57:34 [ndbd] WARNING  -- Ndb kernel thread 4 is stuck in: Job Handling elapsed=100\n\
        2011-10-05 07:57:34 [ndbd] INFO     -- Watchdog: User time: 296  System time: 379\n";
    fs::write(&log, lines).unwrap();
    let mut check = place.whyso(&["add-on", "check", "ndb-out-log"]);
    let found = checked(check.env("NDB_OUT_LOG", &log));
    // 80 spins a contention, of 1.25 ns each.
    let expected = [
        "contentions jbalock_thr_1 2000",
        "spins jbalock_thr_1 120000",
        "us_per_contention jbalock_thr_1 0.1",
        "stuck_ms thread_4 100",
        "user_ms thread_4 296",
        "system_ms thread_4 379",
    ];
    for line in expected {
        assert!(found.iter().any(|printed| printed == line), "no {line:?} in {found:?}");
    }
}

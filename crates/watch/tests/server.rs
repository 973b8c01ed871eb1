//! Every sampler against a real MariaDB: readings, a kill, a restart, a hang, missing privileges.

#[expect(dead_code, reason = "what other tests need of it")]
mod common;

use std::time::{Duration, Instant};

use common::{MemorySink, Server, wait_for};
use rustix::process::Signal;
use whyso_model::{Missing, NotMeasured};
use whyso_record::data::Status;
use whyso_record::run::{RunEnd, RunInfo};
use whyso_record::{Options, Recorder, Recording};
use whyso_watch::{WatchSpec, Watcher, dirty_and_purge, global_variables, host_facts, server_facts};

const SOURCES: [&str; 13] = [
    "cpu",
    "pressure",
    "memory",
    "disk",
    "net",
    "listeners",
    "server_process",
    "generator_process",
    "cgroup",
    "status",
    "innodb_metrics",
    "lock_waits",
    "watch",
];
/// Those that can't read while the server is gone.
const OF_SERVER: [&str; 5] = ["server_process", "status", "innodb_metrics", "lock_waits", "variables"];

/// What is not measured of a MariaDB with its default settings.
fn is_without_instruments(lines: &[NotMeasured]) -> bool {
    matches!(lines, [only] if only.source == Missing::PerformanceSchema && only.reason.contains("performance_schema=ON"))
}

fn spec(server: &Server) -> WatchSpec {
    WatchSpec {
        interval: Duration::from_millis(100),
        slow_interval: Duration::from_millis(200),
        server: Some(server.opts()),
        server_pid: Some(server.pid()),
        data_dir: Some(server.data_dir()),
        ..WatchSpec::default()
    }
}

fn wait_for_readings(sink: &MemorySink, sources: &[&str], more: usize) {
    for source in sources {
        let before = sink.count(source, Status::Ok);
        let what = format!("{more} more readings of {source}");
        wait_for(&what, || sink.count(source, Status::Ok) >= before + more);
    }
}

#[test]
fn all_samplers_read_and_a_kill_is_one_gap_that_ends_with_the_restart() {
    let mut server = Server::start();
    let sink = MemorySink::default();
    let watcher = Watcher::start(spec(&server), sink.clone()).unwrap();
    wait_for_readings(&sink, &SOURCES, 3);
    wait_for("the variables", || sink.rows("variables") > 500);

    let values = sink.last_values();
    for name in [
        "server cpu user_ns all",
        "server memory available_bytes",
        "server server_process run_ns server",
        "client generator_process run_ns generator",
        "server status Threads_connected",
        "server status Innodb_buffer_pool_pages_dirty",
        "server innodb_metrics trx_rseg_history_len",
        "client watch cpu_ns status",
        "client watch duration_ns watch",
    ] {
        assert!(values.contains_key(name), "{name}");
    }
    assert!(values["server server_process resident_bytes server"] > 1e6);
    assert!(values["client watch cpu_ns status"] > 0.0);
    wait_for("what is off", || is_without_instruments(&watcher.not_measured()));
    assert!(sink.rows("status") > 0, "words of the status go to a table");

    server.execute("SET GLOBAL max_connections = 77");
    wait_for("the changed variable", || sink.events("variable", "max_connections: 151 → 77").len() == 1);

    server.kill();
    for source in OF_SERVER {
        wait_for(source, || sink.count(source, Status::Failed) >= 2);
        assert_eq!(sink.events("gap", source).len(), 1, "{source}");
    }
    let why = &sink.events("gap", "status")[0];
    assert!(why.contains("cannot be asked") && !why.contains("Input/output"), "{why}");
    wait_for_readings(&sink, &["cpu", "generator_process"], 3);

    server.restart();
    watcher.server_pid_changed(Some(server.pid()));
    for source in OF_SERVER {
        wait_for(source, || sink.events("gap_end", source).len() == 1);
        assert_eq!(sink.events("gap", source).len(), 1, "{source}");
    }
    wait_for_readings(&sink, &SOURCES, 2);
    wait_for("the default after the restart", || {
        sink.events("variable", "max_connections: 77 → 151").len() == 1
    });
    let not_measured = watcher.stop();
    assert!(is_without_instruments(&not_measured), "{not_measured:?}");
}

#[test]
fn a_recording_holds_what_was_watched() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::create(folder.path(), Options::default()).unwrap();
    let watcher = Watcher::start(spec(&server), recorder.clone()).unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    watcher.stop();
    let ended = Some(RunEnd::Complete { at_ns: whyso_clock::monotonic_ns() });
    recorder.set_run(&RunInfo { ended, ..RunInfo::default() });
    recorder.finish().unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!(recording.problems(), &[] as &[String]);
    for (source, metric) in [
        ("cpu", "context_switches"),
        ("server_process", "run_ns"),
        ("status", "Queries"),
        ("innodb_metrics", "trx_rseg_history_len"),
        ("watch", "cpu_ns"),
    ] {
        let found: Vec<_> = recording
            .series()
            .iter()
            .filter(|series| series.key.source == source && series.key.metric == metric)
            .collect();
        assert!(!found.is_empty(), "{source} {metric}");
        assert!(found.iter().all(|series| series.samples >= 5), "{found:?}");
    }
}

#[test]
fn a_server_that_hangs_delays_neither_the_others_nor_the_end() {
    let server = Server::start();
    let sink = MemorySink::default();
    let watcher = Watcher::start(spec(&server), sink.clone()).unwrap();
    wait_for_readings(&sink, &["status", "cpu"], 2);
    wait_for("what is off", || is_without_instruments(&watcher.not_measured()));
    server.signal(Signal::STOP);
    wait_for_readings(&sink, &["cpu", "server_process"], 5);
    let begin = Instant::now();
    let left_behind = watcher.stop();
    let took = begin.elapsed();
    server.signal(Signal::CONT);
    assert!(is_without_instruments(&left_behind), "{left_behind:?}");
    assert!(took < Duration::from_secs(2), "took {took:?}");
}

#[test]
fn a_hanging_server_is_given_up_and_the_readings_missed_meanwhile_are_counted() {
    let server = Server::start();
    let sink = MemorySink::default();
    let watcher = Watcher::start(spec(&server), sink.clone()).unwrap();
    wait_for_readings(&sink, &["status"], 2);
    server.signal(Signal::STOP);
    wait_for("the gap", || sink.events("gap", "status").len() == 1);
    wait_for("the missed", || sink.count("status", Status::Missed) >= 1);
    wait_for("the number of the missed", || sink.last_values()["client watch missed status"] >= 10.0);
    server.signal(Signal::CONT);
    wait_for("the end of the gap", || sink.events("gap_end", "status").len() == 1);
    watcher.stop();
}

#[test]
fn what_a_user_may_not_read_is_not_measured_and_a_wrong_password_is_one_gap() {
    let server = Server::start();
    server.execute("CREATE USER poor@localhost IDENTIFIED BY 'geheim'");
    let sink = MemorySink::default();
    let mut poor = spec(&server);
    poor.server = Some(server.opts_of("poor", Some("geheim")));
    let watcher = Watcher::start(poor, sink.clone()).unwrap();
    wait_for_readings(&sink, &["status"], 2);
    wait_for("the note", || {
        let lines = watcher.not_measured();
        lines.iter().any(|line| line.to_string().contains("PROCESS"))
    });
    assert_eq!(sink.events("gap", ""), Vec::<String>::new());
    watcher.stop();

    let sink = MemorySink::default();
    let mut wrong = spec(&server);
    wrong.server = Some(server.opts_of("poor", Some("falsch")));
    let watcher = Watcher::start(wrong, sink.clone()).unwrap();
    wait_for("two attempts", || sink.count("status", Status::Failed) >= 2);
    let gaps = sink.events("gap", "status");
    assert_eq!(gaps.len(), 1);
    assert!(gaps[0].contains("Access denied"), "{gaps:?}");
    assert!(!gaps[0].contains("falsch"));
    watcher.stop();
}

#[test]
fn facts_of_host_and_server_are_read() {
    let server = Server::start();
    server.execute("SET GLOBAL init_connect = 'SELECT 1'");
    let (variables, facts, settling) = server.ask(async |conn| {
        let variables = global_variables(conn).await.unwrap();
        let facts = server_facts(conn, "socket", true, None).await.unwrap();
        let settling = dirty_and_purge(conn).await.unwrap();
        (variables, facts, settling)
    });
    assert_eq!(variables["max_connections"], "151");
    assert_eq!(variables["init_connect"], "***");
    assert_eq!(facts.flavor, "MariaDB");
    assert_eq!(facts.pid, Some(server.pid()));
    assert!(!facts.cpus.is_empty());
    assert!(settling.dirty_pages.is_some());
    assert!(settling.history_list_length.is_some());
    assert!(settling.pending_flushes.is_some());
    let host = host_facts(Some(&server.data_dir()));
    assert!(!host.data_filesystem.is_empty());
}

#[test]
fn an_interval_below_100_ms_is_refused() {
    let spec = WatchSpec { interval: Duration::from_millis(99), ..WatchSpec::default() };
    let error = Watcher::start(spec, MemorySink::default()).unwrap_err();
    assert!(error.to_string().contains("100ms"), "{error}");
}

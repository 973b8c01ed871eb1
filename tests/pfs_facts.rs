//! Every run reports how the Performance Schema was set, what timing cost and what was lost. A server without it is
//! recognised.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Output;

use common::{OwnServer, Place, json_of, output, text};
use serde_json::{Value, json};

const LOAD: [&str; 11] = [
    "run",
    "oltp-read-write",
    "--tables",
    "1",
    "--rows",
    "500",
    "--users",
    "2",
    "--no-repeat",
    "--no-trace",
    "--warmup",
];

fn run(place: &Place, dsn: &str, more: &[&str]) -> Output {
    let mut command = place.whyso(&LOAD);
    command.args(["0", "--seconds", "1.5", "--dsn", dsn]).args(more);
    if !more.contains(&"--json") {
        command.arg("--verbose");
    }
    output(&mut command)
}

fn newest(place: &Place) -> PathBuf {
    fs::read_dir(place.runs()).unwrap().map(|entry| entry.unwrap().path()).max().unwrap()
}

fn printed(place: &Place, args: &[&str]) -> String {
    let done = output(&mut place.whyso(args));
    assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
    text(&done.stdout)
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value:#}"))
}

/// What timing cost is events × 2 × overhead ÷ cycles a second, for every class and every timer.
fn assert_it_adds_up(timers: &Value) {
    let there = timers["timers"].as_array().unwrap();
    let overhead = |name: &str| {
        let timer = there.iter().find(|timer| timer["name"] == name).unwrap_or_else(|| panic!("no {name}"));
        number(timer, "overhead_cycles")
    };
    let cycles = there.iter().find(|timer| timer["name"] == "CYCLE").unwrap();
    let hertz = number(cycles, "frequency");
    let mut sum = 0.0;
    for class in timers["classes"].as_array().unwrap() {
        let each_s = 2.0 * overhead(class["timer"].as_str().unwrap()) / hertz;
        let cpu_s = number(class, "timed_events") * each_s;
        assert!((number(class, "cpu_s") - cpu_s).abs() <= 1e-9 * cpu_s, "{class}");
        let all_s = number(class, "events") * each_s;
        assert!((number(class, "cpu_s_if_all") - all_s).abs() <= 1e-9 * all_s, "{class}");
        sum += cpu_s;
    }
    assert!((number(timers, "cpu_s") - sum).abs() <= 1e-9 * sum, "{timers}");
    for timer in there {
        let one_each = number(timer, "overhead_cycles") * 2.0 / hertz;
        let events: f64 =
            timers["classes"].as_array().unwrap().iter().map(|class| number(class, "timed_events")).sum();
        assert!((number(timer, "cpu_s") - events * one_each).abs() <= 1e-9 + 1e-9 * events * one_each);
    }
}

fn class<'v>(timers: &'v Value, name: &str) -> &'v Value {
    timers["classes"].as_array().unwrap().iter().find(|class| class["class"] == name).unwrap()
}

#[test]
#[ignore = "long: make test-hard"]
fn what_timing_costs_is_shown_of_a_run_that_asked_for_nothing_and_of_one_that_timed_all() {
    let server = OwnServer::start_with(&["--performance-schema=ON"]);
    let place = Place::new();
    let dsn = server.dsn("root", "mine");

    // Nothing was asked: the server is reported as it was, and its timers too.
    let plain = run(&place, &dsn, &[]);
    assert!(plain.status.success(), "{}", text(&plain.stderr));
    let head = "Performance Schema: as the server had it: on, ";
    assert!(text(&plain.stdout).contains(head), "{}", text(&plain.stdout));
    let path = newest(&place);
    let path = path.to_str().unwrap();
    let timers = json_of(&output(&mut place.whyso(&["pfs", "timers", path, "--json"])));
    assert_it_adds_up(&timers);
    // MariaDB's table names them.
    assert_eq!(class(&timers, "statement")["timer_read"], true, "{timers}");
    assert!(timers["performance_schema"].as_str().unwrap().starts_with("as the server had it: on, "));
    assert!(number(class(&timers, "statement"), "events") > 100.0, "{timers}");
    assert!(printed(&place, &["runs"]).contains("; Performance Schema as the server had it: on, "));
    assert!(printed(&place, &["report", path, "--format", "md"]).contains(head));
    assert!(printed(&place, &["pfs", path, "--list"]).contains("* timers "));
    let page = fs::read_to_string(format!("{path}/report.html")).unwrap();
    assert!(page.contains("\"words\":\"as the server had it: on, "), "the page's head");

    // Where the server lost nothing, no finding says so.
    let lost = server.sql("SHOW GLOBAL STATUS LIKE 'Performance\\_schema\\_%\\_lost'");
    let lost = lost.lines().any(|line| !line.ends_with("\t0"));
    let findings = printed(&place, &["report", path, "--format", "json"]);
    assert_eq!(findings.contains("performance-schema-lost"), lost, "{findings}");

    // Counted and not timed: it costs nothing, and what timing would cost is reported.
    let counted = run(&place, &dsn, &["--pfs", "global", "--pfs-timing", "no"]);
    assert!(counted.status.success(), "{}", text(&counted.stderr));
    assert!(text(&counted.stdout).contains("Performance Schema: global, not timed: on, "));
    let path = newest(&place);
    let path = path.to_str().unwrap();
    let timers = json_of(&output(&mut place.whyso(&["pfs", path, "timers", "--json"])));
    assert_it_adds_up(&timers);
    assert_eq!(number(&timers, "cpu_s"), 0.0, "{timers}");
    for name in ["wait", "stage", "statement", "transaction"] {
        assert!(number(class(&timers, name), "events") > 100.0, "{name}: {timers:#}");
    }
    assert!(number(&timers, "cpu_s_if_all") > 0.0);

    // All of it timed: the cost that was reported is paid, transactions too.
    let timed = run(&place, &dsn, &["--pfs", "global"]);
    assert!(timed.status.success(), "{}", text(&timed.stderr));
    let path = newest(&place);
    let path = path.to_str().unwrap();
    let timers = json_of(&output(&mut place.whyso(&["pfs", path, "timers", "--users", "2", "--json"])));
    assert_it_adds_up(&timers);
    for name in ["wait", "stage", "statement", "transaction"] {
        let class = class(&timers, name);
        let share = number(class, "timed_events") / number(class, "events");
        assert!(share > 0.99, "{name}: {share}: {timers:#}");
    }
    let words = printed(&place, &["pfs", path, "timers"]);
    assert!(words.contains("If one timer served every class") && words.contains("transaction "), "{words}");
    let markdown = printed(&place, &["report", path, "--format", "md"]);
    assert!(markdown.contains("What timing cost:") && markdown.contains("| stage | "), "{markdown}");
    for (args, says) in [
        (vec!["pfs", "timers"], "which run?"),
        (vec!["pfs", path, "timers", "--by", "count"], "leave out --by"),
        (vec!["pfs", path, "timer"], "hosts, threads, timers"),
    ] {
        let result = output(&mut place.whyso(&args));
        assert!(text(&result.stderr).contains(says), "{args:?}: {result:?}");
        assert_eq!(result.status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn what_the_performance_schema_had_no_room_for_is_a_finding_with_the_setting_to_raise() {
    let server = OwnServer::start_with(&[
        "--performance-schema=ON",
        "--performance-schema-instrument=wait/synch/%=ON",
        "--performance-schema-max-mutex-instances=10",
        "--performance-schema-max-thread-instances=12",
    ]);
    let place = Place::new();
    let done = json_of(&run(&place, &server.dsn("root", "mine"), &["--json"]));
    let findings = done["findings"].as_array().unwrap();
    let lost = findings.iter().find(|finding| finding["id"] == "performance-schema-lost");
    let lost = lost.unwrap_or_else(|| panic!("{findings:#?}"))["text"].as_str().unwrap();
    for part in [
        "Performance_schema_mutex_instances_lost ",
        "performance_schema_max_mutex_instances (it is 10)",
        "performance_schema_max_thread_instances (it is 12)",
    ] {
        assert!(lost.contains(part), "{part}: {lost}");
    }
    assert!(done["performance_schema"].as_str().unwrap().starts_with("as the server had it: on, "));
}

/// In every byte that passes, the Performance Schema has another name, so that the server has none of that name: no variable, no tables.
fn without_it(place: &Place, server: &Path) -> PathBuf {
    let socket = place.path().join("without");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = server.to_path_buf();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(client) = client else { return };
            let Ok(server) = UnixStream::connect(&server) else { return };
            let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || pass_on(client, server));
            std::thread::spawn(move || pass_on(back.0, back.1));
        }
    });
    socket
}

/// Packets whole, so that a name is never cut in two.
fn pass_on(mut from: UnixStream, mut to: UnixStream) {
    let mut header = [0; 4];
    while from.read_exact(&mut header).is_ok() {
        let mut packet = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        if from.read_exact(&mut packet).is_err() {
            break;
        }
        for name in [&b"performance_schema"[..], b"PERFORMANCE_SCHEMA"] {
            let found: Vec<usize> = packet
                .windows(name.len())
                .enumerate()
                .filter(|(_, part)| *part == name)
                .map(|(at, _)| at)
                .collect();
            found.into_iter().for_each(|at| packet[at + name.len() - 1] = b'x');
        }
        if to.write_all(&header).and_then(|()| to.write_all(&packet)).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn compiled_out_is_a_server_without_it_and_no_other() {
    let server = OwnServer::start();
    let place = Place::new();
    let with = server.dsn("root", "mine");
    let refused = run(&place, &with, &["--pfs", "compiled-out"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let why = text(&refused.stderr);
    assert!(why.contains("-DPLUGIN_PERFSCHEMA=NO") && why.contains("--pfs not-started"), "{why}");
    let plain = run(&place, &with, &[]);
    assert!(text(&plain.stdout).contains("Performance Schema: as the server had it: off.\n"), "{plain:?}");
    let off = output(&mut place.whyso(&["pfs", newest(&place).to_str().unwrap(), "timers"]));
    assert!(text(&off.stderr).contains("Performance Schema: as the server had it: off"), "{off:?}");

    let without = without_it(&place, &server.socket());
    let without = format!("mysql://root@localhost/mine?socket={}", without.display());
    let without_schema = run(&place, &without, &["--pfs", "compiled-out"]);
    assert!(without_schema.status.success(), "{}", text(&without_schema.stderr));
    let head = "Performance Schema: compiled-out: the server was built without it.\n";
    assert!(text(&without_schema.stdout).contains(head), "{}", text(&without_schema.stdout));
    let plain = run(&place, &without, &["--json"]);
    assert_eq!(
        json_of(&plain)["performance_schema"],
        "as the server had it: the server was built without it"
    );
    for preset in ["synch", "not-started", "none"] {
        let refused = run(&place, &without, &["--pfs", preset]);
        assert_eq!(refused.status.code(), Some(2), "{preset}");
        assert!(text(&refused.stderr).contains("built without the Performance Schema"), "{refused:?}");
    }
}

#[test]
fn a_schema_that_a_dsn_names_is_made_where_it_does_not_exist_and_whyso_may_write() {
    let server = OwnServer::start_with(&["--performance-schema=ON"]);
    let place = Place::new();
    fs::write(place.path().join("read.sql"), "SELECT 1;\n").unwrap();
    fs::write(place.path().join("write.sql"), "CREATE TEMPORARY TABLE t (a INT); DROP TEMPORARY TABLE t;\n")
        .unwrap();
    let short = ["--users", "1", "--warmup", "0", "--seconds", "0.5", "--no-repeat", "--no-trace"];
    let go = |workload: &[&str], schema: &str| {
        let mut command = place.whyso(&["run"]);
        output(command.args(workload).args(short).args(["--dsn", &server.dsn("root", schema)]))
    };
    let small = ["oltp-point-select", "--tables", "1", "--rows", "100"];
    let with = |more: &[&'static str]| -> Vec<&'static str> { small.iter().chain(more).copied().collect() };
    for (schema, workload) in [
        ("made1", vec!["write.sql"]),
        ("made2", vec!["write.sql", "--allow-writes", "made2"]),
        ("made3", vec!["read.sql", "--allow-writes", "made3"]),
        ("made4", with(&["--allow-writes", "made4"])),
        ("made5", with(&["--pfs", "statements"])),
        ("made6", vec!["customer-create", "--allow-writes", "made6"]),
    ] {
        let done = go(&workload, schema);
        assert!(done.status.success(), "{workload:?}: {}", text(&done.stderr));
        let marked = server.sql(&format!("SELECT COUNT(*) FROM {schema}.whyso_mark"));
        assert!(marked.parse::<u32>().is_ok(), "{schema} is marked: {marked}");
    }
    for workload in [vec!["read.sql"], vec!["read.sql", "--pfs", "none"]] {
        let refused = go(&workload, "nowhere");
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let why = text(&refused.stderr);
        assert!(why.contains("there is no schema nowhere on ") && !why.contains("Unknown database"), "{why}");
    }
    let recorded = output(
        place.whyso(&["record", "--for", "1s", "--no-trace", "--dsn"]).arg(server.dsn("root", "nowhere")),
    );
    assert!(text(&recorded.stderr).contains("a recording makes none"), "{recorded:?}");
    assert_eq!(server.sql("SHOW DATABASES LIKE 'nowhere'"), "");
    // One that is there and is somebody else's stays so.
    server.sql("CREATE DATABASE theirs; CREATE TABLE theirs.t (a INT)");
    assert!(go(&["read.sql"], "theirs").status.success());
    let refused = go(&["write.sql"], "theirs");
    assert!(text(&refused.stderr).contains("--allow-writes theirs"), "{refused:?}");
    assert_eq!(server.sql("SHOW TABLES FROM theirs"), "t");
}

/// Every file of a folder, with what it holds.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<(PathBuf, Vec<u8>)> =
        paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[test]
fn a_recording_of_a_newer_version_is_shown_as_far_as_possible_and_never_written_to() {
    let server = OwnServer::start_with(&["--performance-schema=ON"]);
    let place = Place::new();
    assert!(run(&place, &server.dsn("root", "mine"), &[]).status.success());
    let dir = newest(&place);
    let path = dir.to_str().unwrap();

    fs::remove_file(dir.join("report.html")).unwrap();
    let json = dir.join("run.json");
    let mut newer: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    assert_eq!(newer["format"], 3);
    newer["format"] = json!(7);
    newer["tool_version"] = json!("9.9.9");
    newer["constellation"] = json!(["Orion"]);
    newer["levels"][0]["result"]["joy"] = json!(11);
    fs::write(&json, newer.to_string()).unwrap();
    fs::write(dir.join("auras-000001.parquet"), b"no Parquet that anybody knows").unwrap();
    fs::write(dir.join("notes.jsonl"), "").unwrap();
    let before = files(&dir);

    for args in [
        vec!["report", path, "--format", "md"],
        vec!["report", path, "--format", "json"],
        vec!["report", path, "--output", "page.html"],
        vec!["why", path],
        vec!["pfs", path, "statements"],
        vec!["pfs", path, "timers"],
    ] {
        let done = output(&mut place.whyso(&args));
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        let messages = text(&done.stderr);
        for part in [
            "made by whyso 9.9.9, newer than this ",
            "is 7, and this one reads up to 3",
            "does not show: constellation, levels[0].result.joy",
            "no stream called auras",
        ] {
            assert!(messages.contains(part), "{args:?}: {part}: {messages}");
        }
    }
    assert!(printed(&place, &["report", path, "--format", "md"]).contains("2 users"));
    assert!(printed(&place, &["runs"]).contains("complete; made by whyso 9.9.9, newer than this "));
    for (args, says) in [
        (vec!["report", path], "--output FILE"),
        (vec!["note", "a storm", path, "--at", "1s"], "nothing is written to it"),
    ] {
        let refused = output(&mut place.whyso(&args));
        assert!(!refused.status.success() && text(&refused.stderr).contains(says), "{args:?}: {refused:?}");
    }

    // A level of a shape that nobody knows is left out.
    newer["levels"][0]["purpose"] = json!("seance");
    fs::write(&json, newer.to_string()).unwrap();
    let result = output(&mut place.whyso(&["report", path, "--format", "md"]));
    assert!(result.status.success() && text(&result.stderr).contains("levels[0] ("), "{result:?}");
    fs::write(&json, before.iter().find(|(path, _)| *path == json).map(|(_, bytes)| bytes).unwrap()).unwrap();
    assert!(files(&dir) == before, "nothing was written to the recording");
}

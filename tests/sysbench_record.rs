//! `whyso sysbench --record` from end to end: what is recorded with a script's run, and read again.

mod common;

use std::fs;

use common::sysbench::{Ran, Server};
use common::{json_of, output, text};

const SCRIPT: &str = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                      function event() con:query('SELECT 1') end";

#[test]
fn a_run_is_recorded_with_server_and_machine_and_can_be_reported() {
    let server = Server::start();
    let words = [
        "--threads=2",
        "--time=4",
        "--warmup-time=1",
        "--mysql-password=",
        "--json=out.json",
        "--record",
        "run",
    ];
    let ran = server.script(SCRIPT, &words);
    ran.expect(0, &["SQL statistics:", "whyso: recorded in runs/"]);
    let folder = server.place.only_run();
    let whyso = |words: &[&str]| output(&mut server.place.whyso(words));

    let listed = whyso(&["runs"]);
    assert!(text(&listed.stdout).contains("test.lua"), "{}", text(&listed.stdout));
    let reported = json_of(&whyso(&["report", folder.to_str().unwrap(), "--format", "json"]));
    let level = &reported["levels"][0];
    assert_eq!(reported["levels"].as_array().unwrap().len(), 1);
    assert_eq!(reported["ended"]["how"], "complete");
    assert_eq!(level["transactions"].as_f64().unwrap(), ran.number("transactions:"));
    assert!((level["seconds"].as_f64().unwrap() - 4.0).abs() < 0.5, "{level}");
    assert_eq!(level["users"], 2);
    // The JSON object has the same numbers.
    let written: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(server.place.path().join("out.json")).unwrap()).unwrap();
    for name in ["transactions", "queries", "latency_ms", "client", "engine"] {
        assert_eq!(written["levels"][0][name], level[name], "{name}");
    }
    let markdown = whyso(&["report", folder.to_str().unwrap(), "--format", "md"]);
    assert!(text(&markdown.stdout).contains("a server at rest: the load began without waiting"));
    assert!(whyso(&["report", folder.to_str().unwrap()]).status.success());

    let series = text(&whyso(&["export", folder.to_str().unwrap(), "--format", "csv"]).stdout);
    for wanted in [
        "server,status,Questions,",
        ",innodb_metrics,",
        ",cpu,",
        ",server_process,",
        "client,generator_process,",
    ] {
        assert!(series.contains(wanted), "no {wanted} in {} bytes of series", series.len());
    }
    let run = fs::read_to_string(folder.join("run.json")).unwrap();
    assert!(run.contains("\"threads=2\"") && run.contains("\"--mysql-password=***\""), "{run}");
}

#[test]
fn nothing_is_recorded_and_no_connection_made_unless_it_is_asked_for() {
    let server = Server::start();
    let connections = || -> u64 {
        let row = server.own.sql("SHOW GLOBAL STATUS LIKE 'Connections'");
        row.split_whitespace().last().unwrap().parse().unwrap()
    };
    let before = connections();
    server.script(SCRIPT, &["--threads=3", "--events=10", "--time=0", "run"]).expect(0, &[]);
    // Three users, and the one that asks.
    assert_eq!(connections() - before, 4);
    assert!(!server.place.runs().exists());
}

#[test]
fn what_is_cut_short_is_recorded_as_such_and_what_can_t_be_recorded_is_not_run() {
    let server = Server::start();
    let ran = server.script(
        "count = 0\nfunction event() count = count + 1 if count == 50 then error('boom') end \
         con = con or sysbench.sql.driver():connect() con:query('SELECT 1') end",
        &["--record=kept", "run"],
    );
    ran.expect(1, &["test.lua:2: boom", "whyso: recorded in kept/"]);
    let runs = json_of(&output(&mut server.place.whyso(&["runs", "--runs", "kept", "--json"])));
    assert_eq!(runs["runs"][0]["ended"]["how"], "cut_short", "{runs}");
    fs::write(server.place.path().join("file"), "").unwrap();
    let ran: Ran = server.script(SCRIPT, &["--record=file", "run"]);
    ran.expect(1, &["FATAL: the run can't be recorded: "]);
    assert!(!ran.out.contains("SQL statistics:"), "{}", ran.out);
}

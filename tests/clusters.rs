//! `whyso server cluster`: servers that belong together, started, restarted and stopped.

mod common;

use common::{OwnServer, Place, SOON, ask, cpu_ns_of_last_seconds, json_of, kill, output, text, wait_until};
use serde_json::Value;

/// The nodes of the only cluster: role and DSN.
fn nodes(place: &Place) -> Vec<(String, String)> {
    let listed = json_of(&output(&mut place.whyso(&["server", "cluster", "list", "--json"])));
    let clusters = listed["clusters"].as_array().unwrap();
    assert_eq!(clusters.len(), 1, "{listed}");
    let word = |value: &Value| value.as_str().unwrap().to_string();
    let nodes = clusters[0]["nodes"].as_array().unwrap();
    nodes.iter().map(|node| (word(&node["role"]), word(&node["dsn"]))).collect()
}

/// Waits until every one of these nodes gives this answer.
fn assert_arrives(nodes: &[(String, String)], sql: &str, wanted: &str) {
    for (_, node) in nodes {
        assert!(wait_until(SOON, || ask(node, sql) == wanted), "{}", ask(node, sql));
    }
}

#[test]
fn replicas_apply_what_the_source_commits_before_and_after_a_restart() {
    let place = Place::new();
    let start =
        ["server", "cluster", "start", "replication", "--replicas", "2", "--node-cpus", "2:0", "--proxy"];
    let started = output(&mut place.whyso(&start));
    assert!(started.status.success(), "{}", text(&started.stderr));
    let cpus_of_second = || {
        let listed = json_of(&output(&mut place.whyso(&["server", "cluster", "list", "--json"])));
        let pid = &listed["clusters"][0]["nodes"][1]["pid"];
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        line.trim().to_string()
    };
    assert_eq!(cpus_of_second(), "0");
    let again = output(&mut place.whyso(&["server", "cluster", "start", "replication"]));
    assert!(text(&again.stderr).contains("was started already"), "{}", text(&again.stderr));
    let before = nodes(&place);
    let roles: Vec<&str> = before.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["source", "replica", "replica", "proxy"]);
    let [source, replicas @ .., proxy] = &before[..] else { panic!("{before:?}") };
    let arrives = |sql: &str, wanted: &str| assert_arrives(replicas, sql, wanted);
    ask(&source.1, "CREATE DATABASE d; CREATE TABLE d.t (i INT PRIMARY KEY); INSERT INTO d.t VALUES (1)");
    arrives("SELECT i FROM d.t", "1");
    assert_eq!(ask(&proxy.1, "SELECT @@server_id"), ask(&source.1, "SELECT @@server_id"), "it passes on");
    let remote =
        ask(&source.1, "SELECT COUNT(*) FROM mysql.user WHERE host <> 'localhost' AND user <> 'whyso_copy'");
    assert_eq!(remote, "0", "nobody else gets in by the port");
    let mut run = place.whyso(&[
        "run",
        "oltp-write-only",
        "--cluster",
        "replication",
        "--users",
        "4",
        "--seconds",
        "3",
    ]);
    run.args(["--warmup", "1", "--tables", "1", "--rows", "1000", "--no-repeat", "--json"]);
    assert!(output(&mut run).status.success());
    let explained = json_of(&output(&mut place.whyso(&["why", "--json"])));
    let nodes_of_run = explained["nodes"].as_array().unwrap();
    let names: Vec<&str> = nodes_of_run.iter().map(|node| node["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["replication-1", "replication-2", "replication-3", "replication-proxy"]);
    assert_eq!(nodes_of_run[0]["is_loaded"], true, "{explained}");
    assert!(nodes_of_run[3]["applier"]["busy"].as_f64() > Some(0.01), "{explained}");
    // What it holds depends on how busy this machine is.
    let between_ms = explained["levels"][0]["budget_ms"]["transit_out"].as_f64();
    assert!(between_ms > Some(0.01), "{explained}");
    for replica in &nodes_of_run[1..3] {
        assert!(
            replica["behind_s"].as_f64().is_some() && replica["executed"].as_f64() > Some(0.0),
            "{replica}"
        );
        assert!(replica["applier"]["busy"].as_f64() > Some(0.0), "{replica}");
    }
    let shown = text(&output(&mut place.whyso(&["server", "cluster", "show", "replication"])).stdout);
    assert_eq!(shown.matches(": takes part").count(), 4, "{shown}");
    let restarted = output(&mut place.whyso(&["server", "cluster", "restart", "replication"]));
    assert!(restarted.status.success(), "{}", text(&restarted.stderr));
    assert_eq!(nodes(&place), before, "each node is where it was");
    assert_eq!(cpus_of_second(), "0");
    ask(&source.1, "INSERT INTO d.t VALUES (2)");
    arrives("SELECT MAX(i) FROM d.t", "2");
    let stopped = output(&mut place.whyso(&["server", "cluster", "stop", "replication"]));
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn nodes_of_galera_take_changes_everywhere_and_one_that_was_killed_comes_back() {
    let place = Place::new();
    let started = output(&mut place.whyso(&["server", "cluster", "start", "galera", "--as", "g"]));
    assert!(started.status.success(), "{}", text(&started.stderr));
    let nodes = nodes(&place);
    let roles: Vec<&str> = nodes.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["member", "member", "member"]);
    let arrives = |sql: &str, wanted: &str| assert_arrives(&nodes, sql, wanted);
    ask(&nodes[0].1, "CREATE DATABASE d; CREATE TABLE d.t (i INT PRIMARY KEY); INSERT INTO d.t VALUES (1)");
    arrives("SELECT MAX(i) FROM d.t", "1");
    ask(&nodes[2].1, "INSERT INTO d.t VALUES (2)");
    arrives("SELECT MAX(i) FROM d.t", "2");
    let mut run =
        place.whyso(&["run", "oltp-point-select", "--cluster", "g", "--users", "6", "--seconds", "2"]);
    run.args(["--warmup", "2", "--tables", "1", "--rows", "1000", "--no-repeat", "--json"]);
    let answer = json_of(&output(&mut run));
    let selects = |host: &str| {
        let mut export = place.whyso(&["export", "latest", "--host", host, "--source", "status"]);
        let table = text(&output(export.args(["--metric", "Com_select"])).stdout);
        let values: Vec<f64> =
            table.lines().filter_map(|line| line.rsplit(',').next()?.parse().ok()).collect();
        values.last().unwrap_or(&0.0) - values.first().unwrap_or(&0.0)
    };
    assert!(answer["levels"][0]["transactions_per_s"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(selects("server") > 100.0, "{}", selects("server"));
    for host in ["g-2", "g-3"] {
        let mut export = place.whyso(&["export", "latest", "--host", host, "--source", "server_process"]);
        let table = text(&output(export.args(["--metric", "run_ns"])).stdout);
        assert!(table.lines().count() > 2, "{host}: {table}");
    }
    assert_loads_all(&place);
    let listed = json_of(&output(&mut place.whyso(&["server", "cluster", "list", "--json"])));
    let pid = listed["clusters"][0]["nodes"][1]["pid"].as_i64().unwrap();
    kill(pid as i32, libc::SIGKILL);
    ask(&nodes[0].1, "INSERT INTO d.t VALUES (3)");
    let restarted = output(&mut place.whyso(&["server", "cluster", "restart", "g"]));
    assert!(restarted.status.success(), "{}", text(&restarted.stderr));
    arrives("SELECT MAX(i) FROM d.t", "3");
    assert_is_restarted_under_load(&place);
    assert_splits_and_rejoins(&place, &nodes);
    let stopped = output(&mut place.whyso(&["server", "cluster", "stop", "g"]));
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    place.assert_nothing_left();
}

/// Changes of few rows on every node of g: the nodes refuse each other's, and the time budget is that of all requests.
fn assert_loads_all(place: &Place) {
    let mut run = place.whyso(&["run", "oltp-update-index", "--cluster", "g", "--all-nodes", "--users", "6"]);
    run.args(["--seconds", "3", "--warmup", "1", "--tables", "1", "--rows", "50", "--rand-type", "uniform"]);
    let answer = json_of(&output(run.args(["--no-repeat", "--json"])));
    assert!(answer["levels"][0]["transactions_per_s"].as_f64() > Some(0.0), "{answer}");
    let explained = json_of(&output(&mut place.whyso(&["why", "--json"])));
    let nodes = explained["nodes"].as_array().unwrap();
    assert!(nodes.iter().all(|node| node["is_loaded"] == true), "{explained}");
    assert!(nodes.iter().all(|node| node["statements_per_s"].as_f64() > Some(10.0)), "{explained}");
    assert!(nodes.iter().any(|node| node["conflicts_per_s"].as_f64() > Some(0.0)), "{explained}");
    let level = &explained["levels"][0];
    let unaccounted = level["unaccounted_ms"].as_f64().unwrap() / level["response_ms"].as_f64().unwrap();
    assert!(unaccounted.abs() < 0.2, "{explained}");
    let twice = output(&mut place.whyso(&["run", "--cluster", "g", "--all-nodes", "--trace-sql"]));
    assert!(text(&twice.stderr).contains("--trace-sql follows one server"), "{}", text(&twice.stderr));
}

/// A node that is cut off refuses statements, and has what it missed once it is back.
fn assert_splits_and_rejoins(place: &Place, nodes: &[(String, String)]) {
    let shown = |args: &[&str]| {
        let done = output(&mut place.whyso(&[&["server", "cluster"], args].concat()));
        assert!(done.status.success(), "{args:?}: {}", text(&done.stderr));
        text(&done.stdout)
    };
    shown(&["isolate", "g", "3"]);
    let last = &nodes[2].1;
    let is_cut_off = || ask(last, "SELECT MAX(i) FROM d.t").contains("not yet prepared");
    assert!(wait_until(SOON, is_cut_off), "{}", ask(last, "SELECT MAX(i) FROM d.t"));
    assert!(wait_until(SOON, || ask(&nodes[0].1, "REPLACE INTO d.t VALUES (4)").is_empty()));
    let back = shown(&["rejoin", "g", "g-3"]);
    assert_eq!(back.matches(": takes part").count(), 3, "{back}");
    assert_arrives(nodes, "SELECT MAX(i) FROM d.t", "4");
    let unknown = output(&mut place.whyso(&["server", "cluster", "isolate", "g", "9"]));
    assert!(text(&unknown.stderr).contains("there is no node '9' in g"), "{}", text(&unknown.stderr));
}

/// Users of a node that is restarted go on at the others.
fn assert_is_restarted_under_load(place: &Place) {
    let pids = || {
        let listed = json_of(&output(&mut place.whyso(&["server", "cluster", "list", "--json"])));
        let nodes = listed["clusters"][0]["nodes"].as_array().unwrap().clone();
        nodes.iter().map(|node| node["pid"].as_i64().unwrap()).collect::<Vec<i64>>()
    };
    let before = pids();
    let restart = format!("!{} server cluster restart g", env!("CARGO_BIN_EXE_whyso"));
    let mut run = place.whyso(&["run", "oltp-point-select", "--cluster", "g", "--all-nodes", "--users", "6"]);
    run.args(["--seconds", "20", "--warmup", "1", "--tables", "1", "--rows", "1000", "--no-repeat"]);
    let done = output(run.args(["--at", "1", &restart, "--json"]));
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    let is_new = || pids().iter().all(|pid| !before.contains(pid));
    assert!(wait_until(SOON, is_new), "every node was restarted");
    let report = text(&output(&mut place.whyso(&["report", "latest", "--format", "json"])).stdout);
    assert!(report.contains("could not be used"), "{report}");
    assert!(
        cpu_ns_of_last_seconds(place, "g-3") > 0,
        "the first that was restarted is traced as what it is now"
    );
}

const STUDY: &str = r#"
title = "Restart"
question = "What does a restart of source and replica cost?"
workload = "oltp-update-non-index"
tables = 1
rows = 500
cluster = { kind = "replication", replicas = 2 }
users = [2]
seconds = 5
warmup = 0
repeats = 1
pair = false
baseline = "undisturbed"
show = ["replica_behind_s"]
over_time = ["transactions_per_s"]

[[variant]]
name = "undisturbed"

[[variant]]
name = "one replica, and a restart"
cluster = { replicas = 1 }
at = [{ after = 1, restart = true }]
"#;

#[test]
#[ignore = "long: make test-hard"]
fn a_study_starts_a_cluster_for_each_start_and_restarts_it_under_load() {
    let place = Place::new();
    std::fs::write(place.path().join("restart.toml"), STUDY).unwrap();
    let mut study = place.whyso(&["study", "run", "restart.toml", "--out", "study", "--json"]);
    let answer = json_of(&output(&mut study));
    let lines = answer["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2, "{answer:#}");
    // A replica is asked every five seconds, and not while it is restarted.
    assert!(lines[0]["beside"]["replica_behind_s"].as_f64().is_some(), "{answer:#}");
    let restart = &answer["courses"][1]["resized"][0];
    assert_eq!(restart["what"], "restart", "{answer:#}");
    let runs = place.path().join("study/runs");
    let nodes = |run: &std::path::Path| {
        let explained = json_of(&output(&mut place.whyso(&["why", run.to_str().unwrap(), "--json"])));
        explained["nodes"].as_array().unwrap().len()
    };
    let mut counts: Vec<usize> =
        std::fs::read_dir(runs).unwrap().map(|run| nodes(&run.unwrap().path())).collect();
    counts.sort_unstable();
    assert_eq!(counts, [2, 3], "the other cluster has a replica more");
    let listed = json_of(&output(&mut place.whyso(&["server", "cluster", "list", "--json"])));
    assert_eq!(listed["clusters"].as_array().unwrap().len(), 0, "{listed}");
    place.assert_nothing_left();
    let refused = |this: &str, by: &str, why: &str| {
        std::fs::write(place.path().join("wrong.toml"), STUDY.replace(this, by)).unwrap();
        let refused = output(&mut place.whyso(&["study", "run", "wrong.toml", "--dry-run"]));
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(why), "{}", text(&refused.stderr));
    };
    refused("replicas = 2 }", "replicas = 2, pool = 8 }", "pool is of ndb");
    let data_set = "data_set = { DataMemory = '1G' }";
    refused("restart = true", &format!("restart = true, {data_set}"), "data_set is of the data nodes of ndb");
    refused("restart = true", data_set, "give restart = true, too");
}

#[test]
fn a_start_that_is_killed_leaves_nothing() {
    let place = Place::new();
    let mut child = common::spawn(&mut place.whyso(&["server", "cluster", "start", "replication"]));
    let first = || !common::server_pids_under(place.path()).is_empty();
    assert!(wait_until(SOON, first), "a node starts");
    kill(child.id() as i32, libc::SIGKILL);
    child.wait().unwrap();
    place.assert_nothing_left();
}

#[test]
fn what_is_no_cluster_is_refused() {
    let place = Place::new();
    let refused = |args: &[&str], why: &str| {
        let refused = output(&mut place.whyso(&[&["server", "cluster"], args].concat()));
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(text(&refused.stderr).contains(why), "{args:?}: {}", text(&refused.stderr));
    };
    refused(&["stop", "east"], "there is no cluster 'east': none was started");
    refused(&["start", "replication", "--replicas", "0"], "2 to 16 nodes, and 1 are asked for");
    refused(&["start", "replication", "--as", "a/b"], "is no name");
    refused(&["start", "galera", "--pool", "2"], "are for ndb");
    refused(&["start", "replication", "--node-cpus", "data-1:0"], "CPUs are for node data-1");
    refused(&["start", "replication", "--node-cpus", "1"], "give the node, a colon and its CPUs");
    refused(&["start", "ndb", "--data-nodes", "3", "--server", "/usr"], "3 data nodes are asked for");
    refused(&["start", "ndb", "--data-set", "HostName=db1", "--server", "/usr"], "whyso chooses it");
    refused(&["start", "ndb", "--data-set", "DataMemory", "--server", "/usr"], "give a name and a value");
    let start = ["server", "cluster", "start", "replication", "--proxy", "--dry-run"];
    let plan = output(place.whyso(&start).args(["--node-set", "2:innodb_flush_log_at_trx_commit=2"]));
    let printed = text(&plan.stdout);
    assert!(printed.contains("haproxy.cfg:") && printed.contains("server replication-1 unix@"), "{printed}");
    assert!(!printed.contains("server replication-2"), "a replica takes no changes: {printed}");
    assert!(
        printed.contains("replication-1 (source): --port=") && printed.contains("--read-only=1"),
        "{printed}"
    );
    assert_eq!(printed.matches("--innodb-flush-log-at-trx-commit=2").count(), 1, "{printed}");
}

#[test]
#[ignore = "long: make test-hard"]
fn several_servers_share_a_load_and_each_is_watched_and_put_back() {
    let (place, first, second) = (Place::new(), OwnServer::start(), OwnServer::start());
    let executed = |server: &OwnServer| -> u64 {
        let row = server.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'");
        row.split_whitespace().last().unwrap().parse().unwrap()
    };
    let capacity = |server: &OwnServer| server.sql("SELECT @@GLOBAL.innodb_io_capacity").trim().to_string();
    let before = [&first, &second].map(capacity);
    let dsns = [first.dsn("root", "whyso"), second.dsn("root", "whyso")];
    let twice = output(&mut place.whyso(&["run", "--dsn", &dsns[0], "--dsn", &dsns[0], "--seconds", "1"]));
    assert!(text(&twice.stderr).contains("named twice"), "{}", text(&twice.stderr));
    let five = ["a", "b", "c", "d", "e"].map(|host| format!("--dsn=mysql://{host}/"));
    let mut many = place.whyso(&["run"]);
    let many = output(many.args(five));
    assert!(text(&many.stderr).contains("up to 4 servers"), "{}", text(&many.stderr));
    let args =
        ["run", "oltp-read-write", "--dsn", &dsns[0], "--dsn", &dsns[1], "--set", "innodb_io_capacity=777"];
    let more = ["--users", "4", "--seconds", "4", "--tables", "1", "--rows", "1000", "--no-repeat", "--json"];
    let out = json_of(&output(&mut place.whyso(&[&args[..], &more].concat())));
    let all = [&first, &second].map(executed);
    // Connections take turns: each has half of them.
    assert!(all[0] > 500 && all[1] > 500, "{all:?}");
    assert_eq!([&first, &second].map(capacity), before);
    let path = out["path"].as_str().unwrap();
    let run: Value =
        serde_json::from_slice(&std::fs::read(std::path::Path::new(path).join("run.json")).unwrap()).unwrap();
    let other = &run["nodes"][0];
    assert_eq!((&other["role"], &other["is_loaded"]), (&"server".into(), &true.into()), "{run}");
    let name = other["name"].as_str().unwrap();
    let mut export = place.whyso(&["export", path, "--format", "csv", "--host", name, "--source", "status"]);
    let csv = text(&output(export.args(["--metric", "Questions"])).stdout);
    assert!(csv.lines().count() > 4, "{name}: {csv}");
    // The requests of both servers are in it: those of one alone would leave half of the time open.
    if common::may_trace() {
        assert_closes(&place, path);
    }
    // The same by a recording of a load from elsewhere.
    let load = [
        "load",
        "oltp-point-select",
        "--dsn",
        &dsns[0],
        "--dsn",
        &dsns[1],
        "--users",
        "4",
        "--seconds",
        "60",
    ];
    let mut load = common::spawn(
        place
            .whyso(&[&load[..], &["--rate", "400", "--tables", "1", "--rows", "1000"]].concat())
            .stdout(std::process::Stdio::null()),
    );
    assert!(wait_until(SOON, || common::drives_a_level(load.id())), "the load did not begin");
    let record = ["record", "--dsn", &dsns[0], "--dsn", &dsns[1], "--for", "4s", "--json"];
    let out = json_of(&output(&mut place.whyso(&record)));
    load.kill().unwrap();
    load.wait().unwrap();
    let path = std::path::Path::new(out["path"].as_str().unwrap()).join("run.json");
    let recorded: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    if common::may_trace() {
        // Each server has 200 requests per second.
        let per_s = recorded["levels"][0]["result"]["transactions_per_s"].as_f64().unwrap();
        assert!((350.0..480.0).contains(&per_s), "{per_s}");
    }
}

/// Nearly all of the response time is in parts of the budget.
fn assert_closes(place: &Place, run: &str) {
    let why = json_of(&output(&mut place.whyso(&["why", run, "--json"])));
    let level = &why["levels"][0];
    let number = |name: &str| level[name].as_f64().unwrap_or_else(|| panic!("no {name}: {level}"));
    assert!(number("unaccounted_ms").abs() < 0.05 * number("response_ms"), "{level}");
    assert!(level["budget_ms"]["cpu"].as_f64().unwrap() > 0.0, "{level}");
}

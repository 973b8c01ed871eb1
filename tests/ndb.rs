//! A MySQL Cluster of the build `mysql-cluster`, which `whyso server fetch mysql-cluster` compiles.

mod common;

use std::path::PathBuf;

use common::{Place, SOON, ask, cpu_ns_of_last_seconds, json_of, kill, output, text, wait_until};
use serde_json::Value;

/// The build's folder, in the user's own cache.
fn build() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap();
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let tree = cache.join("whyso/servers/mysql-cluster/tree/usr");
    assert!(tree.is_dir(), "this test needs the build mysql-cluster: whyso server fetch mysql-cluster");
    tree
}

fn nodes(place: &Place) -> Vec<Value> {
    let listed = json_of(&output(&mut place.whyso(&["server", "cluster", "list", "--json"])));
    listed["clusters"][0]["nodes"].as_array().unwrap().clone()
}

fn pid_of(place: &Place, name: &str) -> i32 {
    let nodes = nodes(place);
    let node = nodes.iter().find(|node| node["name"] == name).unwrap();
    node["pid"].as_i64().unwrap() as i32
}

fn start(place: &Place, more: &[&str]) {
    let build = build();
    let mut start = place.whyso(&["server", "cluster", "start", "ndb", "--server", build.to_str().unwrap()]);
    let started = output(start.args(more));
    assert!(started.status.success(), "{}", text(&started.stderr));
}

fn run(place: &Place, more: &[&str]) -> Value {
    let mut run = place.whyso(&["run", "pk-read-2x256", "--cluster", "ndb", "--all-nodes", "--users", "8"]);
    run.args(["--option", "table-size=30000", "--warmup", "1", "--no-repeat", "--json"]);
    let done = output(run.args(more));
    assert!(done.status.success(), "{}{}", text(&done.stdout), text(&done.stderr));
    json_of(&done)
}

#[test]
#[ignore = "long: make test-hard"]
fn a_cluster_of_ndb_is_loaded_explained_and_restarted_under_load() {
    let place = Place::new();
    start(&place, &["--pool", "2", "--data-set", "DataMemory=200M"]);
    let roles: Vec<String> =
        nodes(&place).iter().map(|node| node["role"].as_str().unwrap().to_string()).collect();
    assert_eq!(roles, ["SQL node", "SQL node", "data node", "data node", "manager"]);
    let answer = run(&place, &["--seconds", "4"]);
    assert!(answer["levels"][0]["transactions_per_s"].as_f64() > Some(100.0), "{answer}");
    let dsn = nodes(&place)[1]["dsn"].as_str().unwrap().to_string();
    let engine =
        ask(&dsn, "SELECT ENGINE, TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_NAME = 't1'");
    assert_eq!(engine, "ndbcluster\twhyso", "the other SQL node has it, too");
    let explained = json_of(&output(&mut place.whyso(&["why", "--json"])));
    let of_role = |role: &str| {
        let nodes = explained["nodes"].as_array().unwrap().clone();
        nodes.into_iter().filter(|node| node["role"] == role).collect::<Vec<Value>>()
    };
    for sql_node in of_role("SQL node") {
        assert!(sql_node["statements_per_s"].as_f64() > Some(50.0), "{explained}");
    }
    for data_node in of_role("data node") {
        let share = |key: &str| data_node[key].as_f64().unwrap_or_else(|| panic!("{key}: {data_node}"));
        assert!(share("memory_used") > 0.0 && share("memory_used") < 0.9, "{data_node}");
        assert!(share("cpus") > 0.0 && (0.0..=1.0).contains(&share("in_kernel")), "{data_node}");
        assert!(data_node["applier"]["busy"].as_f64() > Some(0.01), "{data_node}");
    }
    let level = &explained["levels"][0];
    let unaccounted = level["unaccounted_ms"].as_f64().unwrap() / level["response_ms"].as_f64().unwrap();
    assert!(unaccounted.abs() < 0.2, "{explained}");

    let before = ["ndb-data-1", "ndb-data-2", "ndb-1", "ndb-2"].map(|name| pid_of(&place, name));
    let mut restart = place.whyso(&["server", "cluster", "restart", "ndb", "--data-set", "DataMemory=220M"]);
    let mut restarting = common::spawn(&mut restart);
    run(&place, &["--seconds", "90"]);
    assert!(wait_until(SOON, || restarting.try_wait().unwrap().is_some()), "the restart ends");
    let is_new = || {
        ["ndb-data-1", "ndb-data-2", "ndb-1", "ndb-2"]
            .map(|name| pid_of(&place, name))
            .iter()
            .all(|pid| !before.contains(pid))
    };
    assert!(wait_until(SOON, is_new), "every node was restarted");
    assert!(cpu_ns_of_last_seconds(&place, "ndb-data-1") > 0, "it is traced as what it is now");
    let mut export =
        place.whyso(&["export", "latest", "--source", "ndbinfo", "--metric", "memory_total_bytes"]);
    let totals = text(&output(&mut export).stdout);
    let last = totals.lines().rfind(|line| line.contains("data memory")).unwrap();
    assert!(last.contains("230686720"), "the new size: {last}");

    kill(pid_of(&place, "ndb-data-2"), libc::SIGKILL);
    let without = run(&place, &["--seconds", "3"]);
    assert!(
        without["levels"][0]["transactions_per_s"].as_f64() > Some(100.0),
        "one data node holds all: {without}"
    );
    let shown = text(&output(&mut place.whyso(&["server", "cluster", "show", "ndb"])).stdout);
    assert!(shown.contains("ndb-data-2: takes no part"), "{shown}");
    let stopped = output(&mut place.whyso(&["server", "cluster", "stop", "ndb"]));
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn a_start_of_ndb_that_is_killed_leaves_nothing() {
    let place = Place::new();
    let build = build();
    let mut start = place.whyso(&["server", "cluster", "start", "ndb", "--server", build.to_str().unwrap()]);
    let mut child = common::spawn(&mut start);
    let three = || common::server_pids_under(place.path()).len() >= 3;
    assert!(wait_until(SOON, three), "its nodes start");
    kill(child.id() as i32, libc::SIGKILL);
    child.wait().unwrap();
    place.assert_nothing_left();
}

//! `whyso server`: builds by name, and servers that stay until they are stopped.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use common::{Place, json_of, kill, output, server_pids_under, text};
use serde_json::Value;

fn server(place: &Place, arguments: &[&str]) -> Output {
    let mut all = vec!["server"];
    all.extend(arguments);
    output(&mut place.whyso(&all))
}

fn list(place: &Place) -> Value {
    json_of(&server(place, &["list", "--json"]))
}

fn refused(output: &Output, status: i32, part: &str) {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{message}");
    assert!(message.lines().last().is_some_and(|line| line.contains(part)), "{message}");
}

#[test]
fn a_started_server_outlives_the_program_until_it_is_stopped() {
    let place = Place::new();
    let started = server(&place, &["start", "--set", "innodb_flush_log_at_trx_commit=2"]);
    assert!(started.status.success(), "{}", text(&started.stderr));
    refused(&server(&place, &["start"]), 2, "a server 'own' was started already");
    let listed = list(&place);
    assert_eq!(listed["started"][0]["name"], "own");
    let dsn = listed["started"][0]["dsn"].as_str().unwrap();
    assert!(text(&started.stdout).contains(dsn), "start prints how to reach it");

    let load =
        ["load", "oltp-point-select", "--tables", "1", "--rows", "100", "--users", "1", "--seconds", "0.5"];
    let load = output(place.whyso(&load).args(["--warmup", "0", "--json", "--dsn", dsn]));
    assert!(json_of(&load)["levels"][0]["transactions"].as_u64().unwrap() > 0);

    refused(&server(&place, &["stop", "other"]), 2, "no server 'other' was started to be kept: own were");
    assert_eq!(text(&server(&place, &["stop"]).stdout), "stopped own\n");
    assert!(server_pids_under(place.path()).is_empty());
    assert_eq!(list(&place)["started"], Value::Array(Vec::new()));
    assert_eq!(text(&server(&place, &["stop"]).stdout), "no server was started to stay\n");
}

#[test]
fn a_process_that_only_has_the_server_s_number_is_not_ended() {
    let place = Place::new();
    assert!(server(&place, &["start"]).status.success());
    let pid = server_pids_under(place.path())[0];
    let folder =
        list(&place)["started"][0]["dsn"].as_str().unwrap().split("socket=").nth(1).map(PathBuf::from);
    let state_path = folder.unwrap().with_file_name("state.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&state_path).unwrap()).unwrap();
    // as if another process had the number since
    state["server"]["start_ticks"] = 1.into();
    fs::write(&state_path, state.to_string()).unwrap();

    let stopped = server(&place, &["stop"]);
    assert!(
        text(&stopped.stderr).contains("runs in another container or on another host"),
        "{}",
        text(&stopped.stderr)
    );
    assert!(state_path.exists(), "what a running server needs stays");
    assert_eq!(server_pids_under(place.path()), [pid], "it runs on");
    kill(pid, libc::SIGKILL);
}

#[test]
fn a_folder_gets_a_name_and_is_used_by_it() {
    let place = Place::new();
    let added = server(&place, &["add", "mine", "/usr"]);
    assert!(text(&added.stdout).starts_with("mine: MariaDB "), "{}", text(&added.stderr));
    let listed = list(&place);
    let builds = listed["builds"].as_array().unwrap();
    let mine = builds.iter().find(|build| build["name"] == "mine").unwrap();
    assert_eq!((&mine["at_hand"], &mine["from"]), (&true.into(), &"/usr".into()));

    let servers = place.servers();
    let load =
        ["load", "oltp-point-select", "--server", "mine", "--tables", "1", "--rows", "100", "--users", "1"];
    let mut load = place.whyso(&load);
    load.args(["--seconds", "0.5", "--warmup", "0", "--json", "--server-dir", servers.to_str().unwrap()]);
    assert!(json_of(&output(&mut load))["levels"][0]["transactions"].as_u64().unwrap() > 0);

    assert_eq!(text(&server(&place, &["remove", "mine"]).stdout), "removed mine\n");
    let gone = output(&mut place.whyso(&["load", "oltp-point-select", "--server", "mine"]));
    refused(&gone, 2, "there is no folder 'mine', and no build of that name");
}

#[test]
fn what_does_not_exist_is_reported_in_one_sentence() {
    let place = Place::new();
    refused(&server(&place, &["fetch", "mysql-3.23"]), 2, "there is no build 'mysql-3.23' to fetch");
    refused(&server(&place, &["add", "mysql-5.5", "/usr"]), 2, "choose another name");
    refused(&server(&place, &["add", "../x", "/usr"]), 2, "is no name for a build");
    refused(&server(&place, &["add", "x", "/etc"]), 1, "there is no mariadbd or mysqld in '/etc'");
    let missing = output(&mut place.whyso(&["run", "--server", "mysql-5.5"]));
    refused(&missing, 2, "fetch it with `whyso server fetch mysql-5.5`");
    let mut without_maven = place.whyso(&["server", "fetch", "mysql-5.5"]);
    let without_maven = output(without_maven.env("PATH", place.path()));
    let message = text(&without_maven.stderr);
    assert_eq!(without_maven.status.code(), Some(1), "{message}");
    assert!(message.contains("'mvn' is needed for this and is not on the PATH"), "{message}");
    assert_eq!(list(&place)["builds"][1]["at_hand"], false, "nothing half finished is left");
}

//! Which object: row locks by table, index and holder, of a run with a planted hot row, and of a server now.

// Runs alone: it judges shares of waits.

mod common;

use std::fs;
use std::process::Command;

use common::{OwnServer, Place, finish, json_of, output, spawn, text};
use serde_json::Value;

const HOT_ROW: &str = "UPDATE sbtest1 SET k = k + 1 WHERE id = 7;\n";

fn locks(place: &Place, more: &[&str]) -> Value {
    let run = place.only_run();
    let mut arguments = vec!["locks", run.to_str().unwrap(), "--json"];
    arguments.extend(more);
    json_of(&output(&mut place.whyso(&arguments)))
}

#[test]
fn a_hot_row_is_named_with_its_table_its_index_and_who_holds_it() {
    let place = Place::new();
    // A transaction of two statements: its lock is held from the first one to the commit.
    let script = format!("BEGIN;\n{HOT_ROW}SELECT SLEEP(0.002);\nCOMMIT;\n");
    fs::write(place.path().join("hot.sql"), script).unwrap();
    let levels = ["--users", "1,8", "--seconds", "6", "--no-repeat", "--json", "--allow-writes", "whyso"];
    let done = json_of(&output(&mut place.run_of("hot.sql", &levels)));
    assert_eq!(done["levels"][1]["users"], 8, "{done}");

    let found = locks(&place, &[]);
    let object = &found["objects"][0];
    assert_eq!(
        (&object["lock"], &object["object"], &object["index"]),
        (&"row".into(), &"whyso.sbtest1".into(), &"PRIMARY".into())
    );
    assert!(object["share"].as_f64().unwrap() >= 0.9, "{found:#}");
    assert!(object["samples"].as_u64().unwrap() >= 20, "{found:#}");
    assert!(
        object["statement"].as_str().unwrap().contains("UPDATE sbtest1 SET k = k + ? WHERE id = ?"),
        "{found:#}"
    );
    let held_by = &object["held_by"]["statement"];
    assert!(
        held_by
            .as_str()
            .is_some_and(|statement| statement.contains("SLEEP(?)") || statement.contains("UPDATE sbtest1")),
        "{found:#}"
    );
    // Seven of eight users wait most of the time; InnoDB's own sum of finished waits agrees.
    let waited_s = object["waited_s"].as_f64().unwrap();
    let counted_s = found["row_locks_counted"]["waited_s"].as_f64().unwrap();
    assert!((20.0..=48.0).contains(&waited_s), "{found:#}");
    assert!((waited_s / counted_s - 1.0).abs() < 0.25, "{waited_s} s by samples, {counted_s} s by InnoDB");

    let alone = locks(&place, &["--users", "1"]);
    assert_eq!(alone["objects"], Value::Array(Vec::new()), "nobody waits for oneself: {alone:#}");
    assert!(alone["not_measured"][0].as_str().unwrap().contains("performance_schema=ON"), "{alone:#}");

    let run = place.only_run();
    let shown = text(&output(&mut place.whyso(&["locks", run.to_str().unwrap()])).stdout);
    assert!(shown.contains("whyso.sbtest1 (PRIMARY)"), "{shown}");
    let why = text(&output(&mut place.whyso(&["why", run.to_str().unwrap(), "--users", "8"])).stdout);
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains("waited for whyso.sbtest1 (PRIMARY), held by"), "{why}");
    assert!(why.contains("Evidence:") && why.contains("lock_waits waiting row"), "{why}");
    place.assert_nothing_left();
}

#[test]
fn of_a_server_now_it_shows_who_waits_for_whom() {
    let place = Place::new();
    let server = OwnServer::start();
    let client = |sql: &str| {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "-uroot", "-S"]).arg(server.socket()).args(["-e", sql]);
        command
    };
    let prepared = output(&mut client(
        "CREATE DATABASE t; CREATE TABLE t.accounts (id INT PRIMARY KEY, v INT) ENGINE=InnoDB; INSERT INTO t.accounts VALUES (1, 1)",
    ));
    assert!(prepared.status.success(), "{}", text(&prepared.stderr));
    let update = "UPDATE t.accounts SET v = v + 1 WHERE id = 1";
    let mut holder = spawn(&mut client(&format!("BEGIN; {update}; SELECT SLEEP(120)")));
    let dsn = server.dsn("root", "t");
    let ask_locks = || json_of(&output(&mut place.whyso(&["locks", "--dsn", &dsn, "--json"])));
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(ask_locks()["waiting"], 0);
    let mut waiter = spawn(&mut client(update));
    let mut waiting = Value::Null;
    common::wait_until(common::SOON, || {
        // InnoDB makes its tables of locks anew only when nobody has read them for 0.1 s.
        std::thread::sleep(std::time::Duration::from_millis(200));
        waiting = ask_locks();
        waiting["waiting"] == 1
    });
    let root = &waiting["trees"][0];
    assert_eq!(root["statement"], "SELECT SLEEP(?)", "{waiting:#}");
    let waits = &root["waiters"][0]["waits"];
    assert_eq!((&waits["object"], &waits["index"]), (&"t.accounts".into(), &"PRIMARY".into()), "{waiting:#}");
    let shown = text(&output(&mut place.whyso(&["locks", "--dsn", &dsn])).stdout);
    assert!(
        shown.contains("1 connection waits for a lock now.")
            && shown.contains("row lock X on t.accounts (PRIMARY)"),
        "{shown}"
    );
    for child in [&mut holder, &mut waiter] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn where_there_is_no_run_it_says_so() {
    let place = Place::new();
    let asked = finish(spawn(&mut place.whyso(&["locks"])), common::SOON);
    assert_eq!(asked.status.code(), Some(2));
    assert!(text(&asked.stderr).contains("there is no run in runs yet"), "{}", text(&asked.stderr));
}

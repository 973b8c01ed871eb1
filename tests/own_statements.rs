//! Whyso's own statements among those of the server: hidden in `whyso pfs RUN digests`, unless a client sent the same.

mod common;

use std::thread::sleep;
use std::time::Duration;

use common::bare_client::{COM_INIT_DB, Client};
use common::{OwnServer, Place, SOON, finish, json_of, kill, output, spawn, text};
use serde_json::Value;

/// Digests are read every five seconds.
const READINGS: Duration = Duration::from_secs(7);
const SAME: &str = "SHOW GLOBAL STATUS";
/// What samplers' connections have as their default schema.
const SCHEMA: &str = "information_schema";

/// A client that sends what whyso sends, too: in a schema where nobody else is, and where whyso's connections are.
fn send(server: &OwnServer) {
    let mut client = Client::log_in(&server.socket());
    for _ in 0..4 {
        client.query(SAME);
    }
    client.command(COM_INIT_DB, SCHEMA.as_bytes());
    for _ in 0..3 {
        client.query(SAME);
    }
}

fn name(line: &Value) -> &str {
    line["name"].as_str().unwrap()
}

/// MariaDB ends a digest's text with a blank.
fn is_same(line: &Value) -> bool {
    line["text"].as_str().is_some_and(|text| text.trim_end() == SAME)
}

#[test]
fn whysos_own_statements_are_hidden_and_a_clients_never_are() {
    let (place, server) = (Place::new(), OwnServer::start_with(&["--performance-schema=ON"]));
    let dsn = server.dsn("root", "");
    let recording = spawn(&mut place.whyso(&["record", "--dsn", &dsn, "--no-trace", "--json"]));
    sleep(READINGS);
    send(&server);
    sleep(READINGS);
    kill(recording.id() as i32, libc::SIGINT);
    let run = json_of(&finish(recording, SOON))["path"].as_str().unwrap().to_string();

    let digests = |more: &[&str]| output(place.whyso(&["pfs", &run, "digests", "--limit", "500"]).args(more));
    let found = json_of(&digests(&["--json"]));
    let of_schema = |lines: &Value, schema: &str| -> Vec<Value> {
        let lines = lines.as_array().unwrap().iter();
        lines.filter(|line| name(line).split(':').next() == Some(schema)).cloned().collect()
    };
    // What whyso and the client sent in one schema is one digest of the server's: it stays, with its counts.
    let both = of_schema(&found["lines"], SCHEMA);
    assert_eq!(both.len(), 1, "{both:#?}");
    assert!(is_same(&both[0]), "{both:#?}");
    let [count, own] = ["count", "own_count"].map(|key| both[0][key].as_f64().unwrap());
    assert!(own >= 10.0 && (2.9..4.5).contains(&(count - own)), "{own} of {count}");
    // In a schema of its own the client's statement has nothing of whyso's.
    let theirs = of_schema(&found["lines"], "");
    let theirs = theirs.iter().find(|line| is_same(line)).unwrap_or_else(|| panic!("{found:#}"));
    assert!(theirs["count"].as_f64().unwrap() > 3.9 && theirs["own_count"].is_null(), "{theirs}");
    // All else that samplers ask is whyso's own.
    let hidden = of_schema(&found["observer"], SCHEMA);
    assert!(hidden.len() >= 5, "{found:#}");
    assert!(
        hidden.iter().any(|line| line["text"].as_str().is_some_and(|text| text.contains("SUM_TIMER_WAIT")))
    );

    let shown = text(&digests(&[]).stdout);
    assert!(
        shown.contains("[whyso: ") && shown.contains(&format!("Not shown: {} statements", hidden.len())),
        "{shown}"
    );
    assert!(!shown.contains("SUM_TIMER_WAIT"), "{shown}");
    let shown = text(&digests(&["--observer"]).stdout);
    assert!(
        shown.contains("SUM_TIMER_WAIT") && shown.contains("[whyso] ") && !shown.contains("Not shown"),
        "{shown}"
    );
}

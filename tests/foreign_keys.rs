//! Deadlocks on the parent row of a foreign key: the row is named however the server is watched.

// Runs alone: it judges shares of waits.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{OwnServer, Place, json_of, output};
use serde_json::Value;

/// Each child locks its parent's row to share it, and the counter in the same row is updated then: two that have shared it deadlock.
const CHILDREN: &str = "\
-- \\setup SELECT COUNT(*) = 4 FROM parent
CREATE TABLE parent (id INT PRIMARY KEY, children INT NOT NULL) ENGINE=InnoDB;
CREATE TABLE child (id BIGINT AUTO_INCREMENT PRIMARY KEY, parent INT NOT NULL, FOREIGN KEY (parent) REFERENCES parent (id)) ENGINE=InnoDB;
INSERT INTO parent VALUES (1, 0), (2, 0), (3, 0), (4, 0);
-- \\transaction add
-- \\set parent random(1, 4)
BEGIN;
INSERT INTO child (parent) VALUES (:parent);
UPDATE parent SET children = children + 1 WHERE id = :parent;
COMMIT;
";

fn why(place: &Place, run: &Path) -> Value {
    json_of(&output(&mut place.whyso(&["why", run.to_str().unwrap(), "--json"])))
}

/// Locks of rows hold time, more than is unknown, and the parent's row is named; deadlocks are named at least as possible.
#[track_caller]
fn assert_named(why: &Value) {
    let all = |list: &str| why[list].as_array().unwrap().clone();
    let share = |cause: &str| -> f64 {
        let found = all("suspects").into_iter().find(|suspect| suspect["id"] == cause);
        found.map_or(0.0, |suspect| suspect["share"].as_f64().unwrap())
    };
    let of_rows = share("deadlock") + share("row-lock");
    assert!(of_rows > 0.15 && of_rows > share("unknown"), "{why:#}");
    let named = [all("suspects"), all("possible")].concat();
    let text = |cause: &str| {
        let found = named.iter().find(|suspect| suspect["id"] == cause);
        found.map_or(String::new(), |suspect| suspect["text"].as_str().unwrap().to_string())
    };
    assert!(text("deadlock").contains("whyso.parent (PRIMARY)"), "{why:#}");
}

#[test]
#[ignore = "long: make test-hard"]
fn deadlocks_on_a_parents_row_are_named_in_runs_and_recordings_traced_or_not() {
    let place = Place::new();
    let file = place.path().join("children.sql");
    fs::write(&file, CHILDREN).unwrap();
    let file = file.to_str().unwrap();
    // A commit waits for no disk, so that rows are what is waited for.
    let server = OwnServer::start_with(&["--innodb-flush-log-at-trx-commit=0"]);
    let dsn = server.dsn("root", "whyso");
    let load = [file, "--dsn", &dsn, "--users", "16", "--seconds", "8", "--warmup", "0"];
    for tracing in [&[][..], &["--no-trace"]] {
        let out = json_of(&output(&mut place.whyso(&[&["run", "--json"][..], &load, tracing].concat())));
        assert!(out["levels"][0]["errors_by_code"].to_string().contains("1213"), "no deadlocks: {out:#}");
        assert_named(&why(&place, &PathBuf::from(out["path"].as_str().unwrap())));

        let program = env!("CARGO_BIN_EXE_whyso");
        let record =
            [&["record", "--dsn", &dsn, "--json"], tracing, &["--", program, "load"], &load].concat();
        let out = json_of(&output(&mut place.whyso(&record)));
        assert_named(&why(&place, &PathBuf::from(out["path"].as_str().unwrap())));
    }
}

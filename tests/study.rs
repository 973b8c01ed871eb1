//! `whyso study` on real servers: carried out, broken off at a bad moment, gone on with, and answered.

mod common;

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use common::{Place, SOON, finish, json_of, kill, output, spawn, text, wait_until};
use serde_json::Value;

const STUDY: &str = r#"
title = "Binary log"
question = "What does a binary log that is synced at every commit cost?"
workload = "oltp-update-non-index"
tables = 1
rows = 1000
users = [2]
seconds = 1.5
warmup = 0
repeats = 2
baseline = "off"
trace = false
matters_percent = 5

[[variant]]
name = "off"

[[variant]]
name = "same"

[[variant]]
name = "on"
set = { log_bin = "binlog", sync_binlog = 1 }
"#;

fn starts_done(place: &Place) -> usize {
    fs::read_to_string(place.path().join("study/starts.jsonl")).unwrap_or_default().lines().count()
}

#[test]
fn a_study_that_is_killed_goes_on_where_it_was_and_answers() {
    let place = Place::new();
    let file = place.path().join("binlog.toml");
    fs::write(&file, STUDY).unwrap();
    let plan = output(&mut place.whyso(&["study", "run", "binlog.toml", "--dry-run"]));
    let plan = text(&plan.stdout);
    assert!(plan.contains("3 cells, 6 starts") && plan.matches("block ").count() == 2, "{plan}");

    let child = spawn(&mut place.whyso(&["study", "run", "binlog.toml", "--out", "study"]));
    assert!(wait_until(SOON * 3, || starts_done(&place) >= 2), "no start came to its end");
    // In the middle of the next one.
    sleep(Duration::from_millis(700));
    kill(child.id() as i32, libc::SIGKILL);
    finish(child, SOON);
    let before = fs::read_to_string(place.path().join("study/starts.jsonl")).unwrap();
    let done = before.lines().count();
    assert!((2..6).contains(&done), "{before}");

    let again = output(&mut place.whyso(&["study", "run", "binlog.toml", "--out", "study"]));
    assert!(!again.status.success() && text(&again.stderr).contains("whyso study resume"), "{again:?}");
    let answer = json_of(&output(&mut place.whyso(&["study", "resume", "study", "--json"])));
    let after = fs::read_to_string(place.path().join("study/starts.jsonl")).unwrap();
    assert!(after.starts_with(&before), "what was done was done again");
    let starts: Vec<Value> =
        after.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["start"].clone()).collect();
    assert!(starts.iter().all(|one| starts.iter().filter(|other| *other == one).count() == 1), "{after}");
    assert_eq!((starts.len(), &answer["starts_done"], &answer["starts"]), (6, &6.into(), &6.into()));
    let runs = fs::read_dir(place.path().join("study/runs")).unwrap().count();
    assert_eq!(runs, 6, "of a start that was killed nothing is left");

    let lines = answer["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 3);
    let mean = |at: usize| lines[at]["spread"]["mean"].as_f64().unwrap();
    assert!(mean(0) > 0.0 && mean(2) > 0.0, "{answer:#}");
    assert_eq!(lines[0]["is_baseline"], true);
    assert_eq!(lines[2]["compared"]["effect"]["blocks"], 2);
    let shown = text(&output(&mut place.whyso(&["study", "show", "study", "--markdown"])).stdout);
    assert!(shown.contains("# Binary log") && shown.contains("6 of 6 starts"), "{shown}");
    let listed = text(&output(&mut place.whyso(&["study", "list", "."])).stdout);
    assert!(listed.contains("6 of 6 starts   Binary log"), "{listed}");
}

#[test]
fn what_is_wrong_with_a_study_is_said_before_anything_starts() {
    let place = Place::new();
    let refused = |from: &str, to: &str| {
        fs::write(place.path().join("s.toml"), STUDY.replace(from, to)).unwrap();
        let done = output(&mut place.whyso(&["study", "run", "s.toml"]));
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        text(&done.stderr)
    };
    assert!(refused("users =", "usrs =").contains("did you mean `users`?"));
    assert!(refused("baseline = \"off\"", "baseline = \"of\"").contains("such as \"off\""));
    assert!(refused("trace = false", "trace = false\noptions = { range-sice = 7 }").contains("range-sice"));
    let preset = refused("name = \"same\"", "name = \"same\"\npfs = \"globl\"");
    assert!(preset.contains("same: ") && preset.contains("globl"), "{preset}");
    assert!(!place.path().join("studies-run").exists());
}

#[test]
fn every_study_that_ships_can_be_planned_in_both_forms() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        for more in [&[][..], &["--quick"]] {
            let mut arguments = vec!["study", "run", file.to_str().unwrap(), "--dry-run"];
            arguments.extend(more);
            let done = output(&mut place.whyso(&arguments));
            assert!(done.status.success() && text(&done.stdout).contains("block 1: "), "{done:?}");
        }
    }
}

//! `whyso study` on real servers: carried out, broken off at a bad moment, gone on with, and answered.

// Runs alone: it judges differences of throughput.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::Duration;

use common::served::RunServer;
use common::{OwnServer, Place, SOON, finish, json_of, kill, output, spawn, text, wait_until};
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
design = "blocks"
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
    assert!(plan.contains("3 cells, 8 starts") && plan.matches("block ").count() == 2, "{plan}");
    assert!(plan.contains("first twice") && plan.contains(": off"), "{plan}");

    let child = spawn(&mut place.whyso(&["study", "run", "binlog.toml", "--out", "study"]));
    assert!(wait_until(SOON * 3, || starts_done(&place) >= 2), "no start came to its end");
    // In the middle of the next one.
    sleep(Duration::from_millis(700));
    kill(child.id() as i32, libc::SIGKILL);
    finish(child, SOON);
    let before = fs::read_to_string(place.path().join("study/starts.jsonl")).unwrap();
    let done = before.lines().count();
    assert!((2..8).contains(&done), "{before}");

    let again = output(&mut place.whyso(&["study", "run", "binlog.toml", "--out", "study"]));
    assert!(!again.status.success() && text(&again.stderr).contains("whyso study resume"), "{again:?}");
    assert!(!place.path().join("study/report.html").exists(), "it has not come to its end");
    let resumed = output(&mut place.whyso(&["study", "resume", "study", "--json"]));
    let answer = json_of(&resumed);
    assert!(text(&resumed.stderr).contains("study/report.html"), "{resumed:?}");
    let page = fs::read_to_string(place.path().join("study/report.html")).unwrap();
    assert!(page.contains("id=\"whyso-study\"") && page.contains("What does a binary log"));
    let again = output(&mut place.whyso(&["study", "report", "study", "-o", "page.html"]));
    assert!(again.status.success() && again.stdout.is_empty(), "{again:?}");
    assert_eq!(fs::read_to_string(place.path().join("page.html")).unwrap(), page);
    let after = fs::read_to_string(place.path().join("study/starts.jsonl")).unwrap();
    assert!(after.starts_with(&before), "what was done was done again");
    let starts: Vec<Value> =
        after.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["start"].clone()).collect();
    assert!(starts.iter().all(|start| starts.iter().filter(|other| *other == start).count() == 1), "{after}");
    assert_eq!((starts.len(), &answer["starts_done"], &answer["starts"]), (8, &8.into(), &8.into()));
    assert_eq!(starts.iter().filter(|start| start["pair"] == true).count(), 2);
    let runs = fs::read_dir(place.path().join("study/runs")).unwrap().count();
    assert_eq!(runs, 8, "of a start that was killed nothing is left");

    let lines = answer["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 3);
    let mean = |at: usize| lines[at]["spread"]["mean"].as_f64().unwrap();
    assert!(mean(0) > 0.0 && mean(2) > 0.0, "{answer:#}");
    assert_eq!(lines[0]["is_baseline"], true);
    assert_eq!(lines[2]["compared"]["effect"]["blocks"], 2);
    assert_eq!(answer["pair"]["levels"][0]["users"], 2);
    assert!(
        answer["overhead_percent"].as_f64().is_some_and(|percent| (0.0..100.0).contains(&percent)),
        "{answer:#}"
    );
    let shown = text(&output(&mut place.whyso(&["study", "show", "study", "--markdown"])).stdout);
    assert!(shown.contains("# Binary log") && shown.contains("8 of 8 starts"), "{shown}");
    let listed = text(&output(&mut place.whyso(&["study", "list", "."])).stdout);
    assert!(listed.contains("8 of 8 starts   Binary log"), "{listed}");

    // The page lists it next to the runs, and shows what its own page shows.
    fs::create_dir_all(place.runs()).unwrap();
    let served = RunServer::start(&place, &["--studies", "."]);
    let (status, list) = served.get("/studies");
    assert_eq!((status, list["studies"].as_array().unwrap().len()), (200, 1), "{list}");
    let study = &list["studies"][0];
    assert_eq!((&study["id"], &study["title"]), (&"study".into(), &"Binary log".into()), "{study}");
    assert_eq!((&study["done"], &study["starts"]), (&8.into(), &8.into()), "{study}");
    assert!(!study["verdict"].as_str().unwrap().is_empty() && !study["servers"][0].is_null(), "{study}");
    let (status, head) = served.get("/studies/study");
    assert_eq!((status, &head["question"]), (200, &study["question"]), "{head}");
    for nothing in ["/studies/..", "/studies/nothing", "/studies/%2e%2e%2fstudy"] {
        assert_eq!(served.get(nothing).0, 404, "{nothing}");
    }
}

#[test]
fn what_is_wrong_with_a_study_is_reported_before_anything_starts() {
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
    let knob = refused("sync_binlog = 1", "sync_binlg = 1");
    assert!(knob.contains("on: MariaDB") && knob.contains("did you mean `sync_binlog`?"), "{knob}");
    assert!(refused("trace = false", "metric = 'tps'").contains("no measure"));
    assert!(refused("trace = false", "workload_ = 1").contains("did you mean `workload`?"));
    assert!(refused("trace = false", "servers = ['nowhere']").contains("nowhere"));
    let preset = refused("name = \"same\"", "name = \"same\"\npfs = \"globl\"");
    assert!(preset.contains("same: ") && preset.contains("globl"), "{preset}");
    assert!(!place.path().join("studies-run").exists());
}

/// Issue: a dry run executed the file's own server program.
#[test]
fn a_study_runs_no_program_of_its_file_unless_that_is_allowed() {
    let place = Place::new();
    let bin = place.path().join("evil/bin");
    fs::create_dir_all(&bin).unwrap();
    let server = bin.join("mysqld");
    let ran = place.path().join("it-ran");
    fs::write(&server, format!("#!/bin/sh\ntouch {}\nexit 1\n", ran.display())).unwrap();
    fs::set_permissions(&server, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(
        place.path().join("s.toml"),
        STUDY.replace("trace = false", "trace = false\nservers = ['./evil']"),
    )
    .unwrap();

    let dry = output(&mut place.whyso(&["study", "run", "s.toml", "--dry-run"]));
    assert!(dry.status.success(), "{dry:?}");
    assert!(text(&dry.stdout).contains("the server in ./evil"), "{}", text(&dry.stdout));
    let refused = output(&mut place.whyso(&["study", "run", "s.toml"]));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(text(&refused.stderr).contains("--allow-programs"), "{}", text(&refused.stderr));
    assert!(!ran.exists(), "the file's server was started");

    let allowed = output(&mut place.whyso(&["study", "run", "s.toml", "--allow-programs"]));
    assert!(!allowed.status.success() && ran.exists(), "{allowed:?}");
}

#[test]
fn every_study_that_ships_can_be_planned_in_both_forms() {
    let place = Place::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let files: Vec<_> = files.into_iter().filter(|file| file.is_file()).collect();
    assert!(files.len() >= 15, "{files:?}");
    for file in files {
        // What asks for a server that is not on every machine is checked up to there.
        let text_of_file = fs::read_to_string(&file).unwrap();
        let builds = ["mysql-sid", "mysql-cluster"];
        let build = builds.iter().find(|build| text_of_file.contains(&format!("servers = [\"{build}\"]")));
        for more in [&[][..], &["--quick"]] {
            let mut arguments = vec!["study", "run", file.to_str().unwrap(), "--dry-run"];
            arguments.extend(more);
            let done = output(&mut place.whyso(&arguments));
            let is_fetched =
                |build: &&str| text(&done.stderr).contains(&format!("whyso server fetch {build}"));
            let absent = build.is_some_and(is_fetched);
            assert!(absent || done.status.success() && text(&done.stdout).contains("\nblock 1"), "{done:?}");
        }
    }
}

/// A study that ships, in a still shorter form than its own.
fn shipped(place: &Place, name: &str, quick: &[(&str, &str)]) -> Value {
    let path = format!("{}/../../studies/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let mut text = fs::read_to_string(path).unwrap();
    for (from, to) in quick {
        assert!(text.contains(from), "{name} has no {from:?}");
        text = text.replace(from, to);
    }
    fs::create_dir_all(place.path().join("sql")).unwrap();
    let sql = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/sql/rewrites.sql");
    fs::copy(sql, place.path().join("sql/rewrites.sql")).unwrap();
    fs::write(place.path().join("s.toml"), text).unwrap();
    json_of(&output(&mut place.whyso(&["study", "run", "s.toml", "--quick", "--out", name, "--json"])))
}

#[test]
#[ignore = "long: make test-hard"]
fn rewrites_of_queries_read_fewer_rows_and_are_faster() {
    let place = Place::new();
    let shorter =
        [("seconds = 2\nwarmup = 1\nrepeats = 4\n", "seconds = 2\nwarmup = 0\nrepeats = 1\npair = false\n")];
    let answer = shipped(&place, "query-rewrites", &shorter);
    let line = |variant: &str| {
        let lines = answer["lines"].as_array().unwrap();
        lines
            .iter()
            .find(|line| line["variant"] == variant)
            .unwrap_or_else(|| panic!("no {variant}: {answer:#}"))
    };
    let rows = |variant: &str| line(variant)["beside"]["rows_read_per_transaction"].as_f64().unwrap();
    let ratio = |variant: &str| line(variant)["compared"]["effect"]["ratio"].as_f64().unwrap();
    // What the tables are makes these: 18,000 events, pages of 20 rows.
    assert!(rows("order without index") > 12_000.0 && rows("order by the index") < 30.0, "{answer:#}");
    assert!(rows("page by key") < 30.0 && rows("page by OFFSET") > 1000.0, "{answer:#}");
    assert!(ratio("order by the index") > 20.0 && ratio("page by key") > 3.0, "{answer:#}");
    assert_eq!(line("page by key")["against"], "page by OFFSET");
    assert_eq!(line("subquery")["is_baseline"], true);
}

#[test]
fn a_session_s_knob_is_swept_within_each_start() {
    let place = Place::new();
    let shorter = [
        (
            "values = { from = \"64K\", to = \"12864K\", step = \"256K\" }",
            "values = [\"64K\", \"256K\", \"16M\"]",
        ),
        ("repeats = 3\npair = false", "repeats = 2\npair = false"),
    ];
    let answer = shipped(&place, "sort-buffer", &shorter);
    let curve = &answer["curves"][0];
    let points = curve["points"].as_array().unwrap();
    assert_eq!((curve["starts"].as_u64(), points.len()), (Some(2), 3), "{answer:#}");
    let passes = |at: usize| points[at]["status"]["Sort_merge_passes"].as_f64().unwrap();
    assert!(passes(0) > passes(1) && passes(1) > 0.0 && passes(2) == 0.0, "{curve:#}");
    assert!(
        points.iter().all(|point| point["ms"].as_f64().unwrap() > 1.0 && point["ms95"].is_array()),
        "{curve:#}"
    );
    let shown = text(&output(&mut place.whyso(&["study", "show", "sort-buffer"])).stdout);
    assert!(shown.contains("Sort_merge_passes/execution") && shown.contains("16,777,216"), "{shown}");
}

#[test]
#[ignore = "long: make test-hard"]
fn servers_that_stand_ready_together_are_loaded_in_turns() {
    let place = Place::new();
    let duet =
        STUDY.replace("\"blocks\"", "\"duet\"\nshow = [\"server_cpu_us_per_transaction\"]\npair = false");
    fs::write(place.path().join("binlog.toml"), duet).unwrap();
    let plan = output(&mut place.whyso(&["study", "run", "binlog.toml", "--dry-run"]));
    assert!(text(&plan.stdout).contains("block 1, the load in turns: "), "{plan:?}");
    let answer =
        json_of(&output(&mut place.whyso(&["study", "run", "binlog.toml", "--out", "study", "--json"])));
    let lines = answer["lines"].as_array().unwrap();
    assert_eq!((lines.len(), starts_done(&place)), (3, 6), "{answer:#}");
    for line in lines {
        assert_eq!(line["spread"]["starts"], 2, "a block is one fresh start of each: {line}");
        assert!(line["beside"]["server_cpu_us_per_transaction"].as_f64().unwrap() > 1.0, "{line}");
    }
    let of = |at: usize| lines[at]["compared"]["effect"]["ratio"].as_f64().unwrap();
    assert!(of(2) < 0.9 * of(1), "the binary log costs something: {answer:#}");
    assert!(
        !place.path().join("study/runs").exists()
            || fs::read_dir(place.path().join("study/runs")).unwrap().next().is_none()
    );
    place.assert_nothing_left();
}

#[test]
fn a_study_of_a_users_own_server_changes_settings_and_puts_them_back() {
    const SETTING: &str = "SELECT @@GLOBAL.innodb_io_capacity";
    let place = Place::new();
    let server = OwnServer::start();
    let before = server.sql(SETTING);
    let study =
        STUDY.split("[[variant]]").next().unwrap().replace("oltp-update-non-index", "oltp-point-select");
    let variants = "[[variant]]\nname = \"off\"\nset = { innodb_io_capacity = 301 }\n[[variant]]\nname = \"on\"\nset = { innodb_io_capacity = 402 }\n";
    fs::write(place.path().join("own.toml"), format!("{study}pair = false\n{variants}")).unwrap();
    let dsn = server.dsn("root", "");
    let run = |more: &[&str]| {
        output(
            &mut place
                .whyso(&[&["study", "run", "own.toml", "--out", "study", "--dsn", &dsn], more].concat()),
        )
    };
    assert!(text(&run(&[]).stderr).contains("--allow-experiments"));
    let answer = json_of(&run(&["--allow-experiments", "--json"]));
    assert_eq!(answer["starts_done"], 4, "{answer:#}");
    assert!(answer["notes"][0].as_str().unwrap().contains("is not restarted"), "{answer:#}");
    assert_eq!(server.sql(SETTING), before);
    let resumed = output(&mut place.whyso(&["study", "resume", "study"]));
    assert!(text(&resumed.stderr).contains("give its --dsn"), "{resumed:?}");
    // The same on one start: the settings are switched between windows.
    let write = |design: &str| {
        let study = study.replace("design = \"blocks\"", design);
        fs::write(place.path().join("own.toml"), format!("{study}pair = false\n{variants}")).unwrap();
    };
    write("design = \"switch-back\"");
    fs::remove_dir_all(place.path().join("study")).unwrap();
    let switched = json_of(&run(&["--allow-experiments", "--json"]));
    assert_eq!(switched["starts_done"], 4, "{switched:#}");
    assert_eq!(server.sql(SETTING), before);
    write("design = \"duet\"");
    assert!(
        text(&run(&["--allow-experiments"]).stderr)
            .contains("design = \"duet\" needs servers that whyso starts")
    );
    write("cold = true");
    let refused = run(&["--allow-experiments"]);
    assert!(text(&refused.stderr).contains("needs servers that whyso starts"), "{refused:?}");
}

//! `whyso run`, from nothing to a report, and everything that may come in between.

// Runs alone: it judges rates and shares of CPU time.

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::{
    OwnServer, Place, SOON, finish, json_of, kill, output, server_pids_under, spawn, text, wait_until,
};
use serde_json::Value;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// The recording's own account of how it ended, through the program.
fn report_json(place: &Place, run: &Path) -> Value {
    json_of(&output(&mut place.whyso(&["report", run.to_str().unwrap(), "--format", "json"])))
}

#[test]
fn a_run_on_a_throw_away_server_is_explained_and_leaves_nothing_behind() {
    let place = Place::new();
    let out = json_of(&output(&mut place.run(&["--users", "1,2,4", "--seconds", "2", "--json"])));

    let first = [
        "schema", "run", "path", "usable", "unusable", "headline", "answer", "levels", "peak", "usl",
        "findings",
    ];
    assert_eq!(keys(&out)[..11], first, "what makes a result unusable comes before the result");
    assert_eq!(out["usable"].as_bool(), Some(out["unusable"].as_array().unwrap().is_empty()));
    let levels = out["levels"].as_array().unwrap();
    let sweep: Vec<u64> = levels.iter().map(|level| level["users"].as_u64().unwrap()).take(3).collect();
    assert_eq!(sweep, [1, 2, 4]);
    for level in levels {
        for key in [
            "users",
            "seconds",
            "transactions",
            "queries",
            "errors",
            "transactions_per_s",
            "queries_per_s",
            "transactions_per_s_ci95",
            "latency_ms",
            "client",
            "regime",
            "valid",
        ] {
            assert!(keys(level).contains(&key), "{key} is missing in {level}");
        }
        assert_eq!(keys(&level["latency_ms"]), ["mean", "p50", "p95", "p99", "p999", "max"]);
        assert_eq!(keys(&level["client"]), ["cpu_s", "cpu_us_per_query", "max_rss_kb", "saturated"]);
        let transactions = level["transactions"].as_f64().unwrap();
        let seconds = level["seconds"].as_f64().unwrap();
        assert!(transactions > 10.0, "{level}");
        assert!((seconds - 2.0).abs() < 0.2, "{level}");
        // A transaction of oltp-read-write is 20 statements; those under way at the edges make the difference.
        let per_transaction = level["queries"].as_f64().unwrap() / transactions;
        assert!((19.0..21.0).contains(&per_transaction), "{per_transaction} queries a transaction");
        let latency = &level["latency_ms"];
        assert!(
            latency["p50"].as_f64() <= latency["p95"].as_f64()
                && latency["p99"].as_f64() <= latency["max"].as_f64()
        );
        // Little's law holds in a closed loop: users = throughput × response time.
        let users =
            level["transactions_per_s"].as_f64().unwrap() * latency["mean"].as_f64().unwrap() / 1000.0;
        let expected = level["users"].as_f64().unwrap();
        assert!((users / expected - 1.0).abs() < 0.15, "Little's law gives {users} users of {expected}");
    }
    let peak = &out["peak"];
    assert_eq!(keys(peak), ["users", "users_interval", "transactions_per_s"]);
    let findings = out["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["id"] == "peak"));
    for finding in findings {
        assert_eq!(keys(finding), ["id", "text", "evidence"]);
        assert!(!finding["text"].as_str().unwrap().is_empty());
    }

    let run = Path::new(out["path"].as_str().unwrap());
    let html = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(html.len() < 5_000_000, "the report is {} bytes", html.len());
    assert!(run.join("run.json").exists() && run.join("server.log").exists());
    let again = report_json(&place, run);
    assert_eq!(again["findings"], out["findings"], "the same recording gives the same findings");
    assert_eq!(again["levels"], out["levels"]);
    assert_why_has_an_answer(&place, run);
    place.assert_nothing_left();
}

/// `whyso why` of a run of 1, 2 and 4 users.
fn assert_why_has_an_answer(place: &Place, run: &Path) {
    let run = run.to_str().unwrap();
    let why = json_of(&output(&mut place.whyso(&["why", run, "--json"])));
    assert_eq!(keys(&why), ["schema", "levels", "limit", "suspects", "possible", "pauses"]);
    let levels = why["levels"].as_array().unwrap();
    assert_eq!(levels.iter().map(|level| level["users"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 4]);
    for level in levels {
        // Short levels may have too few samples of stacks to be divided.
        let always: Vec<_> =
            keys(level).into_iter().filter(|key| *key != "server_cpu_ms_by_activity").collect();
        assert_eq!(always, ["users", "response_ms", "budget_ms", "unaccounted_ms", "other_clients"]);
        let parts: f64 = level["budget_ms"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
        let sum = parts + level["unaccounted_ms"].as_f64().unwrap();
        assert!((sum / level["response_ms"].as_f64().unwrap() - 1.0).abs() < 1e-6, "{level}");
    }
    assert_eq!(keys(&why["limit"]), ["id", "share", "text"]);
    let suspects = why["suspects"].as_array().unwrap();
    assert!(!suspects.is_empty());
    for suspect in suspects {
        assert_eq!(
            keys(suspect),
            ["id", "share", "class", "predicted_gain", "track_record", "evidence", "text"]
        );
        assert!((0.0..=1.0).contains(&suspect["share"].as_f64().unwrap()), "{suspect}");
        let gain = &suspect["predicted_gain"];
        assert!(
            gain.is_null() || gain["low"].as_f64().unwrap() <= gain["high"].as_f64().unwrap(),
            "{suspect}"
        );
    }
    for possible in why["possible"].as_array().unwrap() {
        assert_eq!(keys(possible), ["id", "text", "evidence"]);
    }
    let answer = output(&mut place.whyso(&["why", run, "--users", "1"]));
    assert!(
        answer.status.success() && text(&answer.stdout).contains("at 1 user"),
        "{}",
        text(&answer.stdout)
    );
    let refused = output(&mut place.whyso(&["why", run, "--users", "3"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("no level of 3 users; it has those of 1, 2, 4"));
    let hidden = json_of(&output(&mut place.whyso(&["why", run, "--json", "--without", "tracer,pfs"])));
    for level in hidden["levels"].as_array().unwrap() {
        assert_eq!(level["budget_ms"], serde_json::json!({}), "no trace, no budget: {level}");
    }
    let refused = output(&mut place.whyso(&["why", run, "--without", "stacks,disk"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("give any of tracer, stacks, waits, pfs"),
        "{}",
        text(&refused.stderr)
    );
}

/// Of the latest run, two seconds within its level, against the two seconds before.
fn assert_a_part_is_explained_by_the_clock(place: &Place) {
    let report = json_of(&output(&mut place.whyso(&["report", "latest", "--format", "json"])));
    let info = fs::read(Path::new(report["path"].as_str().unwrap()).join("run.json")).unwrap();
    let info: Value = serde_json::from_slice(&info).unwrap();
    let anchor = |key: &str| info["anchors"][0][key].as_i64().unwrap();
    let begin_ns = info["levels"][0]["window"]["begin_ns"].as_i64().unwrap();
    let begin_s = (begin_ns - anchor("monotonic_ns") + anchor("wall_ns")) / 1_000_000_000;
    let clock = |after_s: i64| {
        let mut date = std::process::Command::new("date");
        let shown = output(date.args(["-d", &format!("@{}", begin_s + after_s), "+%F %T"]));
        text(&shown.stdout).trim().to_string()
    };
    let part = ["why", "--from", &clock(3), "--to", &clock(5)];
    let shown = output(&mut place.whyso(&part));
    let printed = text(&shown.stdout);
    assert!(printed.starts_with("From ") && printed.contains("Suspects"), "{shown:?}");
    assert!(printed.contains("\nAgainst ") && printed.contains("the first side:"), "{printed}");
    let outside =
        output(&mut place.whyso(&["why", "--from", "2001-01-01 10:05", "--to", "2001-01-01 10:20"]));
    assert_eq!(outside.status.code(), Some(2));
    assert!(text(&outside.stderr).contains("the recording lasts from "), "{outside:?}");
}

#[test]
fn the_answer_and_the_whole_table_are_for_people() {
    let place = Place::new();
    let shown = output(&mut place.run(&["--users", "1,2", "--seconds", "1", "--no-repeat"]));
    let answer = text(&shown.stdout);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    for word in ["Limit: ", "  cause     ", "  users ", "verdict", "whyso why", "latest (", "report.html"] {
        assert!(answer.contains(word), "{word} is missing in:\n{answer}");
    }
    assert!(answer.lines().count() <= 20 && !answer.contains('\u{1b}'), "{answer}");
    let run = place.only_run();
    let mut colored =
        place.run(&["--users", "2", "--seconds", "6s", "--no-repeat", "-v", "--color", "always"]);
    let shown = text(&output(&mut colored).stdout);
    for word in ["users", "TPS", "QPS", "p95", "p99", "idle", "client", "errors", "\u{1b}[1m"] {
        assert!(shown.contains(word), "{word} is missing in:\n{shown}");
    }
    assert_a_part_is_explained_by_the_clock(&place);
    // What reads needs no id.
    let why = common::output(&mut place.whyso(&["why"]));
    assert!(text(&why.stdout).contains("Suspects"), "{why:?}");
    let status = common::output(&mut place.whyso(&["status", "latest~1"]));
    assert!(text(&status.stdout).contains("Com_select"), "{status:?}");
    for format in ["md", "svg"] {
        let report = common::output(&mut place.whyso(&["report", run.to_str().unwrap(), "--format", format]));
        assert!(report.status.success(), "{}", text(&report.stderr));
        assert!(report.stdout.len() > 500);
    }
}

#[test]
fn a_service_level_and_the_engine_are_part_of_the_report() {
    let place = Place::new();
    let mut run =
        place.run(&["--users", "1,2", "--seconds", "2", "--no-repeat", "--engine", "epoll", "--json"]);
    run.args(["--think", "exp:1ms", "--slo", "p99=100s", "--slo", "commit:avg=0.001us"]);
    let done = output(&mut run);
    assert_eq!(done.status.code(), Some(1), "a service level that is not held: {}", text(&done.stderr));
    let out: Value = serde_json::from_slice(&done.stdout).unwrap();
    for level in out["levels"].as_array().unwrap() {
        assert_eq!(level["engine"]["kind"], "epoll");
        assert_eq!(level["pacing"], "closed loop, think 1 ms on average");
        assert_eq!(
            (&level["slo"][0]["held"], &level["slo"][1]["held"]),
            (&Value::Bool(true), &Value::Bool(false))
        );
    }
    let finding = out["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == "service-level");
    let finding_text = finding.unwrap()["text"].as_str().unwrap();
    assert!(finding_text.contains("p99 ≤ 100 s holds at 1 user and 2 users"), "{finding_text}");
    let not_measured = out["findings"].to_string();
    assert!(not_measured.contains("Performance Schema"), "{not_measured}");
    let run = place.only_run();
    let report = output(&mut place.whyso(&["report", run.to_str().unwrap(), "--format", "md"]));
    let report = text(&report.stdout);
    assert!(
        report.contains("Service level") && report.contains("FAIL") && report.contains("epoll"),
        "{report}"
    );
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn an_open_loop_is_recorded_with_its_backlog() {
    let place = Place::new();
    let args = ["--users", "4", "--rate", "50", "--seconds", "3", "--no-repeat", "--json"];
    let out = json_of(&output(&mut place.run(&args)));
    let level = &out["levels"][0];
    assert_eq!(level["pacing"], "open loop, 50/s, poisson");
    assert!((50.0..250.0).contains(&level["arrivals"]["due"].as_f64().unwrap()), "{level}");
    let run = place.only_run();
    let csv = output(&mut place.whyso(&["export", run.to_str().unwrap(), "--metric", "backlog"]));
    assert!(text(&csv.stdout).lines().count() >= 3, "{}", text(&csv.stdout));
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn a_sweep_over_rates_is_reported_and_drawn_against_rates() {
    let place = Place::new();
    let args = ["-v", "--users", "4", "--rate", "20,100000", "--arrivals", "uniform", "--seconds", "2"];
    let done = output(&mut place.run(&args));
    let shown = text(&done.stdout);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(shown.contains("\n  due/s ") && shown.contains("held") && shown.contains("behind"), "{shown}");
    // On a machine that others use up, the generator itself is late, and the level says so.
    let is_judged = shown.contains("The server kept up with 20/s") || shown.contains("held, INVALID");
    assert!(is_judged && !shown.contains("peaks at"), "{shown}");
    let run = place.only_run();
    let out = report_json(&place, &run);
    let rates: Vec<_> = (0..2).map(|level| out["levels"][level]["rate_per_s"].as_f64().unwrap()).collect();
    assert_eq!(
        (rates, out["levels"].as_array().unwrap().len()),
        (vec![20.0, 100_000.0], 2),
        "no level is repeated"
    );
    assert_eq!(out["peak"], Value::Null);
    // What makes a result unusable, such as a busy machine, comes before it.
    let findings = out["findings"].as_array().unwrap();
    let rates = findings.iter().find(|finding| finding["id"] == "rates").unwrap();
    let rates_text = rates["text"].as_str().unwrap();
    assert!(
        rates_text.contains("With 100,000/s due it did not keep up")
            && rates_text.contains("at most 4 at a time"),
        "{rates_text}"
    );
    for (format, words) in [("svg", "transactions due per second (open loop"), ("md", "| due/s | TPS |")] {
        let report = output(&mut place.whyso(&["report", run.to_str().unwrap(), "--format", format]));
        assert!(text(&report.stdout).contains(words), "{format}: {}", text(&report.stdout));
    }
    place.assert_nothing_left();
}

#[test]
fn a_file_of_sql_is_swept_and_its_kinds_of_transactions_are_counted_separately() {
    let place = Place::new();
    let servers = place.servers();
    let file = "-- \\transaction look@3\n-- \\set id random(1, 3)\nSELECT :id;\n-- \\transaction pay@1\nSELECT SLEEP(0.001);\n";
    fs::write(place.path().join("shop.sql"), file).unwrap();
    let args =
        ["run", "shop.sql", "--users", "1,2", "--seconds", "2", "--warmup", "1", "--no-repeat", "--json"];
    let slo = ["--slo", "look:p90=10s", "--slo", "pay:p90=10s"];
    let out =
        json_of(&output(place.whyso(&args).args(slo).args(["--server-dir", servers.to_str().unwrap()])));
    for level in out["levels"].as_array().unwrap() {
        let kinds: Vec<_> =
            level["kinds"].as_array().unwrap().iter().map(|kind| kind["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["look", "pay"]);
        let of_kinds: u64 = (0..2).map(|kind| level["kinds"][kind]["transactions"].as_u64().unwrap()).sum();
        assert_eq!(of_kinds, level["transactions"].as_u64().unwrap());
    }
    let run = place.only_run();
    let markdown =
        text(&output(&mut place.whyso(&["report", run.to_str().unwrap(), "--format", "md"])).stdout);
    assert!(markdown.contains("## Transactions by kind") && markdown.contains("| pay |"), "{markdown}");
    assert!(markdown.contains("p90 ≤ 10 s") && !markdown.contains("## Service level"), "{markdown}");
    // The page's own series of each kind, from the recording.
    let html = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(
        html.contains("transaction:look") && html.contains("\"by_transaction\""),
        "the page has the kinds"
    );
    place.assert_nothing_left();
}

#[test]
fn ctrl_c_ends_the_level_and_still_reports() {
    let place = Place::new();
    let child = spawn(&mut place.run(&["--users", "2,4", "--seconds", "60", "--json"]));
    let pid = child.id() as i32;
    let measuring = wait_until(SOON, || place.runs().exists() && log_of_load_exists(&place));
    assert!(measuring, "no level began");
    std::thread::sleep(Duration::from_secs(4));
    kill(pid, libc::SIGINT);
    let output = finish(child, SOON);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let out: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let levels = out["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 1);
    assert!(levels[0]["transactions"].as_u64().unwrap() > 0);
    assert!(levels[0]["seconds"].as_f64().unwrap() < 30.0);
    let text_of_findings = out["findings"].to_string();
    assert!(text_of_findings.contains("cut-short"), "{text_of_findings}");
    assert!(Path::new(out["path"].as_str().unwrap()).join("report.html").exists());
    place.assert_nothing_left();
}

/// A level has begun: the recording says so in its events.
fn log_of_load_exists(place: &Place) -> bool {
    let Ok(mut runs) = fs::read_dir(place.runs()) else { return false };
    runs.any(|run| {
        run.is_ok_and(|run| fs::read_dir(run.path()).is_ok_and(|mut files| files.next().is_some()))
    })
}

#[test]
#[ignore = "long: make test-hard"]
fn kill_9_leaves_no_server_and_a_recording_that_opens() {
    let place = Place::new();
    let mut child = spawn(&mut place.run(&["--users", "2", "--seconds", "60"]));
    assert!(wait_until(SOON, || log_of_load_exists(&place)), "no recording began");
    std::thread::sleep(Duration::from_secs(6));
    assert!(!server_pids_under(place.path()).is_empty(), "the server runs");
    child.kill().unwrap();
    child.wait().unwrap();

    let server_gone = wait_until(SOON, || server_pids_under(place.path()).is_empty());
    assert!(server_gone, "the server outlived whyso");
    let run = place.only_run();
    let report = output(&mut place.whyso(&["report", run.to_str().unwrap(), "--format", "md"]));
    assert!(report.status.success(), "{}", text(&report.stderr));
    let csv = output(&mut place.whyso(&["export", run.to_str().unwrap(), "--metric", "Questions"]));
    let lines = text(&csv.stdout).lines().count();
    assert!(lines >= 4, "at most the last second is lost: {lines} lines of one metric in about 5 s");
    // The next start sweeps up what may be left.
    output(&mut place.run(&["--users", "1", "--seconds", "1", "--no-repeat", "--json"]));
    place.assert_nothing_left();
}

#[test]
fn a_server_that_dies_in_mid_level_ends_it_with_a_message_and_a_report() {
    let place = Place::new();
    let child = spawn(&mut place.run(&["--users", "2,4", "--seconds", "30", "--json"]));
    assert!(wait_until(SOON, || log_of_load_exists(&place)), "no recording began");
    std::thread::sleep(Duration::from_secs(4));
    for pid in server_pids_under(place.path()) {
        kill(pid, libc::SIGKILL);
    }
    let output = finish(child, SOON);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let message = text(&output.stderr);
    assert!(message.contains("server"), "{message}");
    let out: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(out["levels"][0]["transactions"].as_u64().unwrap() > 0);
    assert!(Path::new(out["path"].as_str().unwrap()).join("report.html").exists());
    place.assert_nothing_left();
}

#[test]
fn a_server_of_the_users_own_keeps_its_settings_and_its_data() {
    let server = OwnServer::start();
    let place = Place::new();
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY); INSERT INTO shop.orders VALUES (7)");
    server.sql("CREATE USER bench@localhost IDENTIFIED BY 'geheim'; GRANT ALL ON *.* TO bench@localhost");
    server.sql("CREATE USER bench@127.0.0.1 IDENTIFIED BY 'geheim'; GRANT ALL ON *.* TO bench@127.0.0.1");
    let before = server.sql("SELECT @@global.innodb_io_capacity");

    // Refused: not ours, and not empty.
    let refused =
        output(&mut place.run(&["--dsn", &server.dsn("root", "shop"), "--users", "1", "--seconds", "1"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("shop"), "{}", text(&refused.stderr));
    assert_eq!(server.sql("SHOW TABLES FROM shop"), "orders");

    // Over TCP with a password from the environment; a schema is created and marked where none is named.
    let dsn = format!("mysql://bench@127.0.0.1:{}/", server.port);
    let mut run = place.run(&["--dsn", &dsn, "--users", "2", "--seconds", "2", "--json", "--no-repeat"]);
    run.args(["--set", "innodb_io_capacity=444", "--at", "1s", "SET GLOBAL innodb_io_capacity=555"]);
    let out = json_of(&output(run.env("MYSQL_PWD", "geheim")));
    assert!(out["levels"][0]["transactions"].as_u64().unwrap() > 0);
    assert_eq!(server.sql("SELECT @@global.innodb_io_capacity"), before, "the setting is put back");
    assert_eq!(server.sql("SELECT COUNT(*) FROM whyso.sbtest1"), "1000");
    assert_eq!(server.sql("SELECT id FROM shop.orders"), "7");
    let run = Path::new(out["path"].as_str().unwrap());
    let recorded = fs::read_to_string(run.join("run.json")).unwrap()
        + &fs::read_to_string(run.join("report.html")).unwrap();
    assert!(!recorded.contains("geheim"), "the password is in the recording");
    let csv = output(&mut place.whyso(&["report", run.to_str().unwrap(), "--format", "md"]));
    assert!(text(&csv.stdout).contains("innodb_io_capacity"), "the change in mid-run is part of the report");

    // A second run finds its data set as it was left.
    let dsn = server.dsn("root", "");
    json_of(&output(&mut place.run(&[
        "--dsn",
        &dsn,
        "--users",
        "1",
        "--seconds",
        "1",
        "--json",
        "--no-repeat",
    ])));
}

#[test]
#[ignore = "long: make test-hard"]
fn a_restart_under_traffic_is_survived_and_reported() {
    let place = Place::new();
    let mut run =
        place.run(&["--users", "2", "--seconds", "12", "--json", "--no-repeat", "--at", "3s", "restart"]);
    let out = json_of(&output(&mut run));
    let level = &out["levels"][0];
    assert!(level["seconds"].as_f64().unwrap() > 11.0, "the level went on to its end: {level}");
    assert!(level["errors"].as_u64().unwrap() > 0, "connections were lost: {level}");
    assert!(out["findings"].to_string().contains("restart"), "{}", out["findings"]);
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn server_and_load_stay_on_their_cpus() {
    let place = Place::new();
    let mut run = place.run(&["--users", "2", "--seconds", "4", "--no-repeat", "--json"]);
    let child = spawn(run.args(["--server-cpus", "0", "--client-cpus", "1 core"]));
    let program = child.id();
    let allowed = |status: &str| {
        let status = fs::read_to_string(status).unwrap_or_default();
        status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:").map(|list| list.trim().to_string()))
    };
    let server_is_held = wait_until(SOON, || {
        let pids = server_pids_under(place.path());
        pids.iter().any(|pid| allowed(&format!("/proc/{pid}/status")).as_deref() == Some("0"))
    });
    assert!(server_is_held, "the server may run on other CPUs than 0");
    let load_is_held = wait_until(SOON, || {
        let Ok(tasks) = fs::read_dir(format!("/proc/{program}/task")) else { return false };
        let held = tasks.flatten().filter(|task| {
            let list = allowed(task.path().join("status").to_str().unwrap());
            list.is_some_and(|list| list == "0")
        });
        held.count() >= 2
    });
    assert!(load_is_held, "the load's threads may run on other CPUs");
    let out = json_of(&finish(child, SOON));
    let recorded = fs::read_to_string(Path::new(out["path"].as_str().unwrap()).join("run.json")).unwrap();
    let recorded: Value = serde_json::from_str(&recorded).unwrap();
    assert_eq!(recorded["spec"]["server_cpus"], serde_json::json!([0]));
    assert_eq!(recorded["spec"]["client_cpus"], serde_json::json!([0]));
    assert!(recorded["spec"]["server_cpus_words"].as_str().unwrap().contains("affinity"));
    place.assert_nothing_left();
}

#[test]
fn bad_input_gets_one_sentence_and_the_right_exit_status() {
    let place = Place::new();
    let missing_socket = "mysql://root@localhost/?socket=/var/tmp/no-such-socket";
    let cases: &[(&[&str], i32, &str)] = &[
        (&["run", "oltp-red-write"], 2, "oltp-read-write"),
        (&["run", "--users", "0"], 2, "--users 0"),
        (&["run", "--users", "many"], 2, "many"),
        (&["run", "--no-such-flag"], 2, "--no-such-flag"),
        (&["run", "--option", "rage-size=5"], 2, "range_size"),
        (&["run", "--rand-type", "zipfish"], 2, "zipfian"),
        (&["run", "--rows", "10", "--range-size", "100"], 2, "rows"),
        (&["run", "--set", "innodb_io_capacity"], 2, "knob=value"),
        (&["run", "--at", "soon", "restart"], 2, "--at"),
        (&["run", "--server-cpus", "12 sockets"], 2, "socket"),
        (&["run", "--dsn", "postgres://x/"], 2, "mysql://"),
        (&["run", "--dsn", missing_socket], 1, "no-such-socket"),
        (&["run", "--think", "soon"], 2, "exp:10ms"),
        (&["run", "--rate", "5", "--think", "1ms"], 2, "give one of them"),
        (&["run", "--rate", "5,10", "--users", "1,2"], 2, "give one number"),
        (&["run", "--min-complete", "4", "--engine", "threads"], 2, "give --engine io-uring"),
        (&["run", "no/such.sql"], 1, "can't read no/such.sql"),
        (&["run", "--slo", "p99=20"], 2, "20ms"),
        (&["run", "--slo", "nothing:p99=20ms"], 2, "point_select"),
        (&["run", "--dsn", "mysql://root@127.0.0.1:1/"], 1, "127.0.0.1:1"),
        (&["run", "--server", "/var/empty-no-such"], 1, "/var/empty-no-such"),
        (&["run", "--set", "no_such_knob=1", "--rows", "1000"], 2, "no_such_knob"),
        (&["report", "no-such-run"], 2, "no-such-run"),
        (&["export", "no-such-run"], 2, "no-such-run"),
    ];
    for (args, status, word) in cases {
        let mut command = place.whyso(args);
        if args[0] == "run" && !args.contains(&"--dsn") {
            command.args(["--server-dir", place.servers().to_str().unwrap()]);
        }
        let output = output(&mut command);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(*status), "{args:?}: {message}");
        assert!(message.contains(word), "{args:?} says: {message}");
        assert!(!message.contains("panicked"), "{args:?}: {message}");
    }
    place.assert_nothing_left();
}

#[test]
fn a_wrong_password_is_reported_and_never_shown() {
    let server = OwnServer::start();
    let place = Place::new();
    let dsn = format!("mysql://nobody:verborgen@127.0.0.1:{}/", server.port);
    let output = output(&mut place.run(&["--dsn", &dsn, "--users", "1", "--seconds", "1"]));
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("nobody"), "{message}");
    assert!(!message.contains("verborgen"), "{message}");
}

#[test]
#[ignore = "long: make test-hard"]
fn a_full_disk_ends_the_run_and_keeps_what_was_recorded() {
    let place = Place::new();
    let disk = place.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=65m", "tmpfs"])
        .arg(&disk)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        // Without root there is no small disk to fill; the recorder's own tests cover it in part.
        whyso_testing::not_tested("a full disk needs root to mount a small file system");
        return;
    }
    fs::write(disk.join("ballast"), vec![1u8; 500 << 10]).unwrap();
    let mut run = place.run(&["--users", "2", "--seconds", "20", "--interval-ms", "100", "--json"]);
    let output = output(run.args(["--out", disk.to_str().unwrap()]));
    let message = text(&output.stderr);
    let unmounted = std::process::Command::new("umount").arg("-l").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("full") || message.contains("free"), "{message}");
    place.assert_nothing_left();
}

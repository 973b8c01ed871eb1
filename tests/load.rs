//! `whyso load`: the load alone, over real servers.

// Runs alone: it judges rates and response times.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use common::{
    OwnServer, Place, SOON, drives_a_level, finish, json_of, kill, output, spawn, text, wait_until,
};
use serde_json::Value;

/// `whyso load` of point selects on a small throw-away server, plus `more`.
fn load(place: &Place, more: &[&str]) -> Command {
    let servers = place.servers();
    let mut args = vec!["load", "oltp-point-select", "--tables", "1", "--rows", "1000"];
    if !more.contains(&"--stages") {
        args.extend(["--warmup", "0"]);
    }
    if !more.contains(&"--dsn") {
        args.extend(["--server-dir", servers.to_str().unwrap()]);
    }
    args.extend(more);
    place.whyso(&args)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn failed_with(output: &Output, status: i32) -> String {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{message}\n{}", text(&output.stdout));
    message
}

#[test]
fn levels_of_a_closed_loop_give_one_object_with_the_names_that_programs_rely_on() {
    let place = Place::new();
    let out = json_of(&output(&mut load(&place, &["--users", "1,4", "--seconds", "1", "--json"])));
    let levels = out["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 2);
    for (level, users) in levels.iter().zip([1.0, 4.0]) {
        assert_eq!(level["workload"], "oltp-point-select");
        assert_eq!(number(&level["users"]), users);
        assert_eq!(level["transactions"], level["queries"], "a point select is a transaction of one query");
        assert!((number(&level["seconds"]) - 1.0).abs() < 0.1, "{level}");
        let per_s = number(&level["transactions"]) / number(&level["seconds"]);
        assert!((number(&level["transactions_per_s"]) / per_s - 1.0).abs() < 1e-6);
        for name in ["mean", "p50", "p95", "p99", "p999", "max"] {
            assert!(number(&level["latency_ms"][name]) > 0.0 && number(&level["service_ms"][name]) > 0.0);
        }
        for name in ["cpu_s", "cpu_us_per_query", "max_rss_kb"] {
            assert!(number(&level["client"][name]) > 0.0, "{name} in {level}");
        }
        assert!(level["client"]["saturated"].is_boolean());
    }
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn a_service_level_passes_or_fails_in_the_table_and_in_the_exit_status() {
    let place = Place::new();
    let args = ["--seconds", "1", "--slo", "p99=10s", "--slo", "point_select:max=20s"];
    let passed = output(&mut load(&place, &args));
    assert!(passed.status.success(), "{}", text(&passed.stderr));
    let shown = text(&passed.stdout);
    assert_eq!(shown.matches("PASS").count(), 3, "{shown}");
    assert!(shown.contains("p99 ≤ 10 s") && shown.contains("max ≤ 20 s"), "{shown}");

    let args = ["--seconds", "1", "--slo", "p99=10s", "--slo", "avg=0.1us", "--json"];
    let failed = output(&mut load(&place, &args));
    failed_with(&failed, 1);
    let out: Value = serde_json::from_slice(&failed.stdout).unwrap();
    let slo = &out["levels"][0]["slo"];
    assert_eq!((slo[0]["held"].as_bool(), slo[1]["held"].as_bool()), (Some(true), Some(false)), "{slo}");
    place.assert_nothing_left();
}

#[test]
fn an_open_loop_begins_what_is_due_and_reports_when_it_falls_behind() {
    let place = Place::new();
    let args = ["--rate", "200", "--seconds", "2", "--arrivals", "uniform", "--json"];
    // On a machine that is busy with something else, a backlog may stand at the end by chance.
    let mut out = Value::Null;
    for _ in 0..3 {
        out = json_of(&output(&mut load(&place, &args)));
        if out["levels"][0]["arrivals"]["held"] == true {
            break;
        }
    }
    let level = &out["levels"][0];
    assert!((number(&level["arrivals"]["due"]) - 400.0).abs() < 20.0, "{level}");
    assert!((number(&level["transactions"]) - 400.0).abs() < 20.0, "{level}");
    assert_eq!(level["arrivals"]["held"], true);
    assert_eq!(level["pacing"], "open loop, 200/s, uniform");

    let args = ["--rate", "1000000", "--users", "1", "--seconds", "1", "--json"];
    let out = json_of(&output(&mut load(&place, &args)));
    let arrivals = &out["levels"][0]["arrivals"];
    assert_eq!(arrivals["held"], false, "{arrivals}");
    assert!(number(&arrivals["backlog_end"]) > 100_000.0, "{arrivals}");
    place.assert_nothing_left();
}

#[test]
fn stages_change_the_users_at_work_within_a_level() {
    let place = Place::new();
    let csv = place.path().join("out.csv");
    let args = ["--stages", "step 1 1500ms, step 0 1500ms", "--csv", csv.to_str().unwrap(), "--json"];
    let out = json_of(&output(&mut load(&place, &args)));
    let level = &out["levels"][0];
    assert!((number(&level["seconds"]) - 3.0).abs() < 0.2, "{level}");
    assert!(level["pacing"].as_str().unwrap().contains("step 1 1500ms"), "{level}");
    let lines = fs::read_to_string(&csv).unwrap();
    let head: Vec<&str> = lines.lines().next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|title| *title == name).unwrap();
    let mut by_time = Vec::new();
    for line in lines.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), head.len(), "{line}");
        if cells[column("kind")] == "transaction" {
            let value = |name: &str| cells[column(name)].parse::<f64>().unwrap();
            by_time.push((value("begin_s"), value("count"), cells[column("measured")] == "true"));
        }
    }
    let total: f64 = by_time.iter().filter(|(_, _, measured)| *measured).map(|(_, count, _)| count).sum();
    assert_eq!(total, number(&level["transactions"]), "the lines add up to the level");
    let at_rest: f64 =
        by_time.iter().filter(|(begin_s, ..)| *begin_s >= 2.0).map(|(_, count, _)| count).sum();
    assert!(at_rest < total / 100.0, "{by_time:?}");
    place.assert_nothing_left();
}

#[test]
fn lines_and_logs_are_written_while_the_load_goes_on() {
    let place = Place::new();
    let log = place.path().join("out.hlog");
    let args =
        ["--seconds", "3", "--interval", "1", "--hdr-log", log.to_str().unwrap(), "--percentiles", "50,99.9"];
    let done = output(&mut load(&place, &args));
    let shown = text(&done.stdout);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let lines: Vec<&str> = shown.lines().filter(|line| line.starts_with('[')).collect();
    assert!((2..=4).contains(&lines.len()), "{shown}");
    assert!(lines.iter().all(|line| line.contains("1 user") && line.contains("p99.9")), "{shown}");
    assert!(shown.contains("TPS") && shown.contains("p50"), "{shown}");
    let logged = fs::read_to_string(&log).unwrap();
    let lines_of = |tag: &str| logged.lines().filter(|line| line.starts_with(tag)).count();
    let untagged = logged.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count();
    assert!(untagged >= 3, "a line a second:\n{logged}");
    assert_eq!((lines_of("Tag=service,"), lines_of("Tag=point_select,")), (untagged, untagged), "{logged}");
    place.assert_nothing_left();
}

#[test]
fn a_search_for_capacity_shows_every_probe_and_what_bounds_it() {
    let place = Place::new();
    // Nothing can be done within a nanosecond, so that the search ends soon, and below.
    let args = [
        "--find-capacity",
        "--slo",
        "p50=0.001us",
        "--rate",
        "1",
        "--seconds",
        "0.5",
        "--users",
        "2",
        "--json",
    ];
    let none = output(&mut load(&place, &args));
    failed_with(&none, 1);
    let out: Value = serde_json::from_slice(&none.stdout).unwrap();
    assert_eq!(out["capacity"]["holds_per_s"], Value::Null);
    let probes = out["capacity"]["probes"].as_array().unwrap();
    assert!(!probes.is_empty() && probes.len() == out["levels"].as_array().unwrap().len());
    assert!(probes.iter().all(|probe| probe["held"] == false && probe["why"] != ""), "{probes:?}");
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn a_search_for_capacity_finds_what_the_server_can_do_and_prints_the_interval() {
    let place = Place::new();
    let servers = place.servers();
    // Ten at a time, 50 ms each: 200 per second, and somewhat less.
    let mut search =
        place.whyso(&["load", "--query", "SELECT SLEEP(0.05)", "--users", "10", "--find-capacity"]);
    search.args(["--slo", "p90=250ms", "--rate", "80", "--seconds", "1", "--warmup", "0"]);
    let done = output(search.args(["--server-dir", servers.to_str().unwrap()]));
    let shown = text(&done.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(done.status.success(), "{shown}\n{}", text(&done.stderr));
    if shown.contains("INVALID") || shown.contains("What bounds it: the load generator was the limit") {
        // whyso reports it, and found out less about the server.
        return whyso_testing::not_tested("capacity: other programs kept the generator from its work");
    }
    let number_after = |words: &str| -> f64 {
        let at = shown.find(words).unwrap_or_else(|| panic!("'{words}' is missing: {shown}")) + words.len();
        shown[at..].split_whitespace().next().unwrap().trim_end_matches(',').replace(',', "").parse().unwrap()
    };
    let (holds, fails) = (number_after("The service level holds up to"), number_after("and fails from"));
    assert!(
        (60.0..=230.0).contains(&holds) && holds < fails && fails <= 340.0,
        "{holds} to {fails}: {shown}"
    );
    assert!(shown.contains("250 ms required") || shown.contains("the backlog grew"), "{shown}");
    let failed = shown.matches("FAIL").count() + shown.matches("behind").count();
    assert!(shown.matches("PASS").count() >= 3 && failed >= 3, "{shown}");
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn an_endpoint_that_dies_is_left_and_the_time_until_its_recovery_is_reported() {
    let (healthy, mut dying) = (OwnServer::start(), OwnServer::start());
    let place = Place::new();
    let dsns = [healthy.dsn("root", ""), dying.dsn("root", "")];
    let args = ["--dsn", &dsns[0], "--dsn", &dsns[1], "--users", "4", "--seconds", "12", "--json"];
    let child = spawn(&mut load(&place, &args));
    let reads = |server: &OwnServer| -> u64 {
        let status = server.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'");
        status.split_whitespace().last().unwrap().parse().unwrap()
    };
    assert!(wait_until(SOON, || reads(&dying) > 100), "the load does not begin");
    dying.crash();
    std::thread::sleep(Duration::from_secs(1));
    let before = reads(&healthy);
    assert!(wait_until(SOON, || reads(&healthy) > before + 100), "the other endpoint does not continue");
    dying.start_again();
    assert!(wait_until(SOON, || reads(&dying) > 100), "the load does not come back");

    let out = json_of(&finish(child, SOON));
    let level = &out["levels"][0];
    let [healthy_endpoint, dying_endpoint] = [0, 1].map(|endpoint| &level["endpoints"][endpoint]);
    let [none, outages] =
        [healthy_endpoint, dying_endpoint].map(|endpoint| endpoint["outages"].as_array().unwrap());
    assert_eq!((none.len(), outages.len()), (0, 1), "{healthy_endpoint} {dying_endpoint}");
    assert!((1.0..12.0).contains(&number(&outages[0]["seconds"])), "{dying_endpoint}");
    assert!(number(&level["errors"]) >= 2.0 && number(&level["reconnects"]) >= 2.0, "{level}");
    assert!(
        number(&dying_endpoint["transactions"]) > 200.0 && number(&healthy_endpoint["transactions"]) > 200.0,
        "{level}"
    );
    assert_eq!(level["cut_short"], Value::Null);
}

#[test]
fn kinds_of_transactions_are_counted_separately_and_each_may_have_a_service_level() {
    let server = OwnServer::start();
    let place = Place::new();
    server.sql("CREATE DATABASE shop");
    let file =
        "-- \\transaction look@9\nSELECT 1;\n-- \\transaction pay@1\n-- \\kind sleep\nSELECT SLEEP(0.005);\n";
    fs::write(place.path().join("shop.sql"), file).unwrap();
    let dsn = server.dsn("root", "shop");
    let run = |more: &[&str]| {
        let args = ["load", "shop.sql", "--dsn", &dsn, "--users", "2", "--transactions", "500"];
        output(place.whyso(&args).args(more))
    };
    let failed =
        run(&["--slo", "look:p90=1s", "--slo", "transaction:pay:p90=1ms", "--slo", "p99=1s", "--json"]);
    failed_with(&failed, 1);
    let out: Value = serde_json::from_slice(&failed.stdout).unwrap();
    let level = &out["levels"][0];
    let held: Vec<_> = (0..3).map(|place| level["slo"][place]["held"].as_bool().unwrap()).collect();
    assert_eq!(held, [true, false, true], "{level}");
    let kinds = level["kinds"].as_array().unwrap();
    assert_eq!((kinds.len(), &kinds[0]["kind"], &kinds[1]["kind"]), (2, &"look".into(), &"pay".into()));
    let total: f64 = kinds.iter().map(|kind| number(&kind["transactions"])).sum();
    assert_eq!((total, number(&level["transactions"])), (500.0, 500.0));
    assert!(number(&kinds[1]["latency_ms"]["mean"]) >= 5.0 && number(&kinds[1]["service_ms"]["p50"]) >= 5.0);
    let csv = place.path().join("out.csv");
    let shown = run(&["--slo", "pay:p90=1s", "--csv", csv.to_str().unwrap()]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let table = text(&shown.stdout);
    let line =
        |name: &str| table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{table}"));
    assert!(line("look").contains('–') && line("pay").ends_with("PASS"), "{table}");
    let lines = fs::read_to_string(&csv).unwrap();
    assert!(lines.contains(",transaction:look,") && lines.contains(",sleep,"), "{lines}");
    let message = failed_with(&run(&["--slo", "order:p90=1s"]), 2);
    assert!(message.contains("it has transaction, look, pay"), "{message}");
}

#[test]
fn two_workloads_are_run_in_alternating_rounds_and_compared() {
    let place = Place::new();
    let servers = place.servers();
    let mut both =
        place.whyso(&["load", "oltp-point-select", "oltp-order-ranges", "--tables", "1", "--rows", "1000"]);
    both.args([
        "--server-dir",
        servers.to_str().unwrap(),
        "--rounds",
        "2",
        "--seconds",
        "1",
        "--warmup",
        "0",
        "--json",
    ]);
    let out = json_of(&output(&mut both));
    let order: Vec<&str> =
        out["levels"].as_array().unwrap().iter().map(|level| level["workload"].as_str().unwrap()).collect();
    assert_eq!(order, ["oltp-point-select", "oltp-order-ranges", "oltp-order-ranges", "oltp-point-select"]);
    let throughput = &out["comparison"]["quantities"]["transactions_per_s"];
    let [low, high] = [0, 1].map(|end| number(&throughput["ratio_ci95"][end]));
    let ratio = number(&throughput["ratio"]);
    assert!(low <= ratio && ratio <= high && ratio < 1.0, "a range of 100 rows is dearer: {throughput}");
    place.assert_nothing_left();
}

#[test]
fn several_endpoints_take_their_share_and_are_counted_separately() {
    let server = OwnServer::start();
    let place = Place::new();
    let socket = server.dsn("root", "");
    let tcp = format!("mysql://root@127.0.0.1:{}/?weight=3", server.port);
    let args = ["--dsn", &socket, "--dsn", &tcp, "--users", "4", "--seconds", "1", "--json"];
    let out = json_of(&output(&mut load(&place, &args)));
    let level = &out["levels"][0];
    let endpoints = level["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 2);
    let total: f64 = endpoints.iter().map(|endpoint| number(&endpoint["transactions"])).sum();
    assert_eq!(total, number(&level["transactions"]));
    let address = endpoints[1]["address"].as_str().unwrap();
    assert!(address.contains(&server.port.to_string()), "{address}");
    assert!(endpoints.iter().all(|endpoint| number(&endpoint["transactions"]) > 0.0), "{endpoints:?}");
    // Three of four users, one each: a weight needs no --placement, and goes with no other.
    let [one, three] = [0, 1].map(|at| number(&endpoints[at]["transactions"]));
    assert!(three > 1.5 * one, "{one} and {three}");
    let refused = load(&place, &[&args[..4], &["--placement", "pinned"]].concat()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("leave out --placement or the weights"));
}

#[test]
fn every_engine_drives_the_same_load_and_reports_which_it_is() {
    let place = Place::new();
    for engine in ["threads", "epoll", "io-uring"] {
        let args = ["--engine", engine, "--users", "2", "--transactions", "2000", "--json"];
        let out = json_of(&output(&mut load(&place, &args)));
        let level = &out["levels"][0];
        assert_eq!(level["engine"]["kind"], engine);
        assert_eq!(number(&level["transactions"]), 2000.0, "{engine}");
        let per_s = number(&level["transactions_per_s"]);
        assert!((per_s - 2000.0 / number(&level["seconds"])).abs() < 1.0, "{engine}: {per_s}");
    }
    place.assert_nothing_left();
}

#[test]
fn the_tuning_of_the_loops_is_in_the_result() {
    let place = Place::new();
    let asked = ["--engine", "io-uring", "--min-complete", "2,1ms", "--scheduling-policy", "batch"];
    let args = [&asked[..], &["--users", "4", "--transactions", "500"]].concat();
    let shown =
        text(&output(&mut load(&place, &args)).stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "As asked for, it waits for 2 completions at a time, for up to 1 ms, and its threads have the \
                 scheduling policy batch.";
    assert!(shown.contains(words), "{shown}");
    let args = ["--engine", "epoll", "--busy-poll", "50us", "--transactions", "500", "--json"];
    let out = json_of(&output(&mut load(&place, &args)));
    let engine = &out["levels"][0]["engine"];
    assert_eq!((&engine["busy_poll_ns"], &engine["min_complete"]), (&50_000.into(), &0.into()), "{engine}");
    assert_eq!(engine["scheduling_policy"], "");
    place.assert_nothing_left();
}

#[test]
fn ctrl_c_ends_the_load_and_still_reports() {
    let place = Place::new();
    let child = spawn(&mut load(&place, &["--seconds", "60", "--json"]));
    assert!(wait_until(SOON, || drives_a_level(child.id())), "no level began");
    std::thread::sleep(Duration::from_secs(1));
    kill(child.id() as i32, libc::SIGINT);
    let output = finish(child, SOON);
    failed_with(&output, 130);
    let out: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(number(&out["levels"][0]["transactions"]) > 0.0);
    assert_eq!(out["cut_short"], "interrupted by Ctrl-C");
    place.assert_nothing_left();
}

#[test]
fn a_schema_of_the_users_own_is_loaded_with_consent_alone() {
    let server = OwnServer::start();
    let place = Place::new();
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.sbtest1 (id INT PRIMARY KEY AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '')");
    server.sql("INSERT INTO shop.sbtest1 (k) SELECT seq FROM shop.seq_1_to_1000");
    let dsn = server.dsn("root", "shop");
    let refused = output(&mut load(&place, &["--dsn", &dsn, "--seconds", "0.5"]));
    let message = failed_with(&refused, 2);
    assert!(message.contains("--allow-writes shop"), "{message}");
    let consented = ["--dsn", &dsn, "--seconds", "0.5", "--allow-writes", "shop", "--json"];
    let out = json_of(&output(&mut load(&place, &consented)));
    assert!(number(&out["levels"][0]["transactions"]) > 0.0);
    assert_eq!(server.sql("SHOW TABLES FROM shop"), "sbtest1", "nothing is marked or created");
}

#[test]
fn sql_of_the_users_own_reads_anywhere_and_writes_with_consent() {
    let server = OwnServer::start();
    let place = Place::new();
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT); INSERT INTO shop.orders VALUES (1, 0)");
    let dsn = server.dsn("root", "shop");
    let query = |sql: &str, more: &[&str]| {
        let mut args =
            vec!["load", "--query", sql, "--dsn", &dsn, "--seconds", "0.5", "--warmup", "0", "--json"];
        args.extend(more);
        output(&mut place.whyso(&args))
    };
    let out = json_of(&query(
        "SET sort_buffer_size = 1048576; SELECT n FROM orders WHERE id = 1",
        &["--slo", "max=60s"],
    ));
    assert!(number(&out["levels"][0]["transactions"]) > 10.0, "{out}");
    assert_eq!(out["levels"][0]["workload"], "query");

    let write = "UPDATE orders SET n = n + 1 WHERE id = 1";
    let message = failed_with(&query(write, &[]), 2);
    assert!(message.contains("--allow-writes shop"), "{message}");
    assert_eq!(server.sql("SELECT n FROM shop.orders"), "0");
    json_of(&query(write, &["--allow-writes", "shop"]));
    assert_ne!(server.sql("SELECT n FROM shop.orders"), "0");
    assert_eq!(server.sql("SHOW TABLES FROM shop"), "orders");

    // Two files side by side, with a value for their variable and a dictionary from a query.
    fs::write(place.path().join("a.sql"), "SELECT n FROM orders WHERE id = :id;").unwrap();
    let dictionary = "-- \\dictionary ids query SELECT id FROM orders\n-- \\set id random_from(ids)\nSELECT n + SLEEP(0.002) FROM orders WHERE id = :id;";
    fs::write(place.path().join("b.sql"), dictionary).unwrap();
    let mut both =
        place.whyso(&["load", "a.sql", "b.sql", "--dsn", &dsn, "--option", "id=1", "--rounds", "2"]);
    let out = json_of(&output(both.args(["--seconds", "0.5", "--warmup", "0", "--json"])));
    let ratio = number(&out["comparison"]["quantities"]["transactions_per_s"]["ratio"]);
    assert!(ratio < 0.5, "b sleeps for 2 ms in every transaction: {}", out["comparison"]);

    fs::write(place.path().join("bad.sql"), "SELECT 1;\nSELECT :nothing;").unwrap();
    let message = failed_with(&output(&mut place.whyso(&["load", "bad.sql", "--dsn", &dsn])), 2);
    assert!(message.contains("bad.sql line 2"), "{message}");
}

#[test]
fn a_password_in_the_command_line_is_gone_from_the_process_list() {
    let server = OwnServer::start();
    let place = Place::new();
    server.sql("CREATE USER bench@127.0.0.1 IDENTIFIED BY 'verborgen'; GRANT ALL ON *.* TO bench@127.0.0.1");
    let dsn = format!("mysql://bench:verborgen@127.0.0.1:{}/", server.port);
    let child = spawn(&mut load(&place, &["--dsn", &dsn, "--seconds", "3", "--json"]));
    let command_line = format!("/proc/{}/cmdline", child.id());
    std::thread::sleep(Duration::from_secs(1));
    let arguments = text(&fs::read(Path::new(&command_line)).unwrap());
    assert!(
        arguments.contains("bench:") && !arguments.contains("verborgen"),
        "{}",
        arguments.replace('\0', " ")
    );
    let output = finish(child, SOON);
    assert!(text(&output.stderr).contains("MYSQL_PWD"), "the user is warned: {}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("verborgen") && !text(&output.stdout).contains("verborgen"));
    json_of(&output);
}

#[test]
fn bad_input_gets_one_sentence_with_what_to_do() {
    let place = Place::new();
    let cases: &[(&[&str], &str)] = &[
        (&["--slo", "p99"], "MEASURE=TIME"),
        (&["--slo", "p99=20"], "20ms"),
        (&["--slo", "commit:p99=1ms"], "point_select"),
        (&["--rate", "0"], "--rate 0"),
        (&["--rate", "10", "--think", "1ms"], "give one of them"),
        (&["--rate", "10", "--users", "1,2"], "several rates"),
        (&["--rate", "10", "--stages", "step 1 1s"], "give one of them"),
        (&["--stages", "hold 10s"], "begin with"),
        (&["--stages", "step 5 10s", "--users", "9"], "leave out --users"),
        (&["--stages", "step 5 10s", "--seconds", "9"], "cannot be used with"),
        (&["--think", "soon"], "exp:10ms"),
        (&["--arrivals", "uniform"], "--rate"),
        (&["--find-capacity"], "--slo p99=20ms"),
        (&["--find-capacity", "--slo", "p99=1ms", "--stages", "step 1/s 1s"], "leave out"),
        (&["--engine", "uring"], "threads, epoll or io-uring"),
        (&["--engine", "threads", "--loops", "2"], "event loops"),
        (&["--engine", "threads", "--connections", "2"], "event loops"),
        (&["--connections", "0"], "--connections 0"),
        (&["--min-complete", "0"], "such as 8,50us"),
        (&["--min-complete", "8,2s"], "up to 1 s"),
        (&["--min-complete", "8", "--engine", "epoll"], "give --engine io-uring"),
        (&["--min-complete", "8", "--busy-poll", "50us"], "give --busy-poll or --min-complete"),
        (&["--busy-poll", "50us", "--engine", "threads"], "leave out --busy-poll or --engine threads"),
        (&["--scheduling-policy", "deadline"], "batch, idle, fifo or rr"),
        (&["--transactions", "0"], "--transactions 0"),
        (&["--reconnect-every", "0"], "--reconnect-every 0"),
        (&["--percentiles", "50,101"], "at most 100"),
        (&["--users", "0"], "--users 0"),
        (&["--interval", "0"], "--interval"),
        (&["--dsn", "mysql://root@h/?weight=many"], "0 to 1000"),
        (&["oltp-read-only", "oltp-read-write"], "not more"),
        (&["oltp-read-only", "--rounds", "1"], "--rounds 1"),
        (&["--query", "SELECT 1"], "cannot be used with"),
        (&["no/such.sql"], "no/such.sql"),
    ];
    for (args, word) in cases {
        let output = output(&mut load(&place, args));
        let message = text(&output.stderr);
        let status = if *word == "no/such.sql" { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(status), "{args:?}: {message}");
        assert!(message.contains(word), "{args:?} says: {message}");
        assert!(!message.contains("panicked"), "{args:?}: {message}");
    }
    place.assert_nothing_left();
}

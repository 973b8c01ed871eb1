//! Several hosts, each a namespace of this machine: one recording on one clock, whatever happens to the link and to the agent.

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::lab::{Lab, can_be_lab, run_json};
use common::{finish, json_of, may_trace, output, text, wait_until};
use serde_json::Value;

const BOUND: Duration = Duration::from_secs(150);
const AHEAD_S: i64 = 100_000;

/// The path of a recording that was printed as JSON.
fn recorded(out: &Value) -> PathBuf {
    PathBuf::from(out["path"].as_str().unwrap())
}

/// Begin and value of each reading of a series.
fn series(lab: &Lab, run: &Path, filter: [&str; 4]) -> Vec<(i64, f64)> {
    let [host, source, metric, instance] = filter;
    let run = run.to_str().unwrap();
    let mut export = lab.whyso("a", &["export", run, "--format", "csv", "--host", host, "--source", source]);
    let csv = text(&output(export.args(["--metric", metric])).stdout);
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let (at, of, value) = (place("t_ns"), place("instance"), place("value"));
    let rows = lines.map(|line| line.split(',').collect::<Vec<_>>());
    let rows = rows.filter(|row| row[of] == instance);
    rows.map(|row| (row[at].parse().unwrap(), row[value].parse().unwrap())).collect()
}

#[test]
fn a_host_with_another_clock_is_recorded_on_this_one_and_the_offset_is_found_within_its_bound() {
    if !can_be_lab() || !may_trace() {
        return;
    }
    let lab = Lab::start(AHEAD_S, "may = [\"observe\"]");
    let load = ["load", "oltp-point-select", "--dsn", &lab.dsn(), "--users", "2", "--seconds", "12"];
    let load = lab.spawn("a", &[&load[..], &["--tables", "1", "--rows", "1000", "--warmup", "0"]].concat());
    let questions = || -> u64 {
        let row = lab.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'");
        row.split_whitespace().last().unwrap().parse().unwrap()
    };
    assert!(wait_until(common::SOON, || questions() > 1_000), "the load does not begin");
    let out =
        json_of(&output(&mut lab.whyso("a", &["record", "--hosts", "lab.toml", "--for", "5s", "--json"])));
    drop(finish(load, BOUND));
    let path = recorded(&out);
    let run = run_json(&path);
    let host = &run["hosts"][0];
    assert_eq!((&host["name"], &host["lost"]), (&"db".into(), &0.into()), "{host}");
    assert!(host["problem"].is_null(), "{host}");
    for clock in host["clock"].as_array().unwrap() {
        let number = |name: &str| clock[name].as_i64().unwrap();
        let error_ns = number("offset_ns") - AHEAD_S * 1_000_000_000;
        assert!(error_ns.abs() <= number("bound_ns"), "{clock}");
        assert!(number("bound_ns") < 50_000_000, "{clock}");
    }
    // What the other host's kernel counted lies in the window of here. It begins once that host traces, which takes a busy machine seconds.
    let level = &run["levels"][0];
    let window = ["begin_ns", "end_ns"].map(|edge| level["window"][edge].as_i64().unwrap());
    assert!((3_000_000_000..7_000_000_000).contains(&(window[1] - window[0])), "{level}");
    assert!(level["result"]["transactions"].as_u64().unwrap() > 1_000, "{level}");
    let roles = series(&lab, &path, ["db", "threads", "cpu_ns", "connection"]);
    let within = roles.iter().filter(|(at, _)| (window[0]..window[1]).contains(at));
    assert!(within.count() >= 3, "{roles:?} in {window:?}");
    assert!(roles.last().unwrap().1 > 1e8, "{roles:?}");
    // The time of requests closes within what they took: a clock that was not converted would make it absurd.
    let why = json_of(&output(&mut lab.whyso("a", &["why", path.to_str().unwrap(), "--json"])));
    let cpu_ms = why["levels"][0]["budget_ms"]["cpu"].as_f64().unwrap();
    assert!((0.005..50.0).contains(&cpu_ms), "{why}");
}

#[test]
fn a_run_has_the_whole_budget_of_a_server_on_another_machine() {
    if !can_be_lab() || !may_trace() {
        return;
    }
    let lab = Lab::start(-1000, "may = [\"observe\"]");
    let args =
        ["run", "oltp-read-write", "--dsn", &lab.dsn(), "--hosts", "lab.toml", "--users", "2", "--json"];
    let more = ["--seconds", "4", "--warmup", "1", "--tables", "1", "--rows", "1000", "--no-repeat"];
    let out = json_of(&output(&mut lab.whyso("a", &[&args[..], &more].concat())));
    let path = recorded(&out);
    let why = json_of(&output(&mut lab.whyso("a", &["why", path.to_str().unwrap(), "--json"])));
    let level = &why["levels"][0];
    let part = |name: &str| level["budget_ms"][name].as_f64().unwrap_or(0.0);
    let response_ms = level["latency_ms"]["mean"].as_f64().or(level["response_ms"].as_f64());
    assert!(part("cpu") > 0.0 && part("server_and_network") == 0.0, "{level} {response_ms:?}");
    let run = run_json(&path);
    assert_eq!(run["hosts"][0]["has_server"], true);
    let not_measured = run["not_measured"].to_string();
    for there in
        ["the machine of the server", "where inside the server the time goes", "response times as clients"]
    {
        assert!(!not_measured.contains(there), "{not_measured}");
    }
    // The machine's CPUs are those of the database's host.
    assert!(!series(&lab, &path, ["db", "cpu", "idle_ns", "all"]).is_empty());
}

#[test]
fn nothing_is_lost_where_the_link_is_cut_and_a_killed_agent_costs_only_what_follows() {
    if !can_be_lab() {
        return;
    }
    let mut lab = Lab::start(0, "may = [\"observe\"]");
    let args = ["record", "--hosts", "lab.toml", "--for", "9s", "--no-trace", "--json"];
    let record = lab.spawn("a", &args);
    std::thread::sleep(Duration::from_secs(3));
    lab.link("b", "down");
    std::thread::sleep(Duration::from_secs(4));
    lab.link("b", "up");
    let path = recorded(&json_of(&finish(record, BOUND)));
    let host = &run_json(&path)["hosts"][0];
    assert!(host["problem"].is_null() && host["lost"] == 0, "{host}");
    let idle = series(&lab, &path, ["db", "cpu", "idle_ns", "all"]);
    let gaps: Vec<i64> = idle.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert!(idle.len() >= 8 && gaps.iter().all(|gap| (1..2_500_000_000).contains(gap)), "{idle:?}");

    let record = lab.spawn("a", &["record", "--hosts", "lab.toml", "--for", "8s", "--no-trace", "--json"]);
    std::thread::sleep(Duration::from_secs(4));
    lab.kill_agent("b");
    lab.start_agent("b", "db");
    let ended = finish(record, BOUND);
    let runs = std::fs::read_dir(lab.place.runs()).unwrap().map(|entry| entry.unwrap().path());
    let path = runs.max().unwrap();
    let host = &run_json(&path)["hosts"][0];
    assert!(!host["problem"].as_str().unwrap_or_default().is_empty(), "{host} {}", text(&ended.stderr));
    assert!(series(&lab, &path, ["db", "cpu", "idle_ns", "all"]).len() >= 2);
}

#[test]
fn what_a_host_does_not_allow_is_refused_with_what_to_do() {
    if !can_be_lab() {
        return;
    }
    let lab = Lab::start(0, "may = []");
    let refused = |args: &[&str]| {
        let refused = output(&mut lab.whyso("a", args));
        assert!(!refused.status.success());
        text(&refused.stderr)
    };
    let record = ["record", "--hosts", "lab.toml", "--for", "2s"];
    let why = refused(&record);
    assert!(why.contains("agent.toml") && why.contains("observe"), "{why}");
    lab.write("lab.toml", "hub = \"state/whyso/hub\"\n[[host]]\nname = \"db\"\nserver = \"bank\"\n");
    lab.write("other.toml", "[[host]]\nname = \"d.b\"\n");
    for (file, word) in [("other.toml", "d.b"), ("nowhere.toml", "nowhere.toml")] {
        let why = refused(&["record", "--hosts", file, "--for", "2s"]);
        assert!(why.contains(word), "{file}: {why}");
    }
    // Nothing is left of recordings that did not begin.
    let left = std::fs::read_dir(lab.place.runs())
        .map_or(0, |runs| runs.flatten().filter(|run| run.path().join("run.json").exists()).count());
    assert_eq!(left, 0);
    assert!(lab.log("agent-b").contains("joined the hub"), "{}", lab.log("agent-b"));
}

/// A short run over the lab's hosts.
fn run<'a>(dsn: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = ["run", "oltp-read-write", "--dsn", dsn, "--hosts", "lab.toml", "--json", "--warmup", "1"];
    [&args[..], &["--tables", "1", "--rows", "1000", "--no-repeat", "--no-trace"], more].concat()
}

#[test]
fn one_load_of_two_hosts_is_counted_once_and_each_host_by_itself() {
    if !can_be_lab() {
        return;
    }
    let lab = Lab::start_with(500, "may = [\"observe\"]", &["c", "d"]);
    let commits = || -> u64 {
        let row = lab.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'");
        row.split_whitespace().last().unwrap().parse().unwrap()
    };
    let before = commits();
    let dsn = lab.dsn();
    let out = json_of(&output(&mut lab.whyso("a", &run(&dsn, &["--users", "1,5", "--seconds", "4"]))));
    let executed = commits() - before;
    let path = recorded(&out);
    let levels = run_json(&path)["levels"].clone();
    let hosts = |level: usize| {
        let generators = levels[level]["result"]["generators"].as_array().unwrap().clone();
        generators
            .iter()
            .map(|part| (part["host"].to_string(), part["users"].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    let quoted = |host: &str| format!("\"{host}\"");
    assert_eq!(hosts(0), [(quoted("load-c"), 1)]);
    assert_eq!(hosts(1), [(quoted("load-c"), 3), (quoted("load-d"), 2)]);
    let result = &levels[1]["result"];
    let count = |value: &Value, name: &str| value[name].as_u64().unwrap();
    let parts = result["generators"].as_array().unwrap();
    assert_eq!(
        parts.iter().map(|part| count(part, "transactions")).sum::<u64>(),
        count(result, "transactions")
    );
    assert!(parts.iter().all(|part| count(part, "transactions") > 20), "{parts:?}");
    // Each user was at work for the whole window: none began late, none ended early.
    let users_s = result["user_seconds"].clone();
    let busy_s =
        ["ended", "in_flight", "outside"].iter().map(|part| users_s[*part].as_f64().unwrap()).sum::<f64>();
    let window_s = result["seconds"].as_f64().unwrap();
    assert!((window_s - 4.0).abs() < 0.7, "{window_s}");
    assert!((busy_s / (5.0 * window_s) - 1.0).abs() < 0.02, "{busy_s} in {window_s}");
    // What the server says is no less than what was measured of it.
    let total: u64 = (0..2).map(|level| count(&levels[level]["result"], "queries")).sum();
    assert!(executed >= total / 2, "the server executed {executed}, the load counts {total}");
    for host in ["load-c", "load-d"] {
        assert!(series(&lab, &path, [host, "load", "per_s", "transaction"]).len() >= 4, "{host}");
    }
}

#[test]
#[ignore = "long: make test-hard"]
fn a_load_host_that_is_killed_ends_the_level_and_is_named() {
    if !can_be_lab() {
        return;
    }
    let mut lab = Lab::start_with(0, "may = [\"observe\"]", &["c", "d"]);
    let dsn = lab.dsn();
    let load = lab.spawn("a", &run(&dsn, &["--users", "4", "--seconds", "60"]));
    let sessions = |lab: &Lab| -> u64 {
        let row = lab
            .sql("SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'lab' AND db = 'whyso'");
        row.trim().parse().unwrap()
    };
    assert!(wait_until(common::SOON, || sessions(&lab) >= 4), "the load does not begin");
    std::thread::sleep(Duration::from_secs(4));
    lab.kill_agent("d");
    let ended = finish(load, BOUND);
    let why = text(&ended.stderr) + &text(&ended.stdout);
    assert!(!ended.status.success() && why.contains("load-d"), "{why}");
    // The other host ends its load as well.
    let is_idle = || sessions(&lab) == 0;
    assert!(wait_until(Duration::from_secs(40), is_idle), "a load without a commander does not end");
}

#[test]
fn a_load_that_a_host_does_not_allow_is_refused_with_what_to_do() {
    if !can_be_lab() {
        return;
    }
    let lab = Lab::start_with(0, "may = [\"observe\"]", &["c"]);
    lab.sql("CREATE DATABASE foreign_schema");
    lab.sql("CREATE TABLE foreign_schema.t (a INT)");
    let dsn = lab.dsn();
    let refused = |file: &str| {
        lab.write("lab.toml", &format!("hub = \"state/whyso/hub\"\n{file}"));
        let refused = output(&mut lab.whyso("a", &run(&dsn, &["--users", "2", "--seconds", "2"])));
        assert!(!refused.status.success());
        text(&refused.stderr)
    };
    let db = refused("[[host]]\nname = \"db\"\nload = \"shop\"\n");
    assert!(db.contains("db may not load") && db.contains("may = ["), "{db}");
    let target = refused("[[host]]\nname = \"load-c\"\nload = \"bank\"\n");
    assert!(target.contains("knows no target bank") && target.contains("[[target]]"), "{target}");
    lab.write("lab.toml", "hub = \"state/whyso/hub\"\n[[host]]\nname = \"db\"\nserver = \"shop\"\n");
    let change = ["--versus", "--set", "innodb_flush_log_at_trx_commit=2"];
    let ab = [&["ab", "--dsn", &dsn, "--hosts", "lab.toml", "--tables", "1", "--rows", "100"], &change[..]]
        .concat();
    let experiment = text(&output(&mut lab.whyso("a", &ab)).stderr);
    assert!(
        experiment.contains("db permits no experiments") && experiment.contains("may = ["),
        "{experiment}"
    );
}

#[test]
fn hosts_are_watched_each_on_a_screen_of_its_own() {
    if !can_be_lab() || !may_trace() {
        return;
    }
    let lab = Lab::start_with(700, "may = [\"observe\"]", &["c"]);
    let load = ["load", "oltp-point-select", "--dsn", &lab.dsn(), "--users", "2", "--seconds", "300"];
    let rate = ["--tables", "1", "--rows", "1000", "--rate", "300"];
    let mut load = lab.spawn("c", &[&load[..], &rate].concat());
    let terminal = lab.watch(&["--hosts", "lab.toml"]);
    terminal.wait_for("the server's host, with its requests", |screen| {
        screen.starts_with("whyso 1/2") && screen.contains("db: ") && screen.contains("c cpu ")
    });
    terminal.press(&["9"]);
    terminal.wait_for("programs of the database's host", |screen| screen.contains("mariadbd"));
    terminal.press(&[">"]);
    terminal
        .wait_for("the other host", |screen| screen.starts_with("whyso 2/2") && screen.contains("load-c"));
    terminal.press(&["r"]);
    terminal.wait_for_words("● recording");
    terminal.quit();
    load.kill().unwrap();
    load.wait().unwrap();
    let runs = terminal.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let run = run_json(&runs[0]);
    let names: Vec<&str> =
        run["hosts"].as_array().unwrap().iter().map(|host| host["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["db", "load-c"], "{run}");
    assert!(run["levels"][0]["result"]["transactions"].as_u64().unwrap() > 100, "{run}");
}

const STUDY: &str = "title = \"Two workers\"
question = \"Is each start done once?\"
workload = \"oltp-point-select\"
tables = 1
rows = 100
users = [1]
seconds = 1
warmup = 0
repeats = 3
pair = false
trace = false
design = \"blocks\"
baseline = \"one\"
[[variant]]
name = \"one\"
[[variant]]
name = \"two\"
set = { sync_binlog = 1 }
";

#[test]
#[ignore = "long: make test-hard"]
fn a_study_over_two_machines_is_whole_although_one_is_killed() {
    if !can_be_lab() {
        return;
    }
    let mut lab = Lab::start_with(0, "may = [\"observe\"]", &["c", "d"]);
    let workers = "hub = \"state/whyso/hub\"\n[[host]]\nname = \"load-c\"\n[[host]]\nname = \"load-d\"\n";
    lab.write("workers.toml", workers);
    lab.write("study.toml", STUDY);
    let refused = ["study", "run", "study.toml", "--hosts", "lab.toml", "--out", "refused"];
    let refused = text(&output(&mut lab.whyso("a", &refused)).stderr);
    assert!(refused.contains("leave server and load out"), "{refused}");
    let study = ["study", "run", "study.toml", "--hosts", "workers.toml", "--out", "study", "--json"];
    let study = lab.spawn("a", &study);
    assert!(wait_until(common::SOON, || lab.log("agent-d").contains("working for the study")), "no work");
    // In the middle of its first block.
    std::thread::sleep(Duration::from_secs(4));
    lab.kill_agent("d");
    let answer = json_of(&finish(study, BOUND));
    let lines = std::fs::read_to_string(lab.path("study/starts.jsonl")).unwrap();
    let starts: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut done: Vec<String> = starts.iter().map(|start| start["start"].to_string()).collect();
    done.sort();
    done.dedup();
    assert_eq!((done.len(), starts.len()), (6, 6), "{lines}");
    // Each block was carried out on one machine.
    for block in 0..3 {
        let of_block = starts.iter().filter(|start| start["start"]["block"] == block);
        let hosts: Vec<&str> = of_block.map(|start| start["host"].as_str().unwrap()).collect();
        assert!(hosts.len() == 2 && hosts[0] == hosts[1] && hosts[0].starts_with("load-"), "{hosts:?}");
    }
    for start in &starts {
        let run = run_json(&lab.path("study/runs").join(start["run"].as_str().unwrap()));
        assert!(run["levels"][0]["result"]["transactions"].as_u64().unwrap() > 10, "{run}");
    }
    assert_eq!((&answer["starts_done"], &answer["starts"]), (&6.into(), &6.into()), "{answer}");
    let left = std::fs::read_dir(lab.path("study")).unwrap().flatten();
    assert!(left.filter(|file| file.file_name().to_string_lossy().starts_with('.')).count() == 0);
}

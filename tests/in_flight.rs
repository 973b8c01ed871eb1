//! What has not ended when a level does: users that are stuck, and servers that stop answering.

// Runs alone: it judges when servers that stand still are noticed.

mod common;

use std::fs;
use std::process::Output;
use std::thread;
use std::time::{Duration, Instant};

use common::{
    OwnServer, Place, SOON, drives_a_level, finish, kill, output, server_pids_under, spawn, text, wait_until,
};
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The object that a load printed that did not end well.
fn failed(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(1), "{}\n{}", text(&output.stderr), text(&output.stdout));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Users times seconds is the sum of what the users did.
fn assert_closed(level: &Value) {
    let time = &level["user_seconds"];
    let sum = number(&time["ended"]) + number(&time["in_flight"]) + number(&time["outside"]);
    let all = number(&level["users"]) * number(&level["seconds"]);
    assert!((sum / all - 1.0).abs() < 1e-6, "{sum} of {all} user-seconds: {time}");
}

const HALF_ASLEEP: &str = "-- \\if :client_id < 2\n-- \\kind asleep\nDO SLEEP(20);\n-- \\else\n-- \\kind awake\nSELECT 1;\n-- \\endif\n";

#[test]
fn users_that_sleep_through_the_window_are_in_its_tail_its_users_time_and_its_service_level() {
    let server = OwnServer::start();
    let place = Place::new();
    let file = place.path().join("half.sql");
    fs::write(&file, HALF_ASLEEP).unwrap();
    let dsn = server.dsn("root", "mysql");
    let args =
        ["load", file.to_str().unwrap(), "--dsn", &dsn, "--users", "4", "--seconds", "3", "--warmup", "0"];
    let slo = ["--slo", "max=500ms", "--slo", "asleep:p50=1s", "--slo", "awake:avg=2s", "--json"];
    let out = failed(&output(&mut place.whyso(&[&args[..], &slo].concat())));
    let level = &out["levels"][0];
    // In a closed loop without think time everybody is in a transaction, but for the moment between two.
    let in_flight = level["in_flight"]["transactions"].as_u64().unwrap();
    assert!((3..=4).contains(&in_flight), "{level}");
    assert_eq!(level["in_flight"]["older_than_ended"], 2, "{level}");
    let oldest_ms = number(&level["in_flight"]["oldest_ms"]);
    assert!((2_800.0..3_100.0).contains(&oldest_ms), "{oldest_ms}");
    assert_closed(level);
    let asleep_s = number(&level["user_seconds"]["in_flight"]);
    assert!((5.6..6.2).contains(&asleep_s), "two of four users over three seconds: {asleep_s}");
    let stuck = level["stuck"].as_str().unwrap();
    assert!(
        stuck.starts_with(&format!(
            "{in_flight} transactions were in flight when the window ended, 2 of them longer"
        )),
        "{stuck}"
    );
    let latency = &level["latency_ms"];
    assert_eq!(number(&latency["max"]), oldest_ms);
    assert!(number(&level["lower_bounds_above"]) > 99.0, "{latency}");
    assert!(number(&latency["mean"]) < 100.0, "the mean is of what ended: {latency}");
    let held: Vec<bool> =
        level["slo"].as_array().unwrap().iter().map(|slo| slo["held"].as_bool().unwrap()).collect();
    assert_eq!(held, [false, false, true], "{}", level["slo"]);
    // The server answered the others all the time.
    assert_eq!((&level["cut_short"], &out["cut_short"]), (&Value::Null, &Value::Null));
}

/// A load of four seconds whose server is stopped in its second second, and continued at that time. Without a time it
/// continues when the program has ended. Also returns how long the program took after the window.
fn stopped_in_mid_level(more: &[&str], continued_after: Option<Duration>) -> (Value, Duration) {
    let args = ["load", "--query", "SELECT 1", "--users", "4", "--seconds", "4"];
    let place = Place::new();
    stopped(&place, &[&args[..], more].concat(), continued_after)
}

/// The same for any command, in whose first level the server is stopped.
fn stopped(place: &Place, args: &[&str], continued_after: Option<Duration>) -> (Value, Duration) {
    let server = OwnServer::start();
    let dsn = server.dsn("root", "mysql");
    let rest = ["--dsn", &dsn, "--warmup", "0", "--slo", "max=500ms", "--json"];
    let child = spawn(&mut place.whyso(&[args, &rest].concat()));
    assert!(wait_until(SOON, || drives_a_level(child.id())), "no level began");
    let begin = Instant::now();
    thread::sleep(Duration::from_millis(1_500));
    kill(server.pid(), libc::SIGSTOP);
    if let Some(time) = continued_after {
        thread::sleep(time.saturating_sub(begin.elapsed()));
        kill(server.pid(), libc::SIGCONT);
    }
    let output = finish(child, Duration::from_secs(90));
    let took = begin.elapsed();
    kill(server.pid(), libc::SIGCONT);
    (failed(&output), took)
}

fn assert_silent(out: &Value) {
    let level = &out["levels"][0];
    assert_closed(level);
    for why in [&level["cut_short"], &out["cut_short"]] {
        assert!(why.as_str().is_some_and(|why| why.contains("answered nothing in the last 2.")), "{why}");
    }
    let slo = &level["slo"][0];
    assert_eq!((&slo["held"], &slo["is_lower_bound"]), (&false.into(), &true.into()), "{slo}");
    assert!((2_000.0..3_000.0).contains(&number(&slo["measured_ms"])), "{slo}");
}

#[test]
fn a_server_that_stops_in_mid_level_fails_its_service_level_and_the_load_is_not_complete() {
    let (closed, open) = thread::scope(|scope| {
        // It answers again a second after the window: what was in flight then is judged by its age all the same.
        let closed = scope.spawn(|| stopped_in_mid_level(&[], Some(Duration::from_secs(5))));
        let open = scope.spawn(|| {
            stopped_in_mid_level(&["--rate", "100", "--arrivals", "uniform", "--percentiles", "50"], None)
        });
        (closed.join().unwrap(), open.join().unwrap())
    });
    let (out, _) = closed;
    assert_silent(&out);
    let level = &out["levels"][0];
    assert_eq!(
        (&level["in_flight"]["transactions"], &level["in_flight"]["not_begun"]),
        (&4.into(), &0.into())
    );
    assert!(number(&level["transactions"]) > 1_000.0, "{level}");

    let (out, took) = open;
    assert_silent(&out);
    let level = &out["levels"][0];
    let (due, ended) = (number(&level["arrivals"]["due"]), number(&level["transactions"]));
    let in_flight = number(&level["in_flight"]["transactions"]);
    assert!((due - 100.0 * number(&level["seconds"])).abs() <= 2.0, "{level}");
    // A few may have been due before the window began.
    let counted = ended + in_flight;
    assert!((due - 1.0..=due + 10.0).contains(&counted), "{due} due, {ended} ended, {in_flight} in flight");
    assert_eq!(number(&level["in_flight"]["not_begun"]), in_flight - 4.0);
    // Of 400, 250 were unanswered: the median of all is what had waited longest but for 50.
    let median = &level["percentiles"][0];
    assert_eq!(median["is_lower_bound"], true, "{median}");
    assert!((100.0..1_500.0).contains(&number(&median["latency_ms"])), "{median}");
    assert!(took < Duration::from_secs(40), "a server that hangs keeps the load for {took:?}");
}

/// A run of two levels whose server is stopped in the first.
fn run_stopped(continued_after: Option<Duration>) -> (Value, Duration) {
    let place = Place::new();
    let file = place.path().join("one.sql");
    fs::write(&file, "SELECT 1;\n").unwrap();
    let args = ["run", file.to_str().unwrap(), "--users", "2,4", "--seconds", "4"];
    stopped(&place, &args, continued_after)
}

/// The first level was silent and failed its service level, and so the run is not complete.
fn assert_run_is_cut_short(out: &Value) {
    let level = &out["levels"][0];
    assert_closed(level);
    for why in [&level["cut_short"], &out["ended"]["why"]] {
        assert!(why.as_str().is_some_and(|why| why.contains("answered nothing in the last 2.")), "{why}");
    }
    assert_eq!((&out["ended"]["how"], &out["usable"]), (&"cut_short".into(), &false.into()), "{out}");
    let headline = out["headline"].as_str().unwrap();
    assert!(headline.starts_with("Not usable") && headline.contains("answered nothing"), "{headline}");
    let slo = &level["slo"][0];
    assert_eq!((&slo["held"], &slo["is_lower_bound"]), (&false.into(), &true.into()), "{slo}");
    assert!((2_000.0..3_000.0).contains(&number(&slo["measured_ms"])), "{slo}");
}

#[test]
#[ignore = "long: make test-hard"]
fn a_run_whose_server_stops_in_mid_level_is_not_complete_and_leaves_without_it() {
    let (again, never) = thread::scope(|scope| {
        let again = scope.spawn(|| run_stopped(Some(Duration::from_secs(5))));
        let never = scope.spawn(|| run_stopped(None));
        (again.join().unwrap(), never.join().unwrap())
    });
    let (out, _) = again;
    assert_run_is_cut_short(&out);
    // The server answers again: the second level, and the better one once more.
    let levels = out["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 3, "{out}");
    for level in &levels[1..] {
        assert_eq!((&level["users"], &level["cut_short"]), (&4.into(), &Value::Null), "{level}");
        assert_eq!(level["slo"][0]["is_lower_bound"], false, "{level}");
    }

    let (out, took) = never;
    assert_run_is_cut_short(&out);
    assert_eq!(out["levels"].as_array().unwrap().len(), 1, "no connection for a second level: {out}");
    assert!(took < Duration::from_secs(60), "a server that hangs keeps the run for {took:?}");
}

#[test]
#[ignore = "long: make test-hard"]
fn a_run_whose_own_server_stops_in_mid_level_ends_it_all_the_same() {
    let place = Place::new();
    let args = ["--users", "4", "--seconds", "4", "--slo", "max=500ms", "--json"];
    let child = spawn(&mut place.run(&args));
    assert!(wait_until(SOON, || drives_a_level(child.id())), "no level began");
    // A second of it warms up.
    thread::sleep(Duration::from_millis(2_500));
    let begin = Instant::now();
    let [server] = server_pids_under(place.path())[..] else { panic!("one server was started") };
    kill(server, libc::SIGSTOP);
    let output = finish(child, Duration::from_secs(90));
    assert!(begin.elapsed() < Duration::from_secs(60), "a server that hangs keeps the run");
    assert_run_is_cut_short(&failed(&output));
    place.assert_nothing_left();
}

#[test]
fn a_search_for_capacity_ends_where_the_server_stops_and_has_no_answer() {
    let search = |more: &[&str], continued_after| {
        let place = Place::new();
        let args = ["load", "--query", "SELECT 1", "--users", "4", "--seconds", "4", "--find-capacity"];
        stopped(&place, &[&args[..], more].concat(), continued_after)
    };
    let (closed, open) = thread::scope(|scope| {
        // Stopped while it finds out where to begin; it answers again before the level has ended to the last statement.
        let closed = scope.spawn(|| search(&[], Some(Duration::from_secs(5))));
        let open = scope.spawn(|| search(&["--rate", "100", "--arrivals", "uniform"], None));
        (closed.join().unwrap(), open.join().unwrap())
    });
    for (out, took) in [&closed, &open] {
        assert_silent(out);
        assert_eq!(out["levels"].as_array().unwrap().len(), 1, "a probe after it: {out}");
        assert!(*took < Duration::from_secs(40), "a server that hangs keeps the search for {took:?}");
    }
    assert_eq!(closed.0["capacity"], Value::Null, "{}", closed.0);
    // That the server hung at this rate does not make the rate one that fails.
    let capacity = &open.0["capacity"];
    assert_eq!((&capacity["holds_per_s"], &capacity["fails_per_s"]), (&Value::Null, &Value::Null));
    assert_eq!(capacity["probes"].as_array().map(Vec::len), Some(0), "{capacity}");
}

//! Stacks of a real MariaDB under load: `whyso run --stacks`, and the views over what it recorded.

mod common;

use std::path::Path;

use common::{Place, json_of, output, text};
use serde_json::Value;

const USERS: &str = "16";
/// What a thread's outermost function is called, and the one before it.
const ROOTS: [&str; 5] = ["clone3", "__clone", "clone", "start_thread", "_start"];

fn ns(object: &Value, metric: &str, kind: &str) -> f64 {
    object[metric][kind].as_f64().unwrap_or_else(|| panic!("no {kind} of {metric} in {object}"))
}

fn functions(object: &Value) -> &Vec<Value> {
    object["functions"].as_array().unwrap()
}

/// How much a series of the threads that work for connections grew within the last level, by the recording's own samples.
fn grown_ns(place: &Place, run: &str, metric: &str) -> f64 {
    let about: Value =
        serde_json::from_str(&std::fs::read_to_string(Path::new(run).join("run.json")).unwrap()).unwrap();
    let window = &about["levels"].as_array().unwrap().last().unwrap()["window"];
    let args = ["export", run, "--source", "threads", "--metric", metric, "--instance", "connection"];
    let csv = text(&output(&mut place.whyso(&args)).stdout);
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name: &str| head.iter().position(|one| *one == name).unwrap_or_else(|| panic!("{head:?}"));
    let (t_ns, value) = (column("t_ns"), column("value"));
    let rows: Vec<(f64, f64)> = lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[t_ns].parse().unwrap(), cells[value].parse().unwrap())
        })
        .collect();
    let nearest = |edge: f64| {
        let row = rows.iter().min_by(|a, b| (a.0 - edge).abs().total_cmp(&(b.0 - edge).abs()));
        row.expect("readings of the threads").1
    };
    nearest(window["end_ns"].as_f64().unwrap()) - nearest(window["begin_ns"].as_f64().unwrap())
}

#[test]
fn the_stacks_of_a_loaded_mariadb_reach_their_roots_and_add_up_to_the_accounts() {
    let place = Place::new();
    let more = ["--users", USERS, "--seconds", "5", "--stacks", "--no-repeat", "--json"];
    let out = json_of(&output(&mut place.run(&more)));
    let run = out["path"].as_str().unwrap();

    let shown =
        output(&mut place.whyso(&["functions", run, "--by", "lock,cpu,io", "--json", "--limit", "100000"]));
    if text(&shown.stderr).contains("no stacks: the stacks of the server's threads") {
        eprintln!("not tested: {}", text(&shown.stderr));
        return;
    }
    let all = json_of(&shown);
    let count = |name: &str| all[name].as_f64().unwrap();
    let whole = 1.0 - count("rootless") / (count("samples") + count("waits"));
    println!(
        "{} samples, {} waits, {:.1} % of their stacks are whole",
        all["samples"],
        all["waits"],
        whole * 100.0
    );
    assert!(count("samples") > 50.0 && count("waits") > 50.0, "{} and {}", all["samples"], all["waits"]);
    assert!(whole >= 0.9, "{whole} of the stacks are whole");
    assert_the_timeline_adds_up(&place, run);
    let rooted = |metric: &str| {
        let roots = functions(&all).iter().filter(|one| ROOTS.contains(&one["name"].as_str().unwrap()));
        roots.map(|one| ns(one, metric, "inclusive_ns")).fold(0.0, f64::max)
            / ns(&all["total"], metric, "inclusive_ns")
    };
    for metric in ["cpu", "lock"] {
        println!("{metric}: {:.1} % under a known root", rooted(metric) * 100.0);
        assert!(rooted(metric) >= 0.9, "{metric}: {} under a known root", rooted(metric));
        let exclusive: f64 = functions(&all).iter().map(|one| ns(one, metric, "exclusive_ns")).sum();
        let total = ns(&all["total"], metric, "exclusive_ns");
        assert!((exclusive / total - 1.0).abs() < 1e-6, "{metric}: {exclusive} of {total}");
    }

    for metric in ["lock", "cpu"] {
        let sampled = ns(&all["total"], metric, "exclusive_ns");
        let exact = grown_ns(&place, run, &format!("{metric}_ns"));
        let interval = all["total_half_interval_ns"][metric].as_f64().unwrap();
        println!("{metric}: {:.0} ± {:.0} ms of {:.0} ms", sampled / 1e6, interval / 1e6, exact / 1e6);
        // Half as much again as the interval, and 5 %: one run in a thousand, and waits at the window's edges.
        assert!(
            (sampled - exact).abs() <= interval * 1.5 + exact * 0.05,
            "{metric}: {sampled} of {exact} ns"
        );
    }
    assert_classes_add_up(&place, run, ns(&all["total"], "lock", "exclusive_ns"));
    assert_relatives_are_told(&place, run);
    assert_folded_stacks_add_up(&place, run, ns(&all["total"], "cpu", "exclusive_ns"));
    assert_flame_graph_has_the_same_totals(run, &all);
}

fn assert_classes_add_up(place: &Place, run: &str, lock_ns: f64) {
    let told = json_of(&output(&mut place.whyso(&["classes", run, "--by", "lock", "--json"])));
    let classes = told["classes"].as_array().unwrap();
    let of = |one: &Value| one["ns"]["lock"].as_f64().unwrap();
    let sum: f64 = classes.iter().map(of).sum();
    assert!((sum / lock_ns - 1.0).abs() < 1e-6, "{sum} of {lock_ns} ns");
    let known: f64 = classes.iter().filter(|one| one["class"].is_string()).map(of).sum();
    println!("{:.1} % of the lock waits have a class", known * 100.0 / sum);
    let rules = place.path().join("rules.txt");
    std::fs::write(&rules, "everything * *\n").unwrap();
    let args = ["classes", run, "--by", "lock", "--json", "--rules", rules.to_str().unwrap()];
    let told = json_of(&output(&mut place.whyso(&args)));
    assert_eq!(told["classes"].as_array().unwrap().len(), 1);
    assert_eq!(told["classes"][0]["class"], "everything");
    std::fs::write(&rules, "nonsense\n").unwrap();
    let wrong = output(&mut place.whyso(&args));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("rules.txt: line 1, 'nonsense', is no rule"),
        "{}",
        text(&wrong.stderr)
    );
}

fn assert_relatives_are_told(place: &Place, run: &str) {
    let name = "do_command(THD*, bool)";
    let callers = json_of(&output(&mut place.whyso(&["callers", run, name, "--by", "lock,cpu", "--json"])));
    let attributed: f64 =
        callers["callers"].as_array().unwrap().iter().map(|one| ns(one, "lock", "attributed_ns")).sum();
    assert!((attributed / ns(&callers["function"], "lock", "inclusive_ns") - 1.0).abs() < 1e-6, "{callers}");
    let callees = output(&mut place.whyso(&["callees", run, name, "--by", "lock"]));
    let table = text(&callees.stdout);
    assert!(callees.status.success() && table.contains("*do_command(THD*, bool)"), "{table}");
    assert!(table.contains("dispatch_command("), "{table}");
    let odd = output(&mut place.whyso(&["callers", run, "no_such_function"]));
    assert_eq!(odd.status.code(), Some(2));
    assert!(text(&odd.stderr).contains("no function on any stack is called 'no_such_function'"));
}

fn assert_folded_stacks_add_up(place: &Place, run: &str, cpu_ns: f64) {
    let folded = text(&output(&mut place.whyso(&["export", run, "--folded", "--by", "cpu"])).stdout);
    let mut sum_us = 0.0;
    for line in folded.lines() {
        let (stack, us) = line.rsplit_once(' ').unwrap();
        sum_us += us.parse::<f64>().unwrap();
        assert!(!stack.is_empty());
    }
    assert!((sum_us * 1e3 / cpu_ns - 1.0).abs() < 0.01, "{sum_us} us folded of {cpu_ns} ns");
}

/// The page tells connections' threads first, metric by metric, in whole microseconds.
fn assert_flame_graph_has_the_same_totals(run: &str, all: &Value) {
    let html = std::fs::read_to_string(Path::new(run).join("report.html")).unwrap();
    let (_, from_head) = html.split_once(r#"id="whyso-head">"#).unwrap();
    let (head, _) = from_head.split_once("</script>").unwrap();
    let flame = &serde_json::from_str::<Value>(head).unwrap()["flame"];
    for (place, metric) in ["cpu", "lock", "io"].into_iter().enumerate() {
        assert_eq!(flame["metrics"][place], metric);
        let total_us = flame["levels"][0]["columns"][place]["total_us"].as_f64().unwrap();
        let total_ns = ns(&all["total"], metric, "exclusive_ns");
        assert!((total_us * 1e3 - total_ns).abs() <= 500.0, "{metric}: {total_us} us of {total_ns} ns");
    }
}

/// The time of connections' threads by state over the measured window, as the timeline and as the table of threads have it.
fn assert_the_timeline_adds_up(place: &Place, run: &str) {
    let window = ["--users", USERS, "--role", "connection", "--json"];
    let timeline =
        json_of(&output(&mut place.whyso(&[&["timeline", run, "--by", "role"], &window[..]].concat())));
    let threads = json_of(&output(&mut place.whyso(&[&["threads", run], &window[..]].concat())));
    let states = threads["sum"]["states_ms"].as_object().unwrap();
    let all_ms = threads["sum"]["time_ms"].as_f64().unwrap();
    assert!(all_ms > 1_000.0, "{all_ms} ms of connections' threads");
    for (state, ms) in states {
        let cells = timeline["rows"][0]["states_ms"][state].as_array();
        let told_ms: f64 = cells.into_iter().flatten().map(|ms| ms.as_f64().unwrap()).sum();
        let ms = ms.as_f64().unwrap();
        assert!((told_ms - ms).abs() <= 0.02 * all_ms, "{state}: {told_ms} and {ms} of {all_ms} ms");
    }
    let longest = timeline["waits"].as_array().unwrap();
    assert!(
        !longest.is_empty()
            && longest.is_sorted_by(|a, b| a["length_ms"].as_f64() >= b["length_ms"].as_f64())
    );
    let shown = output(&mut place.whyso(&["timeline", run, "--users", USERS]));
    assert!(text(&shown.stdout).contains("\nconnection, "), "{}", text(&shown.stdout));
}

#[test]
fn a_run_without_stacks_says_how_to_have_them() {
    let place = Place::new();
    let out = json_of(&output(&mut place.run(&["--users", "1", "--seconds", "1", "--no-repeat", "--json"])));
    let shown = output(&mut place.whyso(&["functions", out["path"].as_str().unwrap()]));
    assert_eq!(shown.status.code(), Some(1));
    assert_eq!(text(&shown.stderr), "whyso: this run holds no stacks: it was recorded without --stacks\n");
    let both = output(&mut place.run(&["--stacks", "--no-trace"]));
    assert_eq!(both.status.code(), Some(2));
}

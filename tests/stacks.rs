//! Stacks of a real MariaDB under load: what each level of `whyso run --stacks=LEVEL` records, and the views over it.

// Runs alone: it judges shares of sampled time.

mod common;

use std::path::Path;
use std::process::Command;

use common::{Place, json_of, may_trace, output, text};
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
    let column =
        |name: &str| head.iter().position(|title| *title == name).unwrap_or_else(|| panic!("{head:?}"));
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
        whyso_testing::tracer_not_tested(text(&shown.stderr));
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
        let roots =
            functions(&all).iter().filter(|function| ROOTS.contains(&function["name"].as_str().unwrap()));
        roots.map(|function| ns(function, metric, "inclusive_ns")).fold(0.0, f64::max)
            / ns(&all["total"], metric, "inclusive_ns")
    };
    for metric in ["cpu", "lock"] {
        println!("{metric}: {:.1} % under a known root", rooted(metric) * 100.0);
        assert!(rooted(metric) >= 0.9, "{metric}: {} under a known root", rooted(metric));
        let exclusive: f64 =
            functions(&all).iter().map(|function| ns(function, metric, "exclusive_ns")).sum();
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
    assert_relatives_are_shown(&place, run);
    assert_folded_stacks_add_up(&place, run, ns(&all["total"], "cpu", "exclusive_ns"));
    assert_flame_graph_has_the_same_totals(run, &all);
    assert_filters_are_the_same_everywhere(&place, run, &all);
    assert_pprof_reads_the_same_sums(&place, run, &all);
    assert_a_run_is_compared_with_another(&place, run);
    assert_sources_are_shown_where_builds_have_line_tables(&place, run, &all);
}

/// Every view takes the same words for a part of the run and for threads.
fn assert_filters_are_the_same_everywhere(place: &Place, run: &str, all: &Value) {
    let threads = json_of(&output(&mut place.whyso(&["threads", run, "--role", "connection", "--json"])));
    let threads = threads["threads"].as_array().unwrap();
    let busiest = threads.iter().max_by_key(|thread| thread["requests"].as_u64()).unwrap();
    let tid = busiest["tid"].as_u64().unwrap().to_string();
    let connection = busiest["connection"].as_u64().map(|number| number.to_string());
    let views: [&[&str]; 6] =
        [&["functions"], &["callers"], &["classes"], &["wakers"], &["export", "--folded"], &["threads"]];
    for view in views {
        let mut args = view.to_vec();
        args.insert(1, run);
        if view[0] == "callers" {
            args.push("do_command(THD*, bool)");
        }
        args.extend(["--level", "0", "--role", "connection", "--thread", &tid, "--name", ""]);
        let shown = output(&mut place.whyso(&args));
        assert!(shown.status.success(), "{view:?}: {}", text(&shown.stderr));
        assert!(!shown.stdout.is_empty(), "{view:?} shows nothing");
    }
    let of = |more: &[&str]| {
        let args = [&["functions", run, "--by", "cpu", "--json"], more].concat();
        json_of(&output(&mut place.whyso(&args)))
    };
    let cpu_ns = |object: &Value| ns(&object["total"], "cpu", "exclusive_ns");
    let sum: f64 = threads
        .iter()
        .filter_map(|thread| {
            let tid = thread["tid"].to_string();
            let args = ["functions", run, "--by", "cpu", "--thread", &tid, "--role", "connection", "--json"];
            let shown = output(&mut place.whyso(&args));
            shown.status.success().then(|| cpu_ns(&json_of(&shown)))
        })
        .sum();
    assert!((sum / ns(&all["total"], "cpu", "exclusive_ns") - 1.0).abs() < 1e-6, "{sum} of all threads");
    if let Some(connection) = connection {
        let of_connection = of(&["--connection", &connection]);
        let share = of_connection["known_share"].as_f64().unwrap();
        println!("{:.1} % of the time is known to be of one connection or another", share * 100.0);
        assert!(
            share > 0.0 && share <= 1.0 && cpu_ns(&of_connection) <= cpu_ns(&of(&["--thread", &tid])),
            "{of_connection}"
        );
    }
    let begin_s = |at: f64| format!("{at}s-{}s", at + 1e5);
    assert!((cpu_ns(&of(&["--window", &begin_s(0.0)])) / cpu_ns(all) - 1.0) > -1e-6);
    let refused = |more: &[&str]| {
        let shown = output(&mut place.whyso(&[&["functions", run], more].concat()));
        assert_eq!(shown.status.code(), Some(2), "{more:?}");
        text(&shown.stderr)
    };
    assert!(refused(&["--thread", "1"]).contains("no stack in this window is of a thread of that number"));
    assert!(
        refused(&["--connection", "1"])
            .contains("no stack in this window is known to be of such a connection")
    );
    assert!(refused(&["--window", "7000s-8000s"]).contains("no stack was taken in this window"));
    assert!(refused(&["--window", "5"]).contains("give two times, such as 10s-25s"));
    assert!(refused(&["--users", "77"]).contains("this run has no such level; it has: 0 (16 users)"));
    let samples = output(&mut place.whyso(&["export", run, "--thread", "1"]));
    assert!(text(&samples.stderr).contains("give --folded or --pprof, too"));
}

/// What another program makes of the file: Go's own reader of profiles.
fn assert_pprof_reads_the_same_sums(place: &Place, run: &str, all: &Value) {
    let file = place.path().join("stacks.pb.gz");
    let file = file.to_str().unwrap();
    let written = output(&mut place.whyso(&["export", run, "--pprof", "--by", "lock,cpu,io", "-o", file]));
    assert!(written.status.success(), "{}", text(&written.stderr));
    let raw =
        Command::new("go").args(["tool", "pprof", "-raw", file]).env("PPROF_TMPDIR", place.path()).output();
    let raw = match raw {
        Ok(raw) if raw.status.success() => text(&raw.stdout),
        Ok(raw) => panic!("pprof can't read it: {}", text(&raw.stderr)),
        Err(error) => {
            whyso_testing::not_tested(format!("what pprof reads, as go is missing here: {error}"));
            return;
        }
    };
    let mut lines = raw.lines().skip_while(|line| *line != "Samples:").skip(1);
    let types: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(types[..2], ["lock/nanoseconds[dflt]", "lock_samples/count"], "{types:?}");
    let mut sums = vec![0.0; types.len()];
    let samples = lines.take_while(|line| *line != "Locations");
    // A sample's values and its locations; beneath it its labels.
    for (values, _) in
        samples.filter_map(|line| line.split_once(':')).filter(|(values, _)| is_numbers(values))
    {
        for (sum, value) in sums.iter_mut().zip(values.split_whitespace()) {
            *sum += value.parse::<f64>().unwrap();
        }
    }
    for (place, metric) in ["lock", "cpu", "io"].into_iter().enumerate() {
        let total_ns = ns(&all["total"], metric, "exclusive_ns");
        assert!((sums[place * 2] - total_ns).abs() <= 1e3, "{metric}: {} of {total_ns} ns", sums[place * 2]);
    }
    assert_eq!(
        sums[1] + sums[3] + sums[5],
        all["samples"].as_f64().unwrap() + all["waits"].as_f64().unwrap()
    );
    assert!(raw.contains("role:[connection]"), "no thread's role is shown");
    assert!(raw.lines().any(|line| line.starts_with("1: ") && line.contains(" mariadbd ")), "{raw}");
}

fn is_numbers(text: &str) -> bool {
    !text.trim().is_empty() && text.split_whitespace().all(|word| word.parse::<u64>().is_ok())
}

fn assert_a_run_is_compared_with_another(place: &Place, run: &str) {
    let more = ["--users", "1,4", "--seconds", "2", "--stacks", "--no-repeat", "--json"];
    let other = json_of(&output(&mut place.run(&more)));
    let other = other["path"].as_str().unwrap();
    let compared = |more: &[&str]| {
        let args = [&["functions", run, "--by", "cpu,lock", "--json", "--limit", "100000"], more].concat();
        json_of(&output(&mut place.whyso(&args)))
    };
    let against = format!("{other}:1");
    let comparison = compared(&["--against", &against]);
    assert_eq!(comparison["compared_by"], "transactions");
    let differ = |object: &Value| object["cpu"]["exclusive"]["difference"].as_f64().unwrap();
    let sum: f64 = functions(&comparison).iter().map(differ).sum();
    assert!((sum - differ(&comparison["total"])).abs() < 1.0, "{sum} ns of {}", comparison["total"]);
    let alone =
        json_of(&output(&mut place.whyso(&["functions", other, "--users", "1", "--by", "cpu", "--json"])));
    let transactions = comparison["there"]["transactions"].as_f64().unwrap();
    let there = comparison["total"]["cpu"]["exclusive"]["there"].as_f64().unwrap();
    assert!((there * transactions / ns(&alone["total"], "cpu", "exclusive_ns") - 1.0).abs() < 1e-6);
    assert_eq!(compared(&["--against", other, "--share"])["compared_by"], "share");
    let table = output(&mut place.whyso(&["functions", other, "--against-users", "1", "--inclusive"]));
    assert!(text(&table.stdout).contains("against the level of 1 user, "), "{}", text(&table.stdout));
    let same = output(&mut place.whyso(&["functions", other, "--against-users", "4"]));
    assert_eq!(same.status.code(), Some(2));
    assert!(text(&same.stderr).contains("that is the same level"), "{}", text(&same.stderr));

    let alone = output(&mut place.whyso(&["functions", run, "--share"]));
    assert_eq!(alone.status.code(), Some(2), "a share of what, against what?");
    let folded = output(&mut place.whyso(&["export", run, "--folded", "--by", "cpu", "--against", &against]));
    let sides: Vec<[f64; 2]> = text(&folded.stdout)
        .lines()
        .map(|line| {
            let mut words = line.rsplitn(3, ' ');
            let [here, there] = [words.next(), words.next()].map(|number| number.unwrap().parse().unwrap());
            [there, here]
        })
        .collect();
    let sum = sides.iter().map(|[there, _]| there).sum::<f64>();
    assert!((sum / there - 1.0).abs() < 0.01, "{sum} ns a transaction folded of {there}");

    let page = place.path().join("compared.html");
    let drawn = output(&mut place.whyso(&["report", run, "--against", other, "-o", page.to_str().unwrap()]));
    assert!(drawn.status.success(), "{}", text(&drawn.stderr));
    let flame = flame_of(&page);
    let levels = flame["levels"].as_array().unwrap();
    let names: Vec<&str> = levels.iter().filter_map(|level| level["name"].as_str()).collect();
    let id = Path::new(other).file_name().unwrap().to_str().unwrap();
    assert_eq!(names, [format!("1 user of run {id}"), format!("4 users of run {id}")]);
    assert_eq!(levels[1]["transactions"].as_f64(), Some(transactions));
}

/// Builds that have line tables name the file and the line. Of others the program reports that they need them.
fn assert_sources_are_shown_where_builds_have_line_tables(place: &Place, run: &str, all: &Value) {
    let mut with_lines = 0;
    for function in functions(all).iter().filter(|function| function["module"] != "[kernel]").take(12) {
        let name = function["name"].as_str().unwrap();
        let shown = output(&mut place.whyso(&["source", run, name, "--by", "lock,cpu,io", "--json"]));
        if !shown.status.success() {
            assert!(text(&shown.stderr).contains("has no line tables; install its debug symbols"));
            continue;
        }
        with_lines += 1;
        let source = &json_of(&shown)["sources"][0];
        for metric in ["lock", "cpu", "io"] {
            let lines = source["lines"].as_array().unwrap().iter().chain([&source["no_line"]]);
            let sum: f64 = lines.map(|line| ns(line, metric, "exclusive_ns")).sum();
            assert!((sum - ns(function, metric, "exclusive_ns")).abs() < 1.0, "{name}, {metric}: {sum}");
        }
        let table = text(&output(&mut place.whyso(&["source", run, name])).stdout);
        assert!(table.contains("its source is not read"));
    }
    println!("{with_lines} of 12 functions have lines");
}

fn assert_classes_add_up(place: &Place, run: &str, lock_ns: f64) {
    let by_class = json_of(&output(&mut place.whyso(&["classes", run, "--by", "lock", "--json"])));
    let classes = by_class["classes"].as_array().unwrap();
    let of = |class: &Value| class["ns"]["lock"].as_f64().unwrap();
    let sum: f64 = classes.iter().map(of).sum();
    assert!((sum / lock_ns - 1.0).abs() < 1e-6, "{sum} of {lock_ns} ns");
    let classed_ns: f64 = classes.iter().filter(|class| class["class"].is_string()).map(of).sum();
    println!("{:.1} % of the lock waits have a class", classed_ns * 100.0 / sum);
    let rules = place.path().join("rules.txt");
    std::fs::write(&rules, "everything * *\n").unwrap();
    let args = ["classes", run, "--by", "lock", "--json", "--rules", rules.to_str().unwrap()];
    let by_rules = json_of(&output(&mut place.whyso(&args)));
    assert_eq!(by_rules["classes"].as_array().unwrap().len(), 1);
    assert_eq!(by_rules["classes"][0]["class"], "everything");
    std::fs::write(&rules, "nonsense\n").unwrap();
    let wrong = output(&mut place.whyso(&args));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("rules.txt: line 1, 'nonsense', is no rule"),
        "{}",
        text(&wrong.stderr)
    );
}

fn assert_relatives_are_shown(place: &Place, run: &str) {
    let name = "do_command(THD*, bool)";
    let callers = json_of(&output(&mut place.whyso(&["callers", run, name, "--by", "lock,cpu", "--json"])));
    let attributed: f64 =
        callers["callers"].as_array().unwrap().iter().map(|caller| ns(caller, "lock", "attributed_ns")).sum();
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

/// What a page's head says of its flame graph.
fn flame_of(page: &Path) -> Value {
    let html = std::fs::read_to_string(page).unwrap();
    let (_, from_head) = html.split_once(r#"id="whyso-head">"#).unwrap();
    let (head, _) = from_head.split_once("</script>").unwrap();
    serde_json::from_str::<Value>(head).unwrap()["flame"].take()
}

/// The page tells connections' threads first, metric by metric, in whole microseconds.
fn assert_flame_graph_has_the_same_totals(run: &str, all: &Value) {
    let flame = flame_of(&Path::new(run).join("report.html"));
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

/// Lines of an exported source, and of it those of one metric.
fn exported(place: &Place, run: &str, source: &str, metric: &str) -> Vec<String> {
    let csv =
        text(&output(&mut place.whyso(&["export", run, "--source", source, "--metric", metric])).stdout);
    csv.lines().skip(1).map(str::to_string).collect()
}

#[test]
fn a_run_samples_threads_on_cpus_by_default_and_no_waits() {
    if !may_trace() {
        return;
    }
    let place = Place::new();
    let out = json_of(&output(&mut place.run(&["--users", "8", "--seconds", "4", "--no-repeat", "--json"])));
    let run = out["path"].as_str().unwrap();
    let about: Value =
        serde_json::from_str(&std::fs::read_to_string(Path::new(run).join("run.json")).unwrap()).unwrap();
    assert_eq!(about["spec"]["stacks"], "light");
    let missing = about["not_measured"].to_string();
    assert!(missing.contains("the stacks of waits were not taken; --stacks takes them"), "{missing}");
    assert!(!missing.contains("no stacks were taken"), "{missing}");

    let all = json_of(&output(&mut place.whyso(&["functions", run, "--json", "--limit", "100000"])));
    assert_eq!((&all["is_light"], &all["metrics"]), (&true.into(), &serde_json::json!(["cpu"])));
    let samples = all["samples"].as_f64().unwrap();
    // Each stands for the time between two samples of a CPU, and together for the time that connections' threads ran.
    let (sampled, exact) = (ns(&all["total"], "cpu", "exclusive_ns"), grown_ns(&place, run, "cpu_ns"));
    let interval = all["total_half_interval_ns"]["cpu"].as_f64().unwrap();
    assert!((sampled / samples / 1e9 - 1.0 / 49.0).abs() < 1e-6, "{sampled} ns of {samples} samples");
    assert!(samples >= 20.0, "{samples} samples");
    assert!((sampled - exact).abs() <= interval * 1.5 + exact * 0.05, "{sampled} of {exact} ns");
    assert_eq!(all["waits"], 0);
    let whole = 1.0 - all["rootless"].as_f64().unwrap() / samples;
    assert!(whole >= 0.9, "{whole} of the stacks are whole");
    let inclusive = |name: &str| {
        let found =
            functions(&all).iter().filter(|function| function["name"].as_str().unwrap().contains(name));
        found.map(|function| ns(function, "cpu", "inclusive_ns")).fold(0.0, f64::max)
    };
    assert!(inclusive("do_command(THD*, bool)") > 0.5 * sampled, "{all:#}");

    let shown = text(&output(&mut place.whyso(&["functions", run])).stdout);
    assert!(shown.contains("light sampling: fewer stacks"), "{shown}");
    let lock = output(&mut place.whyso(&["functions", run, "--by", "lock"]));
    assert_eq!(lock.status.code(), Some(1));
    assert!(text(&lock.stderr).contains("this run holds no stacks of waits"), "{}", text(&lock.stderr));
    for view in
        [&["callers", run, "do_command(THD*, bool)"][..], &["classes", run], &["export", run, "--folded"]]
    {
        let shown = output(&mut place.whyso(view));
        assert!(shown.status.success() && !shown.stdout.is_empty(), "{view:?}: {}", text(&shown.stderr));
    }
    let source = output(&mut place.whyso(&["source", run, "do_command(THD*, bool)"]));
    assert_eq!(source.status.code(), Some(1));
    assert!(text(&source.stderr).contains("light sampling names functions by symbols only"));
    let by = ["functions", run, "--by", "cpu,lock,io", "--json"];
    assert_flame_graph_has_the_same_totals(run, &json_of(&output(&mut place.whyso(&by))));

    // What it costs is recorded: of the thread, and of the one program that runs.
    assert!(!exported(&place, run, "stacks", "cpu_ns").is_empty());
    let programs = exported(&place, run, "stacks", "program_ns");
    assert!(programs.iter().all(|line| line.contains("perf_event")), "{programs:?}");
    assert!(exported(&place, run, "stacks", "waits").is_empty());
    place.assert_nothing_left();
}

#[test]
fn of_a_run_without_stacks_the_message_has_the_reason() {
    let place = Place::new();
    for (option, why) in [
        ("--stacks=none", "it was recorded with --stacks=none"),
        ("--no-trace", "the time of the server's threads: --no-trace was given"),
    ] {
        let more = ["--users", "1", "--seconds", "1", "--no-repeat", "--json", option];
        let out = json_of(&output(&mut place.run(&more)));
        let run = out["path"].as_str().unwrap();
        let shown = output(&mut place.whyso(&["functions", run]));
        assert_eq!(shown.status.code(), Some(1));
        let message = text(&shown.stderr);
        // Where the tracer is not allowed, that is why.
        let is_untraced = message.contains("the time of the server's threads: ") && option == "--stacks=none";
        assert!(message == format!("whyso: this run holds no stacks: {why}\n") || is_untraced, "{message}");
        assert!(exported(&place, run, "stacks", "cpu_ns").is_empty(), "{option}");
        let about = std::fs::read_to_string(Path::new(run).join("run.json")).unwrap();
        assert!(about.contains("no stacks were taken"), "{option}: {about}");
    }
    for level in ["--stacks", "--stacks=full"] {
        let both = output(&mut place.run(&[level, "--no-trace"]));
        assert_eq!(both.status.code(), Some(2), "{level}: {}", text(&both.stderr));
    }
}

//! `--stacks-of all`: the functions of every program on a machine, next to the CPU time that the kernel counts.

// Runs alone: it judges shares of sampled time.

mod common;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::{Place, json_of, output, text};
use serde_json::Value;

const SECONDS: &str = "40";
/// How far sampled time may be from what the kernel counts.
const DIFFERENCE_MAX: f64 = 0.1;

/// A program that computes until this is dropped. The kernel names a process by the file that it executes.
struct Busy {
    child: Child,
    name: String,
}

impl Busy {
    fn start(folder: &Path, interpreter: &str, script: &str, letter: char) -> Busy {
        let name = format!("busy-{letter}{}", std::process::id());
        let program = folder.join(&name);
        symlink(interpreter_of(interpreter), &program).unwrap();
        let option = if interpreter == "perl" { "-e" } else { "-c" };
        let mut command = Command::new(&program);
        let child = command.args([option, script]).stdin(Stdio::null()).spawn().expect(interpreter);
        Busy { child, name }
    }

    fn python(folder: &Path) -> Busy {
        Busy::start(folder, "python3", "n = 0\nwhile True: n = (n * 3 + 1) % 1000003", 'p')
    }

    fn perl(folder: &Path) -> Busy {
        Busy::start(folder, "perl", "my $n = 0; while (1) { $n = ($n * 3 + 1) % 1000003 }", 'q')
    }

    fn shell(folder: &Path) -> Busy {
        Busy::start(folder, "sh", "while :; do :; done", 's')
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The file that is executed in the end: some put a script in its place.
fn interpreter_of(program: &str) -> PathBuf {
    if program != "python3" {
        return path_of(program);
    }
    let asked = Command::new(program).args(["-c", "import sys; print(sys.executable)"]).output();
    PathBuf::from(text(&asked.expect("python3 is needed").stdout).trim()).canonicalize().unwrap()
}

fn path_of(program: &str) -> PathBuf {
    let paths = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&paths).map(|folder| folder.join(program)).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{program} is needed")).canonicalize().unwrap()
}

fn line<'a>(programs: &'a Value, name: &str) -> &'a Value {
    let lines = programs["programs"].as_array().unwrap();
    lines.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("no {name} in {lines:#?}"))
}

fn functions(object: &Value) -> Vec<&str> {
    object["functions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|function| function["name"].as_str().unwrap())
        .collect()
}

/// Checks that the samples of a program stand for the time that the kernel counted.
fn assert_agrees(programs: &Value, name: &str) {
    let found = line(programs, name);
    let (counted, sampled) = (found["cpus"].as_f64().unwrap(), found["sampled_cpus"].as_f64().unwrap());
    println!("{name}: {sampled:.3} CPUs by {} samples, {counted:.3} as counted", found["samples"]);
    assert!(counted > 0.05, "{found}");
    // Few samples are off by chance, too: a twentieth, if there are 400.
    let samples = found["samples"].as_f64().unwrap();
    assert!(samples > 50.0, "{found}");
    let by_chance = 1.0 / samples.sqrt();
    assert!((sampled / counted - 1.0).abs() < DIFFERENCE_MAX + 2.0 * by_chance, "{found}");
}

#[test]
fn every_busy_program_is_found_with_its_time_and_its_functions() {
    let place = Place::new();
    let busy = [Busy::python(place.path()), Busy::perl(place.path()), Busy::shell(place.path())];
    let args = ["record", "--machine", "--for", &format!("{SECONDS}s"), "--stacks", "--json"];
    let found = json_of(&output(&mut place.whyso(&args)));
    let run = found["path"].as_str().unwrap();
    if !whyso_is_allowed(&found) {
        return;
    }
    let programs = json_of(&output(&mut place.whyso(&["programs", run, "--json", "--functions", "5"])));
    println!("{}", text(&output(&mut place.whyso(&["programs", run])).stdout));
    assert_eq!(programs["is_sampled"], true);
    for program in &busy {
        assert_agrees(&programs, &program.name);
    }
    let [python, perl, shell] = busy.each_ref().map(|program| line(&programs, &program.name));
    assert!(functions(python).iter().any(|name| name.starts_with("_PyEval")), "{python}");
    assert!(functions(perl).iter().any(|name| name.starts_with("Perl_")), "{perl}");
    assert!(!functions(shell).is_empty(), "{shell}");
    let lines = programs["programs"].as_array().unwrap();
    assert!(lines.iter().all(|line| line["name"] != "[swapper]"), "the idle task is no program: {lines:?}");
    // Other tests may run a whyso of their own.
    let is_own = |line: &Value| line["name"] == "whyso" && line["what"] == "measures and records";
    assert!(lines.iter().any(is_own), "{lines:#?}");

    // The usual profile, of one program.
    let args = ["functions", run, "--program", &busy[0].name, "--json", "--limit", "1000"];
    let profile = json_of(&output(&mut place.whyso(&args)));
    assert_eq!(profile["whose"], format!("program {}", busy[0].name));
    assert_eq!(profile["samples"], python["samples"]);
    let total_s = profile["total"]["cpu"]["exclusive_ns"].as_f64().unwrap() / 1e9;
    let expected_s = python["sampled_cpus"].as_f64().unwrap() * profile["seconds"].as_f64().unwrap();
    assert!((total_s / expected_s - 1.0).abs() < 1e-6, "{total_s} s of {expected_s}");
    let whole = 1.0 - profile["rootless"].as_f64().unwrap() / profile["samples"].as_f64().unwrap();
    println!("{:.1} % of its stacks are whole", whole * 100.0);
    assert!(whole > 0.9, "{whole}");
    let half = ["functions", run, "--program", &busy[0].name, "--window", "0s-10s", "--json"];
    let half = json_of(&output(&mut place.whyso(&half)));
    assert!(half["samples"].as_u64() < profile["samples"].as_u64(), "{}", half["samples"]);
    for view in
        [&["callers", run, "_PyEval_EvalFrameDefault"][..], &["classes", run], &["export", run, "--folded"]]
    {
        let args = [view, &["--program", &busy[0].name]].concat();
        let shown = output(&mut place.whyso(&args));
        assert!(shown.status.success() && !shown.stdout.is_empty(), "{view:?}: {}", text(&shown.stderr));
    }
    let refused = |args: &[&str]| refused_with(&place, args, 2);
    let none = refused(&["functions", run, "--program", "no-such-program"]);
    assert!(none.contains("no program is called 'no-such-program'") && none.contains("busy-"), "{none}");
    let metric = refused_with(&place, &["functions", run, "--program", "whyso", "--by", "lock"], 1);
    assert!(metric.starts_with("whyso: no wait of whyso was recorded"), "{metric}");
    let without = refused_with(&place, &["functions", run], 1);
    assert!(without.contains("stacks of programs only") && without.contains("--program"), "{without}");
    // The report is drawn of a run without a server, too.
    assert!(Path::new(run).join("report.html").exists());
    assert_counters_follow(&place, run, &busy[0].name);
}

/// What a command prints that ends with this status.
fn refused_with(place: &Place, args: &[&str], status: i32) -> String {
    let shown = output(&mut place.whyso(args));
    assert_eq!(shown.status.code(), Some(status), "{args:?}: {}", text(&shown.stderr));
    text(&shown.stderr)
}

/// Whether programs could be sampled; where that is not allowed, it counts as not tested.
fn whyso_is_allowed(found: &Value) -> bool {
    let missing = found["not_measured"].to_string();
    if missing.contains("the stacks of programs other than the server") {
        whyso_testing::tracer_not_tested(missing);
        return false;
    }
    true
}

/// The counters that the page and `whyso watch` read while a recording runs.
fn assert_counters_follow(place: &Place, run: &str, program: &str) {
    let csv = text(&output(&mut place.whyso(&["export", run, "--source", "programs"])).stdout);
    let function = format!("{program}: _PyEval_EvalFrameDefault");
    assert!(csv.contains(&function), "no counter of {function}");
    let lost = text(&output(&mut place.whyso(&["export", run, "--source", "program_stacks"])).stdout);
    for metric in ["lost", "unfollowed", "cpu_ns", "sample_every"] {
        assert!(lost.contains(metric), "no {metric}");
    }
}

#[test]
fn a_servers_profile_and_its_budget_are_the_same_with_the_stacks_of_all_programs() {
    let place = Place::new();
    let busy = Busy::python(place.path());
    let more = ["--users", "4", "--seconds", "10", "--stacks", "--stacks-of", "all", "--no-repeat", "--json"];
    let out = json_of(&output(&mut place.run(&more)));
    let run = out["path"].as_str().unwrap();
    if !whyso_is_allowed(&out) {
        return;
    }
    let programs = json_of(&output(&mut place.whyso(&["programs", run, "--json", "--functions", "100"])));
    println!("{}", text(&output(&mut place.whyso(&["programs", run])).stdout));
    assert_agrees(&programs, &busy.name);
    assert_agrees(&programs, "server");
    let lines = programs["programs"].as_array().unwrap();
    let is_own = |line: &&Value| line["name"] == "whyso" && line["what"] == "measures and records";
    assert!(lines.iter().find(is_own).unwrap()["samples"].as_u64() > Some(0));
    let of_program = line(&programs, &busy.name)["functions"].as_array().unwrap();
    assert!(!of_program.is_empty());

    let bare = without_programs(Path::new(run));
    let bare = bare.to_str().unwrap();
    let views: [&[&str]; 7] = [
        &["functions", "--limit", "100000", "--json"],
        &["functions", "--role", "all", "--observer", "--limit", "100000", "--json"],
        &["classes", "--role", "all", "--json"],
        &["wakers", "--json"],
        &["threads", "--json"],
        &["timeline", "--json"],
        &["export", "--folded", "--role", "all"],
    ];
    for view in views {
        let of = |run: &str| {
            let args = [&view[..1], &[run], &view[1..]].concat();
            let shown = output(&mut place.whyso(&args));
            assert!(shown.status.success(), "{args:?}: {}", text(&shown.stderr));
            text(&shown.stdout)
        };
        let (with, without) = (of(run), of(bare));
        assert!(!with.contains("_PyEval"), "{view:?}");
        assert_eq!(with, without, "{view:?}");
    }
    let why = |run: &str| json_of(&output(&mut place.whyso(&["why", run, "--json"])));
    let (with, without) = (why(run), why(bare));
    for part in ["suspects", "levels", "limit"] {
        assert!(with.get(part).is_some(), "no {part}");
        assert_eq!(with[part], without[part], "{part}");
    }
    let sampled = json_of(&output(&mut place.whyso(&["functions", run, "--role", "all", "--json"])));
    let total_ns = sampled["total"]["cpu"]["exclusive_ns"].as_f64().unwrap();
    let counted_ns =
        line(&programs, "server")["cpus"].as_f64().unwrap() * 1e9 * sampled["seconds"].as_f64().unwrap();
    let half_ns = sampled["total_half_interval_ns"]["cpu"].as_f64().unwrap();
    println!("the server: {:.0} ± {:.0} ms of {:.0} ms", total_ns / 1e6, half_ns / 1e6, counted_ns / 1e6);
    assert!((total_ns - counted_ns).abs() <= half_ns * 1.5 + counted_ns * 0.05);
    place.assert_nothing_left();
}

/// A copy of a recording without the samples of programs, as an older version would have recorded it.
fn without_programs(run: &Path) -> PathBuf {
    let copy = run.with_extension("bare");
    std::fs::create_dir(&copy).unwrap();
    let mut left_out = 0;
    for entry in std::fs::read_dir(run).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_str().unwrap().starts_with("program_") {
            left_out += 1;
        } else {
            std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
    }
    assert!(left_out >= 2, "samples and functions of programs");
    copy
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new();
    let refused = |args: &[&str]| refused_with(&place, args, 2);
    let none = refused(&["record", "--process", "sh", "--stacks=none", "--stacks-of", "all", "--for", "1s"]);
    assert!(none.contains("--stacks-of all takes stacks"), "{none}");
    refused(&["record", "--machine", "--dsn", "mysql://root@localhost/", "--for", "1s"]);
    refused(&["record", "--machine", "--process", "sh", "--for", "1s"]);
    refused(&["record", "--process", "sh", "--no-trace", "--stacks-of", "all", "--for", "1s"]);
    let pfs = refused(&["record", "--machine", "--pfs", "default", "--for", "1s"]);
    assert!(pfs.contains("--pfs is for a server"), "{pfs}");
}

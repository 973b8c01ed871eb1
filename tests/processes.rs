//! `whyso record --process`: web servers' workers that queue on the lock of one access log, and of the folder of their sessions.

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use common::{OwnServer, Place, json_of, output, text};
use serde_json::Value;

/// Perl is part of every Debian, and can name its process.
const WORKERS: &str = r#"
$| = 1;
mkdir 'sessions';
for my $number (1 .. 8) {
    if (my $pid = fork) { print "$pid\n"; next; }
    my $line = 'x' x (1 << 20);
    while (getppid() == $parent) {
        if ($number % 2) {
            open(my $log, '>>', 'access.log') or exit;
            syswrite($log, $line);
            truncate($log, 0) if -s $log > (256 << 20);
        } else {
            for (1 .. 100) { open(my $file, '>', "sessions/$number-$_") or exit; unlink "sessions/$number-$_"; }
        }
    }
    exit;
}
sleep 600;
"#;

const WORKERS_COUNT: usize = 8;

/// Workers in a folder, which end with this.
struct Workers {
    parent: Child,
    name: String,
    pids: Vec<String>,
}

impl Workers {
    /// `letter`: tests run next to each other.
    fn start(folder: &Path, letter: char) -> Workers {
        let name = format!("web-{letter}{}", std::process::id());
        let program = format!("$0 = '{name}'; my $parent = $$; {WORKERS}");
        let mut command = Command::new("perl");
        command.args(["-e", &program]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut parent = command.spawn().expect("perl is needed: apt-get install perl-base");
        let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
        let pids = lines.take(WORKERS_COUNT).map(Result::unwrap).collect();
        Workers { parent, name, pids }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let _ = self.parent.kill();
        let _ = self.parent.wait();
    }
}

fn lock_of<'a>(found: &'a Value, path: &str) -> &'a Value {
    let files = found["processes"][0]["files"].as_array().unwrap();
    let of_path = |file: &&Value| file["path"] == path && file["state"] == "kernel_lock";
    files.iter().find(of_path).unwrap_or_else(|| panic!("no lock of {path} in {files:?}"))
}

#[test]
fn workers_that_queue_on_their_log_and_on_the_folder_of_their_sessions_are_reported() {
    let place = Place::new();
    let workers = Workers::start(place.path(), 'a');
    let args = ["record", "--process", &workers.name, "--for", "6s", "--stacks", "--json"];
    let shown = output(&mut place.whyso(&args));
    if text(&shown.stderr).contains("several processes can't be watched here") {
        whyso_testing::tracer_not_tested(text(&shown.stderr));
        return;
    }
    let found = json_of(&shown);
    assert_eq!(found["process"], workers.name);
    let log = place.path().join("access.log").display().to_string();
    let sessions = format!("{}/", place.path().join("sessions").display());
    for path in [&log, &sessions] {
        let lock = lock_of(&found, path);
        println!("{lock}");
        assert!(lock["waits"].as_f64().unwrap() > 20.0 && lock["s"].as_f64().unwrap() > 0.0, "{lock}");
    }
    let thread_s = found["processes"][0]["thread_s"].as_f64().unwrap();
    // Their parent sleeps all the time: whether it is recorded is a matter of when.
    assert!((thread_s / 8.5 / 6.0 - 1.0).abs() < 0.2, "nine processes for six seconds: {thread_s} s");

    let run = found["path"].as_str().unwrap();
    let why = text(&output(&mut place.whyso(&["why", run])).stdout);
    println!("{why}");
    // Its lines are broken where a terminal ends.
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(why.contains("It was not seen to answer requests"), "{why}");
    assert!(why.contains(&format!("{log}: ")) && why.contains("this file's inode"), "{why}");
    let functions = output(&mut place.whyso(&["functions", run, "--by", "kernel_lock,cpu", "--json"]));
    let functions = json_of(&functions);
    let all = functions["functions"].as_array().unwrap();
    let writes = all.iter().find(|function| function["name"] == "vfs_write");
    let share = writes.map_or(0.0, |function| function["kernel_lock"]["inclusive_ns"].as_f64().unwrap())
        / functions["total"]["kernel_lock"]["inclusive_ns"].as_f64().unwrap();
    println!("{:.1} % of the waits for kernel locks are in vfs_write", share * 100.0);
    assert!(share > 0.4, "{share} of the kernel locks' waits in writes");
    let threads = text(&output(&mut place.whyso(&["threads", run])).stdout);
    assert!(threads.contains(&workers.name), "{threads}");
    let html = std::fs::read_to_string(Path::new(run).join("report.html")).unwrap();
    assert!(html.contains("access.log"));
    let markdown = text(&output(&mut place.whyso(&["report", run, "--format", "md"])).stdout);
    assert!(markdown.contains("Waits by file") && markdown.contains(&log), "{markdown}");
}

#[test]
fn one_worker_by_its_number_is_watched_and_its_siblings_are_not() {
    let place = Place::new();
    let workers = Workers::start(place.path(), 'b');
    let shown = output(&mut place.whyso(&["record", "--process", &workers.pids[0], "--for", "2s", "--json"]));
    let found = json_of(&shown);
    let thread_s = found["processes"][0]["thread_s"].as_f64().unwrap();
    assert!((thread_s / 2.0 - 1.0).abs() < 0.15, "one process for two seconds: {thread_s} s");
}

/// The kernel's thread that waits for readers of read-copy-update runs many times a second.
#[test]
fn a_thread_of_the_kernel_is_watched_by_its_name() {
    let place = Place::new();
    let asked = ["record", "--process", "rcu_preempt", "--for", "3s", "--stacks=none", "--json"];
    let found = json_of(&output(&mut place.whyso(&asked)));
    assert_eq!(found["process"], "rcu_preempt");
    let process = &found["processes"][0];
    let thread_s = process["thread_s"].as_f64().unwrap();
    assert!((thread_s / 3.0 - 1.0).abs() < 0.2, "one thread for three seconds: {process}");
}

#[test]
fn a_server_and_programs_are_recorded_together() {
    let place = Place::new();
    let (one, other) = (Workers::start(place.path(), 'c'), Workers::start(place.path(), 'd'));
    let server = OwnServer::start();
    let dsn = server.dsn("root", "");
    let before = (Instant::now(), cpu_s(&one.pids));
    let targets = ["record", "--dsn", &dsn, "--process", &one.name, "--process", &other.pids[1]];
    let shown = output(place.whyso(&targets).args(["--for", "5s", "--json"]));
    let kernel_cpus = (cpu_s(&one.pids) - before.1) / before.0.elapsed().as_secs_f64();
    let found = json_of(&shown);
    if text(&shown.stdout).contains("can't be traced") {
        whyso_testing::tracer_not_tested(text(&shown.stderr));
        return;
    }
    // Nothing loads the server.
    let run = found["path"].as_str().unwrap();
    let why = json_of(&output(&mut place.whyso(&["why", run, "--json"])));
    let nodes = why["nodes"].as_array().unwrap();
    let roles: Vec<&str> = nodes.iter().map(|node| node["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["server", "program", "program"], "{why}");
    assert_eq!(nodes[1]["name"], one.name);
    assert_eq!(nodes[2]["name"], other.name, "a number, too, is called by the process's name");
    let threads = |node: &Value, state: Option<&str>| -> f64 {
        let of = node["threads"].as_array().unwrap().iter();
        let of = of.filter(|of| state.is_none_or(|state| of["state"] == state));
        of.map(|of| of["threads"].as_f64().unwrap()).sum()
    };
    // Eight workers run or wait all the time; their parent may have slept through all of it.
    assert!((7.5..9.3).contains(&threads(&nodes[1], None)), "{why}");
    assert!((0.9..1.1).contains(&threads(&nodes[2], None)), "{why}");
    assert!(threads(&nodes[1], Some("kernel_lock")) > 0.1, "{why}");
    // What the kernel counts for the processes, while whyso began and ended, too.
    let cpus = nodes[1]["cpus"].as_f64().unwrap();
    assert!((0.6..1.6).contains(&(cpus / kernel_cpus)), "{cpus} of {kernel_cpus}: {why}");
    let shown = text(&output(&mut place.whyso(&["why", run])).stdout);
    assert!(shown.contains("Servers and programs") && shown.contains(&one.name), "{shown}");
    let not_measured = run_json_of(run)["not_measured"].to_string();
    assert!(not_measured.contains(&format!("the stacks of waits of {}", one.name)), "{not_measured}");

    // None is recorded twice.
    let twice = output(place.whyso(&targets).args(["--process", &one.pids[0], "--for", "1s"]));
    assert!(text(&twice.stderr).contains("belongs to another target"), "{}", text(&twice.stderr));
    // Programs without a server.
    let alone = ["record", "--process", &one.pids[0], "--process", &other.name, "--for", "3s", "--json"];
    let alone = json_of(&output(&mut place.whyso(&alone)));
    let why = json_of(&output(&mut place.whyso(&["why", alone["path"].as_str().unwrap(), "--json"])));
    let nodes = why["nodes"].as_array().unwrap();
    assert_eq!((nodes.len(), &nodes[1]["name"]), (2, &Value::from(other.name.as_str())), "{why}");
    assert!((0.9..1.1).contains(&threads(&nodes[0], None)), "{why}");
}

/// CPU time of processes up to now, by the kernel's own count.
fn cpu_s(pids: &[String]) -> f64 {
    let ticks = |pid: &String| -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
    };
    pids.iter().map(ticks).sum::<f64>() / 100.0
}

fn run_json_of(run: &str) -> Value {
    serde_json::from_slice(&std::fs::read(Path::new(run).join("run.json")).unwrap()).unwrap()
}

#[test]
fn a_process_that_is_not_there_or_several_that_may_be_meant_is_one_sentence() {
    let place = Place::new();
    let refused = |args: &[&str]| {
        let shown = output(&mut place.whyso(args));
        assert_eq!(shown.status.code(), Some(2), "{}", text(&shown.stderr));
        text(&shown.stderr)
    };
    let none = refused(&["record", "--process", "no-such-program", "--for", "1s"]);
    assert!(none.starts_with("whyso: no process is called 'no-such-program': "), "{none}");
    assert_eq!(none.lines().count(), 1, "{none}");
    let none = refused(&["record", "--process", "4194305", "--for", "1s"]);
    assert_eq!(none, "whyso: there is no process 4194305: `ps -e` lists those there are\n");
    refused(&["record", "--for", "1s"]);
    refused(&["record", "--process", "no-such-program", "--dsn", "mysql://root@localhost/"]);
    let untraced = refused(&["record", "--process", "1", "--no-trace"]);
    assert!(untraced.contains("leave out --no-trace"), "{untraced}");
    assert!(!place.runs().exists(), "nothing was recorded");
}

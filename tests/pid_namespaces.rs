//! Servers and whyso in PID namespaces, as in containers: numbers are the namespace's, and nothing of another one is seen.

// Runs alone: it judges shares of the response time.

mod common;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{OwnServer, Place, finish, json_of, may_trace, output, spawn, text};
use serde_json::Value;

const BOUND: Duration = Duration::from_secs(120);
const USERS: u64 = 4;
const TRANSACTIONS: u64 = 10_000;
/// As in `traced.rs`: connections that set the load up, and their questions.
const SET_UP_MAX: u64 = 80;
const UNACCOUNTED_MAX: f64 = 0.05;

/// A PID namespace with a `/proc` of its own. All that runs in it ends with it.
struct Namespace {
    first: Child,
}

impl Namespace {
    /// `None` where none can be created here.
    fn start() -> Option<Namespace> {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]);
        command.args(["sh", "-c", "echo ready && exec sleep 600"]).stdin(Stdio::null());
        let mut first = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut ready = [0; 6];
        let is_there = first.stdout.take().unwrap().read_exact(&mut ready).is_ok();
        let namespace = Namespace { first };
        if !is_there {
            whyso_testing::not_tested("PID namespaces can't be created here");
            return None;
        }
        Some(namespace)
    }

    /// What has a command run in it.
    fn entry(&self) -> Vec<String> {
        let unshare = self.first.id();
        let pid = format!("--pid=/proc/{unshare}/ns/pid_for_children");
        vec!["nsenter".to_string(), format!("--mount=/proc/{unshare}/ns/mnt"), pid]
    }

    fn command(&self, inner: &Command) -> Command {
        let entry = self.entry();
        let mut command = Command::new(&entry[0]);
        // nsenter goes to the root of the mounts.
        let folder = inner.get_current_dir().unwrap_or(Path::new("/"));
        command
            .args(&entry[1..])
            .arg("env")
            .arg(format!("--chdir={}", folder.display()))
            .arg(inner.get_program())
            .args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null());
        command
    }

    fn shell(&self, script: &str) -> String {
        let mut shell = Command::new("sh");
        text(&output(&mut self.command(shell.args(["-c", script]))).stdout).trim().to_string()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.first.kill();
        let _ = self.first.wait();
    }
}

/// A namespace with a server, a program that only burns CPU time, and a folder for recordings.
struct Container {
    name: &'static str,
    busy: Child,
    server: OwnServer,
    namespace: Namespace,
    place: Place,
}

impl Container {
    fn start(name: &'static str) -> Option<Container> {
        let (namespace, place) = (Namespace::start()?, Place::new());
        let entry = namespace.entry();
        let entry: Vec<&str> = entry.iter().map(String::as_str).collect();
        let server = OwnServer::start_by(&entry, &[]);
        let busy = namespace.command(&busy_program(&place, name)).spawn().unwrap();
        Some(Container { name, busy, server, namespace, place })
    }

    /// The server's number there.
    fn server_pid(&self) -> u32 {
        let found = self.namespace.shell("grep -lx mariadbd /proc/[0-9]*/comm");
        found.trim_start_matches("/proc/").trim_end_matches("/comm").parse().unwrap()
    }

    /// The numbers of the server's threads, as `/proc` of the namespace shows them.
    fn server_tids(&self) -> BTreeSet<u64> {
        let listed = self.namespace.shell(&format!("ls /proc/{}/task", self.server_pid()));
        listed.split_whitespace().map(|tid| tid.parse().unwrap()).collect()
    }

    fn whyso(&self, args: &[&str]) -> Command {
        self.namespace.command(&self.place.whyso(args))
    }

    /// Begins to record a load of known length.
    fn record(&self) -> Child {
        let dsn = self.server.dsn("root", "");
        let (users, transactions) = (USERS.to_string(), TRANSACTIONS.to_string());
        let record = ["record", "--dsn", &dsn, "--stacks", "--trace-sql", "--json", "--"];
        let load = [env!("CARGO_BIN_EXE_whyso"), "load", "oltp-point-select", "--dsn", &dsn];
        let size = ["--users", &users, "--transactions", &transactions, "--tables", "1", "--rows", "1000"];
        spawn(&mut self.whyso(&[&record[..], &load, &size].concat()))
    }

    fn export(&self, run: &Path, more: &[&str]) -> String {
        text(&output(&mut self.whyso(&[&["export", run.to_str().unwrap()], more].concat())).stdout)
    }

    /// What a counter grew by from its first reading to its last, added up over its instances.
    fn grown(&self, run: &Path, source: &str, metric: &str, instances: impl Fn(&str) -> bool) -> f64 {
        let csv = self.export(run, &["--source", source, "--metric", metric]);
        let mut lines = csv.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
        let mut edges = std::collections::BTreeMap::<String, (f64, f64)>::new();
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let value: f64 = fields[place("value")].parse().unwrap();
            if instances(fields[place("instance")]) {
                edges.entry(fields[place("instance")].to_string()).or_insert((value, value)).1 = value;
            }
        }
        edges.values().map(|(first, last)| last - first).sum()
    }

    /// Asserts that the recording has this server's requests and threads, and all of them.
    fn assert_is_whole(&self, run: &Path) {
        let name = run.to_str().unwrap();
        let why = json_of(&output(&mut self.whyso(&["why", name, "--json"])));
        let level = &why["levels"][0];
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        let unaccounted = number(&level["unaccounted_ms"]) / number(&level["response_ms"]);
        println!("{}: {unaccounted:.4} of the response time is unaccounted for", self.name);
        assert!(unaccounted.abs() <= UNACCOUNTED_MAX, "{level}");
        assert!(number(&level["budget_ms"]["cpu"]) > 0.0, "{level}");
        let csv = self.export(run, &["--source", "trace", "--metric", "requests"]);
        let requests: u64 = csv.lines().last().unwrap().rsplit(',').next().unwrap().parse().unwrap();
        let most = TRANSACTIONS + 3 * USERS + SET_UP_MAX;
        assert!((TRANSACTIONS..=most).contains(&requests), "{requests} requests");

        let threads = json_of(&output(&mut self.whyso(&["threads", name, "--json"])));
        let tids: Vec<u64> = threads["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|thread| thread["tid"].as_u64().unwrap())
            .collect();
        let (there, main) = (self.server_tids(), u64::from(self.server_pid()));
        assert!(tids.contains(&main), "{main} is not among {tids:?}");
        // Those of connections may have ended meanwhile, and those that slept all along are not recorded.
        let alive = tids.iter().filter(|tid| there.contains(tid)).count();
        assert!(alive >= 5 && alive * 2 >= tids.len(), "{tids:?} in the recording, {there:?} in /proc");
        let log = json_of(&output(&mut self.whyso(&["statements", name, "--log", "--json"])));
        let of_log = log["commands"].as_array().unwrap();
        assert!(
            !of_log.is_empty()
                && of_log.iter().all(|command| tids.contains(&command["tid"].as_u64().unwrap()))
        );
    }

    /// Asserts that every thread is found by its number when all stacks are read now.
    fn assert_stacks_are_those_of_its_threads(&self) {
        let dsn = self.server.dsn("root", "");
        let stacks = json_of(&output(&mut self.whyso(&["stacks", "--dsn", &dsn, "--json"])));
        let tids: BTreeSet<u64> = stacks["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|thread| thread["tid"].as_u64().unwrap())
            .collect();
        let there = self.server_tids();
        assert!(tids.intersection(&there).count() * 10 >= there.len() * 8, "{tids:?} of {there:?}");
    }
}

impl Drop for Container {
    /// Before their folders go.
    fn drop(&mut self) {
        let _ = self.namespace.first.kill();
        let _ = self.namespace.first.wait();
        let _ = self.busy.wait();
    }
}

/// A shell under a name of its own, which is always busy.
fn busy_program(place: &Place, name: &str) -> Command {
    let program = place.path().join(name);
    std::fs::copy("/bin/sh", &program).unwrap();
    let mut command = Command::new(program);
    command.args(["-c", "while :; do :; done"]);
    command
}

fn recorded(record: Child) -> PathBuf {
    PathBuf::from(json_of(&finish(record, BOUND))["path"].as_str().unwrap())
}

#[test]
fn two_namespaces_side_by_side_have_whole_recordings_and_do_not_see_each_other() {
    if !may_trace() {
        return;
    }
    let (Some(red), Some(blue)) = (Container::start("red-program"), Container::start("blue-program")) else {
        return;
    };
    let outside = Place::new();
    let mut white = busy_program(&outside, "white-program").spawn().unwrap();
    let records = [&red, &blue].map(Container::record);
    let runs = records.map(recorded);
    let _ = white.kill();
    let _ = white.wait();
    for (container, run) in [&red, &blue].into_iter().zip(&runs) {
        container.assert_is_whole(run);
        container.assert_stacks_are_those_of_its_threads();
        let all = container.export(run, &[]);
        assert!(all.contains(container.name), "{} is not named", container.name);
        for other in ["red-program", "blue-program", "white-program"] {
            assert!(other == container.name || !all.contains(other), "{} sees {other}", container.name);
        }
        // What the others used is in the sum of the CPUs, under no name.
        let busy: f64 = ["user_ns", "nice_ns", "system_ns", "irq_ns", "softirq_ns"]
            .into_iter()
            .map(|metric| container.grown(run, "cpu", metric, |instance| instance == "all"))
            .sum();
        let named: f64 = ["cpu_ns", "clients_cpu_ns", "unclear_cpu_ns"]
            .into_iter()
            .map(|metric| container.grown(run, "neighbours", metric, |_| true))
            .sum();
        let server = container.grown(run, "server_process", "run_ns", |instance| instance == "server");
        let own = container.grown(run, "generator_process", "run_ns", |instance| instance == "generator");
        let rest = (busy - named - server - own) / busy;
        println!("{}: {rest:.3} of the busy time has no name", container.name);
        assert!((0.2..0.95).contains(&rest), "{busy} busy, {named} named, {server} of the server, {own} own");
    }
}

#[test]
fn a_proc_of_another_namespace_is_refused_with_what_to_do() {
    let allowed = Command::new("unshare").args(["--pid", "--fork", "true"]).stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        whyso_testing::not_tested("PID namespaces can't be created here");
        return;
    }
    let place = Place::new();
    for args in [&["record", "--for", "1s", "--dsn", "mysql://root@localhost/"][..], &["agent", "run"]] {
        let inner = place.whyso(args);
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]).arg(inner.get_program()).args(inner.get_args());
        command.current_dir(place.path()).env("HOME", place.path());
        let refused = output(&mut command);
        let why = text(&refused.stderr);
        assert!(!refused.status.success(), "{args:?}");
        assert!(why.contains("another PID namespace") && why.contains("--mount-proc"), "{args:?}: {why}");
        assert_eq!(why.lines().count(), 1, "{why}");
    }
    assert!(!place.runs().exists());
}

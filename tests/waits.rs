//! Waits by name, each planted on a real server: locks that statements ask for by name, clients that read slowly, a quota of CPU
//! time. And threads that sleep by design are idle, not waiting for locks.

// Runs alone: it judges shares of waits.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::bare_client::{COM_QUERY, Client};
use common::{OwnServer, Place, SOON, finish, json_of, kill, may_trace, output, spawn, text, wait_until};
use serde_json::Value;

fn why(place: &Place, run: &Path, more: &[&str]) -> Value {
    let arguments = [&["why", run.to_str().unwrap(), "--json"], more].concat();
    json_of(&output(&mut place.whyso(&arguments)))
}

fn share(why: &Value, cause: &str) -> f64 {
    let suspects = why["suspects"].as_array().unwrap();
    suspects
        .iter()
        .find(|suspect| suspect["id"] == cause)
        .map_or(0.0, |suspect| suspect["share"].as_f64().unwrap())
}

/// What threads of a role spent in a state, in seconds, since the tracing began.
fn seconds(place: &Place, run: &Path, role: &str, state: &str) -> f64 {
    let metric = format!("{state}_ns");
    let asked =
        ["export", run.to_str().unwrap(), "--source", "threads", "--metric", &metric, "--instance", role];
    let csv = text(&output(&mut place.whyso(&asked)).stdout);
    csv.lines().last().and_then(|line| line.rsplit(',').next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

#[test]
fn locks_by_name_are_a_cause_and_threads_without_work_are_idle() {
    if !may_trace() {
        return;
    }
    let place = Place::new();
    // Held over the way to the client and back, by one of eight users at a time.
    let script =
        "SELECT GET_LOCK('one', 10);\nSELECT SLEEP(0.005);\nSELECT RELEASE_LOCK('one');\n-- \\sleep 2 ms\n";
    fs::write(place.path().join("named.sql"), script).unwrap();
    let servers = place.servers();
    let run =
        ["run", "named.sql", "--users", "8", "--seconds", "6", "--warmup", "1", "--no-repeat", "--json"];
    let own = ["--tables", "1", "--rows", "100", "--server-dir", servers.to_str().unwrap()];
    json_of(&output(&mut place.whyso(&[&run[..], &own[..]].concat())));
    let run = place.only_run();
    let why = why(&place, &run, &[]);
    assert!(share(&why, "user-lock") > 0.4, "{why:#}");
    assert_eq!(share(&why, "metadata-lock"), 0.0, "{why:#}");
    // MariaDB's background threads sleep until there is work. Not every build names its threads.
    let in_background = |state: &str| -> f64 {
        let roles = ["other", "io", "timer", "page cleaner", "master", "purge", "log checkpoint"];
        roles.into_iter().map(|role| seconds(&place, &run, role, state)).sum()
    };
    let (idle_s, locked_s) = (in_background("idle"), in_background("lock"));
    assert!(idle_s > 5.0 && locked_s < 0.02 * idle_s, "{idle_s} s idle, {locked_s} s on locks");
    let in_requests_s = seconds(&place, &run, "connection", "lock");
    assert!(in_requests_s > 20.0, "seven of eight users waited for six seconds: {in_requests_s}");
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn locks_by_name_and_sleep_on_purpose_are_named_by_stacks_and_without_a_tracer() {
    let server = OwnServer::start();
    let dsn = server.dsn("root", "mysql");
    let named = "SELECT GET_LOCK('one', 10);\nSELECT SLEEP(0.005);\nSELECT RELEASE_LOCK('one');\n";
    for (script, cause, least) in [(named, "user-lock", 0.5), ("SELECT SLEEP(0.01);\n", "sleep", 0.6)] {
        for more in ["--stacks", "--no-trace"] {
            if more == "--stacks" && !may_trace() {
                continue;
            }
            let place = Place::new();
            fs::write(place.path().join("script.sql"), script).unwrap();
            let run = ["run", "script.sql", "--users", "8", "--seconds", "5", "--warmup", "1", "--json"];
            json_of(&output(&mut place.whyso(&[&run[..], &["--dsn", &dsn, more]].concat())));
            let why = why(&place, &place.only_run(), &[]);
            assert_eq!(why["suspects"][0]["id"], cause, "{more}: {why:#}");
            assert!(share(&why, cause) > least, "{more}: {why:#}");
            if more == "--stacks" {
                let hidden = self::why(&place, &place.only_run(), &["--without", "tracer"]);
                assert_eq!(hidden["suspects"][0]["id"], cause, "{hidden:#}");
                let shown = hidden["suspects"][0]["text"].as_str().unwrap();
                assert!(shown.contains("not traced: from samples of the process list"), "{shown}");
            }
        }
    }
}

#[test]
#[ignore = "long: make test-hard"]
fn a_client_that_reads_slowly_is_a_cause() {
    if !may_trace() {
        return;
    }
    let place = Place::new();
    let server = OwnServer::start();
    let mut record = place.whyso(&["record", "--dsn", &server.dsn("root", ""), "--json"]);
    let recording = spawn(&mut record);
    let has_begun = || {
        let runs = fs::read_dir(place.runs()).into_iter().flatten().flatten();
        runs.into_iter().any(|run| run.path().join("run.json").exists())
    };
    assert!(wait_until(SOON, has_begun), "nothing is recorded");
    let mut client = Client::log_in(&server.socket());
    let until = Instant::now() + Duration::from_secs(6);
    while Instant::now() < until {
        let big = b"SELECT REPEAT('x', 100000) FROM information_schema.COLLATIONS LIMIT 40";
        client.send_packet(0, &[&[COM_QUERY], &big[..]].concat());
        // Its answer takes ten packets' time to say what is in it, and each row waits to be read.
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(2));
            client.receive();
        }
        client.receive_to_eof();
    }
    // More small requests than a level needs to be judged by.
    for _ in 0..40 {
        client.query("SELECT 1");
    }
    kill(recording.id() as i32, libc::SIGINT);
    let out = json_of(&finish(recording, SOON));
    let why = why(&place, &PathBuf::from(out["path"].as_str().unwrap()), &[]);
    assert_eq!(why["suspects"][0]["id"], "slow-reader", "{why:#}");
    assert!(share(&why, "slow-reader") > 0.5, "{why:#}");
    assert!(why["levels"][0]["budget_ms"]["net_send"].as_f64().unwrap() > 0.0, "{why:#}");
}

/// A group of the cpu controller, version 1 or 2, with a group in it for the server. The limit is one of the group
/// above.
struct Quota {
    group: PathBuf,
}

impl Quota {
    /// `None` where no group can be created here.
    fn of(cpus: f64) -> Option<Quota> {
        let root = Path::new("/sys/fs/cgroup");
        let first = root.join("cpu/cpu.cfs_quota_us").exists() || root.join("cpu/tasks").exists();
        let name = format!("whyso-waits-{}", std::process::id());
        let group = if first { root.join("cpu").join(name) } else { root.join(name) };
        fs::create_dir(&group).ok()?;
        let quota = Quota { group };
        let limit_us = (cpus * 100_000.0) as u64;
        let (file, text) = match first {
            true => ("cpu.cfs_quota_us", limit_us.to_string()),
            false => ("cpu.max", format!("{limit_us} 100000")),
        };
        fs::create_dir(quota.group.join("server")).ok()?;
        fs::write(quota.group.join(file), text).ok()?;
        Some(quota)
    }

    fn take(&self, pid: i32) -> bool {
        fs::write(self.group.join("server/cgroup.procs"), pid.to_string()).is_ok()
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // The server has ended; the kernel may need a moment to let go of its threads.
        let remove = |folder: &Path| fs::remove_dir(folder).is_ok() || !folder.exists();
        wait_until(SOON, || remove(&self.group.join("server")) && remove(&self.group));
    }
}

#[test]
fn a_quota_of_cpu_time_is_a_cause_with_the_time_that_it_took() {
    if !may_trace() {
        return;
    }
    let place = Place::new();
    let Some(quota) = Quota::of(0.08) else {
        return whyso_testing::not_tested("a control group can't be created here: no CPU quota");
    };
    let server = OwnServer::start();
    let dsn = server.dsn("root", "whyso");
    let load = ["oltp-sum-ranges", "--tables", "1", "--rows", "1000", "--dsn", &dsn];
    let prepared = output(place.whyso(&["load"]).args(load).args(["--users", "1", "--transactions", "10"]));
    assert!(prepared.status.success(), "{}", text(&prepared.stderr));
    assert!(quota.take(server.pid()), "the server can't be put into a control group");
    let run = ["--users", "1,8", "--seconds", "4", "--warmup", "1", "--no-repeat", "--json"];
    json_of(&output(place.whyso(&["run"]).args(load).args(run)));
    let runs = fs::read_dir(place.runs()).unwrap().flatten().map(|run| run.path());
    let why = why(&place, &runs.max().unwrap(), &["--users", "8"]);
    drop(server);
    assert_eq!(why["suspects"][0]["id"], "cpu-quota", "{why:#}");
    assert!(share(&why, "cpu-quota") > 0.4, "{why:#}");
    let text = why["suspects"][0]["text"].as_str().unwrap();
    assert!(text.contains("of 0.08 CPUs") && text.contains("in each second"), "{text}");
}

//! `whyso ab` and `whyso prove`: two sides that alternate on a loaded server, and experiments whose settings are put back.

// Runs alone: it judges how much slower servers become.

mod common;

use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock};

use common::{OwnServer, Place, SOON, finish, json_of, kill, output, spawn, text, wait_until};
use serde_json::Value;

const BY_INDEX: &str = "SELECT c FROM sbtest1 WHERE id = 7";
const BY_SCAN: &str = "SELECT c FROM sbtest1 WHERE id + 0 = 7";
const SETTING: &str = "SELECT @@GLOBAL.innodb_io_capacity";
const SIGKILL: i32 = 9;

/// Whether a server settles after a switch is judged by its commits. They take as long as the disk that others use, so that no other test of the
/// file runs meanwhile.
static QUIET: RwLock<()> = RwLock::new(());

#[test]
#[ignore = "long: make test-hard"]
fn a_statement_that_scans_is_slower_and_costs_the_server_more_cpu_time() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let mut ab = place.whyso(&["ab", "--query", BY_INDEX, "--users", "2", "--tables", "1", "--rows", "2000"]);
    let ab = ab.args(["--seconds", "25", "--json", "--versus", "--query", BY_SCAN]);
    let found = json_of(&output(ab));
    assert_eq!((&found["verdict"], &found["design"]), (&"slower".into(), &"switch-back".into()), "{found}");
    let [low, value, high] = ["low", "value", "high"].map(|name| found["ratio"][name].as_f64().unwrap());
    assert!(low <= value && value <= high && high < 0.5, "{found}");
    let pairs = found["pairs"].as_array().unwrap();
    let first: Vec<bool> = pairs.iter().map(|pair| pair["variant_first"].as_bool().unwrap()).collect();
    assert!(first.contains(&true) && first.contains(&false), "the order is random: {first:?}");
    // The CPU time of the server is counted on the side of each.
    let cpu =
        found["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "server_cpu_ms").unwrap();
    assert!(cpu["ratio"]["low"].as_f64().unwrap() > 2.0, "{cpu}");
    place.assert_nothing_left();
}

/// A program of others, for as long as this lives.
struct Neighbour(std::process::Child);

impl Neighbour {
    fn start() -> Neighbour {
        let mut sleep = Command::new("sleep");
        // What holds the output of the tests would hold up who reads that.
        sleep.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Neighbour(sleep.spawn().unwrap())
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn settings_are_put_back_and_paused_programs_resumed_even_after_a_kill() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let neighbour = Neighbour::start();
    let pid = neighbour.0.id().to_string();
    let is_paused = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
    };
    let server = OwnServer::start();
    let dsn = server.dsn("root", "");
    let before = server.sql(SETTING);
    let sides =
        ["--set", "innodb_io_capacity=301", "--versus", "--set", "innodb_io_capacity=402", "--pause", &pid];
    let ab = |seconds: &str| {
        let mut ab =
            place.whyso(&["ab", "oltp-point-select", "--dsn", &dsn, "--users", "2", "--tables", "1"]);
        ab.args(["--rows", "1000", "--seconds", seconds, "--window", "200ms"]).args(sides);
        ab
    };
    let child = spawn(ab("60").stdout(Stdio::null()).stderr(Stdio::null()));
    let (mut seen, mut was_paused) = (Vec::new(), false);
    let both = wait_until(SOON, || {
        let now = server.sql(SETTING).trim().to_string();
        was_paused |= is_paused();
        if !seen.contains(&now) {
            seen.push(now);
        }
        was_paused && ["301", "402"].iter().all(|value| seen.iter().any(|now| now == value))
    });
    assert!(both, "the sides alternate: {seen:?}");
    kill(child.id() as i32, SIGKILL);
    finish(child, SOON);
    assert_ne!(server.sql(SETTING), before, "nothing has put it back yet");
    assert!(wait_until(SOON, || !is_paused()), "the program stands still");

    let ended = output(&mut ab("20"));
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert!(
        text(&ended.stderr).contains("an earlier run ended without putting a setting back"),
        "{}",
        text(&ended.stderr)
    );
    assert_eq!(server.sql(SETTING), before);
    assert!(!is_paused());
    drop(neighbour);
    let printed = text(&ended.stdout);
    assert!(
        printed.contains("innodb_io_capacity=402") && printed.contains("holds for this start"),
        "{printed}"
    );
}

#[test]
#[ignore = "long: make test-hard"]
fn a_server_whose_work_takes_longer_does_less() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let mut ab = place.whyso(&["ab", "oltp-point-select", "--users", "4", "--tables", "1", "--rows", "1000"]);
    let ab = ab.args(["--seconds", "20", "--json", "--versus", "--cpu-speed", "40%"]);
    let found = json_of(&output(ab));
    assert_eq!(found["design"], "switch-back", "{found}");
    // Most of a look-up is the server's work; that of the load generator stays as it is.
    let ratio = found["ratio"]["value"].as_f64().unwrap();
    assert!((0.35..0.75).contains(&ratio), "{}", found["ratio"]);
    place.assert_nothing_left();
}

#[test]
#[ignore = "long: make test-hard"]
fn on_slower_storage_only_what_waits_for_it_takes_longer() {
    let _alone = QUIET.write().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let ratio_of = |workload: &str| {
        let mut ab = place.whyso(&["ab", workload, "--users", "1", "--tables", "1", "--rows", "1000"]);
        ab.args(["--seconds", "20", "--json", "--versus", "--storage-speed", "25%"]);
        let mut shown = output(&mut ab);
        // Where others use the disk, commits may be too uneven to be compared, which is an answer, and not the one that is looked for here.
        for _ in 0..2 {
            if text(&shown.stderr).contains("does not settle") {
                shown = output(&mut ab);
            }
        }
        let found = json_of(&shown);
        assert_eq!(found["design"], "switch-back", "{found}");
        found["ratio"]["value"].as_f64().unwrap()
    };
    // One user waits for a sync of the redo log at each commit, and for nothing else that takes as long. Look-ups are in memory.
    let commits = ratio_of("oltp-update-non-index");
    // Below a quarter where other tests keep the CPUs busy: a call's time has its wait for a CPU in it.
    assert!((0.15..0.75).contains(&commits), "{commits}");
    let look_ups = ratio_of("oltp-point-select");
    // Slowed as much, they would reach 0.4 at most; other tests run at the same time.
    assert!((0.7..1.4).contains(&look_ups), "{look_ups}");
    place.assert_nothing_left();
}

#[test]
fn a_replica_that_stops_ends_the_experiment_and_everything_is_put_back() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let source = OwnServer::start_with(&["--log-bin=bin", "--server-id=1"]);
    let replica = OwnServer::start_with(&["--server-id=2"]);
    source.sql("CREATE USER copy@'127.0.0.1'; GRANT REPLICATION SLAVE ON *.* TO copy@'127.0.0.1'");
    replica.sql(&format!(
        "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'copy', MASTER_USE_GTID = slave_pos; START SLAVE",
        source.port
    ));
    source.sql("CREATE DATABASE copied");
    let replicates = || replica.sql("SHOW DATABASES LIKE 'copied'") == "copied";
    assert!(wait_until(SOON, replicates), "{}", replica.sql("SHOW SLAVE STATUS\\G"));
    let before = source.sql(SETTING);
    let ab = |more: &[&str]| {
        let mut ab =
            place.whyso(&["ab", "oltp-point-select", "--users", "2", "--tables", "1", "--rows", "1000"]);
        ab.args(["--dsn", &source.dsn("root", ""), "--seconds", "60", "--window", "200ms"]).args(more);
        ab.args(["--set", "innodb_io_capacity=301", "--versus", "--set", "innodb_io_capacity=402"]);
        ab
    };
    let refused = output(&mut ab(&["--replica", &source.dsn("root", "")]));
    assert!(text(&refused.stderr).contains("it does not replicate"), "{}", text(&refused.stderr));
    let child = spawn(&mut ab(&["--replica", &replica.dsn("root", "")]));
    assert!(wait_until(SOON, || source.sql(SETTING).trim() == "402"), "the sides alternate");
    replica.sql("STOP SLAVE SQL_THREAD");
    let ended = finish(child, SOON);
    assert!(!ended.status.success());
    assert!(text(&ended.stderr).contains("a replica has stopped replicating"), "{}", text(&ended.stderr));
    assert_eq!(source.sql(SETTING), before);
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_starts() {
    let place = Place::new();
    let refused = |args: &[&str], why: &str| {
        let refused = output(&mut place.whyso(args));
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        let printed = text(&refused.stderr);
        assert!(printed.contains(why), "{args:?}: {printed}");
    };
    refused(&["ab"], "there is nothing to compare with");
    refused(&["ab", "--versus", "--json"], "after --versus");
    refused(&["ab", "--set", "a=1", "--versus", "--set", "a=1"], "both sides are the same");
    refused(&["ab", "--window", "0.01", "--versus", "--users", "9"], "--window is out of range");
    refused(&["ab", "--matters", "1", "--versus", "--users", "9"], "--matters 1 is no difference");
    let slow = ["--set", "innodb-buffer-pool-size=64M", "--versus", "--set", "innodb_buffer_pool_size=128M"];
    refused(&[&["ab", "--dsn", "mysql://root@localhost/"], &slow[..]].concat(), "takes effect over minutes");
    let dsn = ["ab", "--dsn", "mysql://root@localhost/", "--versus"];
    refused(&[&dsn[..], &["--cpu-speed", "80%"]].concat(), "--cpu-speed");
    refused(&[&dsn[..], &["--storage-speed", "80%"]].concat(), "--storage-speed");
    refused(&["ab", "--versus", "--cpu-speed", "99"], "--cpu-speed is out of range");
    refused(&[&dsn[..], &["--rows", "99"]].concat(), "whyso fills its own only");
    refused(&["prove", "--until", "fast"], "give one such as 2x");
    refused(&["prove", "--accept", "everything"], "give durability, memory, semantics");
}

#[test]
fn a_suspect_is_removed_and_what_that_gains_is_measured() {
    let _others = QUIET.read().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    // One user on a server with room for more: four times the users is the intervention that costs nothing.
    let run = place
        .whyso(&[
            "run",
            "oltp-point-select",
            "--users",
            "1",
            "--seconds",
            "3",
            "--warmup",
            "1",
            "--tables",
            "1",
        ])
        .args(["--rows", "1000", "--no-repeat", "--out"])
        .arg(place.runs())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(run.success());
    let runs = place.runs();
    let prove = |more: &[&str]| {
        let mut prove = place.whyso(&["prove", "--json", "--runs"]);
        json_of(&output(prove.arg(&runs).args(more)))
    };
    let planned = prove(&["--dry-run"]);
    let proposals = planned["proposals"].as_array().unwrap();
    assert!(!proposals.is_empty(), "{planned}");
    let found = prove(&["--budget", "30s", "--accept", "durability,memory,semantics"]);
    let proofs = found["proofs"].as_array().unwrap();
    assert_eq!(proofs.len(), proposals.len());
    for (proof, proposal) in proofs.iter().zip(proposals) {
        assert_eq!(proof["cause"], proposal["cause"]);
        assert_eq!(proof["undone"], true);
        assert_eq!(proof["verdict"] == "not-testable", proof["measured_gain"] == Value::Null, "{proof}");
    }
    let kept: Value =
        serde_json::from_slice(&std::fs::read(place.only_run().join("proof.json")).unwrap()).unwrap();
    assert_eq!(kept["proofs"], found["proofs"]);
    let page = std::fs::read_to_string(place.only_run().join("report.html")).unwrap();
    assert!(page.contains("\"proofs\":[{\"cause\""), "the page shows them");
}

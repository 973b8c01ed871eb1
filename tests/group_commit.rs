//! Group commit on a real server whose disk is slow. One user syncs a log for all, and the wait of the others is a
//! commit's, too.

// Runs alone: it judges shares of waits.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use common::{OwnServer, Place, SOON, json_of, output, wait_until};
use serde_json::Value;

/// A group of the blkio or io controller, whose processes may write so many times per second.
struct SlowDisk {
    group: PathBuf,
}

impl SlowDisk {
    /// `None` where the kernel has no such limit, or does not let the test set it.
    fn under(folder: &Path, writes_per_s: u32) -> Option<SlowDisk> {
        let device = fs::metadata(folder).unwrap().dev();
        let number = format!("{}:{}", libc::major(device), libc::minor(device));
        let place = fs::canonicalize(format!("/sys/dev/block/{number}")).ok()?;
        // A partition takes no limits.
        let disk = if place.join("partition").exists() { place.parent()? } else { &place };
        let disk = fs::read_to_string(disk.join("dev")).ok()?;
        let root = Path::new("/sys/fs/cgroup");
        let first = root.join("blkio").exists();
        let name = format!("whyso-commit-{}", std::process::id());
        let group = if first { root.join("blkio").join(name) } else { root.join(name) };
        fs::create_dir(&group).ok()?;
        let slow = SlowDisk { group };
        let (file, limit) = match first {
            true => ("blkio.throttle.write_iops_device", format!("{} {writes_per_s}", disk.trim())),
            false => ("io.max", format!("{} wiops={writes_per_s}", disk.trim())),
        };
        fs::write(slow.group.join(file), limit).ok()?;
        Some(slow)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // Its processes have ended; the kernel may need a moment to let go of them.
        wait_until(SOON, || fs::remove_dir(&self.group).is_ok() || !self.group.exists());
    }
}

/// A server on the slow disk, with settings besides those that make each commit wait for the redo log.
fn start(slow: &SlowDisk, options: &[&str]) -> OwnServer {
    let enter = format!("echo $$ > '{}/cgroup.procs' && exec \"$@\"", slow.group.display());
    let options = [&["--innodb-flush-log-at-trx-commit=1"], options].concat();
    OwnServer::start_by(&["sh", "-c", &enter, "sh"], &options)
}

/// What `whyso why` says of sixteen users that update rows of their own.
fn why(server: &OwnServer, more: &[&str]) -> Value {
    let place = Place::new();
    let dsn = server.dsn("root", "whyso");
    let run = ["run", "oltp-update-non-index", "--users", "16", "--tables", "1", "--rows", "10000"];
    // 40 samples of the process list: the sessions of a group are found together or not at all, so that 20 samples once missed a third of the time.
    let rest = ["--seconds", "8", "--warmup", "1", "--json", "--dsn", &dsn];
    json_of(&output(&mut place.whyso(&[&run[..], &rest, more].concat())));
    let run = place.only_run();
    json_of(&output(&mut place.whyso(&["why", run.to_str().unwrap(), "--json"])))
}

fn share(why: &Value, cause: &str) -> f64 {
    let suspects = why["suspects"].as_array().unwrap();
    suspects
        .iter()
        .find(|suspect| suspect["id"] == cause)
        .map_or(0.0, |suspect| suspect["share"].as_f64().unwrap())
}

/// Most of what anybody waits for is a commit's log: no row lock, and no more than a rest that nobody knows.
#[track_caller]
fn assert_named(why: &Value, causes: &[&str]) {
    let of_logs: f64 = causes.iter().map(|cause| share(why, cause)).sum();
    assert!(of_logs > 0.4, "{causes:?} hold {of_logs}: {why:#}");
    // What the budget does not account for, such as transactions across the window's ends, is unknown whatever was waited for.
    let level = &why["levels"][0];
    let is_traced = level["budget_ms"].as_object().is_some_and(|parts| !parts.is_empty());
    let gap = level["unaccounted_ms"].as_f64().unwrap() / level["response_ms"].as_f64().unwrap();
    let unknown = share(why, "unknown") - if is_traced { gap.max(0.0) } else { 0.0 };
    for (name, held) in [
        ("unknown", unknown),
        ("row-lock", share(why, "row-lock")),
        ("metadata-lock", share(why, "metadata-lock")),
    ] {
        assert!(held < 0.3 * of_logs, "{name} holds {held}: {why:#}");
    }
}

#[test]
#[ignore = "long: make test-hard"]
fn a_commit_that_waits_for_whoever_syncs_the_log_is_the_logs_with_stacks_and_without() {
    let folder = Place::new();
    let Some(slow) = SlowDisk::under(folder.path(), 300) else {
        return whyso_testing::not_tested("writes can't be limited here: no slow disk for group commit");
    };
    // One server after the other: they share the disk.
    for (options, causes) in [
        (&[][..], &["redo-flush"][..]),
        (&["--log-bin=binlog", "--server-id=1", "--sync-binlog=1"], &["redo-flush", "binlog", "redo-write"]),
    ] {
        let server = start(&slow, options);
        let with_stacks = why(&server, &["--stacks"]);
        if with_stacks["levels"][0]["budget_ms"].as_object().is_none_or(serde_json::Map::is_empty) {
            return whyso_testing::tracer_not_tested("the runs were not traced: no stacks of group commit");
        }
        assert_named(&with_stacks, causes);
        assert_named(&why(&server, &[]), causes);
        assert_named(&why(&server, &["--no-trace"]), causes);
    }
}

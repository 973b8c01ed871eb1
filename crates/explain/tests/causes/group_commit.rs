//! Commits in groups, without the stacks of waits. The figures are of planted runs on MariaDB 10.11 (16 users that update rows of their own), rounded.

use whyso_explain::model::Cause;

use crate::run_builder::RunBuilder;

/// A traced level, 71 to 75 % of whose response time is sleep on locks, with twelve snapshots of sixteen sessions.
fn committing(states: &[(&str, f64)], settings: &[(&str, &str)], statements: f64) -> RunBuilder {
    let shares = [
        ("request_cpu_ns", 0.014),
        ("request_lock_ns", 0.75),
        ("request_runqueue_ns", 0.11),
        ("request_file_sync_ns", 0.035),
        ("client_delay_ns", 0.08),
    ];
    let counters = [("Questions", statements), ("Handler_commit", 1.0), ("Handler_update", 1.0)];
    let run = RunBuilder::new().level(2, 0.5, 0.6).level(16, 2.5, 0.6).traced(&shares).status(&counters);
    let run = states.iter().fold(run.counter("sessions", "looks", "", 1.2), |run, (state, samples)| {
        run.counter("sessions", "in_statement", state, samples / 10.0)
    });
    let run = settings.iter().fold(run, |run, (name, value)| run.set(name, value));
    run.file("/data/ib_logfile0", "file_sync", "connection", 0.56)
}

const DURABLE: [(&str, &str); 1] = [("innodb_flush_log_at_trx_commit", "1")];

/// Before, 75 % of this were unknown: the others' answers are held back until the log is on disk.
#[test]
fn commits_that_wait_for_whoever_syncs_the_redo_log() {
    let states = [("Updating status", 143.0), ("Commit", 23.0), ("Updating", 4.0)];
    let explanation = committing(&states, &DURABLE, 1.0).is(Cause::RedoFlush);
    let first = &explanation.suspects[0];
    assert!((0.6..0.8).contains(&first.share), "{first:?}");
    assert!(
        first.text.contains("states 'Updating status' and 'Commit' for 98 % of the sampled time"),
        "{}",
        first.text
    );
    let unknown = explanation.suspects.iter().find(|suspect| suspect.id == Cause::Unknown);
    assert!(unknown.is_none_or(|unknown| unknown.share < 0.15), "{unknown:?}");
}

/// Before, 71 % of this were unknown.
#[test]
fn commits_that_wait_for_whoever_writes_the_binary_log() {
    let settings = [("log_bin", "ON"), ("sync_binlog", "1"), DURABLE[0]];
    let run = committing(&[("Commit", 130.0), ("Updating", 5.0)], &settings, 1.0);
    let run = run.file("/data/binlog.000001", "file_sync", "connection", 0.6);
    let first = &run.is(Cause::Binlog).suspects[0];
    assert!((0.5..0.7).contains(&first.share), "{first:?}");
}

/// A session that sends the answer of a statement that commits nothing is in the same state. So is one whose log nobody waits for.
#[test]
fn answers_are_no_commits_where_few_statements_commit_or_nobody_waits_for_the_log() {
    let states = [("Updating status", 143.0), ("Updating", 4.0)];
    let names_redo = |run: RunBuilder| {
        run.explained().suspects.iter().any(|suspect| suspect.id == Cause::RedoFlush && suspect.share > 0.2)
    };
    assert!(names_redo(committing(&states, &DURABLE, 1.0)));
    assert!(!names_redo(committing(&states, &DURABLE, 10.0)));
    assert!(!names_redo(committing(&states, &[("innodb_flush_log_at_trx_commit", "2")], 1.0)));
    // A handful of samples is chance.
    assert!(!names_redo(committing(&[("Updating status", 15.0)], &DURABLE, 1.0)));
}

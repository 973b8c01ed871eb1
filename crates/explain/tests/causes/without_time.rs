//! What was not measured accuses nobody: one event, a setting, a file that is someone else's, and a budget with a gap.

use whyso_explain::model::{Cause, UserSeconds};

use crate::{locked, stopped};

#[test]
fn one_event_accuses_nobody() {
    // One FLUSH STATUS in ten seconds of 64 users that sleep on locks: it locks no table.
    let flushed = locked(64).counter("status", "Com_flush", "", 0.1).is(Cause::Unknown);
    assert!(flushed.possible.is_empty(), "{:#?}", flushed.possible);
    locked(64)
        .counter("status", "Com_create_user", "", 0.1)
        .is_but_possible(Cause::Unknown, Cause::GrantLock);
}

#[test]
fn a_long_history_that_nobody_is_known_to_step_over_accuses_nobody() {
    let busy = [("request_cpu_ns", 0.5), ("request_runqueue_ns", 0.45)];
    let run = stopped(16, 80.0, 0.02).traced(&busy).gauge("Innodb_history_list_length", 400_000.0);
    run.is_but_possible(Cause::Unknown, Cause::PurgeLag);
}

#[test]
fn reads_of_temporary_files_are_not_misses_of_the_buffer_pool() {
    let shares = [("request_cpu_ns", 0.1), ("request_file_read_ns", 0.8)];
    let reads = [("Innodb_buffer_pool_reads", 8.0), ("Innodb_buffer_pool_read_requests", 90.0)];
    for path in ["/tmp/#sql-temptable-2a-3-1.MAI", "/data/ibtmp1", "/data/old.MYD"] {
        let run = stopped(16, 10.0, 0.7).traced(&shares).status(&reads);
        let explanation = run.file(path, "file_read", "connection", 12.8).is(Cause::Unknown);
        let suspects = &explanation.suspects;
        assert!(suspects.iter().all(|suspect| suspect.id != Cause::BufferPoolMiss), "{path}: {suspects:#?}");
    }
    // Reads of a thread that makes nobody wait are nobody's time.
    let run = stopped(16, 10.0, 0.7).traced(&shares).status(&reads);
    run.file("/data/shop/orders.ibd", "file_read", "purge", 12.8).is(Cause::Unknown);
}

#[test]
fn a_budget_that_leaves_more_than_a_fifth_open_names_nothing_but_the_gap() {
    let waits = [("Innodb_row_lock_time", 14.0), ("Innodb_row_lock_waits", 1.0)];
    // 31 % unaccounted for, and 140 % more than there is.
    for lock in [0.59, 2.3] {
        let shares = [("request_cpu_ns", 0.1), ("request_lock_ns", lock)];
        let explanation = stopped(64, 20.0, 0.6).traced(&shares).status(&waits).is(Cause::Unknown);
        assert_eq!(explanation.suspects.len(), 1, "{:#?}", explanation.suspects);
        let text = &explanation.suspects[0].text;
        assert!(text.contains("does not account for"), "{text}");
        assert_eq!(explanation.suspects[0].predicted_gain, None);
    }
    let shares = [("request_cpu_ns", 0.1), ("request_lock_ns", 0.75)];
    stopped(64, 20.0, 0.6).traced(&shares).status(&waits).is(Cause::RowLock);
}

/// Where transactions deadlock again and again, a few are retried for seconds: their time is in the budget, and in no response time.
#[test]
fn what_transactions_in_flight_took_is_no_gap() {
    let waits = [("Innodb_row_lock_time", 14.0), ("Innodb_row_lock_waits", 1.0)];
    let shares = [("request_cpu_ns", 0.2), ("request_lock_ns", 1.1)];
    let mut run = stopped(64, 20.0, 0.6).traced(&shares).status(&waits);
    assert_eq!(run.explained().suspects[0].id, Cause::Unknown, "30 % more than there is");
    run.last().user_seconds = Some(UserSeconds { ended: 492.0, in_flight: 148.0, ..UserSeconds::default() });
    let explanation = run.is(Cause::RowLock);
    let off = explanation.findings.iter().find(|finding| finding.id == "budget-unaccounted").unwrap();
    assert!(off.text.contains("Transactions in flight at the window's end took 23 % of it"), "{}", off.text);
}

#[test]
fn shares_are_never_made_to_fit() {
    // Row locks of 75 % by the server's clock, and reads of 35 % by the tracer: 10 % of the time was counted twice.
    let shares = [("request_cpu_ns", 0.05), ("request_lock_ns", 0.75), ("request_file_read_ns", 0.35)];
    let status = [("Innodb_row_lock_time", 15.0), ("Innodb_buffer_pool_reads", 1.0)];
    let run = stopped(64, 20.0, 0.6).traced(&shares).status(&status);
    let explanation = run.file("/data/shop/orders.ibd", "file_read", "connection", 22.4).is(Cause::RowLock);
    let shares: Vec<f64> = explanation.suspects.iter().map(|suspect| suspect.share).collect();
    assert!((shares[0] - 0.75).abs() < 0.01 && (shares[1] - 0.35).abs() < 0.01, "{shares:?}");
    let overlap = explanation.findings.iter().find(|finding| finding.id == "suspects-overlap");
    assert!(overlap.is_some_and(|finding| finding.text.contains("110 %")), "{overlap:?}");
}

//! The cause, named: for each that whyso knows, a small simulated run in which it is the cause, and it must be the first suspect.

mod activities;
mod cluster;
mod cpus;
mod disks;
mod group_commit;
mod more_cpus;
mod run_builder;
mod waits;
mod without_time;

use run_builder::RunBuilder;
use whyso_explain::explain_at;
use whyso_explain::model::{Cause, Class, Evidence, Explanation, LoopKind, Resource};

/// Throughput rose until this level, which stands above the best one.
fn stopped(users: u32, response_ms: f64, idle: f64) -> RunBuilder {
    RunBuilder::new().level(users / 8, response_ms / 8.0, idle).level(users, response_ms, idle)
}

/// The same, with threads that sleep on locks for most of the time on idle CPUs.
fn locked(users: u32) -> RunBuilder {
    stopped(users, 20.0, 0.6).traced(&[
        ("request_cpu_ns", 0.1),
        ("request_lock_ns", 0.75),
        ("request_runqueue_ns", 0.05),
        ("transit_in_ns", 0.02),
        ("client_held_ns", 0.04),
    ])
}

#[test]
fn rows_that_others_have_locked() {
    // Milliseconds, as the server counts them: 14 of a response time of 20.
    let waits = [("Innodb_row_lock_time", 14.0), ("Innodb_row_lock_waits", 1.0)];
    let explanation = locked(64).status(&waits).is(Cause::RowLock);
    assert!((explanation.suspects[0].share - 0.7).abs() < 0.01);
    stopped(64, 20.0, 0.6).status(&waits).is(Cause::RowLock);
}

#[test]
fn deadlocks() {
    let mut run = locked(64).status(&[("Innodb_row_lock_time", 13.0), ("Innodb_deadlocks", 0.4)]);
    let transactions = run.last().transactions as f64;
    run.last().lost_ms_by_code = [("1213 (40001)".to_string(), 10.0 * transactions)].into();
    run.is(Cause::Deadlock);
}

#[test]
fn numbers_of_rows() {
    let build = || locked(64).status(&[("Com_insert", 1.0)]).set("innodb_autoinc_lock_mode", "0");
    build().is_but_possible(Cause::Unknown, Cause::AutoIncrement);
    build().found_waiting("row", "AUTO_INC", 40.0).is(Cause::AutoIncrement);
    build().found_waiting("row", "X", 40.0).is_but_possible(Cause::Unknown, Cause::AutoIncrement);
}

#[test]
fn purge_that_lags_behind() {
    let shares = [("request_cpu_ns", 0.1), ("request_sleep_ns", 0.8)];
    let run = stopped(16, 10.0, 0.8).traced(&shares).gauge("Innodb_history_list_length", 400_000.0);
    run.set("innodb_max_purge_lag", "100000").is_but_possible(Cause::Unknown, Cause::PurgeLag);
}

#[test]
fn locks_of_tables_and_of_their_definitions() {
    let counted = || locked(64).status(&[("Table_locks_waited", 0.9)]);
    counted().is_but_possible(Cause::Unknown, Cause::TableLock);
    counted().found_waiting("table", "", 40.0).is(Cause::TableLock);
    counted().stacks(&[("table_lock", 300)]).is(Cause::TableLock);
    let counted = || locked(64).counter("status", "Com_alter_table", "", 2.0);
    counted().is_but_possible(Cause::Unknown, Cause::MetadataLock);
    let explanation = counted().found_waiting("metadata", "SHARED_READ", 40.0).is(Cause::MetadataLock);
    let share = explanation.suspects[0].share;
    assert!((share - 40.0 / 64.0).abs() < 0.01, "40 of 64 users were found waiting: {share}");
    counted().stacks(&[("metadata_lock", 300)]).is(Cause::MetadataLock);
    // A lock that was taken before the window began.
    locked(64).found_waiting("metadata", "SHARED_READ", 40.0).is(Cause::MetadataLock);
    locked(64).counter("status", "Com_grant", "", 5.0).is_but_possible(Cause::Unknown, Cause::GrantLock);
    let old = locked(64).set("version", "5.5.9");
    old.is_but_possible(Cause::Unknown, Cause::MdlMap);
    old.is_but_possible(Cause::Unknown, Cause::TrxSys);
    locked(64).status(&[("Innodb_row_lock_waits", 1.0)]).is_but_possible(Cause::Unknown, Cause::LockSys);
}

#[test]
fn caches_of_the_sql_layer() {
    let opened = [("Table_open_cache_misses", 0.95), ("Table_open_cache_overflows", 0.95)];
    let build = || locked(64).status(&opened).set("table_open_cache", "10");
    build().is_but_possible(Cause::Unknown, Cause::TableCache);
    build().stacks(&[("table_cache", 300)]).is(Cause::TableCache);
    let cached = [("Qcache_inserts", 1.0), ("Qcache_hits", 3.0)];
    locked(64)
        .status(&cached)
        .set("query_cache_type", "ON")
        .set("query_cache_size", "67108864")
        .is_but_possible(Cause::Unknown, Cause::QueryCache);
}

#[test]
fn limits_on_threads() {
    let build = || locked(64).set("innodb_thread_concurrency", "2");
    build().is_but_possible(Cause::Unknown, Cause::ThreadConcurrency);
    build().stacks(&[("thread_concurrency", 300)]).is(Cause::ThreadConcurrency);
    let shares = [("request_cpu_ns", 0.1), ("transit_in_ns", 0.8)];
    stopped(64, 20.0, 0.6)
        .traced(&shares)
        .set("thread_handling", "pool-of-threads")
        .is(Cause::ThreadConcurrency);
}

#[test]
fn latches_and_the_adaptive_hash() {
    let searches = [("Innodb_adaptive_hash_hash_searches", 9.0)];
    let run = locked(64).status(&searches).set("innodb_adaptive_hash_index", "ON");
    run.set("innodb_adaptive_hash_index_parts", "1").is_but_possible(Cause::Unknown, Cause::AdaptiveHash);
    locked(64).status(&[("Innodb_x_lock_os_waits", 2.0)]).is_but_possible(Cause::Unknown, Cause::PageLatch);
    locked(64).status(&[("index_page_splits", 0.2)]).is_but_possible(Cause::Unknown, Cause::IndexLatch);
    let split = locked(64).status(&[("index_page_splits", 0.2)]).stacks(&[("index_latch", 300)]);
    split.is(Cause::IndexLatch);
}

#[test]
fn scans_and_sorts() {
    let busy = [("request_cpu_ns", 0.5), ("request_runqueue_ns", 0.45)];
    let build = || stopped(16, 80.0, 0.02).traced(&busy);
    let scanned = [("Handler_read_rnd_next", 250_000.0), ("Select_scan", 1.0)];
    build().status(&scanned).status(&[("Questions", 1.0)]).is(Cause::FullScan);
    // One statement of twenty scans: the time of the others is not measured apart from its own.
    build().status(&scanned).status(&[("Questions", 20.0)]).is_but_possible(Cause::Unknown, Cause::FullScan);
    let sorted = [("Handler_read_rnd_next", 100_000.0), ("Sort_rows", 100_000.0), ("Sort_scan", 1.0)];
    let scanned = [("Select_scan", 1.0), ("Questions", 1.0)];
    build().status(&sorted).status(&scanned).is(Cause::TmpTableSort);
    build()
        .status(&sorted)
        .status(&[("Questions", 20.0)])
        .is_but_possible(Cause::Unknown, Cause::TmpTableSort);
}

#[test]
fn a_connection_for_each_transaction() {
    let busy = [("request_cpu_ns", 0.2), ("request_runqueue_ns", 0.2)];
    stopped(16, 2.0, 0.05)
        .traced(&busy)
        .status(&[("Connections", 1.0), ("Threads_created", 0.2)])
        .is_but_possible(Cause::Unknown, Cause::ConnectionChurn);
}

/// Other hosts send the load, and nothing traces them: the way back is what is left of the response time, 85 %.
fn across_hosts() -> RunBuilder {
    let mut hosts = stopped(16, 10.0, 0.9).traced(&[("request_cpu_ns", 0.05)]);
    hosts.last().is_across_hosts = true;
    let mut counters = hosts.last().counters.iter_mut();
    counters.find(|counter| counter.series.metric == "request_ns").unwrap().increase *= 0.15 / 0.9;
    hosts
}

#[test]
fn a_slow_network() {
    let shares = [("request_cpu_ns", 0.05), ("transit_in_ns", 0.85), ("client_held_ns", 0.03)];
    stopped(16, 10.0, 0.9).traced(&shares).is(Cause::Network);
    // Threads of a load host waited for CPUs: how much of that time is the way, nobody knows.
    let mut starved = stopped(16, 10.0, 0.9).traced(&shares);
    starved.last().load_hosts_waited = 0.3;
    starved.is(Cause::Unknown);
    // Other hosts sent it: what to do next is about them, and not about stacks of the server.
    let mut starved = across_hosts();
    starved.last().load_hosts_waited = 0.3;
    let text = starved.is(Cause::Unknown).suspects[0].text.clone();
    assert!(text.contains("more CPUs next") && !text.contains("stacks"), "{text}");
    // Other hosts sent the load, and nothing traced them: their own work is in it.
    let hosts = |own: f64| {
        let mut hosts = across_hosts();
        let response_ms = hosts.last().latency_mean_ms;
        hosts.last().load_hosts_ms = own * response_ms;
        hosts.explained()
    };
    let share_of = |explanation: &Explanation, cause: Cause| -> Option<f64> {
        let found = explanation.suspects.iter().find(|suspect| suspect.id == cause)?;
        assert_eq!(found.class, Class::Inferred, "{found:#?}");
        Some(found.share)
    };
    let (little, most) = (hosts(0.05), hosts(0.7));
    assert!((share_of(&little, Cause::Network).unwrap() - 0.8).abs() < 0.01, "{little:#?}");
    assert_eq!(share_of(&little, Cause::Generator), None);
    assert!((share_of(&most, Cause::Network).unwrap() - 0.15).abs() < 0.01, "{most:#?}");
    assert!((share_of(&most, Cause::Generator).unwrap() - 0.7).abs() < 0.01, "{most:#?}");
    let (little, most) = (little.limit.unwrap(), most.limit.unwrap());
    assert_eq!((little.id, most.id), (Resource::Network, Resource::Client));
    assert!(most.text.contains("by an estimate"), "{}", most.text);
}

#[test]
fn what_nothing_explains_is_unknown_and_names_what_to_measure_next() {
    let explanation = locked(64).is(Cause::Unknown);
    assert!(
        explanation.suspects[0].text.contains("stacks of their waits"),
        "{}",
        explanation.suspects[0].text
    );
    let untraced = stopped(64, 20.0, 0.6).is(Cause::Unknown);
    assert!(untraced.suspects[0].text.contains("trace the run next"), "{}", untraced.suspects[0].text);
}

#[test]
fn two_that_are_close_are_reported_as_close() {
    let run = locked(64).stacks(&[("metadata_lock", 150), ("table_lock", 150)]);
    let explanation = run.explained();
    let text = &explanation.suspects[0].text;
    assert!(text.contains("comes too close to be distinguished from it"), "{text}");
}

#[test]
fn a_level_can_be_asked_about_and_one_that_was_not_measured_has_no_suspects() {
    let run = locked(64).status(&[("Innodb_row_lock_time", 14.0)]);
    let asked = |users| explain_at(&run.0, Some(users));
    assert_eq!(asked(64).about, Some(1));
    assert_eq!(asked(8).about, Some(0));
    assert!(asked(8).suspects.iter().all(|suspect| suspect.id != Cause::RowLock));
    assert!(asked(9).suspects.is_empty() && asked(9).about.is_none());
}

#[test]
fn evidence_lies_in_the_window_that_it_is_about() {
    let explanation = locked(64).status(&[("Innodb_row_lock_time", 14.0)]).explained();
    for evidence in explanation.suspects.iter().flat_map(|suspect| &suspect.evidence) {
        match evidence {
            Evidence::Series { begin_ns, end_ns, .. } => {
                assert_eq!((*begin_ns, *end_ns), (200_000_000_000, 210_000_000_000));
            }
            Evidence::Levels { levels, .. } => assert_eq!(levels, &[1]),
            Evidence::Fact { path, .. } => assert!(path.starts_with("server.variables.")),
        }
    }
}

#[test]
fn what_is_measured_and_the_cpus_hold_no_more_than_the_response_time() {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.3), ("client_held_ns", 0.6)];
    let mut run = stopped(16, 10.0, 0.0).traced(&shares);
    let lost_ms = 6.0 * run.last().transactions as f64;
    run.last().lost_ms_by_code = [("1213 40001".to_string(), lost_ms)].into();
    let explanation = run.is(Cause::Deadlock);
    let held: f64 = explanation.suspects.iter().map(|suspect| suspect.share).sum();
    assert!(held < 1.001, "{held}");
}

#[test]
fn a_recording_in_which_next_to_nothing_was_asked_names_nothing_else() {
    let recorded = |requests: u64| {
        let shares = [("request_cpu_ns", 0.9)];
        let run = RunBuilder::new().level(1, 1.4, 0.0).traced(&shares).status(&[("Connections", 0.3)]);
        run.pacing(LoopKind::Recorded, requests)
    };
    let explanation = recorded(3).is(Cause::Unsaturated);
    assert_eq!(explanation.suspects.len(), 1, "{:#?}", explanation.suspects);
    assert!(
        explanation.suspects[0].text.contains("there were 3 requests in 10 s"),
        "{}",
        explanation.suspects[0].text
    );
    let enough = recorded(30).explained().suspects;
    assert!(enough.iter().all(|suspect| suspect.id != Cause::Unsaturated), "{enough:#?}");
}

#[test]
fn names_are_those_that_scripts_rely_on() {
    let json = serde_json::to_value([Cause::MdlMap, Cause::KernelInodeLock, Cause::NoisyNeighbour]).unwrap();
    assert_eq!(json, serde_json::json!(["mdl-map", "kernel-inode-lock", "noisy-neighbour"]));
    for cause in [Cause::Cpu, Cause::WakeupLatency, Cause::TmpTableSort, Cause::TrxSys, Cause::Unknown] {
        assert_eq!(serde_json::to_value(cause).unwrap(), cause.name());
    }
}

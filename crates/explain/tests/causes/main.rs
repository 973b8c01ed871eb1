//! The cause, named: for each that whyso knows, a small made run in which it is the cause, and the first suspect must be it.

mod made;
mod waits;
mod without_time;

use made::Made;
use whyso_explain::explain_at;
use whyso_explain::model::{Cause, DeedShare, EndedWaits, Evidence, Pacing};

/// Throughput rose until this level, which stands above the best one.
fn stopped(users: u32, response_ms: f64, idle: f64) -> Made {
    Made::new().level(users / 8, response_ms / 8.0, idle).level(users, response_ms, idle)
}

/// The same, with threads that sleep on locks for most of the time on idle CPUs.
fn locked(users: u32) -> Made {
    stopped(users, 20.0, 0.6).traced(&[
        ("request_cpu_ns", 0.1),
        ("request_lock_ns", 0.75),
        ("request_runqueue_ns", 0.05),
        ("transit_in_ns", 0.02),
        ("client_held_ns", 0.04),
    ])
}

#[test]
fn full_cpus() {
    let shares = [
        ("request_cpu_ns", 0.1),
        ("request_runqueue_ns", 0.55),
        ("transit_in_ns", 0.2),
        ("client_delay_ns", 0.1),
        ("request_lock_ns", 0.02),
    ];
    let explanation = stopped(64, 20.0, 0.01).traced(&shares).is(Cause::Cpu);
    assert!(explanation.suspects[0].share > 0.9);
    // The same without a trace.
    let explanation = stopped(64, 20.0, 0.01).is(Cause::Cpu);
    assert!(explanation.suspects[0].text.contains("from counters only"));
}

#[test]
fn queues_for_cpus_that_are_not_full() {
    let shares = [("request_cpu_ns", 0.2), ("request_runqueue_ns", 0.6), ("request_lock_ns", 0.1)];
    stopped(16, 5.0, 0.4).traced(&shares).is(Cause::Runqueue);
}

#[test]
fn a_lone_user_on_an_idle_machine() {
    let shares = [
        ("request_cpu_ns", 0.15),
        ("request_wakeup_ns", 0.05),
        ("transit_in_ns", 0.42),
        ("transit_in_wakeup_ns", 0.4),
        ("client_delay_ns", 0.3),
        ("client_delay_wakeup_ns", 0.28),
        ("client_held_ns", 0.05),
    ];
    Made::new().level(1, 0.17, 0.7).traced(&shares).is(Cause::WakeupLatency);
    // Without a trace nobody measures it.
    Made::new().level(1, 0.17, 0.7).is_but_possible(Cause::Unknown, Cause::WakeupLatency);
}

#[test]
fn too_few_users() {
    let shares = [
        ("request_cpu_ns", 0.6),
        ("request_wakeup_ns", 0.1),
        ("client_held_ns", 0.1),
        ("request_lock_ns", 0.05),
    ];
    // Of the 40 % of the CPUs that are used, 97 % are the server's and the generator's own.
    let made = Made::new().level(1, 1.0, 0.9).level(2, 1.0, 0.8).level(4, 1.0, 0.6).traced(&shares);
    let explanation = made.is(Cause::Unsaturated);
    assert!(
        (explanation.suspects[0].predicted_gain.unwrap().high - 1.0 / (0.97 * 0.4)).abs() < 0.01,
        "{:?}",
        explanation.suspects[0]
    );
    // Users that pause most of the time wake idle CPUs at each statement; what is missing is users all the same.
    let shares = [("request_cpu_ns", 0.4), ("transit_in_ns", 0.5), ("transit_in_wakeup_ns", 0.45)];
    let paused = Made::new().level(8, 0.5, 0.9).pacing(Pacing::ClosedWithPauses, 7_500).traced(&shares);
    paused.is(Cause::Unsaturated);
}

#[test]
fn a_full_generator() {
    let mut made = stopped(64, 4.0, 0.3).traced(&[("request_cpu_ns", 0.1), ("client_delay_ns", 0.8)]);
    made.last().client_saturated_why = "its event loop was busy 99 % of the time".to_string();
    made.is(Cause::Generator);
}

#[test]
fn holders_of_locks_that_are_put_off_their_cpu() {
    let shares = [
        ("request_cpu_ns", 0.03),
        ("request_runqueue_ns", 0.17),
        ("request_lock_ns", 0.75),
        ("client_held_ns", 0.03),
    ];
    let made = stopped(256, 40.0, 0.02).traced(&shares);
    made.is_but_possible(Cause::Unknown, Cause::PreemptedHolder);
    // Chains of waits show it: those that were waited for had no CPU.
    let mut made = made.stacks(&[("redo_write", 300)]);
    made.last().ended_waits = vec![EndedWaits {
        class: "redo_write".to_string(),
        count: 300,
        ns: 1e9,
        deeds: vec![DeedShare { role: "connection".to_string(), state: "runqueue".to_string(), share: 0.9 }],
    }];
    made.is(Cause::PreemptedHolder);
}

#[test]
fn spinning() {
    let shares = [("request_cpu_ns", 0.5), ("request_runqueue_ns", 0.4), ("request_lock_ns", 0.05)];
    stopped(64, 20.0, 0.01)
        .traced(&shares)
        .counter("innodb_metrics", "innodb_rwlock_x_spin_rounds", "", 30_000_000.0)
        .is_but_possible(Cause::Cpu, Cause::Spin);
}

#[test]
fn memory_that_is_swapped() {
    let shares = [("request_cpu_ns", 0.1), ("request_page_fault_ns", 0.7), ("request_lock_ns", 0.1)];
    stopped(16, 20.0, 0.7)
        .traced(&shares)
        .counter("memory", "pswpin", "", 4_000.0)
        .counter("memory", "pswpout", "", 4_000.0)
        .is(Cause::Swap);
}

const WRITES: [(&str, f64); 2] = [("Handler_commit", 1.0), ("Handler_update", 2.0)];

#[test]
fn flushes_of_the_redo_log() {
    // A few users are in fsync themselves.
    let shares = [("request_cpu_ns", 0.1), ("request_file_sync_ns", 0.8)];
    let made =
        stopped(8, 20.0, 0.6).traced(&shares).status(&WRITES).set("innodb_flush_log_at_trx_commit", "1");
    let explanation = made.file("/data/ib_logfile0", "file_sync", "connection", 6.4).is(Cause::RedoFlush);
    assert!(
        explanation.suspects[0].text.contains("in fsync 100 % of the time"),
        "{:#?}",
        explanation.suspects
    );
    // One of many commits for all; that the others sleep until it is done, only their stacks show.
    let made = || locked(64).status(&WRITES).set("innodb_flush_log_at_trx_commit", "1");
    let one_syncs = || made().file("/data/ib_logfile0", "file_sync", "connection", 0.95);
    one_syncs().is_but_possible(Cause::Unknown, Cause::RedoFlush);
    one_syncs().stacks(&[("redo_flush", 300)]).is(Cause::RedoFlush);
    let others = one_syncs().stacks(&[("metadata_lock", 300)]);
    let explanation = others.is(Cause::MetadataLock);
    assert!(
        explanation.possible.iter().all(|one| one.id != Cause::RedoFlush),
        "stacks show that nobody waited for it"
    );
    // MySQL 8 has a thread of its own for it.
    made()
        .file("/data/#innodb_redo/#ib_redo7", "file_sync", "log flusher", 0.9)
        .is_but_possible(Cause::Unknown, Cause::RedoFlush);
    // Without a trace, by the disk's own counters.
    let made = stopped(64, 20.0, 0.6).status(&WRITES).set("innodb_flush_log_at_trx_commit", "1");
    made.counter("disk", "flush_ns", "vda", 0.9e9).is_but_possible(Cause::Unknown, Cause::RedoFlush);
}

#[test]
fn writes_of_the_redo_log() {
    let made = || locked(64).status(&WRITES).status(&[("Innodb_log_waits", 0.2)]);
    made().is_but_possible(Cause::Unknown, Cause::RedoWrite);
    made().stacks(&[("redo_write", 300)]).is(Cause::RedoWrite);
}

#[test]
fn the_binary_log() {
    let made = locked(64).status(&WRITES).set("log_bin", "ON").set("sync_binlog", "1");
    let made = made.set("innodb_flush_log_at_trx_commit", "2");
    let made = made.file("/data/mysql-bin.000002", "file_sync", "connection", 0.9);
    made.is_but_possible(Cause::Unknown, Cause::Binlog);
    made.stacks(&[("binlog", 300)]).is(Cause::Binlog);
}

#[test]
fn a_checkpoint_that_holds_writers_back() {
    locked(64)
        .status(&WRITES)
        .set("innodb_flush_log_at_trx_commit", "2")
        .gauge("Innodb_checkpoint_age", 7.9e6)
        .gauge("Innodb_checkpoint_max_age", 8.0e6)
        .is_but_possible(Cause::Unknown, Cause::Checkpoint);
}

#[test]
fn the_doublewrite_buffer() {
    let shares = [("request_cpu_ns", 0.1), ("request_file_write_ns", 0.4), ("request_file_sync_ns", 0.4)];
    let made = stopped(16, 20.0, 0.7).traced(&shares).status(&[("Innodb_buffer_pool_wait_free", 0.01)]);
    made.file("/data/#ib_16384_0.dblwr", "file_sync", "connection", 6.4)
        .file("/data/#ib_16384_0.dblwr", "file_write", "connection", 6.4)
        .is(Cause::Doublewrite);
}

#[test]
fn pages_that_are_not_in_memory() {
    let shares = [("request_cpu_ns", 0.1), ("request_file_read_ns", 0.8)];
    let reads = [("Innodb_buffer_pool_reads", 8.0), ("Innodb_buffer_pool_read_requests", 90.0)];
    let made = || stopped(16, 10.0, 0.7).traced(&shares).status(&reads);
    made().file("/data/shop/orders.ibd", "file_read", "connection", 12.8).is(Cause::BufferPoolMiss);
    // Where the tracer does not know the files, nobody measured what was read.
    made().is_but_possible(Cause::Unknown, Cause::BufferPoolMiss);
}

#[test]
fn pages_that_must_be_written_first() {
    let made = || locked(64).status(&WRITES).status(&[("Innodb_buffer_pool_wait_free", 0.5)]);
    made().is_but_possible(Cause::Unknown, Cause::PageFlush);
    made().stacks(&[("buffer_pool", 300)]).is(Cause::PageFlush);
}

#[test]
fn locks_of_an_inode() {
    let shares = [("request_cpu_ns", 0.1), ("request_kernel_lock_ns", 0.7), ("request_file_write_ns", 0.1)];
    let made = stopped(32, 10.0, 0.7).traced(&shares);
    let explanation =
        made.file("/data/sbtest/sbtest1.ibd", "kernel_lock", "connection", 20.0).is(Cause::KernelInodeLock);
    assert!(explanation.suspects[0].text.contains("sbtest1.ibd"));
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
    let mut made = locked(64).status(&[("Innodb_row_lock_time", 13.0), ("Innodb_deadlocks", 0.4)]);
    let transactions = made.last().transactions as f64;
    made.last().lost_ms_by_code = [("1213 (40001)".to_string(), 10.0 * transactions)].into();
    made.is(Cause::Deadlock);
}

#[test]
fn numbers_of_rows() {
    let made = || locked(64).status(&[("Com_insert", 1.0)]).set("innodb_autoinc_lock_mode", "0");
    made().is_but_possible(Cause::Unknown, Cause::AutoIncrement);
    made().found_waiting("row", "AUTO_INC", 40.0).is(Cause::AutoIncrement);
    made().found_waiting("row", "X", 40.0).is_but_possible(Cause::Unknown, Cause::AutoIncrement);
}

#[test]
fn purge_that_lags_behind() {
    let shares = [("request_cpu_ns", 0.1), ("request_sleep_ns", 0.8)];
    let made = stopped(16, 10.0, 0.8).traced(&shares).gauge("Innodb_history_list_length", 400_000.0);
    made.set("innodb_max_purge_lag", "100000").is_but_possible(Cause::Unknown, Cause::PurgeLag);
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
    let made = || locked(64).status(&opened).set("table_open_cache", "10");
    made().is_but_possible(Cause::Unknown, Cause::TableCache);
    made().stacks(&[("table_cache", 300)]).is(Cause::TableCache);
    let cached = [("Qcache_inserts", 1.0), ("Qcache_hits", 3.0)];
    locked(64)
        .status(&cached)
        .set("query_cache_type", "ON")
        .set("query_cache_size", "67108864")
        .is_but_possible(Cause::Unknown, Cause::QueryCache);
}

#[test]
fn limits_on_threads() {
    let made = || locked(64).set("innodb_thread_concurrency", "2");
    made().is_but_possible(Cause::Unknown, Cause::ThreadConcurrency);
    made().stacks(&[("thread_concurrency", 300)]).is(Cause::ThreadConcurrency);
    let shares = [("request_cpu_ns", 0.1), ("transit_in_ns", 0.8)];
    stopped(64, 20.0, 0.6)
        .traced(&shares)
        .set("thread_handling", "pool-of-threads")
        .is(Cause::ThreadConcurrency);
}

#[test]
fn latches_and_the_adaptive_hash() {
    let searches = [("Innodb_adaptive_hash_hash_searches", 9.0)];
    let made = locked(64).status(&searches).set("innodb_adaptive_hash_index", "ON");
    made.set("innodb_adaptive_hash_index_parts", "1").is_but_possible(Cause::Unknown, Cause::AdaptiveHash);
    locked(64).status(&[("Innodb_x_lock_os_waits", 2.0)]).is_but_possible(Cause::Unknown, Cause::PageLatch);
    locked(64).status(&[("index_page_splits", 0.2)]).is_but_possible(Cause::Unknown, Cause::IndexLatch);
    let split = locked(64).status(&[("index_page_splits", 0.2)]).stacks(&[("index_latch", 300)]);
    split.is(Cause::IndexLatch);
}

#[test]
fn scans_and_sorts() {
    let busy = [("request_cpu_ns", 0.5), ("request_runqueue_ns", 0.45)];
    let made = || stopped(16, 80.0, 0.02).traced(&busy);
    let scanned = [("Handler_read_rnd_next", 250_000.0), ("Select_scan", 1.0)];
    made().status(&scanned).status(&[("Questions", 1.0)]).is(Cause::FullScan);
    // One statement of twenty scans: the time of the others is not measured apart from its own.
    made().status(&scanned).status(&[("Questions", 20.0)]).is_but_possible(Cause::Cpu, Cause::FullScan);
    let sorted = [("Handler_read_rnd_next", 100_000.0), ("Sort_rows", 100_000.0), ("Sort_scan", 1.0)];
    let scanned = [("Select_scan", 1.0), ("Questions", 1.0)];
    made().status(&sorted).status(&scanned).is(Cause::TmpTableSort);
    made().status(&sorted).status(&[("Questions", 20.0)]).is_but_possible(Cause::Cpu, Cause::TmpTableSort);
}

#[test]
fn a_connection_for_each_transaction() {
    let busy = [("request_cpu_ns", 0.2), ("request_runqueue_ns", 0.2)];
    stopped(16, 2.0, 0.05)
        .traced(&busy)
        .status(&[("Connections", 1.0), ("Threads_created", 0.2)])
        .is_but_possible(Cause::Unknown, Cause::ConnectionChurn);
}

#[test]
fn a_slow_network() {
    let shares = [("request_cpu_ns", 0.05), ("transit_in_ns", 0.85), ("client_held_ns", 0.03)];
    stopped(16, 10.0, 0.9).traced(&shares).is(Cause::Network);
}

#[test]
fn a_scan_next_to_other_programs_keeps_its_own_work() {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.85)];
    let mut made = stopped(16, 80.0, 0.0).traced(&shares);
    made.last().server_cpu_s = Some(2.0);
    made.last().client_cpu_s = 0.5;
    let scanned = [("Handler_read_rnd_next", 250_000.0), ("Select_scan", 1.0), ("Questions", 1.0)];
    let explanation = made.status(&scanned).is(Cause::NoisyNeighbour);
    let scan = explanation.suspects.iter().find(|suspect| suspect.id == Cause::FullScan);
    assert!(scan.is_some_and(|scan| (0.09..0.16).contains(&scan.share)), "{:#?}", explanation.suspects);
}

#[test]
fn other_programs() {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.6), ("transit_in_ns", 0.2)];
    let mut made = stopped(16, 10.0, 0.0).traced(&shares);
    made.last().server_cpu_s = Some(7.0);
    made.last().client_cpu_s = 3.0;
    made.is(Cause::NoisyNeighbour);
}

#[test]
fn the_observer_itself() {
    let shares = [("request_cpu_ns", 0.4), ("request_runqueue_ns", 0.5)];
    let made = stopped(16, 10.0, 0.02).traced(&shares);
    made.counter("cpu", "user_ns", "all", 1.96e9)
        .counter("trace_cost", "program_ns", "switch", 0.8e9)
        .counter("trace_cost", "tracer_cpu_ns", "", 0.5e9)
        .is(Cause::Observer);
}

#[test]
fn what_nothing_explains_is_unknown_and_says_what_to_measure_next() {
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
fn two_that_are_close_are_said_to_be() {
    let made = locked(64).stacks(&[("metadata_lock", 150), ("table_lock", 150)]);
    let explanation = made.explained();
    let text = &explanation.suspects[0].text;
    assert!(text.contains("comes too close to be told apart from it"), "{text}");
}

#[test]
fn a_level_can_be_asked_about_and_one_that_was_not_measured_has_no_suspects() {
    let made = locked(64).status(&[("Innodb_row_lock_time", 14.0)]);
    let asked = |users| explain_at(&made.0, Some(users));
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

/// The server alone on CPU 0, where it used so much of it, and CPU 1 half idle.
fn alone_on_one_cpu(server_cpu_s: f64) -> Made {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.6), ("client_delay_ns", 0.25)];
    let mut made = stopped(16, 10.0, 0.25).traced(&shares);
    let machine = &mut made.0.machine;
    (machine.server_cpus, machine.client_cpus, machine.shared) = (1, 1, false);
    machine.server_cpu_numbers = vec![0];
    made.last().server_cpu_s = Some(server_cpu_s);
    made.last().client_cpu_s = 5.0;
    made.counter("cpu", "user_ns", "cpu0", 0.99e9).counter("cpu", "user_ns", "cpu1", 0.5e9)
}

#[test]
fn the_server_s_own_cpu_is_full_although_others_are_idle() {
    let explanation = alone_on_one_cpu(9.8).is(Cause::Cpu);
    assert!(explanation.suspects.iter().all(|suspect| suspect.id != Cause::Runqueue));
}

#[test]
fn another_program_on_the_server_s_own_cpu() {
    alone_on_one_cpu(4.5).is(Cause::NoisyNeighbour);
}

#[test]
fn what_is_measured_and_the_cpus_hold_no_more_than_the_response_time() {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.3), ("client_held_ns", 0.6)];
    let mut made = stopped(16, 10.0, 0.0).traced(&shares);
    let lost_ms = 6.0 * made.last().transactions as f64;
    made.last().lost_ms_by_code = [("1213 40001".to_string(), lost_ms)].into();
    let explanation = made.is(Cause::Deadlock);
    let held: f64 = explanation.suspects.iter().map(|suspect| suspect.share).sum();
    assert!(held < 1.001, "{held}");
}

#[test]
fn a_recording_in_which_next_to_nothing_was_asked_names_nothing_else() {
    let recorded = |requests: u64| {
        let shares = [("request_cpu_ns", 0.9)];
        let made = Made::new().level(1, 1.4, 0.0).traced(&shares).status(&[("Connections", 0.3)]);
        made.pacing(Pacing::Recorded, requests)
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

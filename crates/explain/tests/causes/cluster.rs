//! Causes between the nodes of a cluster.

use whyso_explain::model::{Cause, Counter, Gauge, NodeInput, SeriesName};

use crate::run_builder::RunBuilder;

/// A traced level that sleeps on locks for half of its response time.
fn waiting() -> RunBuilder {
    let shares = [("request_cpu_ns", 0.3), ("request_lock_ns", 0.5), ("request_runqueue_ns", 0.1)];
    RunBuilder::new().level(1, 1.0, 0.5).level(8, 8.0, 0.5).traced(&shares)
}

/// The same, of transactions that each change something.
fn changing() -> RunBuilder {
    waiting().status(&[("wsrep_replicated", 1.0)])
}

fn member(name: &str, asked: f64, queue: f64) -> NodeInput {
    let series = |metric: &str| SeriesName {
        host: name.to_string(),
        source: "status".to_string(),
        metric: metric.to_string(),
        instance: String::new(),
    };
    let asked =
        Counter { series: series("wsrep_flow_control_sent"), unit: "1".to_string(), increase: asked * 10.0 };
    let gauge =
        |metric: &str, mean: f64| Gauge { series: series(metric), unit: "1".to_string(), mean, max: mean };
    NodeInput {
        name: name.to_string(),
        role: "member".to_string(),
        is_loaded: name == "galera-1",
        counters: vec![asked],
        gauges: vec![gauge("wsrep_local_recv_queue", queue), gauge("wsrep_cluster_size", 3.0)],
        ..NodeInput::default()
    }
}

#[test]
fn pauses_of_a_cluster_name_the_node_that_asked_for_them() {
    let mut run = changing().counter("status", "wsrep_flow_control_paused_ns", "", 0.45e9);
    run.last().nodes =
        vec![member("galera-1", 0.0, 0.1), member("galera-2", 0.0, 0.5), member("galera-3", 12.0, 40.0)];
    let first = &run.is(Cause::FlowControl).suspects[0];
    assert!((0.44..0.46).contains(&first.share), "{first:?}");
    assert!(
        first.text.contains(
            "for 45 % of the time; galera-3 asked for it, 12 times per second: 40 changes waited there"
        ),
        "{}",
        first.text
    );
}

/// Flow control may pause for longer than anybody waited: who does not commit is not paused.
#[test]
fn pauses_hold_no_more_than_the_sleep_on_locks() {
    let run = changing().counter("status", "wsrep_flow_control_paused_ns", "", 0.95e9);
    let first = &run.is(Cause::FlowControl).suspects[0];
    assert!((0.49..0.51).contains(&first.share), "{first:?}");
}

/// Readers that sleep, while others' changes are paused: they wait for no commit.
#[test]
fn pauses_hold_nothing_of_transactions_that_change_nothing() {
    let run = waiting().counter("status", "wsrep_flow_control_paused_ns", "", 0.95e9);
    let explanation = run.status(&[("wsrep_replicated", 0.0)]).is(Cause::Unknown);
    assert!(explanation.suspects.iter().all(|suspect| suspect.id != Cause::FlowControl), "{explanation:?}");
}

#[test]
fn attempts_that_another_nodes_change_ended_are_divided_from_deadlocks() {
    let counts =
        [("wsrep_local_cert_failures", 0.1), ("wsrep_local_bf_aborts", 0.2), ("Innodb_deadlocks", 0.1)];
    let mut run = waiting().status(&counts);
    let all_ms = 8.0 * run.last().transactions as f64;
    run.last().lost_ms_by_code.insert("1213 (40001)".to_string(), 0.4 * all_ms);
    let explanation = run.is(Cause::Certification);
    let share = |cause: Cause| {
        explanation.suspects.iter().find(|suspect| suspect.id == cause).map_or(0.0, |suspect| suspect.share)
    };
    assert!((share(Cause::Certification) - 0.3).abs() < 0.01, "{explanation:?}");
    assert!((share(Cause::Deadlock) - 0.1).abs() < 0.01, "{explanation:?}");
}

#[test]
fn commits_that_wait_for_a_replica_hold_what_the_server_counted() {
    for name in ["Rpl_semi_sync_source_tx_wait_time", "Rpl_semi_sync_master_tx_wait_time"] {
        let first = &waiting().status(&[(name, 3_200.0)]).is(Cause::SemiSync).suspects[0];
        assert!((0.39..0.41).contains(&first.share), "{first:?}");
    }
}

/// Counters of a node, each by source, metric, instance and growth.
fn counters(host: &str, all: &[(&str, &str, &str, f64)]) -> Vec<Counter> {
    let counter = |(source, metric, instance, increase): &(&str, &str, &str, f64)| Counter {
        series: SeriesName {
            host: host.to_string(),
            source: (*source).to_string(),
            metric: (*metric).to_string(),
            instance: (*instance).to_string(),
        },
        unit: "1".to_string(),
        increase: *increase,
    };
    all.iter().map(counter).collect()
}

/// An SQL node that asked for `ndbinfo`, and a data node whose main thread is on a CPU for this share of the level.
fn with_data_node(
    mut run: RunBuilder,
    ndbinfo: &[(&str, &str, &str, f64)],
    busy: f64,
    read_ns: f64,
) -> RunBuilder {
    let level = run.last();
    let level_ns = (level.end_ns - level.begin_ns) as f64;
    let sql_node = NodeInput {
        name: "ndb-1".to_string(),
        role: "SQL node".to_string(),
        is_loaded: true,
        counters: counters("server", ndbinfo),
        ..NodeInput::default()
    };
    let threads = [
        ("appliers", "cpu_ns", "ndbd-71", busy * level_ns),
        ("appliers", "idle_ns", "ndbd-71", (1.0 - busy) * level_ns),
        ("threads", "file_read_ns", "other", read_ns),
    ];
    let data_node = NodeInput {
        name: "ndb-data-1".to_string(),
        role: "data node".to_string(),
        ndb_id: Some(2),
        counters: counters("ndb-data-1", &threads),
        ..NodeInput::default()
    };
    run.last().nodes = vec![sql_node, data_node];
    run
}

#[test]
fn waits_for_a_data_node_that_is_as_busy_as_it_can_be_are_its_works() {
    let run = || {
        waiting().status(&[("Ndb_api_wait_nanos_count", 3.2e6), ("Ndb_api_wait_exec_complete_count", 1.0)])
    };
    let cpu_time = [
        ("ndbinfo", "thread_user_us", "node 2 thread 0", 3e6),
        ("ndbinfo", "thread_system_us", "node 2 thread 0", 1e6),
        ("ndbinfo", "thread_system_us", "node 21 thread 0", 9e6),
    ];
    let explanation = with_data_node(run(), &cpu_time, 0.93, 0.0).is(Cause::NdbCpuBound);
    let first = &explanation.suspects[0];
    assert!((0.39..0.41).contains(&first.share), "{first:?}");
    assert!(
        first.text.contains("the busiest thread of ndb-data-1, ndbd, had work for 93 % of the time, 25 % of its CPU time in the kernel"),
        "{}",
        first.text
    );
    let finding = explanation.findings.iter().find(|finding| finding.id == "busy-data-node").unwrap();
    assert!(finding.text.contains("75 % of the node's CPU time was its own code"), "{}", finding.text);
    let idle = with_data_node(run(), &cpu_time, 0.3, 0.0).is(Cause::NdbRoundTrips);
    assert!(idle.suspects.iter().all(|suspect| suspect.id != Cause::NdbCpuBound), "{idle:?}");
    assert!(
        idle.suspects[0].text.contains("the busiest thread of ndb-data-1, ndbd, worked for 30 % of the time"),
        "{idle:?}"
    );
}

#[test]
fn reads_of_disk_data_hold_as_long_as_they_took() {
    let mut run =
        waiting().status(&[("Ndb_api_wait_nanos_count", 3.2e6), ("Ndb_api_wait_exec_complete_count", 1.0)]);
    let transactions = run.last().transactions as f64;
    let pages = [
        ("ndbinfo", "disk_page_hits", "node 2", 6.0 * transactions),
        ("ndbinfo", "disk_page_waits_io", "node 2", 2.0 * transactions),
        ("ndbinfo", "disk_pages_read", "node 2", 2.0 * transactions),
    ];
    // Two reads of 1.2 ms for each transaction.
    let explanation = with_data_node(run, &pages, 0.3, 2.4e6 * transactions).is(Cause::NdbDiskBuffer);
    let first = &explanation.suspects[0];
    assert!((0.29..0.31).contains(&first.share), "{first:?}");
    assert!(
        first
            .text
            .contains("had 75 % of the pages that were asked for; 2 reads per transaction took 1.2 ms each"),
        "{}",
        first.text
    );
    assert_eq!(explanation.nodes[1].page_hits, Some(0.75));
}

/// On a machine whose CPUs are all busy, a data node's thread has work all the time, and gets no CPU for it.
#[test]
fn a_data_node_that_waits_for_a_cpu_has_not_too_much_to_do() {
    let counts = [("Ndb_api_wait_nanos_count", 3.2e6), ("Ndb_api_wait_exec_complete_count", 1.0)];
    let mut run = with_data_node(waiting().status(&counts), &[], 0.3, 0.0);
    let seconds = (run.last().end_ns - run.last().begin_ns) as f64 / 1e9;
    let series = SeriesName {
        host: "ndb-data-1".to_string(),
        source: "appliers".to_string(),
        metric: "runqueue_ns".to_string(),
        instance: "ndbd-71".to_string(),
    };
    let waited = Counter { series, unit: "ns".to_string(), increase: 0.65e9 * seconds };
    run.last().nodes[1].counters.push(waited);
    let explanation = run.is(Cause::NdbRoundTrips);
    assert!(explanation.suspects[0].text.contains("waited for a CPU for 65 %"), "{explanation:?}");
    let finding = explanation.findings.iter().find(|finding| finding.id == "busy-data-node").unwrap();
    assert!(finding.text.contains("give the data nodes CPUs of their own"), "{}", finding.text);
    assert_eq!(explanation.nodes[1].applier.as_ref().map(|thread| thread.busy > 0.9), Some(true));
    assert!(explanation.suspects.iter().all(|suspect| suspect.id != Cause::NdbCpuBound), "{explanation:?}");
}

/// The count of the server has waits of its own threads in it. Stacks have not.
#[test]
fn stacks_show_what_of_the_waits_was_for_data_nodes_and_what_for_the_links_to_them() {
    let counts = [("Ndb_api_wait_nanos_count", 45e6), ("Ndb_api_wait_exec_complete_count", 1.0)];
    let run = waiting().status(&counts).stacks(&[("data_nodes", 100), ("ndb_link", 200), ("", 100)]);
    let explanation = with_data_node(run, &[], 0.95, 0.0).is(Cause::NdbPool);
    let share =
        |cause| explanation.suspects.iter().find(|suspect| suspect.id == cause).map(|suspect| suspect.share);
    let (links, answers) = (share(Cause::NdbPool).unwrap(), share(Cause::NdbCpuBound).unwrap());
    assert!((answers * 2.0 - links).abs() < 0.02, "{links} {answers}");
    assert!(
        explanation.suspects[0].text.contains("waits of threads for each other"),
        "{}",
        explanation.suspects[0].text
    );
}

/// A run through a proxy whose only thread had these shares of the time, on CPUs that were idle for such a share.
fn behind_proxy(idle: f64, cpu: f64, runqueue: f64) -> RunBuilder {
    let parts = [
        ("request_cpu_ns", 0.3),
        ("client_held_ns", 0.1),
        ("wire_ns", 0.9),
        ("transit_in_ns", 0.0),
        ("requests", 0.5),
        ("relayed_requests", 0.5),
    ];
    let mut run = RunBuilder::new().level(1, 1.0, idle).level(8, 8.0, idle).traced(&parts);
    let of_server =
        run.last().counters.iter_mut().find(|counter| counter.series.metric == "request_ns").unwrap();
    // No more than it computed.
    of_server.increase /= 3.0;
    let (seconds, transactions) =
        ((run.last().end_ns - run.last().begin_ns) as f64 / 1e9, run.last().transactions as f64);
    let threads = [
        ("appliers", "cpu_ns", "haproxy-9", cpu * 1e9 * seconds),
        ("appliers", "runqueue_ns", "haproxy-9", runqueue * 1e9 * seconds),
        ("server_process", "run_ns", "server", 1e5 * transactions),
    ];
    run.last().nodes = vec![
        NodeInput {
            name: "g-1".to_string(),
            role: "member".to_string(),
            is_loaded: true,
            ..NodeInput::default()
        },
        NodeInput {
            name: "g-proxy".to_string(),
            role: "proxy".to_string(),
            counters: counters("g-proxy", &threads),
            ..NodeInput::default()
        },
    ];
    run
}

/// What neither side accounts for lies between them.
#[test]
fn what_a_proxy_holds_back_is_named_with_what_its_thread_did() {
    let explanation = behind_proxy(0.5, 0.5, 0.2).is(Cause::Proxy);
    let first = &explanation.suspects[0];
    assert!((0.55..0.65).contains(&first.share), "{first:?}");
    assert!(
        first.text.contains("it took 100 µs of CPU time for each, and its busiest thread worked for 50 % of the time, and waited for a CPU for 20 %"),
        "{}",
        first.text
    );
}

/// A proxy that waits for full CPUs is held up by who fills them.
#[test]
fn a_proxys_wait_for_full_cpus_is_not_the_proxys() {
    let explanation = behind_proxy(0.0, 0.25, 0.5).explained();
    let of_proxy = explanation.suspects.iter().find(|suspect| suspect.id == Cause::Proxy).unwrap();
    assert!((0.15..0.25).contains(&of_proxy.share), "{of_proxy:?}");
    assert!(of_proxy.text.contains("its wait for full CPUs"), "{}", of_proxy.text);
    assert_ne!(explanation.suspects[0].id, Cause::Proxy, "{explanation:?}");
}

/// Users that sleep, next to others that keep the data node busy: the server's own threads wait for it all the time.
#[test]
fn transactions_that_ask_no_data_node_wait_for_none() {
    let waits = [("Ndb_api_wait_nanos_count", 45e6), ("Ndb_api_wait_exec_complete_count", 0.001)];
    let explanation = with_data_node(waiting().status(&waits), &[], 0.95, 0.0).is(Cause::Unknown);
    assert!(explanation.suspects.iter().all(|suspect| suspect.id != Cause::NdbCpuBound), "{explanation:?}");
}

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

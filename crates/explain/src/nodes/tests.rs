use super::*;
use crate::model::{Counter, Gauge, Input, LevelInput, SeriesName};

const SECONDS: f64 = 10.0;

fn name(host: &str, source: &str, metric: &str, instance: &str) -> SeriesName {
    SeriesName {
        host: host.to_string(),
        source: source.to_string(),
        metric: metric.to_string(),
        instance: instance.to_string(),
    }
}

/// A replica whose only applier is in these states, in seconds of each second.
fn replica(behind_s: f64, states: &[(&str, f64)]) -> NodeInput {
    let host = "db-2";
    let counter = |source: &str, metric: &str, instance: &str, per_s: f64| Counter {
        series: name(host, source, metric, instance),
        unit: "1".to_string(),
        increase: per_s * SECONDS,
    };
    let mut counters = vec![
        counter(PROCESS, "run_ns", "server", 0.8e9),
        counter("replication", "read_source_log_pos", "", 1e6),
        counter("replication", "exec_source_log_pos", "", 0.6e6),
        counter("appliers", "net_receive_ns", "slave_io-71", 0.99e9),
        counter("appliers", "cpu_ns", "slave_io-71", 0.01e9),
    ];
    counters.extend(
        states.iter().map(|(state, s)| counter("appliers", &format!("{state}_ns"), "slave_sql-70", s * 1e9)),
    );
    let gauge = Gauge {
        series: name(host, "replication", state::BEHIND, ""),
        unit: "s".to_string(),
        mean: behind_s / 2.0,
        max: behind_s,
    };
    NodeInput {
        name: host.to_string(),
        role: "replica".to_string(),
        counters,
        gauges: vec![gauge],
        ..NodeInput::default()
    }
}

fn explained(replica: NodeInput) -> crate::model::Explanation {
    let source = NodeInput {
        name: "db-1".to_string(),
        role: "source".to_string(),
        is_loaded: true,
        ..NodeInput::default()
    };
    let level = LevelInput {
        users: 8,
        end_ns: 10_000_000_000,
        transactions: 5_000,
        latency_mean_ms: 16.0,
        bins_100ms: vec![50; 100],
        nodes: vec![source, replica],
        ..LevelInput::default()
    };
    crate::explain(&Input { levels: vec![level], ..Input::default() })
}

fn lag(explanation: &crate::model::Explanation) -> Option<&str> {
    let found = explanation.findings.iter().find(|finding| finding.id == "replication-lag");
    found.map(|finding| finding.text.as_str())
}

#[test]
fn a_replica_that_falls_behind_is_reported_with_what_its_applier_did() {
    let states = [("cpu", 0.61), ("file_sync", 0.3), ("lock", 0.06), ("idle", 0.03)];
    let explanation = explained(replica(14.0, &states));
    assert_eq!(
        lag(&explanation).unwrap(),
        "Replication lag at 8 users: db-2 (replica) was up to 14 s behind its source, and executed 60 % of what it fetched \
         meanwhile. Its busiest applier, slave_sql, had work for 91 % of the time: 61 % work on a CPU and 30 % waiting for syncs of \
         files. One thread does no more than that: let more threads apply at the same time."
    );
    let [source, replica] = &explanation.nodes[..] else { panic!("{:?}", explanation.nodes) };
    assert!(source.is_loaded && source.applier.is_none());
    assert_eq!((replica.cpus, replica.applier.as_ref().unwrap().threads), (Some(0.8), 2));
}

#[test]
fn a_replica_that_keeps_up_and_an_applier_with_time_to_spare_are_no_findings() {
    assert_eq!(lag(&explained(replica(1.0, &[("cpu", 0.9)]))), None);
    let explanation = explained(replica(5.0, &[("cpu", 0.3), ("idle", 0.7)]));
    let text = lag(&explanation).unwrap();
    assert!(text.contains("30 % of the time") && !text.contains("more threads"), "{text}");
    let explanation = explained(replica(5.0, &[("lock", 1.0)]));
    assert!(lag(&explanation).unwrap().contains("Its appliers slept"), "{explanation:?}");
}

#[test]
fn what_an_applier_slept_on_is_in_the_servers_words() {
    let with_states = |states: &[(&str, f64)]| {
        let mut slept = replica(5.0, &[("lock", 1.0)]);
        slept.counters.extend(states.iter().map(|(state, threads)| Counter {
            series: name("db-2", "applying", "samples", state),
            unit: "1".to_string(),
            increase: *threads,
        }));
        explained(slept)
    };
    let explanation = with_states(&[
        ("Waiting for prior transaction to commit", 12.0),
        ("Commit", 4.0),
        ("Waiting for work from SQL thread", 4.0),
    ]);
    let text = lag(&explanation).unwrap();
    assert!(
        text.ends_with(
            "The server shows 80 % of its appliers with something to do (20 samples), of these 75 % in the state 'Waiting for prior \
             transaction to commit' and 25 % in the state 'Commit'."
        ),
        "{text}"
    );
    let idle = with_states(&[("Slave has read all relay log; waiting for more updates", 7.0)]);
    assert!(lag(&idle).unwrap().ends_with("with nothing to do (7 samples)."), "{idle:?}");
    assert_eq!(explanation.nodes[1].applying.as_ref().unwrap().samples, 20.0);
    let broken = with_states(&[("Commit", f64::NAN)]);
    assert_eq!(broken.nodes[1].applying, None);
}

#[test]
fn numbers_that_make_no_sense_are_left_out() {
    let mut broken = replica(f64::NAN, &[("cpu", f64::INFINITY)]);
    broken.counters.iter_mut().for_each(|counter| counter.increase = f64::NAN);
    let explanation = explained(broken);
    assert_eq!(lag(&explanation), None);
    assert_eq!(explanation.nodes[1].cpus, None);
}

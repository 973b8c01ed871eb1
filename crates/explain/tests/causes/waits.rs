//! Waits that have names of their own. The figures are of planted runs on MariaDB 10.11 (see bench/causes), rounded.

use whyso_explain::model::{Cause, Gauge, LoopKind, SeriesName};

use crate::run_builder::RunBuilder;
use crate::stopped;

/// How many connections were found waiting for a kind of lock at the mean, and how often any was.
fn found_waiting(mut run: RunBuilder, kind: &str, mean: f64, samples: u64) -> RunBuilder {
    let series = SeriesName {
        host: "server".to_string(),
        source: "lock_waits".to_string(),
        metric: "waiting".to_string(),
        instance: kind.to_string(),
    };
    let level = run.last();
    level.gauges.push(Gauge { series, unit: "1".to_string(), mean, max: mean });
    level.lock_objects.push(whyso_explain::locks::LockObject {
        kind: whyso_model::LockKind::of_name(kind),
        samples,
        share: 1.0,
        ..Default::default()
    });
    run
}

/// Before, 97 % of this were unknown: the wait in poll was none of a request's.
#[test]
fn clients_that_read_slowly() {
    let shares = [("request_cpu_ns", 0.02), ("request_net_send_ns", 0.93)];
    let run = RunBuilder::new().level(2, 400.0, 0.9).traced(&shares).status(&[("Bytes_sent", 4e6)]);
    let explanation = run.pacing(LoopKind::Recorded, 50).is(Cause::SlowReader);
    assert!((explanation.suspects[0].share - 0.93).abs() < 0.01, "{:?}", explanation.suspects[0]);
    assert!(explanation.suspects[0].text.contains("answers of 3.81 MiB"), "{}", explanation.suspects[0].text);
    let network = explanation.suspects.iter().find(|suspect| suspect.id == Cause::Network);
    assert!(network.is_none(), "the same time would count twice: {network:#?}");
}

/// Eight users for one lock: before, this was unknown, and with stacks a metadata lock.
#[test]
fn locks_that_statements_ask_for_by_name() {
    let shares = [("request_cpu_ns", 0.05), ("request_lock_ns", 0.8), ("request_runqueue_ns", 0.1)];
    let locked = || stopped(8, 4.0, 0.6).traced(&shares);
    let explanation = found_waiting(locked(), "user", 6.0, 60).is(Cause::UserLock);
    assert!((explanation.suspects[0].share - 0.75).abs() < 0.01, "{:?}", explanation.suspects[0]);
    let of = |run: RunBuilder| run.explained().suspects;
    let few = of(found_waiting(locked(), "user", 6.0, 19));
    assert!(
        few.iter().all(|suspect| suspect.id != Cause::UserLock),
        "a handful of samples is chance: {few:#?}"
    );
}

#[test]
fn statements_that_sleep_on_purpose() {
    let shares = [("request_cpu_ns", 0.02), ("request_lock_ns", 0.9)];
    let run = stopped(8, 10.0, 0.8).traced(&shares);
    // Seven of eight sessions at each of twenty snapshots, in ten seconds.
    let run =
        run.counter("sessions", "in_statement", "User sleep", 14.0).counter("sessions", "looks", "", 2.0);
    let explanation = run.is(Cause::Sleep);
    assert!((explanation.suspects[0].share - 0.875).abs() < 0.01, "{:?}", explanation.suspects[0]);
}

/// A quota of 0.08 CPUs for the server, whose threads were stopped in nine of ten periods. Before, this was `noisy-neighbour` with 100 % where
/// others used the CPUs, and `runqueue` where not.
#[test]
fn a_quota_of_cpu_time() {
    let shares = [("request_cpu_ns", 0.01), ("request_runqueue_ns", 0.93), ("transit_in_ns", 0.03)];
    for idle in [0.9, 0.0] {
        let run = stopped(8, 13.4, idle).traced(&shares);
        let run = run
            .counter("cgroup", "cpu_throttled_ns", "server", 0.86e9)
            .counter("cgroup", "cpu_throttled_periods", "server", 9.0)
            .counter("cgroup", "cpu_periods", "server", 10.0);
        let explanation = run.is(Cause::CpuQuota);
        let first = &explanation.suspects[0];
        assert!((first.share - 0.86).abs() < 0.01, "{first:?}");
        assert!(first.text.contains("0.86 s in each second"), "{}", first.text);
        assert!(
            explanation.suspects.iter().all(|suspect| suspect.id != Cause::Runqueue),
            "{:#?}",
            explanation.suspects
        );
    }
}

/// Two CPUs that are stopped at the same time are counted twice.
#[test]
fn stops_of_several_cpus_hold_no_more_than_their_periods() {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.85)];
    let run = stopped(16, 5.0, 0.6).traced(&shares);
    let run = run
        .counter("cgroup", "cpu_throttled_ns", "server", 1.2e9)
        .counter("cgroup", "cpu_throttled_periods", "server", 6.0)
        .counter("cgroup", "cpu_periods", "server", 10.0);
    let explanation = run.is(Cause::CpuQuota);
    assert!((explanation.suspects[0].share - 0.6).abs() < 0.01, "{:?}", explanation.suspects[0]);
}

/// A recorded load of inserts into a child table and updates of the parent row: InnoDB's count had 36 % of the time on locks, samples of who
/// waits all of it.
#[test]
fn short_waits_for_the_row_of_a_foreign_key() {
    let shares = [
        ("request_cpu_ns", 0.1),
        ("request_lock_ns", 0.6),
        ("request_runqueue_ns", 0.05),
        ("client_held_ns", 0.25),
    ];
    let counted =
        [("Innodb_row_lock_time", 0.22), ("Innodb_row_lock_waits", 0.3), ("Innodb_deadlocks", 0.02)];
    let run = RunBuilder::new().level(8, 1.0, 0.5).traced(&shares).status(&counted);
    let run = found_waiting(run, "row", 5.0, 100).pacing(LoopKind::Recorded, 80_000);
    let explanation = run.is(Cause::RowLock);
    assert!(
        explanation.possible.iter().any(|possible| possible.id == Cause::Deadlock),
        "{:#?}",
        explanation.possible
    );
    assert!((explanation.suspects[0].share - 0.6).abs() < 0.01, "{:?}", explanation.suspects[0]);
}

//! Causes that lie with CPUs: the server's, the generator's, and those that others take.

use whyso_explain::model::{Cause, DeedShare, EndedWaits, LoopKind};

use crate::run_builder::RunBuilder;
use crate::stopped;

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
    RunBuilder::new().level(1, 0.17, 0.7).traced(&shares).is(Cause::WakeupLatency);
    // Without a trace nobody measures it.
    RunBuilder::new().level(1, 0.17, 0.7).is_but_possible(Cause::Unknown, Cause::WakeupLatency);
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
    let run = RunBuilder::new().level(1, 1.0, 0.9).level(2, 1.0, 0.8).level(4, 1.0, 0.6).traced(&shares);
    let explanation = run.is(Cause::Unsaturated);
    assert!(
        (explanation.suspects[0].predicted_gain.unwrap().high - 1.0 / (0.97 * 0.4)).abs() < 0.01,
        "{:?}",
        explanation.suspects[0]
    );
    // Users that pause most of the time wake idle CPUs at each statement; what is missing is users all the same.
    let shares = [("request_cpu_ns", 0.4), ("transit_in_ns", 0.5), ("transit_in_wakeup_ns", 0.45)];
    let paused =
        RunBuilder::new().level(8, 0.5, 0.9).pacing(LoopKind::ClosedWithPauses, 7_500).traced(&shares);
    paused.is(Cause::Unsaturated);
}

#[test]
fn a_full_generator() {
    let mut run = stopped(64, 4.0, 0.3).traced(&[("request_cpu_ns", 0.1), ("client_delay_ns", 0.8)]);
    run.last().client_saturated_why = "its event loop was busy 99 % of the time".to_string();
    run.is(Cause::Generator);
}

#[test]
fn holders_of_locks_that_are_put_off_their_cpu() {
    let shares = [
        ("request_cpu_ns", 0.03),
        ("request_runqueue_ns", 0.17),
        ("request_lock_ns", 0.75),
        ("client_held_ns", 0.03),
    ];
    let run = stopped(256, 40.0, 0.02).traced(&shares);
    run.is_but_possible(Cause::Unknown, Cause::PreemptedHolder);
    // Chains of waits show it: those that were waited for had no CPU.
    let mut run = run.stacks(&[("redo_write", 300)]);
    run.last().ended_waits = vec![EndedWaits {
        class: "redo_write".to_string(),
        count: 300,
        ns: 1e9,
        deeds: vec![DeedShare { role: "connection".to_string(), state: "runqueue".to_string(), share: 0.9 }],
    }];
    run.is(Cause::PreemptedHolder);
}

#[test]
fn spinning() {
    let shares = [("request_cpu_ns", 0.5), ("request_runqueue_ns", 0.4), ("request_lock_ns", 0.05)];
    stopped(64, 20.0, 0.01)
        .traced(&shares)
        .counter("innodb_metrics", "innodb_rwlock_x_spin_rounds", "", 30_000_000.0)
        .is_but_possible(Cause::Unknown, Cause::Spin);
}

#[test]
fn a_scan_next_to_other_programs_keeps_its_own_work() {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.85)];
    let mut run = stopped(16, 80.0, 0.0).traced(&shares);
    run.last().server_cpu_s = Some(2.0);
    run.last().client_cpu_s = 0.5;
    let scanned = [("Handler_read_rnd_next", 250_000.0), ("Select_scan", 1.0), ("Questions", 1.0)];
    let explanation = run.status(&scanned).is(Cause::NoisyNeighbour);
    let scan = explanation.suspects.iter().find(|suspect| suspect.id == Cause::FullScan);
    assert!(scan.is_some_and(|scan| (0.09..0.16).contains(&scan.share)), "{:#?}", explanation.suspects);
}

#[test]
fn other_programs() {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.6), ("transit_in_ns", 0.2)];
    let mut run = stopped(16, 10.0, 0.0).traced(&shares);
    run.last().server_cpu_s = Some(7.0);
    run.last().client_cpu_s = 3.0;
    run.is(Cause::NoisyNeighbour);
}

#[test]
fn the_observer_itself() {
    let shares = [("request_cpu_ns", 0.4), ("request_runqueue_ns", 0.5)];
    let run = stopped(16, 10.0, 0.02).traced(&shares);
    run.counter("cpu", "user_ns", "all", 1.96e9)
        .counter("trace_cost", "program_ns", "switch", 0.8e9)
        .counter("trace_cost", "tracer_cpu_ns", "", 0.5e9)
        .is(Cause::Observer);
}

/// The server alone on CPU 0, where it used so much of it, and CPU 1 half idle.
fn alone_on_one_cpu(server_cpu_s: f64) -> RunBuilder {
    let shares = [("request_cpu_ns", 0.1), ("request_runqueue_ns", 0.6), ("client_delay_ns", 0.25)];
    let mut run = stopped(16, 10.0, 0.25).traced(&shares);
    let machine = &mut run.0.machine;
    (machine.server_cpus, machine.client_cpus, machine.shared) = (1, 1, false);
    machine.server_cpu_numbers = vec![0];
    run.last().server_cpu_s = Some(server_cpu_s);
    run.last().client_cpu_s = 5.0;
    run.counter("cpu", "user_ns", "cpu0", 0.99e9).counter("cpu", "user_ns", "cpu1", 0.5e9)
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

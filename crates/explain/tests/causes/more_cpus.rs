//! What more CPUs are estimated to gain, and what bounds it.

use whyso_explain::model::{Cause, Explanation, Gain};

use crate::run_builder::RunBuilder;

/// Eight users on two full CPUs, of which transactions use 88 %. The rest is the kernel, and what is too small to be called a neighbour.
/// `waits`: the share of the response time in fsync.
fn full(waits: f64) -> Explanation {
    let mut run = RunBuilder::new().level(1, 2.0, 0.5).level(8, 10.0, 0.01);
    let level = run.last();
    (level.server_cpu_s, level.client_cpu_s) = (Some(13.2), 4.4);
    let at_cpus = [
        ("request_cpu_ns", 0.165),
        ("request_runqueue_ns", 0.735 - waits),
        ("transit_in_ns", 0.03),
        ("client_held_ns", 0.055),
        ("client_delay_ns", 0.015),
        ("request_file_sync_ns", waits),
    ];
    run.traced(&at_cpus).is(Cause::Cpu)
}

fn gain(explanation: &Explanation) -> Gain {
    explanation.suspects[0].predicted_gain.unwrap()
}

/// Before, both bounds were 1.35: the twelfth of the CPUs that no transaction used counted as idle time in the model. So half of the measured
/// queue was a wait that no CPU shortens.
#[test]
fn a_queue_that_was_measured_shrinks_with_more_cpus() {
    let explanation = full(0.0);
    let Gain { low, high } = gain(&explanation);
    // 22 % of a transaction is work, and nothing else is left without the queues.
    assert!((1.9..=2.0).contains(&low) && (4.0..5.0).contains(&high), "{low} to {high}");
}

#[test]
fn waits_that_no_cpu_shortens_bound_the_gain_and_are_named() {
    let explanation = full(0.35);
    let Gain { low, high } = gain(&explanation);
    assert!((1.5..2.0).contains(&low) && (1.6..2.0).contains(&high), "{low} to {high}");
    let text = &explanation.suspects[0].text;
    for words in [
        "with a CPU for each user a transaction would still take an estimated",
        "of work on CPUs",
        "3.5 ms of waits",
    ] {
        assert!(text.contains(words), "{words} is missing in {text}");
    }
}

//! Long waits are counted by thread, state and system call, with the times between them.

// Runs alone: it judges times.

mod support;

use std::collections::HashMap;
use std::time::Duration;

use support::{Subject, alone, tracer};
use whyso_model::{Role, State};
use whyso_trace::{Client, Moments, Pauses};

const THREADS: usize = 7;
const MS: f64 = 1e6;

/// Whether a mean is that many milliseconds, some for timers that are late included.
fn is_about(moments: &Moments, ms: f64) -> bool {
    (ms - 1.0..ms * 1.03 + 5.0).contains(&(moments.mean_ns() / MS))
}

#[test]
fn who_pauses_how_long_how_often_and_in_which_call_is_counted() {
    let _alone = alone();
    // Where the whole machine stands still for 20 ms, every thread pauses once more than planned.
    for _ in 0..2 {
        if std::panic::catch_unwind(pauses_are_as_planned).is_ok() {
            return;
        }
    }
    pauses_are_as_planned();
}

fn pauses_are_as_planned() {
    let folder = tempfile::tempdir().unwrap();
    let mut subject = Subject::start(&["pauses"], folder.path());
    let Some(mut tracer) = tracer(&[subject.pid()]) else { return };
    let mut tids = HashMap::new();
    for _ in 0..THREADS {
        let line = subject.line();
        tids.insert(line[2].parse::<u32>().unwrap(), line[1].clone());
    }
    subject.go(THREADS);
    std::thread::sleep(Duration::from_millis(100));
    // Their wait for the byte is no matter of this test.
    let reading = tracer.read();
    tracer.pauses(&reading);
    std::thread::sleep(Duration::from_millis(4200));
    let reading = tracer.read();
    let pauses = tracer.pauses(&reading);
    assert!(reading.lost.iter().all(|(_, count)| *count == 0), "{:?}", reading.lost);
    let of = |name: &str| -> Vec<&Pauses> {
        pauses.iter().filter(|kind| tids.get(&kind.tid).is_some_and(|own| own == name)).collect()
    };
    let call = |pauses: &Pauses| pauses.call.and_then(|call| whyso_trace::name_of_syscall(i64::from(call)));

    for (name, state, calls) in [
        ("receive", State::NetReceive, ["recvfrom", "read"]),
        ("poll", State::NetReceive, ["poll", "ppoll"]),
        ("sender", State::Sleep, ["clock_nanosleep", "nanosleep"]),
    ] {
        let [kind] = of(name)[..] else { panic!("{name}: {:?}", of(name)) };
        assert!(kind.state == state && calls.contains(&call(kind).unwrap()), "{kind:?}");
        assert!((9..=11).contains(&kind.length.count) && is_about(&kind.length, 400.0), "{kind:?}");
        assert!(kind.length.spread_ns() < 20.0 * MS && is_about(&kind.period, 400.5), "{kind:?}");
        assert!(!kind.in_request && kind.client == Client::Unknown && kind.role == Role::Other, "{kind:?}");
        assert_eq!(kind.name, format!("pauses-{name}"));
    }
    let serve = of("serve");
    let (within, between): (Vec<&Pauses>, Vec<&Pauses>) = serve.iter().partition(|kind| kind.in_request);
    let ([within], [between]) = (&within[..], &between[..]) else { panic!("{serve:?}") };
    assert!(within.state == State::Sleep && is_about(&within.length, 30.0), "{within:?}");
    assert!(is_about(&within.period, 400.5) && between.state == State::NetReceive, "{serve:?}");
    let [stall] = of("stall")[..] else { panic!("{:?}", of("stall")) };
    assert!((7..=9).contains(&stall.length.count) && is_about(&stall.length, 50.0), "{stall:?}");
    assert!(is_about(&stall.period, 500.5) && stall.period.spread_ns() < 25.0 * MS, "{stall:?}");
    let [irregular] = of("irregular")[..] else { panic!("{:?}", of("irregular")) };
    assert!(irregular.length.spread_ns() > 0.4 * irregular.length.mean_ns(), "{irregular:?}");
    assert!(irregular.period.spread_ns() > 0.4 * irregular.period.mean_ns(), "{irregular:?}");
    assert!(of("short").is_empty(), "{:?}", of("short"));
}

#[test]
fn a_thread_that_is_gone_is_reported_once() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut subject = Subject::start(&["pauses"], folder.path());
    let Some(mut tracer) = tracer(&[subject.pid()]) else { return };
    for _ in 0..THREADS {
        subject.line();
    }
    subject.go(THREADS);
    std::thread::sleep(Duration::from_millis(1000));
    drop(subject);
    // The kernel frees a thread when no CPU can see it any more.
    let freed = (0..150).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        tracer.read().threads.is_empty()
    });
    assert!(freed, "threads of a process that was killed live on");
    let reading = tracer.read();
    let first = tracer.pauses(&reading);
    assert!(first.iter().any(|pauses| pauses.name == "pauses-poll"), "{first:?}");
    let second = tracer.pauses(&reading);
    assert!(second.is_empty(), "{second:?}");
}

//! The queue between a connection's thread and the collector, under every schedule of two threads that loom finds. A
//! schedule is which thread runs when, and which of the values that the memory model allows a load returns.

#![allow(dead_code)] // of the queue only a part is called here

#[path = "../src/measure/ring.rs"]
mod ring;

mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
}

mod outcome {
    pub(crate) use whyso_load::ErrorCode;
}

use std::sync::atomic::{AtomicUsize, Ordering};

use loom::sync::{Arc, Mutex};
use ring::{Event, Ring, What};

fn numbered(number: i64) -> Event {
    Event { end_ns: number, endpoint: 0, what: What::Late { late_ns: number as u64 } }
}

fn drain_into(ends_ns: &Mutex<Vec<i64>>, ring: &Ring) {
    let mut ends_ns = ends_ns.lock().unwrap();
    ring.drain(|event| {
        assert_eq!(event, numbered(event.end_ns), "an event is of one piece");
        ends_ns.push(event.end_ns);
    });
}

/// Writes `events` into a ring of two while another thread drains it `drains` times. Returns how many schedules there were.
fn every_schedule(events: i64, drains: usize, preemptions_max: Option<usize>) -> usize {
    let schedules = std::sync::Arc::new(AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&schedules);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions_max;
    model.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        let (ring, ends_ns) = (Arc::new(Ring::new(2)), Arc::new(Mutex::new(Vec::new())));
        let collector = loom::thread::spawn({
            let (ring, ends_ns) = (Arc::clone(&ring), Arc::clone(&ends_ns));
            move || (0..drains).for_each(|_| drain_into(&ends_ns, &ring))
        });
        for number in 0..events {
            // As the load's thread does: one that is full it drains itself, under the collector's lock.
            if !ring.push(numbered(number)) {
                drain_into(&ends_ns, &ring);
                assert!(ring.push(numbered(number)), "a ring that was drained takes an event");
            }
        }
        collector.join().unwrap();
        drain_into(&ends_ns, &ring);
        let ends_ns = ends_ns.lock().unwrap();
        assert!(ends_ns.iter().copied().eq(0..events), "each event once and in order: {ends_ns:?}");
        assert_eq!(ring.progress(), events as u64);
    });
    schedules.load(Ordering::Relaxed)
}

#[test]
fn no_event_is_lost_torn_or_doubled_in_any_schedule_of_its_thread_and_the_collector() {
    let schedules = every_schedule(5, 3, None);
    println!("{schedules} schedules");
    assert!(schedules > 100, "{schedules} schedules");
}

#[test]
#[ignore = "long: make test-hard"]
fn no_event_is_lost_torn_or_doubled_in_any_schedule_of_more_events() {
    println!("{} schedules", every_schedule(6, 4, None));
}

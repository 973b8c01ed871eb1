use super::ring::*;
use crate::outcome::ErrorCode;
use proptest::prelude::*;
use std::sync::Mutex;

fn what() -> impl Strategy<Value = What> {
    let code = (any::<u16>(), any::<[u8; 5]>()).prop_map(|(errno, sqlstate)| ErrorCode { errno, sqlstate });
    prop_oneof![
        (any::<u16>(), any::<u64>(), any::<u32>()).prop_map(|(kind, latency_ns, rows)| What::Statement {
            kind,
            latency_ns,
            rows
        }),
        (any::<u16>(), any::<u64>(), code.clone()).prop_map(|(kind, latency_ns, code)| What::Error {
            kind,
            latency_ns,
            code
        }),
        (any::<u16>(), any::<[u64; 3]>(), any::<bool>()).prop_map(
            |(transaction, [response_ns, service_ns, user_ns], was_retried)| What::Transaction {
                transaction,
                response_ns,
                service_ns,
                user_ns,
                was_retried
            }
        ),
        any::<[u64; 2]>().prop_map(|[response_ns, user_ns]| What::Uncounted { response_ns, user_ns }),
        any::<u64>().prop_map(|outside_ns| What::Outside { outside_ns }),
        any::<u64>().prop_map(|paused_ns| What::Paused { paused_ns }),
        (code, any::<u64>()).prop_map(|(code, lost_ns)| What::GivenUp { code, lost_ns }),
        any::<u64>().prop_map(|late_ns| What::Late { late_ns }),
    ]
}

fn numbered(number: i64) -> Event {
    Event { end_ns: number, endpoint: 0, what: What::Late { late_ns: number as u64 } }
}

proptest! {
    #[test]
    fn every_event_comes_out_as_it_went_in(end_ns in any::<i64>(), endpoint in any::<u16>(), what in what()) {
        let event = Event { end_ns, endpoint, what };
        prop_assert_eq!(Event::unpack(event.pack()), event);
    }
}

#[test]
fn a_full_ring_refuses_and_takes_again_after_draining() {
    let ring = Ring::new(CAPACITY_OF_ONE);
    for i in 0..CAPACITY_OF_ONE {
        assert!(ring.push(numbered(i as i64)));
    }
    assert!(ring.wants_draining());
    assert!(!ring.push(numbered(0)));
    let mut drained = 0;
    ring.drain(|_| drained += 1);
    assert_eq!(drained, CAPACITY_OF_ONE);
    assert!(ring.push(numbered(0)));
}

#[test]
fn nothing_is_lost_or_reordered_between_two_threads() {
    let ring = Ring::new(CAPACITY_OF_ONE);
    let last = 200_000;
    let ends_ns = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..=last {
                while !ring.push(numbered(i)) {
                    std::thread::yield_now();
                }
            }
        });
        while ends_ns.lock().unwrap().last() != Some(&last) {
            let mut ends_ns = ends_ns.lock().unwrap();
            ring.drain(|event| ends_ns.push(event.end_ns));
        }
    });
    let ends_ns = ends_ns.into_inner().unwrap();
    assert!(ends_ns.iter().copied().eq(0..=last));
}

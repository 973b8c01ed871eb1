//! What one connection's thread tells: a queue of fixed size that one writes to and one at a time drains.
//!
//! Recording a statement is three plain stores and one release store; there is no lock and no allocation on the way.

use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

use crate::outcome::ErrorCode;

/// Events that a ring holds: 24 KiB. The thread drains its own ring when it is three quarters full.
const CAPACITY: u64 = 1024;
const DRAIN_AT: u64 = CAPACITY / 4 * 3;

/// Something that was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Statement {
        end_ns: i64,
        kind: u16,
        latency_ns: u64,
        rows: u32,
    },
    /// `retried`: the transaction is begun again because of it.
    Error {
        end_ns: i64,
        kind: u16,
        code: ErrorCode,
        retried: bool,
    },
    /// Response and service time are the same where it was not retried.
    Transaction {
        end_ns: i64,
        response_ns: u64,
    },
    RetriedTransaction {
        end_ns: i64,
        response_ns: u64,
        service_ns: u64,
    },
}

/// Times fit 48 bits of nanoseconds, 78 hours, where two have to share a word with something else.
const STATEMENT: u64 = 0;
const ERROR: u64 = 1;
const TRANSACTION: u64 = 2;
const RETRIED_TRANSACTION: u64 = 3;

impl Event {
    pub(crate) fn end_ns(&self) -> i64 {
        match self {
            Event::Statement { end_ns, .. }
            | Event::Error { end_ns, .. }
            | Event::Transaction { end_ns, .. }
            | Event::RetriedTransaction { end_ns, .. } => *end_ns,
        }
    }

    /// Words: end, value, and from the top: tag (8 bits), kind (16), unused (8), rows or error number (32).
    #[inline]
    fn pack(self) -> [u64; 3] {
        match self {
            Event::Statement { end_ns, kind, latency_ns, rows } => {
                [end_ns as u64, latency_ns, STATEMENT << 56 | u64::from(kind) << 40 | u64::from(rows)]
            }
            Event::Error { end_ns, kind, code, retried } => {
                let [a, b, c, d, e] = code.sqlstate;
                let value = u64::from_le_bytes([a, b, c, d, e, u8::from(retried), 0, 0]);
                [end_ns as u64, value, ERROR << 56 | u64::from(kind) << 40 | u64::from(code.errno)]
            }
            Event::Transaction { end_ns, response_ns } => [end_ns as u64, response_ns, TRANSACTION << 56],
            Event::RetriedTransaction { end_ns, response_ns, service_ns } => {
                let service_ns = service_ns.min((1 << 48) - 1);
                [end_ns as u64, response_ns, RETRIED_TRANSACTION << 56 | service_ns]
            }
        }
    }

    fn unpack([end, value, word]: [u64; 3]) -> Event {
        let end_ns = end as i64;
        let kind = (word >> 40) as u16;
        match word >> 56 {
            STATEMENT => Event::Statement { end_ns, kind, latency_ns: value, rows: word as u32 },
            ERROR => {
                let [a, b, c, d, e, retried, ..] = value.to_le_bytes();
                let code = ErrorCode { errno: word as u16, sqlstate: [a, b, c, d, e] };
                Event::Error { end_ns, kind, code, retried: retried != 0 }
            }
            TRANSACTION => Event::Transaction { end_ns, response_ns: value },
            _ => Event::RetriedTransaction { end_ns, response_ns: value, service_ns: word & ((1 << 48) - 1) },
        }
    }
}

/// Keeps what one thread writes off the cache lines that others write.
#[repr(align(128))]
struct OwnLine<T>(T);

/// The queue of one connection, and what its thread says about itself.
pub(crate) struct Ring {
    head: OwnLine<AtomicU64>,
    tail: OwnLine<AtomicU64>,
    slots: Box<[[AtomicU64; 3]]>,
    pub(crate) totals: Totals,
    /// Kernel's id of the thread; 0 until it runs.
    pub(crate) thread_id: AtomicI32,
    /// The thread is done; `cpu_ns` and `run_delay_ns` are final.
    pub(crate) finished: AtomicBool,
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) run_delay_ns: AtomicU64,
    /// It waits for a new connection, which has a bound of its own.
    pub(crate) reconnecting: AtomicBool,
    /// Its socket was shut down because the server did not answer.
    pub(crate) stalled: AtomicBool,
}

/// Counts since the level began, written by the thread alone.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) transactions: AtomicU64,
    pub(crate) queries: AtomicU64,
    pub(crate) errors: AtomicU64,
}

impl Ring {
    pub(crate) fn new() -> Ring {
        let slots = (0..CAPACITY).map(|_| [const { AtomicU64::new(0) }; 3]).collect();
        Ring {
            head: OwnLine(AtomicU64::new(0)),
            tail: OwnLine(AtomicU64::new(0)),
            slots,
            totals: Totals::default(),
            thread_id: AtomicI32::new(0),
            finished: AtomicBool::new(false),
            cpu_ns: AtomicU64::new(0),
            run_delay_ns: AtomicU64::new(0),
            reconnecting: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
        }
    }

    /// Number of events so far: it grows while the connection makes progress.
    pub(crate) fn progress(&self) -> u64 {
        self.head.0.load(Relaxed)
    }

    /// Adds an event. Only the connection's own thread may call it. `false`: the ring is full, drain it first.
    #[inline]
    pub(crate) fn push(&self, event: Event) -> bool {
        let head = self.head.0.load(Relaxed);
        if head - self.tail.0.load(Acquire) >= CAPACITY {
            return false;
        }
        let slot = &self.slots[(head % CAPACITY) as usize];
        let words = event.pack();
        slot[0].store(words[0], Relaxed);
        slot[1].store(words[1], Relaxed);
        slot[2].store(words[2], Relaxed);
        self.head.0.store(head + 1, Release);
        true
    }

    /// Whether its thread should have it drained soon.
    #[inline]
    pub(crate) fn wants_draining(&self) -> bool {
        self.head.0.load(Relaxed) - self.tail.0.load(Relaxed) >= DRAIN_AT
    }

    /// Takes out every event in order. Whoever calls it holds the lock of what `take` writes to, so that no two drain
    /// at once.
    pub(crate) fn drain(&self, mut take: impl FnMut(Event)) {
        let head = self.head.0.load(Acquire);
        let tail = self.tail.0.load(Relaxed);
        for position in tail..head {
            let slot = &self.slots[(position % CAPACITY) as usize];
            let words = [slot[0].load(Relaxed), slot[1].load(Relaxed), slot[2].load(Relaxed)];
            take(Event::unpack(words));
        }
        self.tail.0.store(head, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Mutex;

    fn event() -> impl Strategy<Value = Event> {
        let code =
            (any::<u16>(), any::<[u8; 5]>()).prop_map(|(errno, sqlstate)| ErrorCode { errno, sqlstate });
        prop_oneof![
            (any::<i64>(), any::<u16>(), any::<u64>(), any::<u32>()).prop_map(
                |(end_ns, kind, latency_ns, rows)| Event::Statement { end_ns, kind, latency_ns, rows }
            ),
            (any::<i64>(), any::<u16>(), code, any::<bool>())
                .prop_map(|(end_ns, kind, code, retried)| Event::Error { end_ns, kind, code, retried }),
            (any::<i64>(), any::<u64>())
                .prop_map(|(end_ns, response_ns)| Event::Transaction { end_ns, response_ns }),
            (any::<i64>(), any::<u64>(), 0..1u64 << 48).prop_map(|(end_ns, response_ns, service_ns)| {
                Event::RetriedTransaction { end_ns, response_ns, service_ns }
            }),
        ]
    }

    proptest! {
        #[test]
        fn every_event_comes_out_as_it_went_in(event in event()) {
            prop_assert_eq!(Event::unpack(event.pack()), event);
        }
    }

    #[test]
    fn a_full_ring_refuses_and_takes_again_after_draining() {
        let ring = Ring::new();
        for i in 0..CAPACITY {
            assert!(ring.push(Event::Transaction { end_ns: i as i64, response_ns: 0 }));
        }
        assert!(ring.wants_draining());
        assert!(!ring.push(Event::Transaction { end_ns: 0, response_ns: 0 }));
        let mut taken = 0;
        ring.drain(|_| taken += 1);
        assert_eq!(taken, CAPACITY);
        assert!(ring.push(Event::Transaction { end_ns: 0, response_ns: 0 }));
    }

    #[test]
    fn nothing_is_lost_or_reordered_between_two_threads() {
        let ring = Ring::new();
        let last = 200_000;
        let seen = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..=last {
                    while !ring.push(Event::Transaction { end_ns: i, response_ns: i as u64 }) {
                        std::thread::yield_now();
                    }
                }
            });
            while seen.lock().unwrap().last() != Some(&last) {
                let mut seen = seen.lock().unwrap();
                ring.drain(|event| seen.push(event.end_ns()));
            }
        });
        let seen = seen.into_inner().unwrap();
        assert!(seen.iter().copied().eq(0..=last));
    }
}

//! What one connection's thread reports: a queue of fixed size that one writes to and one at a time drains.
//!
//! Recording a statement is five plain stores and one release store; there is no lock and no allocation on the way.

use crate::outcome::ErrorCode;
use crate::sync::{
    AtomicBool, AtomicI32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};

/// Events that the ring of a thread with one connection holds: 40 KiB.
pub(crate) const CAPACITY_OF_ONE: u64 = 1024;
/// Events that the ring of an event loop holds: 320 KiB.
pub(crate) const CAPACITY_OF_LOOP: u64 = 8192;

/// Something that was completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) end_ns: i64,
    /// Which of the load's endpoints it was done by.
    pub(crate) endpoint: u16,
    pub(crate) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Statement {
        kind: u16,
        latency_ns: u64,
        rows: u32,
    },
    Error {
        kind: u16,
        latency_ns: u64,
        code: ErrorCode,
    },
    /// Response and service time are the same where it was neither late nor retried.
    Transaction {
        /// Place in [`Work::transactions`](crate::Work::transactions).
        transaction: u16,
        response_ns: u64,
        service_ns: u64,
        /// How long its user was busy with it: less than the response time where it was due before the user was free.
        user_ns: u64,
        was_retried: bool,
    },
    /// A transaction ended and does not count as one; times as those of a transaction.
    Uncounted {
        response_ns: u64,
        user_ns: u64,
    },
    /// Its user was between two transactions for this long, up to the event's time.
    Outside {
        outside_ns: u64,
    },
    /// Its user paused for this long within a transaction, as the work asked, up to the event's time.
    Paused {
        paused_ns: u64,
    },
    /// An attempt was abandoned because of an error, this long after it had begun.
    GivenUp {
        code: ErrorCode,
        lost_ns: u64,
    },
    /// A transaction began so long after it was due, although its user stood ready.
    Late {
        late_ns: u64,
    },
}

const STATEMENT: u64 = 0;
const ERROR: u64 = 1;
const TRANSACTION: u64 = 2;
const RETRIED_TRANSACTION: u64 = 3;
const GIVEN_UP: u64 = 4;
const LATE: u64 = 5;
const UNCOUNTED: u64 = 6;
const OUTSIDE: u64 = 7;
const PAUSED: u64 = 8;
/// 64-bit words of an event.
const WORDS: usize = 5;

impl Event {
    /// The words:
    ///
    /// 1. The end.
    /// 2. The value.
    /// 3. A second value, a statement's kind, or an error's state.
    /// 4. From the top: tag (8 bits), endpoint (16), free (8), an error's kind (16) and number (16). A statement's rows
    ///    (32), or a transaction's kind, take the place of the last two.
    /// 5. The user's time.
    #[inline]
    pub(crate) fn pack(self) -> [u64; WORDS] {
        let end = self.end_ns as u64;
        let word = u64::from(self.endpoint) << 40;
        let tagged = |tag: u64| word | tag << 56;
        match self.what {
            What::Statement { kind, latency_ns, rows } => {
                [end, latency_ns, u64::from(kind), tagged(STATEMENT) | u64::from(rows), 0]
            }
            What::Error { kind, latency_ns, code } => {
                let word = tagged(ERROR) | u64::from(kind) << 16 | u64::from(code.errno);
                [end, latency_ns, state(code), word, 0]
            }
            What::Transaction { transaction, response_ns, service_ns, user_ns, was_retried } => {
                let tag = if was_retried { RETRIED_TRANSACTION } else { TRANSACTION };
                [end, response_ns, service_ns, tagged(tag) | u64::from(transaction), user_ns]
            }
            What::GivenUp { code, lost_ns } => {
                [end, lost_ns, state(code), tagged(GIVEN_UP) | u64::from(code.errno), 0]
            }
            What::Late { late_ns } => [end, late_ns, 0, tagged(LATE), 0],
            What::Uncounted { response_ns, user_ns } => [end, response_ns, 0, tagged(UNCOUNTED), user_ns],
            What::Outside { outside_ns } => [end, outside_ns, 0, tagged(OUTSIDE), 0],
            What::Paused { paused_ns } => [end, paused_ns, 0, tagged(PAUSED), 0],
        }
    }

    #[inline]
    pub(crate) fn unpack([end, value, second, word, user_ns]: [u64; WORDS]) -> Event {
        let what = match word >> 56 {
            STATEMENT => What::Statement { kind: second as u16, latency_ns: value, rows: word as u32 },
            ERROR => What::Error { kind: (word >> 16) as u16, latency_ns: value, code: code(word, second) },
            GIVEN_UP => What::GivenUp { code: code(word, second), lost_ns: value },
            tag @ (TRANSACTION | RETRIED_TRANSACTION) => What::Transaction {
                transaction: word as u16,
                response_ns: value,
                service_ns: second,
                user_ns,
                was_retried: tag == RETRIED_TRANSACTION,
            },
            UNCOUNTED => What::Uncounted { response_ns: value, user_ns },
            OUTSIDE => What::Outside { outside_ns: value },
            PAUSED => What::Paused { paused_ns: value },
            _ => What::Late { late_ns: value },
        };
        Event { end_ns: end as i64, endpoint: (word >> 40) as u16, what }
    }
}

fn state(code: ErrorCode) -> u64 {
    let [a, b, c, d, e] = code.sqlstate;
    u64::from_le_bytes([a, b, c, d, e, 0, 0, 0])
}

fn code(word: u64, state: u64) -> ErrorCode {
    let [a, b, c, d, e, ..] = state.to_le_bytes();
    ErrorCode { errno: word as u16, sqlstate: [a, b, c, d, e] }
}

/// Keeps what one thread writes off the cache lines that others write.
#[repr(align(128))]
struct OwnLine<T>(T);

/// The queue of one thread, and what that thread says about itself.
pub(crate) struct Ring {
    head: OwnLine<AtomicU64>,
    tail: OwnLine<AtomicU64>,
    slots: Box<[[AtomicU64; WORDS]]>,
    pub(crate) totals: Totals,
    /// Kernel's id of the thread; 0 until it runs.
    pub(crate) thread_id: AtomicI32,
    /// The thread is done; `cpu_ns` and `run_delay_ns` are final.
    pub(crate) finished: AtomicBool,
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) run_delay_ns: AtomicU64,
    /// It waits for something else than an answer: a new connection, which has a bound of its own, or for its time.
    pub(crate) at_rest: AtomicBool,
    /// Its socket was shut down because the server did not answer.
    pub(crate) stalled: AtomicBool,
    /// Answers that waited for their turn in an event loop, and how long they did, together.
    pub(crate) answers: AtomicU64,
    pub(crate) answer_delay_ns: AtomicU64,
    /// Pieces of local files that were sent.
    pub(crate) pieces: AtomicU64,
    /// CPU spent on looking for news before sleeping.
    pub(crate) busy_poll_cpu_ns: AtomicU64,
}

/// Counts since the level began, written by the thread alone.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) transactions: AtomicU64,
    pub(crate) queries: AtomicU64,
    pub(crate) errors: AtomicU64,
}

impl Ring {
    /// `capacity`: events that it holds, a power of two. The thread has it drained when it is three quarters full.
    pub(crate) fn new(capacity: u64) -> Ring {
        let slots = (0..capacity).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect();
        Ring {
            head: OwnLine(AtomicU64::new(0)),
            tail: OwnLine(AtomicU64::new(0)),
            slots,
            totals: Totals::default(),
            thread_id: AtomicI32::new(0),
            finished: AtomicBool::new(false),
            cpu_ns: AtomicU64::new(0),
            run_delay_ns: AtomicU64::new(0),
            at_rest: AtomicBool::new(false),
            answers: AtomicU64::new(0),
            answer_delay_ns: AtomicU64::new(0),
            pieces: AtomicU64::new(0),
            busy_poll_cpu_ns: AtomicU64::new(0),
            stalled: AtomicBool::new(false),
        }
    }

    /// Number of events and pieces so far: it grows while the connection makes progress.
    pub(crate) fn progress(&self) -> u64 {
        self.head.0.load(Relaxed) + self.pieces.load(Relaxed)
    }

    /// Adds an event. Only the connection's own thread may call it. `false`: the ring is full, drain it first.
    #[inline]
    pub(crate) fn push(&self, event: Event) -> bool {
        let head = self.head.0.load(Relaxed);
        if head - self.tail.0.load(Acquire) >= self.slots.len() as u64 {
            return false;
        }
        let slot = &self.slots[head as usize & (self.slots.len() - 1)];
        let words = event.pack();
        slot[0].store(words[0], Relaxed);
        slot[1].store(words[1], Relaxed);
        slot[2].store(words[2], Relaxed);
        slot[3].store(words[3], Relaxed);
        slot[4].store(words[4], Relaxed);
        self.head.0.store(head + 1, Release);
        true
    }

    /// Whether its thread should have it drained soon.
    #[inline]
    pub(crate) fn wants_draining(&self) -> bool {
        self.head.0.load(Relaxed) - self.tail.0.load(Relaxed) >= self.slots.len() as u64 / 4 * 3
    }

    /// Takes out every event in order. The caller holds the lock of what `take` writes to, so that no two drain
    /// at once.
    pub(crate) fn drain(&self, mut take: impl FnMut(Event)) {
        let head = self.head.0.load(Acquire);
        let tail = self.tail.0.load(Relaxed);
        for position in tail..head {
            let slot = &self.slots[position as usize & (self.slots.len() - 1)];
            take(Event::unpack([0, 1, 2, 3, 4].map(|word: usize| slot[word].load(Relaxed))));
        }
        self.tail.0.store(head, Release);
    }
}

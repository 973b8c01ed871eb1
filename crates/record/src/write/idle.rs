//! Threads that do nothing: their stretches are held back and made one, so that thousands of idle connections cost next to nothing.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use whyso_series::is_idle;

use crate::data::{StatesInterval, ThreadStates};
use crate::error::Result;
use crate::state_table::{StateRows, Stretch};

/// A stretch is held back for so long at most: what a crash can lose of a thread that does nothing.
const HELD_NS_MAX: i64 = 30_000_000_000;

/// The stretches that are held back.
#[derive(Debug, Default)]
pub(crate) struct IdleThreads {
    states: Vec<String>,
    /// By number and birth of the thread.
    held: HashMap<(u32, i64), HeldStretch>,
}

#[derive(Debug)]
struct HeldStretch {
    begin_ns: i64,
    end_ns: i64,
    name: String,
    role: String,
    ms: Vec<u32>,
}

impl HeldStretch {
    fn enter(&self, (tid, born_ns): (u32, i64), rows: &mut StateRows) {
        let Self { begin_ns, end_ns, ref name, ref role, ref ms } = *self;
        let stretch = Stretch { begin_ns, end_ns, tid, born_ns, name, role, requests: 0 };
        rows.push(&stretch, ms.iter().copied());
    }

    /// Whether what the thread did next can be a part of it.
    fn takes(&self, thread: &ThreadStates, begin_ns: i64, end_ns: i64) -> bool {
        let fits = |(ms, more): (&u32, &u16)| *ms + u32::from(*more) <= u32::from(u16::MAX);
        self.end_ns == begin_ns
            && end_ns - self.begin_ns <= HELD_NS_MAX
            && self.name == thread.name
            && self.role == thread.role
            && self.ms.iter().zip(&thread.states_ms).all(fits)
    }
}

impl IdleThreads {
    /// The rows to write now, as batches.
    pub(crate) fn pass(&mut self, interval: &StatesInterval) -> Vec<Result<RecordBatch>> {
        let mut batches = Vec::new();
        if self.states != interval.states {
            batches.extend(self.release());
            self.states.clone_from(&interval.states);
        }
        let mut rows = StateRows::new(interval.states.clone());
        let idle: Vec<bool> = self.states.iter().map(|state| is_idle(state)).collect();
        let (begin_ns, end_ns) = (interval.begin_ns, interval.t_ns);
        for thread in &interval.threads {
            let key = (thread.tid, thread.born_ns);
            let is_active = thread.states_ms.iter().zip(&idle).any(|(ms, idle)| *ms > 0 && !idle);
            let is_held = !is_active && thread.requests == 0;
            let held = self.held.get_mut(&key);
            match held {
                Some(held) if is_held && held.takes(thread, begin_ns, end_ns) => {
                    held.end_ns = end_ns;
                    held.ms.iter_mut().zip(&thread.states_ms).for_each(|(ms, more)| *ms += u32::from(*more));
                    continue;
                }
                Some(held) => {
                    held.enter(key, &mut rows);
                    self.held.remove(&key);
                }
                None => {}
            }
            let ms = || thread.states_ms.iter().map(|ms| u32::from(*ms));
            if is_held {
                let (name, role) = (thread.name.clone(), thread.role.clone());
                self.held.insert(key, HeldStretch { begin_ns, end_ns, name, role, ms: ms().collect() });
            } else {
                let ThreadStates { tid, born_ns, name, role, requests, .. } = thread;
                let (tid, born_ns, requests) = (*tid, *born_ns, *requests);
                rows.push(&Stretch { begin_ns, end_ns, tid, born_ns, name, role, requests }, ms());
            }
        }
        // Threads that have gone.
        self.held.retain(|key, held| {
            let is_there = held.end_ns == end_ns;
            if !is_there {
                held.enter(*key, &mut rows);
            }
            is_there
        });
        batches.extend((!rows.rows.is_empty()).then(|| rows.batch(false)));
        batches
    }

    /// Everything that is held back, as a batch; `None` where there is none.
    pub(crate) fn release(&mut self) -> Option<Result<RecordBatch>> {
        let mut rows = StateRows::new(self.states.clone());
        for (key, held) in self.held.drain() {
            held.enter(key, &mut rows);
        }
        (!rows.rows.is_empty()).then(|| rows.batch(false))
    }
}

//! Each thread's time by state and its requests, added up over stretches.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use whyso_series::{Stretch, ThreadHasher};

use crate::run::Window;

/// Sums of a thread.
#[derive(Default)]
pub(super) struct ThreadSum {
    pub(super) name: String,
    pub(super) role: String,
    pub(super) requests: f64,
    /// By the places of states.
    pub(super) ms: Vec<f64>,
}

pub(super) struct ThreadSums {
    /// By number and birth.
    pub(super) by_thread: HashMap<(u32, i64), ThreadSum, BuildHasherDefault<ThreadHasher>>,
    pub(super) states: Vec<String>,
    /// From the first stretch's begin to the last one's end.
    pub(super) known: Window,
}

impl Default for ThreadSums {
    fn default() -> ThreadSums {
        let known = Window { begin_ns: i64::MAX, end_ns: i64::MIN };
        ThreadSums { by_thread: HashMap::default(), states: Vec::new(), known }
    }
}

impl ThreadSum {
    /// Takes over the name and the role, which are those that a thread had last, and adds the rest.
    fn add(&mut self, name: &str, role: &str, requests: f64, ms: impl Iterator<Item = (usize, f64)>) {
        if self.name != name {
            self.name = name.to_string();
        }
        if self.role != role {
            self.role = role.to_string();
        }
        self.requests += requests;
        for (place, ms) in ms {
            if self.ms.len() <= place {
                self.ms.resize(place + 1, 0.0);
            }
            self.ms[place] += ms;
        }
    }
}

impl ThreadSums {
    /// `states`: those that the stretch has its time by. Later ones may be more.
    pub(super) fn add(&mut self, states: &[String], stretch: &Stretch<'_>, requests: f64) {
        self.known.begin_ns = self.known.begin_ns.min(stretch.begin_ns);
        self.known.end_ns = self.known.end_ns.max(stretch.end_ns);
        if self.states.len() < states.len() {
            self.states = states.to_vec();
        }
        let sum = self.by_thread.entry((stretch.tid, stretch.born_ns)).or_default();
        sum.add(stretch.name, stretch.role, requests, stretch.states_ms.iter().copied().enumerate());
    }

    /// Adds the sums of a later part of the time.
    pub(super) fn merge(&mut self, later: ThreadSums) {
        self.known.begin_ns = self.known.begin_ns.min(later.known.begin_ns);
        self.known.end_ns = self.known.end_ns.max(later.known.end_ns);
        let places: Vec<usize> =
            later.states.into_iter().map(|state| place_of(&mut self.states, state)).collect();
        for (thread, of) in later.by_thread {
            let ms = of.ms.iter().zip(&places).map(|(ms, place)| (*place, *ms));
            self.by_thread.entry(thread).or_default().add(&of.name, &of.role, of.requests, ms);
        }
    }
}

/// The place of a state, which is added where it is not there.
fn place_of(states: &mut Vec<String>, state: String) -> usize {
    let known = states.iter().position(|other| *other == state);
    known.unwrap_or_else(|| {
        states.push(state);
        states.len() - 1
    })
}

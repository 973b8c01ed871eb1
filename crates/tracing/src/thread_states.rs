//! What each thread of the server did since the reading before: the rows that a timeline is made of.

use std::collections::HashMap;

use whyso_model::state;
use whyso_record::data::{StatesInterval, ThreadStates};
use whyso_trace::ThreadSums;

const NS_PER_MS: u64 = 1_000_000;

/// Of a thread, up to now.
#[derive(Clone, Debug, Default)]
struct ThreadBaseline {
    /// Milliseconds by state.
    ms: Vec<u64>,
    requests: u64,
}

/// Turns sums since the tracing began into what was added between two readings.
#[derive(Debug, Default)]
pub(crate) struct StatesTaking {
    before: Option<Baseline>,
}

#[derive(Debug)]
struct Baseline {
    t_ns: i64,
    /// By number and birth of a thread: what was recorded up to now.
    recorded: HashMap<(u32, u64), ThreadBaseline>,
}

impl StatesTaking {
    /// What the threads did since the last call; `None` the first time.
    pub(crate) fn since_the_last(&mut self, t_ns: i64, threads: &[ThreadSums]) -> Option<StatesInterval> {
        let before = self.before.take();
        let mut recorded = HashMap::with_capacity(threads.len());
        let mut rows = Vec::with_capacity(threads.len());
        for thread in threads {
            let key = (thread.tid, thread.born_ns);
            let sums_ms: Vec<u64> = thread.states.iter().map(|ns| ns / NS_PER_MS).collect();
            let Some(before) = &before else {
                recorded.insert(key, ThreadBaseline { ms: sums_ms, requests: thread.requests });
                continue;
            };
            // A thread that is new since then has all its time since.
            let new = || ThreadBaseline { ms: vec![0; sums_ms.len()], requests: 0 };
            let mut of_thread = before.recorded.get(&key).cloned().unwrap_or_else(new);
            let requests =
                u32::try_from(thread.requests.saturating_sub(of_thread.requests)).unwrap_or(u32::MAX);
            of_thread.requests += u64::from(requests);
            let grown = of_thread.ms.iter_mut().zip(&sums_ms).map(|(recorded, sum)| {
                // What does not fit counts in the next reading.
                let grown = u16::try_from(sum.saturating_sub(*recorded)).unwrap_or(u16::MAX);
                *recorded += u64::from(grown);
                grown
            });
            rows.push(ThreadStates {
                tid: thread.tid,
                born_ns: i64::try_from(thread.born_ns).unwrap_or(i64::MAX),
                name: thread.name.clone(),
                role: thread.role.name().to_string(),
                states_ms: grown.collect(),
                requests,
            });
            recorded.insert(key, of_thread);
        }
        let begin_ns = before.map(|before| before.t_ns);
        self.before = Some(Baseline { t_ns, recorded });
        let states = state::ALL.map(|state| state.name().to_string()).to_vec();
        Some(StatesInterval { begin_ns: begin_ns?, t_ns, states, threads: rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_model::{Role, State};

    fn thread(tid: u32, born_ns: u64, cpu_ns: u64) -> ThreadSums {
        let mut states = [0; state::STATES];
        states[State::Cpu as usize] = cpu_ns;
        ThreadSums {
            pid: 1,
            tid,
            name: "one".to_string(),
            role: Role::Connection,
            born_ns,
            requests: 0,
            states,
            now: State::Cpu,
        }
    }

    fn cpu_ms(states: &StatesInterval) -> Vec<u16> {
        states.threads.iter().map(|thread| thread.states_ms[State::Cpu as usize]).collect()
    }

    #[test]
    fn what_is_left_of_a_millisecond_counts_later_and_none_is_lost() {
        let mut taking = StatesTaking::default();
        assert_eq!(taking.since_the_last(0, &[thread(1, 5, 700_000)]), None);
        let mut sum = 0;
        for at in 1..=10 {
            let states =
                taking.since_the_last(at * 1_000_000, &[thread(1, 5, 700_000 * (at as u64 + 1))]).unwrap();
            assert_eq!((states.begin_ns, states.t_ns), ((at - 1) * 1_000_000, at * 1_000_000));
            sum += cpu_ms(&states)[0];
        }
        assert_eq!(sum, 7);
    }

    #[test]
    fn a_new_thread_has_all_its_time_and_one_that_bears_a_number_again_is_another() {
        let mut taking = StatesTaking::default();
        taking.since_the_last(0, &[thread(1, 5, 9_000_000)]);
        let states = taking.since_the_last(1, &[thread(1, 6, 3_000_000), thread(2, 7, 4_000_000)]).unwrap();
        assert_eq!(cpu_ms(&states), [3, 4]);
    }

    #[test]
    fn what_does_not_fit_into_a_row_counts_in_those_that_follow() {
        let mut taking = StatesTaking::default();
        taking.since_the_last(0, &[thread(1, 5, 0)]);
        let cpu: Vec<u16> = (1..=3)
            .map(|at| cpu_ms(&taking.since_the_last(at, &[thread(1, 5, 100_000_000_000)]).unwrap())[0])
            .collect();
        assert_eq!(cpu, [65_535, 34_465, 0]);
    }
}

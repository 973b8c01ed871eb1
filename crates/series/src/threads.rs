//! Where the time of threads went that come and go: sums by thread and state, over any window.

use std::collections::HashMap;
use std::ops::Range;

/// Whether a thread in this state has nothing to do: it waits for its peer, or sleeps until there is work.
pub fn is_idle(state: &str) -> bool {
    matches!(state, "net_receive" | "idle")
}

/// A thread as one look found it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadSnapshot {
    pub tid: u32,
    /// When it was seen first, in nanoseconds, which tells it from another that had its number before; 0 where that is not known.
    pub born_ns: u64,
    pub name: String,
    pub role: String,
    /// Requests that it answered, since the looking began.
    pub requests: u64,
    /// Its time by state, in nanoseconds, since the looking began.
    pub states_ns: Vec<u64>,
}

/// All threads at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// Monotonic nanoseconds.
    pub t_ns: i64,
    pub threads: Vec<ThreadSnapshot>,
}

/// What the server said of its connections at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionSnapshot {
    /// Monotonic nanoseconds.
    pub t_ns: i64,
    /// By thread: the server's number of its connection, and what it executed.
    pub by_tid: HashMap<u32, (u64, Option<String>)>,
}

/// A thread's time over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadTime {
    pub tid: u32,
    pub name: String,
    pub role: String,
    /// The server's number of its connection, where it works for one and the server tells.
    pub connection: Option<u64>,
    /// What it was last found executing in the window, literals replaced by `?`.
    pub statement: Option<String>,
    /// Requests that it answered.
    pub requests: u64,
    /// Its time in the window, in nanoseconds: shorter than the window for a thread that began or ended within it.
    pub window_ns: u64,
    /// Time by state, in nanoseconds, in the order of [`ThreadTable::states`].
    pub states_ns: Vec<u64>,
}

/// Who a thread is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    pub tid: u32,
    pub name: String,
    pub role: String,
    /// The looks that found it, as places in [`ThreadTable::t_ns`].
    pub looks: Range<usize>,
}

/// Every thread's time from look to look.
///
/// A cell is a thread at a look: cell `thread * looks + look`. Sums run on from cell to cell, so that the time of a thread
/// between two looks is a difference of two cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadTable {
    /// When the threads were looked at, in monotonic nanoseconds, ascending.
    pub t_ns: Vec<i64>,
    pub states: Vec<String>,
    pub threads: Vec<Thread>,
    /// By state: the sum of nanoseconds up to each cell.
    pub running_ns: Vec<Vec<u64>>,
    /// The sum of requests up to each cell.
    pub running_requests: Vec<u64>,
    /// The connection at each cell; `None` where the server told none.
    pub connection: Vec<Option<u64>>,
    /// What was executed at each cell, as a place in [`ThreadTable::statements`].
    pub statement: Vec<Option<u32>>,
    pub statements: Vec<String>,
}

impl ThreadTable {
    /// The table of these looks, in any order. A thread whose sums fall, or that bears another name, is another thread.
    pub fn new(states: Vec<String>, mut looks: Vec<Look>, told: &[ConnectionSnapshot]) -> ThreadTable {
        looks.sort_by_key(|look| look.t_ns);
        looks.dedup_by_key(|look| look.t_ns);
        let mut told: Vec<&ConnectionSnapshot> = told.iter().collect();
        told.sort_by_key(|one| one.t_ns);
        let said: Vec<ConnectionHistory<'_>> = (0..looks.len())
            .map(|look| ConnectionHistory::new(&told, before_ns(&looks, look), looks[look].t_ns))
            .collect();
        let mut table = ThreadTable {
            t_ns: looks.iter().map(|look| look.t_ns).collect(),
            states,
            ..ThreadTable::default()
        };
        let found = follow(&looks);
        let mut running = vec![0; table.states.len()];
        let mut requests = 0;
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for lives in &found {
            let Some(((begin, first), (end, _))) = lives.first().zip(lives.last()) else { continue };
            let mut at = lives.iter().peekable();
            let mut before: Option<&ThreadSnapshot> = None;
            for look in 0..looks.len() {
                let seen = at.next_if(|(place, _)| *place == look).map(|(_, seen)| *seen);
                if let Some(seen) = seen {
                    // What the first look found lies before it.
                    let counts = look > 0;
                    for (state, sum) in running.iter_mut().enumerate() {
                        let then = before.map_or(0, |then| ns_of(then, state));
                        *sum += if counts { ns_of(seen, state).saturating_sub(then) } else { 0 };
                    }
                    let then = before.map_or(0, |then| then.requests);
                    requests += if counts { seen.requests.saturating_sub(then) } else { 0 };
                    before = Some(seen);
                }
                for (state, sum) in running.iter().enumerate() {
                    match table.running_ns.get_mut(state) {
                        Some(column) => column.push(*sum),
                        None => table.running_ns.push(vec![*sum]),
                    }
                }
                table.running_requests.push(requests);
                let said = seen.map(|_| &said[look]);
                table.connection.push(said.and_then(|said| said.connection(first.tid)));
                let text = said.and_then(|said| said.statement(first.tid));
                table.statement.push(text.map(|text| {
                    let next = table.statements.len() as u32;
                    *numbers.entry(text).or_insert_with(|| {
                        table.statements.push(text.to_string());
                        next
                    })
                }));
            }
            table.threads.push(Thread {
                tid: first.tid,
                name: first.name.clone(),
                role: lives.last().map_or(String::new(), |(_, seen)| seen.role.clone()),
                looks: *begin..*end + 1,
            });
        }
        table
    }

    /// The looks nearest to a window's ends, as places, the first before the second; `None` where there are fewer than two looks.
    pub fn covering(&self, begin_ns: i64, end_ns: i64) -> Option<(usize, usize)> {
        let last = self.t_ns.len().checked_sub(1).filter(|last| *last > 0)?;
        let nearest = |t_ns: i64| (0..=last).min_by_key(|place| self.t_ns[*place].abs_diff(t_ns));
        let (from, to) = (nearest(begin_ns)?, nearest(end_ns)?);
        if from < to {
            return Some((from, to));
        }
        // A window between two looks: the time between them is the least that can be told.
        let middle_ns = begin_ns.midpoint(end_ns);
        let from = if self.t_ns[from] <= middle_ns { from.min(last - 1) } else { from.saturating_sub(1) };
        Some((from, from + 1))
    }

    /// Each thread's time between two looks, given by their places. Threads that had none are left out.
    pub fn between(&self, from: usize, to: usize) -> Vec<ThreadTime> {
        let looks = self.t_ns.len();
        if from >= to || to >= looks {
            return Vec::new();
        }
        let time = |(number, thread): (usize, &Thread)| {
            let cell = |look: usize| number * looks + look;
            let grown = |sums: &[u64]| sums[cell(to)] - sums[cell(from)];
            let states_ns: Vec<u64> = self.running_ns.iter().map(|sums| grown(sums)).collect();
            let cells = cell(from + 1)..cell(to) + 1;
            let last_of = |at: &usize| self.statement[*at];
            let statement = cells.clone().rev().find_map(|at| last_of(&at));
            ThreadTime {
                tid: thread.tid,
                name: thread.name.clone(),
                role: thread.role.clone(),
                connection: cells.rev().find_map(|at| self.connection[at]),
                statement: statement.and_then(|place| self.statements.get(place as usize).cloned()),
                requests: grown(&self.running_requests),
                window_ns: states_ns.iter().sum(),
                states_ns,
            }
        };
        self.threads.iter().enumerate().map(time).filter(|time| time.window_ns > 0).collect()
    }
}

fn ns_of(seen: &ThreadSnapshot, state: usize) -> u64 {
    seen.states_ns.get(state).copied().unwrap_or(0)
}

/// Each thread with the looks that found it, in the order in which they were found first.
fn follow(looks: &[Look]) -> Vec<Vec<(usize, &ThreadSnapshot)>> {
    let mut found: Vec<Vec<(usize, &ThreadSnapshot)>> = Vec::new();
    let mut by_tid: HashMap<u32, usize> = HashMap::new();
    for (place, look) in looks.iter().enumerate() {
        for seen in &look.threads {
            let known = by_tid.get(&seen.tid).copied();
            let same = known.filter(|number| {
                found[*number].last().is_some_and(|(at, then)| *at < place && is_same(then, seen))
            });
            match same {
                Some(number) => found[number].push((place, seen)),
                None => {
                    by_tid.insert(seen.tid, found.len());
                    found.push(vec![(place, seen)]);
                }
            }
        }
    }
    found
}

fn is_same(then: &ThreadSnapshot, now: &ThreadSnapshot) -> bool {
    let never_falls = then.states_ns.iter().zip(&now.states_ns).all(|(then, now)| then <= now);
    then.born_ns == now.born_ns && then.name == now.name && then.requests <= now.requests && never_falls
}

/// When the look before this one was.
fn before_ns(looks: &[Look], look: usize) -> i64 {
    look.checked_sub(1).map_or(i64::MIN, |before| looks[before].t_ns)
}

/// What the server said around a look.
struct ConnectionHistory<'a> {
    nearest: Option<&'a ConnectionSnapshot>,
    /// Since the look before, ascending in time.
    since: &'a [&'a ConnectionSnapshot],
}

impl<'a> ConnectionHistory<'a> {
    fn new(told: &'a [&'a ConnectionSnapshot], before_ns: i64, t_ns: i64) -> ConnectionHistory<'a> {
        let [begin, end] = [before_ns, t_ns].map(|at| told.partition_point(|one| one.t_ns <= at));
        let around = told.get(end.saturating_sub(1)..(end + 1).min(told.len())).unwrap_or_default();
        let nearest = around.iter().min_by_key(|one| one.t_ns.abs_diff(t_ns)).copied();
        ConnectionHistory { nearest, since: &told[begin..end] }
    }

    fn connection(&self, tid: u32) -> Option<u64> {
        let last = self.since.iter().rev().copied().chain(self.nearest);
        last.filter_map(|told| told.by_tid.get(&tid)).map(|(connection, _)| *connection).next()
    }

    /// What was executed when it was last asked, of the times at which it executed anything.
    fn statement(&self, tid: u32) -> Option<&'a str> {
        let last = self.since.iter().rev().copied().chain(self.nearest);
        last.filter_map(|told| told.by_tid.get(&tid)).find_map(|(_, statement)| statement.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn snapshot(tid: u32, name: &str, requests: u64, states_ns: &[u64]) -> ThreadSnapshot {
        ThreadSnapshot {
            tid,
            name: name.to_string(),
            role: "connection".to_string(),
            requests,
            states_ns: states_ns.to_vec(),
            ..ThreadSnapshot::default()
        }
    }

    fn table(looks: &[(i64, Vec<ThreadSnapshot>)]) -> ThreadTable {
        let states = vec!["cpu".to_string(), "lock".to_string()];
        let look =
            |(t_ns, threads): &(i64, Vec<ThreadSnapshot>)| Look { t_ns: *t_ns, threads: threads.clone() };
        ThreadTable::new(states, looks.iter().map(look).collect(), &[])
    }

    #[test]
    fn a_thread_that_took_the_number_of_another_starts_from_nothing() {
        let same = table(&[
            (0, vec![snapshot(7, "a", 5, &[100, 0])]),
            (1_000, vec![snapshot(7, "a", 5, &[700, 0])]),
        ]);
        let told = same.between(0, 1);
        assert_eq!((told[0].states_ns[0], told[0].requests, told[0].window_ns), (600, 0, 600));
        let other =
            table(&[(0, vec![snapshot(7, "a", 5, &[100, 0])]), (1_000, vec![snapshot(7, "b", 5, &[70, 0])])]);
        let told = other.between(0, 1);
        assert_eq!((told.len(), told[0].states_ns[0], told[0].requests), (1, 70, 5));
        let again =
            table(&[(0, vec![snapshot(7, "a", 5, &[100, 0])]), (1_000, vec![snapshot(7, "a", 1, &[70, 0])])]);
        assert_eq!(again.between(0, 1)[0].states_ns[0], 70);
    }

    #[test]
    fn a_thread_that_ends_within_a_window_is_told_up_to_its_last_look() {
        let made = table(&[
            (0, vec![snapshot(1, "a", 0, &[0, 0])]),
            (10, vec![snapshot(1, "a", 3, &[6, 4])]),
            (20, vec![snapshot(2, "b", 0, &[1, 9])]),
        ]);
        let told = made.between(0, 2);
        assert_eq!(told.len(), 2);
        assert_eq!((told[0].window_ns, told[0].requests), (10, 3));
        assert_eq!(made.threads[0].looks, 0..2);
        assert_eq!(made.between(1, 2).len(), 1);
    }

    #[test]
    fn a_window_is_covered_by_the_looks_nearest_to_its_ends() {
        let made = table(&[(0, vec![]), (10, vec![]), (20, vec![]), (30, vec![])]);
        assert_eq!(made.covering(9, 22), Some((1, 2)));
        assert_eq!(made.covering(-50, 500), Some((0, 3)));
        // Between two looks, before the first and after the last.
        assert_eq!(made.covering(12, 14), Some((1, 2)));
        assert_eq!(made.covering(17, 18), Some((1, 2)));
        assert_eq!(made.covering(-9, -8), Some((0, 1)));
        assert_eq!(made.covering(90, 91), Some((2, 3)));
        assert_eq!(table(&[(5, vec![])]).covering(0, 9), None);
    }

    #[test]
    fn the_statement_that_was_seen_last_in_the_window_is_told() {
        let at = |t_ns, statement: Option<&str>| ConnectionSnapshot {
            t_ns,
            by_tid: HashMap::from([(1, (40, statement.map(str::to_string)))]),
        };
        let look = |t_ns| Look { t_ns, threads: vec![snapshot(1, "a", 0, &[t_ns as u64, 0])] };
        let told = [at(31, None), at(9, Some("SELECT ?")), at(12, Some("COMMIT")), at(16, None)];
        let made =
            ThreadTable::new(vec!["cpu".to_string()], vec![look(30), look(0), look(10), look(20)], &told);
        let statement = |from, to| made.between(from, to)[0].statement.clone();
        assert_eq!(statement(0, 1).as_deref(), Some("SELECT ?"));
        assert_eq!(statement(0, 3).as_deref(), Some("COMMIT"));
        assert_eq!(statement(1, 2).as_deref(), Some("COMMIT"));
        assert_eq!(statement(2, 3), None);
        assert_eq!(made.between(2, 3)[0].connection, Some(40));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn windows_that_meet_add_up(steps in prop::collection::vec((any::<bool>(), 0u64..1_000, 0u64..9), 3..40), cut in 1usize..30) {
            let mut sums = [0u64; 2];
            let mut looks = Vec::new();
            for (place, (there, ns, requests)) in steps.iter().enumerate() {
                sums[0] += ns;
                sums[1] += requests;
                let threads = if *there { vec![snapshot(3, "a", sums[1], &[sums[0], 1])] } else { Vec::new() };
                looks.push((place as i64 * 10, threads));
            }
            let made = table(&looks);
            let last = looks.len() - 1;
            let cut = cut.min(last - 1);
            let of = |from, to| made.between(from, to).iter().map(|time| time.window_ns).sum::<u64>();
            prop_assert_eq!(of(0, cut) + of(cut, last), of(0, last));
        }
    }
}

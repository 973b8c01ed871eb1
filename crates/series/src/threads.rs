//! Where the time of threads went that come and go: sums by thread and state, over any window.

use std::collections::HashMap;
use std::ops::Range;

use crate::timeline::Timeline;

const NS_PER_MS: f64 = 1e6;

/// Whether a thread in this state has nothing to do: it waits for its peer, or sleeps until there is work.
pub fn is_idle(state: &str) -> bool {
    matches!(state, "net_receive" | "idle")
}

/// A thread as one snapshot found it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadSnapshot {
    pub tid: u32,
    /// When it was found first, in nanoseconds. Two threads that had one number differ in this. 0 where it is not known.
    pub born_ns: u64,
    pub name: String,
    pub role: String,
    /// Requests that it answered, since the tracer began.
    pub requests: u64,
    /// Its time by state, in nanoseconds, since the tracer began.
    pub states_ns: Vec<u64>,
}

/// All threads at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Monotonic nanoseconds.
    pub t_ns: i64,
    pub threads: Vec<ThreadSnapshot>,
}

/// The connections that the server listed at one time.
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
    /// The server's number of its connection, where it works for one and the server lists it.
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
    /// The snapshots that found it, as places in [`ThreadTable::t_ns`].
    pub snapshots: Range<usize>,
}

/// Every thread's time from snapshot to snapshot.
///
/// A cell is a thread in a snapshot: cell `thread * snapshots + snapshot`. Sums run on from cell to cell, so that the time of a thread
/// between two snapshots is a difference of two cells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadTable {
    /// When the snapshots were taken, in monotonic nanoseconds, ascending.
    pub t_ns: Vec<i64>,
    pub states: Vec<String>,
    pub threads: Vec<Thread>,
    /// By state: the sum of nanoseconds up to each cell.
    pub running_ns: Vec<Vec<u64>>,
    /// The sum of requests up to each cell.
    pub running_requests: Vec<u64>,
    /// The connection at each cell; `None` where the server listed none.
    pub connection: Vec<Option<u64>>,
    /// What was executed at each cell, as a place in [`ThreadTable::statements`].
    pub statement: Vec<Option<u32>>,
    pub statements: Vec<String>,
}

impl ThreadTable {
    /// The table of these snapshots, in any order. A thread whose sums fall, or that bears another name, is another thread.
    pub fn new(
        states: Vec<String>,
        mut snapshots: Vec<Snapshot>,
        connections: &[ConnectionSnapshot],
    ) -> ThreadTable {
        snapshots.sort_by_key(|snapshot| snapshot.t_ns);
        snapshots.dedup_by_key(|snapshot| snapshot.t_ns);
        let mut connections: Vec<&ConnectionSnapshot> = connections.iter().collect();
        connections.sort_by_key(|listed| listed.t_ns);
        let histories: Vec<ConnectionHistory<'_>> = (0..snapshots.len())
            .map(|snapshot| {
                ConnectionHistory::new(
                    &connections,
                    before_ns(&snapshots, snapshot),
                    snapshots[snapshot].t_ns,
                )
            })
            .collect();
        let mut table = ThreadTable {
            t_ns: snapshots.iter().map(|snapshot| snapshot.t_ns).collect(),
            states,
            ..ThreadTable::default()
        };
        let found = follow(&snapshots);
        let mut running = vec![0; table.states.len()];
        let mut requests = 0;
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for lives in &found {
            let Some(((begin, first), (end, _))) = lives.first().zip(lives.last()) else { continue };
            let mut at = lives.iter().peekable();
            let mut before: Option<&ThreadSnapshot> = None;
            for (snapshot, history) in histories.iter().enumerate() {
                let now = at.next_if(|(place, _)| *place == snapshot).map(|(_, now)| *now);
                if let Some(now) = now {
                    // What the first snapshot found lies before it.
                    let counts = snapshot > 0;
                    for (state, sum) in running.iter_mut().enumerate() {
                        let then = before.map_or(0, |then| ns_of(then, state));
                        *sum += if counts { ns_of(now, state).saturating_sub(then) } else { 0 };
                    }
                    let then = before.map_or(0, |then| then.requests);
                    requests += if counts { now.requests.saturating_sub(then) } else { 0 };
                    before = Some(now);
                }
                for (state, sum) in running.iter().enumerate() {
                    match table.running_ns.get_mut(state) {
                        Some(column) => column.push(*sum),
                        None => table.running_ns.push(vec![*sum]),
                    }
                }
                table.running_requests.push(requests);
                let history = now.map(|_| history);
                table.connection.push(history.and_then(|history| history.connection(first.tid)));
                let text = history.and_then(|history| history.statement(first.tid));
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
                role: lives.last().map_or(String::new(), |(_, last)| last.role.clone()),
                snapshots: *begin..*end + 1,
            });
        }
        table
    }

    /// The table of threads over time, with an edge of a bucket for each snapshot. Its last state holds requests. `listed`: a thread's
    /// connection and statement in a bucket.
    pub fn of_timeline<'a>(
        timeline: &Timeline,
        listed: impl Fn(u32, usize) -> Option<(Option<u64>, Option<&'a str>)>,
    ) -> ThreadTable {
        let Some(states) = timeline.states.len().checked_sub(1) else { return ThreadTable::default() };
        let mut table = ThreadTable {
            t_ns: timeline.edges_ns.clone(),
            states: timeline.states[..states].to_vec(),
            running_ns: vec![Vec::new(); states],
            ..ThreadTable::default()
        };
        let mut running_ms = vec![0.0; states];
        let mut requests = 0.0;
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        for (number, line) in timeline.threads.iter().enumerate() {
            let lived = timeline.lived(number);
            for snapshot in 0..timeline.edges_ns.len() {
                // A snapshot ends the bucket before it.
                let cell = snapshot.checked_sub(1).and_then(|bucket| timeline.cell(number, bucket));
                if let Some((of_requests, of_states)) = cell.and_then(<[f32]>::split_last) {
                    running_ms.iter_mut().zip(of_states).for_each(|(sum, ms)| *sum += f64::from(*ms));
                    requests += f64::from(*of_requests);
                }
                for (column, ms) in table.running_ns.iter_mut().zip(&running_ms) {
                    column.push((ms * NS_PER_MS) as u64);
                }
                table.running_requests.push(requests.round() as u64);
                let known = cell.and_then(|_| listed(line.tid, snapshot - 1)).unwrap_or_default();
                table.connection.push(known.0);
                table.statement.push(known.1.map(|text| {
                    let next = table.statements.len() as u32;
                    *numbers.entry(text).or_insert_with(|| {
                        table.statements.push(text.to_string());
                        next
                    })
                }));
            }
            table.threads.push(Thread {
                tid: line.tid,
                name: line.name.clone(),
                role: line.role.clone(),
                snapshots: lived.start..lived.end + 1,
            });
        }
        table
    }

    /// The snapshots nearest to a window's ends, as places, the first before the second. `None` where there are fewer than two.
    pub fn covering(&self, begin_ns: i64, end_ns: i64) -> Option<(usize, usize)> {
        let last = self.t_ns.len().checked_sub(1).filter(|last| *last > 0)?;
        let nearest = |t_ns: i64| (0..=last).min_by_key(|place| self.t_ns[*place].abs_diff(t_ns));
        let (from, to) = (nearest(begin_ns)?, nearest(end_ns)?);
        if from < to {
            return Some((from, to));
        }
        // A window between two snapshots: the time between them is the shortest that is known.
        let middle_ns = begin_ns.midpoint(end_ns);
        let from = if self.t_ns[from] <= middle_ns { from.min(last - 1) } else { from.saturating_sub(1) };
        Some((from, from + 1))
    }

    /// Each thread's time between two snapshots, by their places. Threads that had none are left out.
    pub fn between(&self, from: usize, to: usize) -> Vec<ThreadTime> {
        let snapshots = self.t_ns.len();
        if from >= to || to >= snapshots {
            return Vec::new();
        }
        let time = |(number, thread): (usize, &Thread)| {
            let cell = |snapshot: usize| number * snapshots + snapshot;
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

fn ns_of(thread: &ThreadSnapshot, state: usize) -> u64 {
    thread.states_ns.get(state).copied().unwrap_or(0)
}

/// Each thread with the snapshots that found it, in the order in which they were found first.
fn follow(snapshots: &[Snapshot]) -> Vec<Vec<(usize, &ThreadSnapshot)>> {
    let mut found: Vec<Vec<(usize, &ThreadSnapshot)>> = Vec::new();
    let mut by_tid: HashMap<u32, usize> = HashMap::new();
    for (place, snapshot) in snapshots.iter().enumerate() {
        for thread in &snapshot.threads {
            let number = by_tid.get(&thread.tid).copied();
            let same = number.filter(|number| {
                found[*number].last().is_some_and(|(at, then)| *at < place && is_same(then, thread))
            });
            match same {
                Some(number) => found[number].push((place, thread)),
                None => {
                    by_tid.insert(thread.tid, found.len());
                    found.push(vec![(place, thread)]);
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

/// When the snapshot before this one was taken.
fn before_ns(snapshots: &[Snapshot], snapshot: usize) -> i64 {
    snapshot.checked_sub(1).map_or(i64::MIN, |before| snapshots[before].t_ns)
}

/// The connections that the server listed around a snapshot.
struct ConnectionHistory<'a> {
    nearest: Option<&'a ConnectionSnapshot>,
    /// Since the snapshot before, ascending in time.
    since: &'a [&'a ConnectionSnapshot],
}

impl<'a> ConnectionHistory<'a> {
    fn new(connections: &'a [&'a ConnectionSnapshot], before_ns: i64, t_ns: i64) -> ConnectionHistory<'a> {
        let [begin, end] =
            [before_ns, t_ns].map(|at| connections.partition_point(|listed| listed.t_ns <= at));
        let around =
            connections.get(end.saturating_sub(1)..(end + 1).min(connections.len())).unwrap_or_default();
        let nearest = around.iter().min_by_key(|listed| listed.t_ns.abs_diff(t_ns)).copied();
        ConnectionHistory { nearest, since: &connections[begin..end] }
    }

    fn connection(&self, tid: u32) -> Option<u64> {
        let last = self.since.iter().rev().copied().chain(self.nearest);
        last.filter_map(|listed| listed.by_tid.get(&tid)).map(|(connection, _)| *connection).next()
    }

    /// What was executed when the server was last asked, of the times at which it executed anything.
    fn statement(&self, tid: u32) -> Option<&'a str> {
        let last = self.since.iter().rev().copied().chain(self.nearest);
        last.filter_map(|listed| listed.by_tid.get(&tid)).find_map(|(_, statement)| statement.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn thread(tid: u32, name: &str, requests: u64, states_ns: &[u64]) -> ThreadSnapshot {
        ThreadSnapshot {
            tid,
            name: name.to_string(),
            role: "connection".to_string(),
            requests,
            states_ns: states_ns.to_vec(),
            ..ThreadSnapshot::default()
        }
    }

    fn table_of(snapshots: &[(i64, Vec<ThreadSnapshot>)]) -> ThreadTable {
        let states = vec!["cpu".to_string(), "lock".to_string()];
        let snapshot =
            |(t_ns, threads): &(i64, Vec<ThreadSnapshot>)| Snapshot { t_ns: *t_ns, threads: threads.clone() };
        ThreadTable::new(states, snapshots.iter().map(snapshot).collect(), &[])
    }

    #[test]
    fn a_thread_that_took_the_number_of_another_starts_from_nothing() {
        let same =
            table_of(&[(0, vec![thread(7, "a", 5, &[100, 0])]), (1_000, vec![thread(7, "a", 5, &[700, 0])])]);
        let times = same.between(0, 1);
        assert_eq!((times[0].states_ns[0], times[0].requests, times[0].window_ns), (600, 0, 600));
        let other =
            table_of(&[(0, vec![thread(7, "a", 5, &[100, 0])]), (1_000, vec![thread(7, "b", 5, &[70, 0])])]);
        let times = other.between(0, 1);
        assert_eq!((times.len(), times[0].states_ns[0], times[0].requests), (1, 70, 5));
        let again =
            table_of(&[(0, vec![thread(7, "a", 5, &[100, 0])]), (1_000, vec![thread(7, "a", 1, &[70, 0])])]);
        assert_eq!(again.between(0, 1)[0].states_ns[0], 70);
    }

    #[test]
    fn a_thread_that_ends_within_a_window_is_counted_up_to_its_last_snapshot() {
        let table = table_of(&[
            (0, vec![thread(1, "a", 0, &[0, 0])]),
            (10, vec![thread(1, "a", 3, &[6, 4])]),
            (20, vec![thread(2, "b", 0, &[1, 9])]),
        ]);
        let times = table.between(0, 2);
        assert_eq!(times.len(), 2);
        assert_eq!((times[0].window_ns, times[0].requests), (10, 3));
        assert_eq!(table.threads[0].snapshots, 0..2);
        assert_eq!(table.between(1, 2).len(), 1);
    }

    #[test]
    fn a_window_is_covered_by_the_snapshots_nearest_to_its_ends() {
        let table = table_of(&[(0, vec![]), (10, vec![]), (20, vec![]), (30, vec![])]);
        assert_eq!(table.covering(9, 22), Some((1, 2)));
        assert_eq!(table.covering(-50, 500), Some((0, 3)));
        // Between two snapshots, before the first and after the last.
        assert_eq!(table.covering(12, 14), Some((1, 2)));
        assert_eq!(table.covering(17, 18), Some((1, 2)));
        assert_eq!(table.covering(-9, -8), Some((0, 1)));
        assert_eq!(table.covering(90, 91), Some((2, 3)));
        assert_eq!(table_of(&[(5, vec![])]).covering(0, 9), None);
    }

    #[test]
    fn the_statement_that_was_found_last_in_the_window_is_the_threads() {
        let at = |t_ns, statement: Option<&str>| ConnectionSnapshot {
            t_ns,
            by_tid: HashMap::from([(1, (40, statement.map(str::to_string)))]),
        };
        let snapshot = |t_ns| Snapshot { t_ns, threads: vec![thread(1, "a", 0, &[t_ns as u64, 0])] };
        let connections = [at(31, None), at(9, Some("SELECT ?")), at(12, Some("COMMIT")), at(16, None)];
        let table = ThreadTable::new(
            vec!["cpu".to_string()],
            vec![snapshot(30), snapshot(0), snapshot(10), snapshot(20)],
            &connections,
        );
        let statement = |from, to| table.between(from, to)[0].statement.clone();
        assert_eq!(statement(0, 1).as_deref(), Some("SELECT ?"));
        assert_eq!(statement(0, 3).as_deref(), Some("COMMIT"));
        assert_eq!(statement(1, 2).as_deref(), Some("COMMIT"));
        assert_eq!(statement(2, 3), None);
        assert_eq!(table.between(2, 3)[0].connection, Some(40));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn windows_that_meet_add_up(steps in prop::collection::vec((any::<bool>(), 0u64..1_000, 0u64..9), 3..40), cut in 1usize..30) {
            let mut sums = [0u64; 2];
            let mut snapshots = Vec::new();
            for (place, (there, ns, requests)) in steps.iter().enumerate() {
                sums[0] += ns;
                sums[1] += requests;
                let threads = if *there { vec![thread(3, "a", sums[1], &[sums[0], 1])] } else { Vec::new() };
                snapshots.push((place as i64 * 10, threads));
            }
            let table = table_of(&snapshots);
            let last = snapshots.len() - 1;
            let cut = cut.min(last - 1);
            let of = |from, to| table.between(from, to).iter().map(|time| time.window_ns).sum::<u64>();
            prop_assert_eq!(of(0, cut) + of(cut, last), of(0, last));
        }
    }
}

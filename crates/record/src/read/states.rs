//! The server's threads over time, from the stream of their states and its roll-ups. Of recordings without that stream: from the
//! snapshots every ten seconds.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

use arrow::array::RecordBatch;
use whyso_series::{Stretch, ThreadHasher, ThreadTable, ThreadTime, Timeline, is_idle};

use super::Recording;
use super::rolled::RollupStream;
use super::thread_sums::{ThreadSum, ThreadSums};
use crate::error::Result;
use crate::layout;
use crate::run::Window;
use crate::state_table::{self, StateColumns};

const NS_PER_MS: f64 = 1e6;
/// The source of the threads' time by role.
const SUMS: &str = "threads";
/// More rows than these are not read to find out when threads were read.
const TIMES_ROWS_MAX: usize = 2_000_000;
/// Lines of the server's lists of its threads that a table of them reads.
const LISTED_ROWS_MAX: usize = 300_000;
const ROLLED: RollupStream<'_> = RollupStream {
    detail: &[layout::STATES],
    rollups: &layout::STATE_ROLLUPS,
    begin: state_table::BEGIN,
    end: state_table::END,
    has_stretches: true,
};

/// When the states of the server's threads were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateTimes {
    /// In monotonic nanoseconds, ascending. Each state holds between two of these times.
    pub t_ns: Vec<i64>,
    /// How many threads there were, at most at one time.
    pub threads: usize,
}

/// Each thread's time over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadTimes {
    /// From the first that is known of a thread in the window to the last.
    pub window: Window,
    pub states: Vec<String>,
    /// Without their connections and statements.
    pub threads: Vec<ThreadTime>,
}

/// What a thread is called, and what it is there for.
#[derive(Default)]
struct ThreadLabel {
    name: String,
    role: String,
}

/// Numbers of threads.
type Tids = HashSet<u32, BuildHasherDefault<ThreadHasher>>;

/// A part of a window as it is added up, with the states that its rows have.
#[derive(Default)]
struct StretchFold<S> {
    states: Vec<String>,
    sum: S,
}

impl Recording {
    /// Whether the stream of states has what each thread did, its requests too. Recordings before format 3 have snapshots in its place.
    pub fn has_thread_stretches(&self) -> bool {
        let mut parts = self.plain.get(layout::STATES).into_iter().flatten().peekable();
        parts.peek().is_some() && parts.all(|part| part.has_column(state_table::REQUESTS))
    }

    /// When the states of the server's threads were read; empty where nothing traced them.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn state_times(&self) -> Result<StateTimes> {
        let mut times = StateTimes::default();
        let streams = [layout::STATES, layout::STATE_ROLLUPS[0].0].into_iter();
        let parts = |stream: &str| self.plain.get(stream).map_or(&[][..], Vec::as_slice);
        let rows = |stream: &str| parts(stream).iter().map(|part| part.row_count()).sum::<usize>();
        let streams: Vec<&str> = streams.filter(|stream| rows(stream) > 0).collect();
        let Some(stream) = streams.first() else {
            let table = self.threads()?;
            let at_once = |snapshot: usize| {
                table.threads.iter().filter(|thread| thread.snapshots.contains(&snapshot)).count()
            };
            times.threads = (0..table.t_ns.len()).map(at_once).max().unwrap_or(0);
            times.t_ns = table.t_ns;
            return Ok(times);
        };
        // With every reading of the states came one of their sums by role.
        let of_sums = self.collections.named(SUMS);
        if let Some(of_sums) = of_sums.filter(|_| rows(stream) > TIMES_ROWS_MAX) {
            times.t_ns = of_sums.read_at_ns().collect();
            times.threads = self.thread_labels()?.len();
            return Ok(times);
        }
        let columns = [state_table::BEGIN, state_table::END];
        let mut changes: Vec<(i64, i32)> = Vec::new();
        for part in parts(stream) {
            part.each(None, Some(&columns), |batch| {
                for (begin_ns, end_ns) in state_table::times_of(batch) {
                    changes.extend([(begin_ns, 1), (end_ns, -1)]);
                }
                // Of many threads most stretches begin and end together.
                changes.sort_unstable();
                changes = added_up(&changes);
                Ok(())
            })?;
        }
        changes.sort_unstable();
        let mut at_once = 0i64;
        for (t_ns, change) in added_up(&changes) {
            at_once += i64::from(change);
            times.threads = times.threads.max(at_once.max(0) as usize);
            times.t_ns.push(t_ns);
        }
        Ok(times)
    }

    /// The server's threads, with their time by state between these edges, in monotonic nanoseconds. Where buckets are long it comes
    /// from roll-ups that are shorter.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn timeline(&self, edges_ns: &[i64]) -> Result<Timeline> {
        self.timeline_of(edges_ns, None)
    }

    /// The same of the `most` threads that worked and waited for the longest.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn timeline_of_busiest(&self, edges_ns: &[i64], most: usize) -> Result<Timeline> {
        let (Some(begin_ns), Some(end_ns)) = (edges_ns.first(), edges_ns.last()) else {
            return Ok(Timeline::default());
        };
        let times = self.thread_times(Window { begin_ns: *begin_ns, end_ns: *end_ns })?;
        if times.threads.len() <= most {
            return self.timeline_of(edges_ns, None);
        }
        let busy_ns = |thread: &ThreadTime| -> u64 {
            let states = times.states.iter().zip(&thread.states_ns);
            states.filter(|(state, _)| !is_idle(state)).map(|(_, ns)| ns).sum()
        };
        let mut busiest: Vec<(u64, u32)> =
            times.threads.iter().map(|thread| (busy_ns(thread), thread.tid)).collect();
        busiest.sort_unstable_by_key(|(busy_ns, tid)| (Reverse(*busy_ns), *tid));
        let chosen: Tids = busiest.into_iter().take(most).map(|(_, tid)| tid).collect();
        self.timeline_of(edges_ns, Some(&chosen))
    }

    fn timeline_of(&self, edges_ns: &[i64], chosen: Option<&Tids>) -> Result<Timeline> {
        let (Some(begin_ns), Some(end_ns)) = (edges_ns.first(), edges_ns.last()) else {
            return Ok(Timeline::default());
        };
        if !self.plain.contains_key(layout::STATES) {
            return Ok(of_table(&self.threads()?, edges_ns));
        }
        let window = Window { begin_ns: *begin_ns, end_ns: *end_ns };
        let step_ns = edges_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min().unwrap_or(0);
        let mut timeline = Timeline::default();
        let add = |part: &mut Timeline, states: &[String], stretch: &Stretch<'_>, _| {
            if part.edges_ns.is_empty() {
                *part = Timeline::new(states.to_vec(), edges_ns.to_vec());
            }
            part.enter(stretch);
        };
        self.fold_stretches(window, step_ns, chosen, add, |part| timeline.merge(part))?;
        Ok(timeline)
    }

    /// The time of each of the server's threads in a window, of those that were there.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn thread_times(&self, window: Window) -> Result<ThreadTimes> {
        let mut sums = ThreadSums::default();
        let add = |part: &mut ThreadSums, states: &[String], stretch: &Stretch<'_>, requests| {
            part.add(states, stretch, requests);
        };
        self.fold_stretches(window, i64::MAX, None, add, |part: ThreadSums| sums.merge(part))?;
        let ThreadSums { by_thread, states: names, known } = sums;
        let mut sums: Vec<((u32, i64), ThreadSum)> = by_thread.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        let time = |((tid, _), sum): ((u32, i64), ThreadSum)| {
            let mut states_ns: Vec<u64> = sum.ms.iter().map(|ms| (ms * NS_PER_MS) as u64).collect();
            states_ns.resize(names.len(), 0);
            ThreadTime {
                tid,
                name: sum.name,
                role: sum.role,
                requests: sum.requests.round() as u64,
                window_ns: states_ns.iter().sum(),
                states_ns,
                ..ThreadTime::default()
            }
        };
        let threads: Vec<ThreadTime> = sums.into_iter().map(time).filter(|time| time.window_ns > 0).collect();
        let window = if threads.is_empty() { Window::default() } else { known };
        Ok(ThreadTimes { window, states: names, threads })
    }

    /// A table of the server's threads at these times, in ascending order: what each did between one and the next. Its connections and
    /// statements are those with which each thread was listed last in between.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn thread_table(&self, t_ns: &[i64]) -> Result<ThreadTable> {
        let (Some(begin_ns), Some(end_ns)) = (t_ns.first(), t_ns.last()) else {
            return Ok(ThreadTable::default());
        };
        let window = Window { begin_ns: *begin_ns, end_ns: *end_ns };
        let step_ns = t_ns.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min().unwrap_or(0);
        let mut timeline = Timeline::default();
        let add = |part: &mut Timeline, states: &[String], stretch: &Stretch<'_>, requests| {
            if part.edges_ns.is_empty() {
                // Requests go with the states: they are spread over a stretch as its time is.
                let columns = states.iter().cloned().chain([state_table::REQUESTS.to_string()]).collect();
                *part = Timeline::new(columns, t_ns.to_vec());
            }
            let mut values = stretch.states_ms.to_vec();
            values.resize(part.states.len() - 1, 0.0);
            values.push(requests);
            part.enter(&Stretch { states_ms: &values, ..*stretch });
        };
        self.fold_stretches(window, step_ns, None, add, |part| timeline.merge(part))?;
        let mut listed = Vec::new();
        let rows_max = LISTED_ROWS_MAX / timeline.buckets().max(1);
        for edges in timeline.edges_ns.windows(2) {
            let between = Window { begin_ns: edges[0] + 1, end_ns: edges[1] };
            listed.push(self.last_work(between, rows_max)?);
        }
        Ok(ThreadTable::of_timeline(&timeline, |tid, bucket| {
            let work = listed[bucket].get(&tid)?;
            Some((work.connection, work.statement.as_deref()))
        }))
    }

    /// The roles of all threads, by their numbers.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn thread_roles(&self) -> Result<HashMap<u32, String>> {
        Ok(self.thread_labels()?.into_iter().map(|(tid, label)| (tid, label.role)).collect())
    }

    /// The names of all threads, by their numbers.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn thread_names(&self) -> Result<HashMap<u32, String>> {
        Ok(self.thread_labels()?.into_iter().map(|(tid, label)| (tid, label.name)).collect())
    }

    fn thread_labels(&self) -> Result<HashMap<u32, ThreadLabel>> {
        let mut labels: HashMap<u32, ThreadLabel> = HashMap::new();
        if !self.has_thread_stretches() {
            for thread in self.threads()?.threads {
                labels.insert(thread.tid, ThreadLabel { name: thread.name, role: thread.role });
            }
            return Ok(labels);
        }
        let add = |part: &mut HashMap<u32, ThreadLabel>, _: &[String], stretch: &Stretch<'_>, _| {
            let label = part.entry(stretch.tid).or_default();
            if label.name != stretch.name {
                label.name = stretch.name.to_string();
            }
            if label.role != stretch.role {
                label.role = stretch.role.to_string();
            }
        };
        self.fold_stretches(super::EVERYTHING, i64::MAX, None, add, |part| labels.extend(part))?;
        Ok(labels)
    }

    /// Adds up what threads did in parts of a window: the states, each stretch, and the requests in it. A stretch that lies in it in part
    /// has a part of its time, by its length. It comes from roll-ups that are no longer than `step_ns`. Parts merge in order of time. `chosen`: the
    /// numbers of the threads to read; `None`: all.
    fn fold_stretches<S: Default + Send>(
        &self,
        window: Window,
        step_ns: i64,
        chosen: Option<&Tids>,
        add: impl Fn(&mut S, &[String], &Stretch<'_>, f64) + Sync,
        mut merge: impl FnMut(S),
    ) -> Result<()> {
        let add_rows = |fold: &mut StretchFold<S>, batch: &RecordBatch, part: Window| {
            let StretchFold { states, sum } = fold;
            let Some(columns) = StateColumns::of(batch) else { return Ok(()) };
            for state in &columns.states {
                if !states.contains(state) {
                    states.push(state.clone());
                }
            }
            let place = |state| states.iter().position(|other| other == state).unwrap_or(0);
            let places: Vec<usize> = columns.states.iter().map(place).collect();
            let mut states_ms: Vec<f64> = vec![0.0; states.len()];
            for row in 0..columns.len() {
                let found = columns.stretch(row);
                let is_chosen = chosen.is_none_or(|chosen| chosen.contains(&found.tid));
                if !is_chosen || found.end_ns <= part.begin_ns || found.end_ns > part.end_ns {
                    continue;
                }
                // A thread that began within a stretch did nothing before.
                let born_ns = found.born_ns.clamp(found.begin_ns.min(found.end_ns), found.end_ns);
                let from_ns = if born_ns < found.end_ns { born_ns } else { found.begin_ns };
                let (begin_ns, end_ns) = (from_ns.max(window.begin_ns), found.end_ns.min(window.end_ns));
                if begin_ns >= end_ns {
                    continue;
                }
                let length = |from_ns: i64, to_ns: i64| to_ns.saturating_sub(from_ns) as f64;
                let part = length(begin_ns, end_ns) / length(from_ns, found.end_ns);
                for (state, to) in places.iter().enumerate() {
                    states_ms[*to] = f64::from(columns.ms(row, state)) * part;
                }
                let stretch = Stretch {
                    tid: found.tid,
                    born_ns: found.born_ns,
                    name: found.name,
                    role: found.role,
                    begin_ns,
                    end_ns,
                    states_ms: &states_ms,
                };
                add(sum, states, &stretch, f64::from(found.requests) * part);
            }
            Ok(())
        };
        self.fold_rolled(&ROLLED, window, step_ns, None, add_rows, |part: StretchFold<S>| merge(part.sum))
    }
}

/// Changes at one time made one. They are in order of time.
fn added_up(changes: &[(i64, i32)]) -> Vec<(i64, i32)> {
    let mut sums: Vec<(i64, i32)> = Vec::new();
    for (t_ns, change) in changes {
        match sums.last_mut() {
            Some((last_ns, sum)) if last_ns == t_ns => *sum += change,
            _ => sums.push((*t_ns, *change)),
        }
    }
    sums
}

fn of_table(table: &ThreadTable, edges_ns: &[i64]) -> Timeline {
    let mut timeline = Timeline::new(table.states.clone(), edges_ns.to_vec());
    let snapshots = table.t_ns.len();
    let mut states_ms = vec![0.0; table.states.len()];
    for (number, thread) in table.threads.iter().enumerate() {
        // What the first snapshot of all found lies before it.
        for snapshot in thread.snapshots.start.max(1)..thread.snapshots.end {
            let cell = number * snapshots + snapshot;
            for (ms, running) in states_ms.iter_mut().zip(&table.running_ns) {
                *ms = (running[cell] - running[cell - 1]) as f64 / NS_PER_MS;
            }
            timeline.enter(&Stretch {
                tid: thread.tid,
                // The table has two threads where two bore one number. Their places are different here.
                born_ns: -(number as i64),
                name: &thread.name,
                role: &thread.role,
                begin_ns: table.t_ns[snapshot - 1],
                end_ns: table.t_ns[snapshot],
                states_ms: &states_ms,
            });
        }
    }
    timeline
}

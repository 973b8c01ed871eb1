//! The threads of a recorded server over time, and the longest of their waits that were chosen.

use std::collections::{BTreeMap, BTreeSet};

use whyso_model::{Missing, Role};
use whyso_profile::{FunctionName, Rules, SingleWait, place};
use whyso_record::Recording;
use whyso_record::data::StackWait;
use whyso_record::run::{Level, RunInfo, Window};
use whyso_series::{KnownBy, ThreadLine, ThreadTime, Timeline, even_edges};

use crate::statements::threads_at_work;
use crate::thread_times::{add_last_work, thread_times};
use crate::{Error, ThreadFilter};

/// Threads over a window.
#[derive(Clone, Debug, Default)]
pub struct TimelineOf {
    pub window: Window,
    pub timeline: Timeline,
    /// Places of the threads that were asked for, by role and number.
    pub chosen: Vec<usize>,
    /// The usual time between two snapshots, in seconds. It is not known when in between something happened.
    pub snapshot_s: f64,
    /// The longest of their waits that were chosen, the longest first; empty where the run has no stacks. Where no threads were asked for,
    /// those of connections' threads: others mostly wait for work.
    pub waits: Vec<SingleWait>,
    pub waits_of: &'static str,
    /// Where a connection or a statement was asked for: from which source it is known which threads worked for it.
    pub known_by: Option<KnownBy>,
}

/// The threads of a recording in `buckets` buckets of a window, or of all its levels. With them, the `waits` longest of their waits.
///
/// # Errors
/// The run was not traced, nothing lies in the window, no thread is left by the filter, or its files can't be read.
pub fn timeline_in(
    recording: &Recording,
    window: Option<Window>,
    buckets: usize,
    filter: &ThreadFilter,
    waits: usize,
) -> Result<TimelineOf, Error> {
    let times = recording.state_times()?;
    let (Some(first_ns), Some(last_ns)) = (times.t_ns.first(), times.t_ns.last()) else {
        let because = recording.run().not_measured.iter().find(|line| line.source == Missing::ServerThreads);
        let why = because.map_or("it was not traced".to_string(), ToString::to_string);
        return Err(Error::NotRecorded(format!("this run holds no threads: {why}")));
    };
    let traced = Window { begin_ns: *first_ns, end_ns: *last_ns };
    let asked = window.unwrap_or_else(|| levels_of(recording.run()).unwrap_or(traced));
    let window =
        Window { begin_ns: asked.begin_ns.max(traced.begin_ns), end_ns: asked.end_ns.min(traced.end_ns) };
    if window.begin_ns >= window.end_ns {
        return Err(Error::WrongUse("no snapshot of threads was taken in that part of the run".to_string()));
    }
    let timeline = recording.timeline(&even_edges(window.begin_ns, window.end_ns, buckets))?;
    let (chosen, known_by) = choose(recording, window, &timeline, filter)?;
    let mut waiting = chosen.clone();
    let mut waits_of = "these threads";
    if *filter == ThreadFilter::default() {
        waiting.retain(|place| timeline.threads[*place].role == Role::Connection.name());
        waits_of = "connections' threads";
    }
    let waits = if waits == 0 { Vec::new() } else { longest(recording, window, &timeline, &waiting, waits)? };
    let snapshot_s = middle_step_s(&times.t_ns);
    Ok(TimelineOf { window, timeline, chosen, snapshot_s, waits, waits_of, known_by })
}

/// The median of the steps.
fn middle_step_s(t_ns: &[i64]) -> f64 {
    let mut steps: Vec<i64> = t_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
    steps.sort_unstable();
    steps.get(steps.len() / 2).map_or(0.0, |ns| *ns as f64 / 1e9)
}

/// From the begin of the first level to the end of the last.
fn levels_of(run: &RunInfo) -> Option<Window> {
    let begin = |level: &Level| match level.warmup.begin_ns {
        0 => level.window.begin_ns,
        begin_ns => begin_ns,
    };
    let begin_ns = run.levels.iter().map(begin).min()?;
    let end_ns = run.levels.iter().map(|level| level.window.end_ns).max()?;
    (begin_ns < end_ns).then_some(Window { begin_ns, end_ns })
}

/// Places of the threads that the filter leaves. Where commands were followed, these worked on such a command. Else the connection and the
/// statement count that each was last found with in the window.
fn choose(
    recording: &Recording,
    window: Window,
    timeline: &Timeline,
    filter: &ThreadFilter,
) -> Result<(Vec<usize>, Option<KnownBy>), Error> {
    let mut times_by_tid: BTreeMap<u32, ThreadTime> = BTreeMap::new();
    let asks = !filter.connections.is_empty() || filter.statement.is_some();
    let at_work = if asks { threads_at_work(recording, window, filter)? } else { None };
    let by_threads = ThreadFilter { connections: Vec::new(), statement: None, ..filter.clone() };
    let filter = if at_work.is_some() { &by_threads } else { filter };
    if asks && at_work.is_none() {
        let mut times = thread_times(recording, window)?;
        if recording.has_thread_stretches() {
            add_last_work(recording, times.window, &mut times.threads)?;
        }
        times_by_tid.extend(times.threads.into_iter().map(|time| (time.tid, time)));
    }
    let time = |thread: &ThreadLine| ThreadTime {
        tid: thread.tid,
        name: thread.name.clone(),
        role: thread.role.clone(),
        connection: times_by_tid.get(&thread.tid).and_then(|time| time.connection),
        statement: times_by_tid.get(&thread.tid).and_then(|time| time.statement.clone()),
        ..ThreadTime::default()
    };
    let threads: Vec<ThreadTime> = timeline.threads.iter().map(time).collect();
    if threads.is_empty() {
        return Err(Error::WrongUse("no thread was there in that part of the run".to_string()));
    }
    // In the order of the threads.
    let mut wanted = filter.choose(&threads)?.into_iter().peekable();
    let mut is_wanted = |thread: &ThreadTime| wanted.next_if(|next| std::ptr::eq(*next, thread)).is_some();
    let mut chosen: Vec<usize> = (0..threads.len()).filter(|place| is_wanted(&threads[*place])).collect();
    chosen.retain(|place| at_work.as_ref().is_none_or(|tids| tids.contains(&timeline.threads[*place].tid)));
    if chosen.is_empty() {
        return Err(Error::WrongUse(
            "no thread worked on such a command in that part of the run: leave some of --connection and --statement away".to_string(),
        ));
    }
    chosen.sort_by(|a, b| {
        let key =
            |place: &usize| (&threads[*place].role, threads[*place].tid, timeline.threads[*place].first);
        key(a).cmp(&key(b))
    });
    let known_by = if at_work.is_some() { KnownBy::SqlTrace } else { KnownBy::Snapshots };
    Ok((chosen, asks.then_some(known_by)))
}

/// The longest chosen waits that ended in a window.
fn longest(
    recording: &Recording,
    window: Window,
    timeline: &Timeline,
    chosen: &[usize],
    most: usize,
) -> Result<Vec<SingleWait>, Error> {
    let tids: BTreeSet<u32> = chosen.iter().map(|place| timeline.threads[*place].tid).collect();
    let waits = recording.longest_waits(window, most, |tid| tids.contains(&tid))?;
    let used: BTreeSet<u32> =
        waits.iter().flat_map(|wait| [Some(wait.stack), wait.waker_stack]).flatten().collect();
    let mut stacks: BTreeMap<u32, Vec<FunctionName>> = BTreeMap::new();
    for frame in recording.frames()?.into_iter().filter(|frame| used.contains(&frame.stack)) {
        let function = FunctionName { name: frame.function, module: frame.module };
        stacks.entry(frame.stack).or_default().push(function);
    }
    let rules = Rules::built_in();
    let role_of: BTreeMap<u32, &str> =
        timeline.threads.iter().map(|thread| (thread.tid, thread.role.as_str())).collect();
    let single_wait = |wait: StackWait| {
        let stack = |id: u32| stacks.get(&id).map_or(&[][..], Vec::as_slice);
        let (class, waited_in) = place(stack(wait.stack), &wait.state, &rules);
        let ended_in = wait.waker_stack.and_then(|by| place(stack(by), &wait.state, &rules).1);
        SingleWait {
            end_ns: wait.t_ns,
            length_ns: wait.length_ns,
            tid: wait.tid,
            class: class.map(str::to_string),
            waited_in: waited_in.cloned(),
            waker_tid: wait.waker_tid,
            waker_role: role_of.get(&wait.waker_tid).map_or(String::new(), ToString::to_string),
            ended_in: ended_in.cloned(),
            state: wait.state.clone(),
        }
    };
    Ok(waits.into_iter().map(single_wait).collect())
}

//! From the stacks of a recording to a profile: which functions, by which metric, over which window and of which threads.

mod choice;

use std::collections::{BTreeMap, BTreeSet};

use whyso_model::{Missing, State, state};
use whyso_profile::{
    FunctionName, METRICS, ObserverStacks, Profile, ProfileSample, SourcePlace, Wake, is_own_metric,
};
use whyso_record::data::{StackFrame, StackWait};
use whyso_record::run::Window;
use whyso_record::{Recording, StackSpread, StackSum, StackTotal, UNKNOWN_THREAD};
use whyso_series::KnownBy;

use crate::thread_times::thread_times;
use crate::{Error, ThreadFilter};
use choice::{Candidate, Choice};

/// A profile, and what it is based on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedProfile {
    pub profile: Profile,
    /// Of each sample of the profile, the thread's number and its role. 0: samples of several threads are added up.
    pub threads: Vec<(u32, String)>,
    /// The functions of the profile's stacks as they were recorded, by stack and depth.
    pub frames: Vec<StackFrame>,
    /// Samples on CPUs, and waits, of the metrics that were asked for.
    pub samples: u64,
    pub waits: u64,
    /// Of those, how many did not reach the function that their thread began with.
    pub rootless: u64,
    /// Where a connection or a statement was asked for: the part, 0 to 1, of the other conditions' time of which it is known.
    pub known_share: Option<f64>,
    /// And from which source it is known.
    pub known_by: Option<KnownBy>,
    /// The part, 0 to 1, of the time that was left out because it is the observer's own.
    pub hidden_share: f64,
    /// How much of the window was read, 0 to 1: of very many samples and waits, where they are not added up, some stand for all.
    pub part: f64,
}

/// What a profile can be asked for: (name, the states whose time it is).
fn metrics() -> Vec<(&'static str, Vec<State>)> {
    let of =
        |states: &[&str]| state::ALL.into_iter().filter(|state| states.contains(&state.name())).collect();
    let mut metrics: Vec<(&str, Vec<State>)> =
        METRICS.iter().map(|(name, states)| (*name, of(states))).collect();
    let own = state::ALL.into_iter().filter(|state| is_own_metric(state.name()));
    metrics.extend(own.map(|state| (state.name(), vec![state])));
    metrics
}

/// So many samples and waits are read.
const STACKS_MAX: u64 = 300_000;

/// The names of the metrics that [`profile_in`] knows.
pub fn stack_metrics() -> Vec<&'static str> {
    metrics().into_iter().map(|(name, _)| name).collect()
}

/// What was sampled in a window, by the metrics that are named, of the threads that are asked for. Where a connection or a statement is
/// asked for, only samples that are known to be of it count.
///
/// # Errors
/// - The run holds no stacks, or none of waits where nothing else is asked for.
/// - A metric, a role or a thread is not known.
/// - Nothing is known to be of the connection or the statement.
/// - The files can't be read.
pub fn profile_in(
    recording: &Recording,
    window: Window,
    by: &[String],
    filter: &ThreadFilter,
) -> Result<RecordedProfile, Error> {
    profile_of(recording, window, by, filter, false)
}

/// The same with who ended the waits.
///
/// # Errors
/// As those of [`profile_in`].
pub fn profile_with_wakes_in(
    recording: &Recording,
    window: Window,
    by: &[String],
    filter: &ThreadFilter,
) -> Result<RecordedProfile, Error> {
    profile_of(recording, window, by, filter, true)
}

/// `has_wakes`: with who ended the waits. For that they are read one by one, of very many some parts.
fn profile_of(
    recording: &Recording,
    window: Window,
    by: &[String],
    filter: &ThreadFilter,
    has_wakes: bool,
) -> Result<RecordedProfile, Error> {
    let places = places_of_states(by)?;
    let frames = recording.frames()?;
    if frames.is_empty() && recording.has_program_stacks() {
        return Err(Error::NotRecorded(
            "this run holds stacks of programs only: name one with --program; `whyso programs RUN` lists them"
                .to_string(),
        ));
    }
    if frames.is_empty() {
        return Err(Error::NotRecorded(format!("this run holds no stacks: {}", why_no_stacks(recording))));
    }
    if recording.run().has_light_stacks() && !places.contains_key(State::Cpu.name()) {
        return Err(Error::NotRecorded(
            "this run holds no stacks of waits: it was recorded with --stacks=light, the default; record it with --stacks"
                .to_string(),
        ));
    }
    let named = frames.iter().map(|frame| (frame.stack, frame.function.as_str(), frame.module.as_str()));
    let mut selection = Selection {
        places,
        choice: Choice::new(recording, window, filter)?,
        hidden: (!filter.observer).then(|| ObserverStacks::new(named)),
        hidden_ns: 0.0,
        sampled: RecordedProfile::default(),
    };
    selection.sampled.profile.metrics = by.to_vec();
    // Sums know roles, and no threads.
    let totals =
        if has_wakes || !filter.is_of_role_only() { Vec::new() } else { recording.stack_sums(window)? };
    let is_added_up = totals.iter().map(|total| total.sum.count).sum::<u64>() > STACKS_MAX;
    for total in totals.iter().filter(|_| is_added_up) {
        let StackTotal { t_ns, role, state, stack, sum } = total;
        let candidate = Candidate { t_ns: *t_ns, tid: UNKNOWN_THREAD, role, stack: *stack };
        selection.enter(&candidate, state, *sum);
    }
    let spread = match is_added_up {
        true => StackSpread { part: 1.0, ..StackSpread::default() },
        false => recording.stacks_spread(Some(window), STACKS_MAX)?,
    };
    selection.sampled.part = spread.part;
    for sample in spread.samples {
        let candidate =
            Candidate { t_ns: sample.t_ns, tid: sample.tid, role: &sample.role, stack: sample.stack };
        selection.enter(&candidate, State::Cpu.name(), StackSum::one(sample.weight_ns, 0));
    }
    let (mut wakes, mut others) = (Vec::new(), Vec::new());
    for wait in spread.waits {
        let candidate = Candidate { t_ns: wait.t_ns, tid: wait.tid, role: &wait.role, stack: wait.stack };
        let sum = StackSum::one(wait.weight_ns, wait.length_ns);
        let is_chosen = selection.enter(&candidate, &wait.state, sum);
        // Nobody ends the wait for a CPU.
        if !has_wakes || wait.state == State::Runqueue.name() {
            continue;
        }
        if is_chosen {
            wakes.push(wait);
        } else {
            // Chains of waits lead to others, too.
            others.push(wait);
        }
    }
    let Selection { places, choice, hidden_ns, mut sampled, .. } = selection;
    let shown_ns: f64 = sampled.profile.samples.iter().map(|sample| sample.weight_ns).sum();
    sampled.hidden_share = if hidden_ns > 0.0 { hidden_ns / (hidden_ns + shown_ns) } else { 0.0 };
    sampled.known_share = choice.known_share();
    sampled.known_by = choice.known_by();
    choice.check(sampled.profile.samples.is_empty())?;
    if !wakes.is_empty() {
        let role_of = recorded_roles(recording)?;
        sampled.profile.wakes = wakes_of(&wakes, &places, &role_of);
        sampled.profile.other_wakes = others.iter().map(|wait| wake(wait, &role_of)).collect();
    }
    let of_samples = sampled.profile.samples.iter().map(|sample| sample.stack);
    let of_wakers = sampled.profile.wakes.iter().filter_map(|wake| wake.by);
    let of_others = sampled.profile.other_wakes.iter().map(|wake| wake.stack);
    let used: BTreeSet<u32> = of_samples.chain(of_wakers).chain(of_others).collect();
    sampled.frames = frames;
    sampled.frames.retain(|frame| used.contains(&frame.stack));
    let mut rootless = BTreeSet::new();
    for frame in &sampled.frames {
        if frame.module.is_empty() {
            rootless.insert(frame.stack);
        }
        let function = FunctionName { name: frame.function.clone(), module: frame.module.clone() };
        sampled.profile.stacks.entry(frame.stack).or_default().push(function);
    }
    let samples = &sampled.profile.samples;
    let of_rootless = samples.iter().filter(|sample| rootless.contains(&sample.stack));
    sampled.rootless = of_rootless.map(|sample| sample.count).sum();
    Ok(sampled)
}

impl RecordedProfile {
    /// Where in the sources each function of a stack was, in the order of [`Profile::stacks`]; `None` where the build does not have it.
    pub fn source_places(&self) -> BTreeMap<u32, Vec<Option<SourcePlace>>> {
        let mut places: BTreeMap<u32, Vec<Option<SourcePlace>>> = BTreeMap::new();
        for frame in &self.frames {
            let place = frame.source_file.clone().zip(frame.line).filter(|(_, line)| *line > 0);
            let place = place.map(|(file, line)| SourcePlace { file, line });
            places.entry(frame.stack).or_default().push(place);
        }
        places
    }
}

fn why_no_stacks(recording: &Recording) -> String {
    let not_measured = &recording.run().not_measured;
    let missing = |source| not_measured.iter().find(|line| line.source == source);
    let why = missing(Missing::ThreadStacks).or_else(|| missing(Missing::ServerThreads));
    why.map_or("it was recorded with --stacks=none".to_string(), ToString::to_string)
}

/// By a state's name: the metrics that its time belongs to, as places in what was asked for.
pub(crate) fn places_of_states(by: &[String]) -> Result<BTreeMap<&'static str, Vec<usize>>, Error> {
    let metrics = metrics();
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, name) in by.iter().enumerate() {
        let Some((_, states)) = metrics.iter().find(|(known, _)| known == name) else {
            let all = stack_metrics().join(", ");
            return Err(Error::WrongUse(format!("'{name}' is no metric of stacks; give some of: {all}")));
        };
        for state in states {
            places.entry(state.name()).or_default().push(place);
        }
    }
    Ok(places)
}

struct Selection<'a> {
    places: BTreeMap<&'static str, Vec<usize>>,
    choice: Choice<'a>,
    /// What is left out as the observer's; `None`: nothing is.
    hidden: Option<ObserverStacks>,
    /// What was left out as the observer's.
    hidden_ns: f64,
    sampled: RecordedProfile,
}

impl Selection<'_> {
    /// Adds a sample or a wait, or several of one stack, where they are asked for. Returns whether they were.
    fn enter(&mut self, candidate: &Candidate<'_>, state: &str, sum: StackSum) -> bool {
        let StackSum { count, weight_ns, variance_ns2, .. } = sum;
        let places = self.places.get(state).map_or(&[][..], Vec::as_slice);
        if !self.choice.wants(candidate, weight_ns.saturating_mul(places.len() as u64)) || places.is_empty() {
            return false;
        }
        if self.hidden.as_ref().is_some_and(|hidden| hidden.holds(candidate.role, candidate.stack)) {
            self.hidden_ns += weight_ns as f64 * places.len() as f64;
            return false;
        }
        for place in places {
            let (stack, weight_ns) = (candidate.stack, weight_ns as f64);
            let sample = ProfileSample { stack, metric: *place, weight_ns, count, variance_ns2 };
            self.sampled.profile.samples.push(sample);
            self.sampled.threads.push((candidate.tid, candidate.role.to_string()));
        }
        if state == State::Cpu.name() {
            self.sampled.samples += count;
        } else {
            self.sampled.waits += count;
        }
        true
    }
}

/// Who ended these waits, by each metric that they belong to.
fn wakes_of(
    waits: &[StackWait],
    places: &BTreeMap<&'static str, Vec<usize>>,
    role_of: &BTreeMap<u32, String>,
) -> Vec<Wake> {
    let of = |wait: &StackWait| {
        let wake = wake(wait, role_of);
        let places = places.get(wait.state.as_str()).map_or(&[][..], Vec::as_slice);
        places.iter().map(|place| Wake { metric: *place, ..wake.clone() }).collect::<Vec<_>>()
    };
    waits.iter().flat_map(of).collect()
}

/// Roles of the threads that the recording knows, by number.
///
/// # Errors
/// The files can't be read.
pub(crate) fn recorded_roles(recording: &Recording) -> Result<BTreeMap<u32, String>, Error> {
    Ok(recording.thread_roles()?.into_iter().collect())
}

/// A recorded wait, with the role of the thread that ended it; of the first metric.
pub(crate) fn wake(wait: &StackWait, role_of: &BTreeMap<u32, String>) -> Wake {
    Wake {
        stack: wait.stack,
        metric: 0,
        weight_ns: wait.weight_ns as f64,
        tid: wait.tid,
        state: wait.state.clone(),
        begin_ns: wait.t_ns.saturating_sub_unsigned(wait.length_ns),
        end_ns: wait.t_ns,
        waker_tid: wait.waker_tid,
        role: role_of.get(&wait.waker_tid).cloned().unwrap_or_default(),
        by: wait.waker_stack,
        past: wait.waker_past.iter().map(|past| (past.state.clone(), past.ns)).collect(),
    }
}

/// How the threads of each role spent a window: shares of their states, 0 to 1, the largest first.
///
/// # Errors
/// The files can't be read.
pub fn states_by_role(
    recording: &Recording,
    window: Window,
) -> Result<BTreeMap<String, Vec<(String, f64)>>, Error> {
    let times = thread_times(recording, window)?;
    let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for thread in times.threads {
        let sum = sums.entry(thread.role).or_insert_with(|| vec![0; times.states.len()]);
        sum.iter_mut().zip(&thread.states_ns).for_each(|(sum, ns)| *sum += ns);
    }
    let shares = |sums: Vec<u64>| {
        let all = sums.iter().sum::<u64>().max(1) as f64;
        let mut shares: Vec<(String, f64)> =
            times.states.iter().cloned().zip(sums.iter().map(|ns| *ns as f64 / all)).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    };
    Ok(sums.into_iter().map(|(role, sums)| (role, shares(sums))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_record::data::{StackFrame, StackSample, StackWait, TextRows};
    use whyso_record::run::RunInfo;
    use whyso_record::{Options, Recorder};

    fn recorded(folder: &std::path::Path) -> Recording {
        let dir = folder.join("run");
        let recorder = Recorder::create(&dir, Options { reserve_bytes: 0, ..Options::default() }).unwrap();
        recorder.set_run(&RunInfo::default());
        let frame = |stack, depth, function: &str, module: &str| StackFrame {
            stack,
            depth,
            function: function.to_string(),
            module: module.to_string(),
            build_id: None,
            address: 0,
            source_file: None,
            line: None,
            inlined: false,
        };
        recorder.frames(&[
            frame(2, 0, "irqentry_exit_to_user_mode", "[kernel]"),
            frame(2, 1, "asm_exc_int3", "[kernel]"),
            frame(2, 2, "dispatch_command", "server"),
            frame(0, 0, "log_write", "server"),
            frame(0, 1, "main", "server"),
            frame(1, 0, "[lost]", ""),
        ]);
        let sample = |t_ns, role: &str, stack| StackSample {
            t_ns,
            tid: 1,
            role: role.to_string(),
            stack,
            weight_ns: 10,
        };
        let of_purge = StackSample { tid: 2, ..sample(6, "purge", 0) };
        recorder.stacks(&[sample(5, "connection", 0), of_purge, sample(99, "connection", 1)]);
        // Long after all windows but that of the observer's.
        let probed = StackSample { weight_ns: 30, ..sample(1005, "connection", 2) };
        let asked = StackSample { tid: 3, ..sample(1006, "observer", 0) };
        recorder.stacks(&[probed, asked, sample(1007, "connection", 0)]);
        let connections = |t_ns| TextRows {
            source: "connections".to_string(),
            t_ns,
            columns: ["tid", "connection", "statement", "since_ns"].map(str::to_string).to_vec(),
            rows: vec![["1", "40", "SELECT ?", "4"].map(|cell| Some(cell.to_string())).to_vec()],
        };
        recorder.rows(connections(0));
        recorder.rows(connections(50));
        let wait = |t_ns, state: &str| StackWait {
            t_ns,
            wait: 1,
            tid: 1,
            role: "connection".to_string(),
            state: state.to_string(),
            length_ns: 3,
            weight_ns: 7,
            stack: 0,
            waker_tid: 0,
            waker_stack: None,
            waker_past: Vec::new(),
        };
        recorder.waits(&[wait(5, "file_sync"), wait(6, "lock"), wait(7, "sleep")]);
        recorder.finish().unwrap();
        Recording::open(&dir).unwrap()
    }

    fn of_role(role: &str) -> ThreadFilter {
        ThreadFilter { role: Some(role.to_string()), ..ThreadFilter::default() }
    }

    #[test]
    fn a_profile_is_of_one_window_one_role_and_the_metrics_that_were_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path());
        let window = Window { begin_ns: 0, end_ns: 50 };
        let by = ["cpu", "io", "file_sync"].map(str::to_string);
        let sampled = profile_in(&recording, window, &by, &of_role("connection")).unwrap();
        let times: Vec<(usize, f64)> =
            sampled.profile.samples.iter().map(|sample| (sample.metric, sample.weight_ns)).collect();
        assert_eq!(times, [(0, 10.0), (1, 7.0), (2, 7.0)]);
        assert_eq!(sampled.threads, vec![(1, "connection".to_string()); 3]);
        assert_eq!((sampled.samples, sampled.waits, sampled.rootless), (1, 1, 0));
        let all = Window { begin_ns: 0, end_ns: 100 };
        let sampled = profile_in(&recording, all, &by[..1], &of_role("all")).unwrap();
        assert_eq!((sampled.samples, sampled.rootless), (3, 1));
    }

    #[test]
    fn the_observers_own_stacks_are_hidden_unless_they_are_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path());
        let window = Window { begin_ns: 1000, end_ns: 1100 };
        let profile = |observer| {
            let filter = ThreadFilter { observer, ..of_role("all") };
            profile_in(&recording, window, &["cpu".to_string()], &filter).unwrap()
        };
        let hidden = profile(false);
        assert_eq!((hidden.profile.samples.len(), hidden.threads.len()), (1, 1));
        assert!((hidden.hidden_share - 0.8).abs() < 1e-9, "{}", hidden.hidden_share);
        let shown = profile(true);
        assert_eq!((shown.profile.samples.len(), shown.hidden_share), (3, 0.0));
    }

    /// A tenth of the time is in bursts that lie between the parts that would be read one by one.
    #[test]
    fn of_very_many_samples_each_counts_and_single_threads_are_of_parts_of_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let recorder = Recorder::create(&dir, Options { reserve_bytes: 0, ..Options::default() }).unwrap();
        recorder.set_run(&RunInfo::default());
        let frame = |stack, function: &str| StackFrame {
            stack,
            depth: 0,
            function: function.to_string(),
            module: "server".to_string(),
            build_id: None,
            address: 0,
            source_file: None,
            line: None,
            inlined: false,
        };
        recorder.frames(&[frame(1, "even"), frame(9, "burst")]);
        let count = 640_000i64;
        let sample = |at: i64| StackSample {
            t_ns: at * 10_000_000,
            tid: 7,
            role: "connection".to_string(),
            stack: if at % 10_000 < 1_000 { 9 } else { 1 },
            weight_ns: 10,
        };
        for begin in (0..count).step_by(40_000) {
            recorder.stacks(&(begin..begin + 40_000).map(sample).collect::<Vec<_>>());
            recorder.seal().unwrap();
        }
        recorder.finish().unwrap();
        let recording = Recording::open(&dir).unwrap();
        let window = Window { begin_ns: 0, end_ns: count * 10_000_000 };
        let by = ["cpu".to_string()];
        let all = profile_in(&recording, window, &by, &of_role("all")).unwrap();
        let in_burst = |sampled: &RecordedProfile| -> f64 {
            let samples = sampled.profile.samples.iter().filter(|sample| sample.stack == 9);
            samples.map(|sample| sample.weight_ns).sum()
        };
        assert_eq!((all.samples, all.part, in_burst(&all)), (640_000, 1.0, 640_000.0));
        // As if each were one by one: 1.96 · √(640,000 · 10²).
        let half_ns = all.profile.half_intervals_ns()[0];
        assert!((half_ns - 1.96 * 8_000.0).abs() < 1e-6, "{half_ns}");
        let of_thread = ThreadFilter { tids: vec![7], ..ThreadFilter::default() };
        let of_thread = profile_in(&recording, window, &by, &of_thread).unwrap();
        assert!(of_thread.part < 0.5, "{}", of_thread.part);
        assert_eq!(in_burst(&of_thread), 0.0, "what the words about it say is missing");
    }

    #[test]
    fn the_tracer_and_the_explanation_give_the_observers_threads_the_same_role() {
        assert_eq!(whyso_model::role::OBSERVER, whyso_profile::OBSERVER_ROLE);
    }

    #[test]
    fn a_profile_is_of_the_threads_the_connections_and_the_statements_that_were_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path());
        let window = Window { begin_ns: 0, end_ns: 100 };
        let by = ["cpu".to_string()];
        let profile = |filter: ThreadFilter| profile_in(&recording, window, &by, &filter).unwrap();
        assert_eq!(profile(ThreadFilter { tids: vec![2], ..ThreadFilter::default() }).samples, 1);
        // Connection 40 from 0 to 50: the samples at 5, and at 6 of another thread, which worked for none.
        let of_40 = profile(ThreadFilter { connections: vec![40], ..ThreadFilter::default() });
        assert_eq!((of_40.samples, of_40.known_share), (1, Some(1.0 / 3.0)));
        // A statement that began at 4 at the latest, and was found at 50.
        let of_statement =
            profile(ThreadFilter { statement: Some("select".to_string()), ..ThreadFilter::default() });
        assert_eq!((of_statement.samples, of_statement.known_share), (1, Some(1.0 / 3.0)));
        assert_eq!(profile(ThreadFilter::default()).known_share, None);
    }

    #[test]
    fn what_is_not_there_is_reported_with_what_is() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path());
        let window = Window { begin_ns: 0, end_ns: 50 };
        let refused = |by: &str, filter: ThreadFilter| {
            profile_in(&recording, window, &[by.to_string()], &filter).unwrap_err().to_string()
        };
        let error = |by, role| refused(by, of_role(role));
        assert!(error("cup", "all").starts_with("'cup' is no metric of stacks; give some of: cpu, lock, io"));
        assert_eq!(
            error("cpu", "pruge"),
            "no stack is of a thread of role 'pruge'; give one of: connection, purge, all"
        );
        let thread = refused("cpu", ThreadFilter { tids: vec![99], ..ThreadFilter::default() });
        assert!(thread.starts_with("no stack in this window is of a thread of that number"), "{thread}");
        let connection = refused("cpu", ThreadFilter { connections: vec![7], ..ThreadFilter::default() });
        assert!(
            connection.ends_with(
                "for 50.0 % of the time it is known of which; those that are known in this run: 40"
            ),
            "{connection}"
        );
        let statement = ThreadFilter { statement: Some("COMMIT".to_string()), ..ThreadFilter::default() };
        assert!(refused("cpu", statement).ends_with("those that are known in this run: SELECT ?"));
    }
}

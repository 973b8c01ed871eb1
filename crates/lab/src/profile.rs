//! From the stacks of a recording to a profile: which functions, by which metric, over which window and of which threads.

use std::collections::{BTreeMap, BTreeSet};

use whyso_explain::profile::{FunctionName, Profile, ProfileSample, Wake};
use whyso_record::Recording;
use whyso_record::data::StackWait;
use whyso_record::run::Window;
use whyso_trace::{State, state};

use crate::Error;

/// The role that stands for all of them.
const EVERY_ROLE: &str = "all";

/// A profile, and what it rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    pub profile: Profile,
    /// Samples on CPUs, and waits, of the metrics that were asked for.
    pub samples: u64,
    pub waits: u64,
    /// Of those, how many did not reach the function that their thread began with.
    pub rootless: u64,
}

/// What a profile can be asked for: (name, the states whose time it is).
fn metrics() -> Vec<(&'static str, Vec<State>)> {
    let io = vec![State::FileRead, State::FileWrite, State::FileSync];
    let mut metrics = vec![("cpu", vec![State::Cpu]), ("lock", vec![State::Lock]), ("io", io)];
    // A thread that is ready waits for nothing in a function; what it waits for from its client is not taken.
    let untold = [State::Cpu, State::Lock, State::Runqueue, State::Wakeup, State::NetReceive];
    let rest = state::ALL.into_iter().filter(|state| !untold.contains(state));
    metrics.extend(rest.map(|state| (state.name(), vec![state])));
    metrics
}

/// The names of the metrics that [`profile_in`] knows.
pub fn stack_metrics() -> Vec<&'static str> {
    metrics().into_iter().map(|(name, _)| name).collect()
}

/// What was sampled in a window, by the metrics that are named. `role`: of the threads that are taken; "all" takes every one.
///
/// # Errors
/// The run holds no stacks, a metric or a role is not known, or the files can't be read.
pub fn profile_in(
    recording: &Recording,
    window: Window,
    by: &[String],
    role: &str,
) -> Result<Sampled, Error> {
    let known = metrics();
    let mut of_state: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, name) in by.iter().enumerate() {
        let Some((_, states)) = known.iter().find(|(known, _)| known == name) else {
            let all = stack_metrics().join(", ");
            return Err(Error::Plan(format!("'{name}' is no metric of stacks; give some of: {all}")));
        };
        for state in states {
            of_state.entry(state.name()).or_default().push(place);
        }
    }
    let frames = recording.frames()?;
    if frames.is_empty() {
        let because = recording.run().not_measured.iter().find(|line| line.starts_with("the stacks of"));
        let why = because.map_or("it was recorded without --stacks", String::as_str);
        return Err(Error::Failed(format!("this run holds no stacks: {why}")));
    }
    let mut sampled = Sampled::default();
    sampled.profile.metrics = by.to_vec();
    let mut wakes = Vec::new();
    let mut roles = BTreeSet::new();
    let mut used = BTreeSet::new();
    let is_wanted = |of: &str| role == EVERY_ROLE || role == of;
    let mut enter = |sampled: &mut Sampled, stack, state: &str, weight_ns: u64, seen_ns: u64| {
        let places = of_state.get(state).map_or(&[][..], Vec::as_slice);
        for place in places {
            let (weight_ns, seen_ns) = (weight_ns as f64, seen_ns as f64);
            sampled.profile.samples.push(ProfileSample { stack, metric: *place, weight_ns, seen_ns });
        }
        used.insert(stack);
        !places.is_empty()
    };
    for sample in recording.stacks(Some(window))? {
        if is_wanted(&sample.role) {
            let entered = enter(&mut sampled, sample.stack, State::Cpu.name(), sample.weight_ns, 0);
            sampled.samples += u64::from(entered);
        }
        roles.insert(sample.role);
    }
    for wait in recording.waits(Some(window))? {
        if is_wanted(&wait.role) {
            let entered = enter(&mut sampled, wait.stack, &wait.state, wait.weight_ns, wait.length_ns);
            sampled.waits += u64::from(entered);
        }
        roles.insert(wait.role.clone());
        wakes.push(wait);
    }
    if sampled.profile.samples.is_empty() && !is_wanted_by_any(&roles, role) {
        let there: Vec<String> = roles.into_iter().collect();
        return Err(Error::Plan(format!(
            "no stack is of a thread of role '{role}'; give one of: {}, {EVERY_ROLE}",
            there.join(", ")
        )));
    }
    let role_of = if wakes.is_empty() { BTreeMap::new() } else { recorded_roles(recording)? };
    for wait in wakes {
        let places = of_state.get(wait.state.as_str()).map_or(&[][..], Vec::as_slice);
        let taken = if is_wanted(&wait.role) { places } else { &[] };
        // Chains of waits lead to others, too.
        let mut wake = wake(&wait, &role_of);
        for place in taken {
            used.extend(wake.by);
            wake.metric = *place;
            sampled.profile.wakes.push(wake.clone());
        }
        if taken.is_empty() {
            used.insert(wake.stack);
            sampled.profile.other_wakes.push(wake);
        }
    }
    let mut rootless = BTreeSet::new();
    for frame in frames.into_iter().filter(|frame| used.contains(&frame.stack)) {
        if frame.module.is_empty() {
            rootless.insert(frame.stack);
        }
        let function = FunctionName { name: frame.function, module: frame.module };
        sampled.profile.stacks.entry(frame.stack).or_default().push(function);
    }
    let samples = &sampled.profile.samples;
    sampled.rootless = samples.iter().filter(|sample| rootless.contains(&sample.stack)).count() as u64;
    Ok(sampled)
}

/// Roles of the threads that the recording knows, by number.
///
/// # Errors
/// The files can't be read.
pub(crate) fn recorded_roles(recording: &Recording) -> Result<BTreeMap<u32, String>, Error> {
    Ok(recording.threads()?.threads.into_iter().map(|thread| (thread.tid, thread.role)).collect())
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
    let table = recording.threads()?;
    let Some((from, to)) = table.covering(window.begin_ns, window.end_ns) else { return Ok(BTreeMap::new()) };
    let mut sums: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for thread in table.between(from, to) {
        let sum = sums.entry(thread.role).or_insert_with(|| vec![0; table.states.len()]);
        sum.iter_mut().zip(&thread.states_ns).for_each(|(sum, ns)| *sum += ns);
    }
    let shares = |sums: Vec<u64>| {
        let all = sums.iter().sum::<u64>().max(1) as f64;
        let mut shares: Vec<(String, f64)> =
            table.states.iter().cloned().zip(sums.iter().map(|ns| *ns as f64 / all)).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        shares
    };
    Ok(sums.into_iter().map(|(role, sums)| (role, shares(sums))).collect())
}

fn is_wanted_by_any(roles: &BTreeSet<String>, role: &str) -> bool {
    role == EVERY_ROLE || roles.contains(role)
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_record::data::{StackFrame, StackSample};
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
        recorder.stacks(&[sample(5, "connection", 0), sample(6, "purge", 0), sample(99, "connection", 1)]);
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

    #[test]
    fn a_profile_is_of_one_window_one_role_and_the_metrics_that_were_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path());
        let window = Window { begin_ns: 0, end_ns: 50 };
        let by = ["cpu", "io", "file_sync"].map(str::to_string);
        let sampled = profile_in(&recording, window, &by, "connection").unwrap();
        let told: Vec<(usize, f64)> =
            sampled.profile.samples.iter().map(|sample| (sample.metric, sample.weight_ns)).collect();
        assert_eq!(told, [(0, 10.0), (1, 7.0), (2, 7.0)]);
        assert_eq!((sampled.samples, sampled.waits, sampled.rootless), (1, 1, 0));
        let all = Window { begin_ns: 0, end_ns: 100 };
        let sampled = profile_in(&recording, all, &by[..1], "all").unwrap();
        assert_eq!((sampled.samples, sampled.rootless), (3, 1));
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path());
        let window = Window { begin_ns: 0, end_ns: 50 };
        let error = |by: &str, role: &str| {
            profile_in(&recording, window, &[by.to_string()], role).unwrap_err().to_string()
        };
        assert!(error("cup", "all").starts_with("'cup' is no metric of stacks; give some of: cpu, lock, io"));
        assert_eq!(
            error("cpu", "pruge"),
            "no stack is of a thread of role 'pruge'; give one of: connection, purge, all"
        );
    }
}

//! The sampled time of connections' threads by wait class, and that of all threads on a CPU by activity, level by level.

use std::collections::BTreeMap;
use std::ops::Range;

use whyso_explain::activity_of;
use whyso_explain::model::{
    Activity, DeedShare, EndedWaits, LevelInput, Part, SampledActivity, SampledClass,
};
use whyso_model::{Role, State};
use whyso_profile::{FunctionName, ObserverStacks, Profile, Rules, wakers};
use whyso_record::Recording;
use whyso_record::data::{StackFrame, StackSample, StackWait};

use crate::Error;
use crate::profile::{recorded_roles, wake};

/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    let frames = recording.frames()?;
    if frames.is_empty() {
        return Ok(());
    }
    let (samples, waits) = (recording.stacks(None)?, recording.waits(None)?);
    let mut classes = Classes::new(frames);
    for level in levels.iter_mut() {
        let window = level.begin_ns..level.end_ns;
        level.wait_classes = classes.within(&window, &samples, &waits);
        level.activities = classes.activities_within(&window, &samples);
    }
    let role_of = recorded_roles(recording)?;
    let mut profile = Profile { metrics: vec![State::Lock.name().to_string()], ..Profile::default() };
    profile.stacks = classes.stacks;
    for level in levels {
        level.ended_waits =
            ended_within(level.begin_ns..level.end_ns, &waits, &role_of, &mut profile, &classes.rules);
    }
    Ok(())
}

/// What those did that ended the waits of connections' threads for locks.
fn ended_within(
    window: Range<i64>,
    waits: &[StackWait],
    role_of: &BTreeMap<u32, String>,
    profile: &mut Profile,
    rules: &Rules,
) -> Vec<EndedWaits> {
    let within = || waits.iter().filter(|wait| window.contains(&wait.t_ns));
    let is_taken =
        |wait: &&StackWait| wait.role == Role::Connection.name() && wait.state == State::Lock.name();
    profile.wakes = within().filter(is_taken).map(|wait| wake(wait, role_of)).collect();
    let is_other = |wait: &&StackWait| !is_taken(wait) && wait.state != State::Runqueue.name();
    profile.other_wakes = within().filter(is_other).map(|wait| wake(wait, role_of)).collect();
    let mut classes: BTreeMap<String, ClassWaits> = BTreeMap::new();
    for group in wakers(profile, rules) {
        let ended = classes.entry(group.class.unwrap_or_default()).or_default();
        let ns = group.ns.iter().sum::<f64>();
        ended.count += group.waits;
        ended.ns += ns;
        let deeds = group.meanwhile.map_or_else(Vec::new, |meanwhile| meanwhile.in_the_end);
        for (deed, share) in deeds {
            *ended.deeds_ns.entry((deed.role, deed.state)).or_default() += share * ns;
        }
    }
    classes.into_iter().map(|(class, ended)| ended.into_class(class)).collect()
}

/// Waits of one class, as they are added up.
#[derive(Default)]
struct ClassWaits {
    count: u64,
    ns: f64,
    /// By role and state.
    deeds_ns: BTreeMap<(String, String), f64>,
}

impl ClassWaits {
    fn into_class(self, class: String) -> EndedWaits {
        let known_ns: f64 = self.deeds_ns.values().sum();
        let share = |((role, state), ns)| DeedShare { role, state, share: ns / known_ns };
        let deeds = self.deeds_ns.into_iter().map(share).collect();
        EndedWaits { class, count: self.count, ns: self.ns, deeds }
    }
}

struct Classes {
    rules: Rules,
    /// Functions by stack, innermost first.
    stacks: BTreeMap<u32, Vec<FunctionName>>,
    /// What was found out already, by stack and state.
    classes: BTreeMap<(u32, String), String>,
    activities: BTreeMap<u32, Activity>,
    observer: ObserverStacks,
}

impl Classes {
    fn new(frames: Vec<StackFrame>) -> Classes {
        let named = frames.iter().map(|frame| (frame.stack, frame.function.as_str(), frame.module.as_str()));
        let observer = ObserverStacks::new(named);
        let mut stacks: BTreeMap<u32, Vec<FunctionName>> = BTreeMap::new();
        for frame in frames {
            let function = FunctionName { name: frame.function, module: frame.module };
            stacks.entry(frame.stack).or_default().push(function);
        }
        let (classes, activities) = (BTreeMap::new(), BTreeMap::new());
        Classes { rules: Rules::built_in(), stacks, classes, activities, observer }
    }

    /// CPU time of the server's threads by activity and role. The observer's is left out.
    fn activities_within(&mut self, window: &Range<i64>, samples: &[StackSample]) -> Vec<SampledActivity> {
        let mut sums: BTreeMap<(Activity, &str), (u64, f64)> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| window.contains(&sample.t_ns)) {
            if self.observer.holds(&sample.role, sample.stack) {
                continue;
            }
            let functions = self.stacks.get(&sample.stack).map_or(&[][..], Vec::as_slice);
            let activity = *self.activities.entry(sample.stack).or_insert_with(|| activity_of(functions));
            let sum = sums.entry((activity, &sample.role)).or_default();
            *sum = (sum.0 + 1, sum.1 + sample.weight_ns as f64);
        }
        let sampled = |((activity, role), (count, ns)): ((Activity, &str), (u64, f64))| SampledActivity {
            activity,
            role: role.to_string(),
            count,
            ns,
        };
        sums.into_iter().map(sampled).collect()
    }

    fn within(
        &mut self,
        window: &Range<i64>,
        samples: &[StackSample],
        waits: &[StackWait],
    ) -> Vec<SampledClass> {
        let is_ours = |t_ns: i64, role: &str| window.contains(&t_ns) && role == Role::Connection.name();
        let mut sums: BTreeMap<(String, String), SampledClass> = BTreeMap::new();
        let mut enter = |stack: u32, state: &str, ns: u64, seen_ns: u64| {
            let (state, class) = (state.to_string(), self.class(stack, state));
            let new = || SampledClass {
                state: state.clone(),
                class: class.clone(),
                count: 0,
                ns: 0.0,
                seen_ns: 0.0,
            };
            let sum = sums.entry((state.clone(), class.clone())).or_insert_with(new);
            sum.count += 1;
            sum.ns += ns as f64;
            sum.seen_ns += seen_ns as f64;
        };
        for sample in samples.iter().filter(|sample| is_ours(sample.t_ns, &sample.role)) {
            enter(sample.stack, State::Cpu.name(), sample.weight_ns, 0);
        }
        // Whatever the function in which a thread was when it had no CPU: it did not wait for that.
        let is_for_cpu = |wait: &StackWait| wait.state == State::Runqueue.name();
        for wait in waits.iter().filter(|wait| is_ours(wait.t_ns, &wait.role) && !is_for_cpu(wait)) {
            enter(wait.stack, &wait.state, wait.weight_ns, wait.length_ns);
        }
        sums.into_values().filter(|value| is_part(&value.state)).collect()
    }

    fn class(&mut self, stack: u32, state: &str) -> String {
        let key = (stack, state.to_string());
        if let Some(class) = self.classes.get(&key) {
            return class.clone();
        }
        let functions = self.stacks.get(&stack).map_or(&[][..], Vec::as_slice);
        let class = self.rules.class(functions, state).unwrap_or_default().to_string();
        self.classes.insert(key, class.clone());
        class
    }
}

fn is_part(state: &str) -> bool {
    Part::ALL.iter().any(|part| part.name() == state)
}

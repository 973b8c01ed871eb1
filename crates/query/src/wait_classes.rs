//! The sampled time of connections' threads by wait class, and that of all threads on a CPU by activity, level by level.

use std::collections::BTreeMap;

use whyso_explain::activity_of;
use whyso_explain::model::{
    Activity, DeedShare, EndedWaits, LevelInput, Part, SampledActivity, SampledClass,
};
use whyso_model::{Role, State};
use whyso_profile::{FunctionName, ObserverStacks, Profile, Rules, wakers};
use whyso_record::data::{StackFrame, StackWait};
use whyso_record::run::Window;
use whyso_record::{Recording, StackTotal, spread};

use crate::Error;
use crate::profile::{recorded_roles, wake};

/// Of a level with more waits than these, so many are followed to who ended them, in parts of it that are spread evenly.
const FOLLOWED_MAX: u64 = 50_000;

/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    let frames = recording.frames()?;
    if frames.is_empty() {
        return Ok(());
    }
    let mut classes = Classes::new(frames);
    let mut waits_at_level = Vec::new();
    for level in levels.iter_mut() {
        let window = Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
        let totals = recording.stack_sums(window)?;
        level.wait_classes = classes.of(&totals);
        level.activities = classes.activities_of(&totals);
        let is_wait = |total: &&StackTotal| *total.state != *State::Cpu.name();
        waits_at_level.push(totals.iter().filter(is_wait).map(|total| total.sum.count).sum::<u64>());
    }
    if waits_at_level.iter().all(|waits| *waits == 0) {
        return Ok(());
    }
    let role_of = recorded_roles(recording)?;
    let mut profile = Profile { metrics: vec![State::Lock.name().to_string()], ..Profile::default() };
    profile.stacks = classes.stacks;
    for (level, waits) in levels.iter_mut().zip(waits_at_level) {
        let window = Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
        let mut followed = Vec::new();
        let parts = spread(window, waits, FOLLOWED_MAX);
        let followed_ns: f64 = parts.iter().map(Window::seconds).sum();
        for part in parts {
            recording.each_wait(part, |wait| followed.push(wait))?;
        }
        level.ended_waits = ended(&followed, &role_of, &mut profile, &classes.rules);
        let of_all = if followed_ns > 0.0 { window.seconds() / followed_ns } else { 1.0 };
        level.ended_waits.iter_mut().for_each(|ended| ended.ns *= of_all);
    }
    Ok(())
}

/// What those did that ended the waits of connections' threads for locks.
fn ended(
    waits: &[StackWait],
    role_of: &BTreeMap<u32, String>,
    profile: &mut Profile,
    rules: &Rules,
) -> Vec<EndedWaits> {
    let is_taken =
        |wait: &&StackWait| wait.role == Role::Connection.name() && wait.state == State::Lock.name();
    profile.wakes = waits.iter().filter(is_taken).map(|wait| wake(wait, role_of)).collect();
    let is_other = |wait: &&StackWait| !is_taken(wait) && wait.state != State::Runqueue.name();
    profile.other_wakes = waits.iter().filter(is_other).map(|wait| wake(wait, role_of)).collect();
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
    fn activities_of(&mut self, totals: &[StackTotal]) -> Vec<SampledActivity> {
        let mut sums: BTreeMap<(Activity, &str), (u64, f64)> = BTreeMap::new();
        for total in totals.iter().filter(|total| *total.state == *State::Cpu.name()) {
            if self.observer.holds(&total.role, total.stack) {
                continue;
            }
            let functions = self.stacks.get(&total.stack).map_or(&[][..], Vec::as_slice);
            let activity = *self.activities.entry(total.stack).or_insert_with(|| activity_of(functions));
            let sum = sums.entry((activity, &total.role)).or_default();
            *sum = (sum.0 + total.sum.count, sum.1 + total.sum.weight_ns as f64);
        }
        let sampled = |((activity, role), (count, ns)): ((Activity, &str), (u64, f64))| SampledActivity {
            activity,
            role: role.to_string(),
            count,
            ns,
        };
        sums.into_iter().map(sampled).collect()
    }

    /// The time of connections' threads by state and class.
    fn of(&mut self, totals: &[StackTotal]) -> Vec<SampledClass> {
        let mut sums: BTreeMap<(String, String), SampledClass> = BTreeMap::new();
        // Whatever the function in which a thread was when it had no CPU: it did not wait for that.
        let is_ours = |total: &&StackTotal| {
            *total.role == *Role::Connection.name() && *total.state != *State::Runqueue.name()
        };
        for total in totals.iter().filter(is_ours) {
            let (state, class) = (total.state.to_string(), self.class(total.stack, &total.state));
            let new = || SampledClass {
                state: state.clone(),
                class: class.clone(),
                count: 0,
                ns: 0.0,
                seen_ns: 0.0,
            };
            let sum = sums.entry((state.clone(), class.clone())).or_insert_with(new);
            sum.count += total.sum.count;
            sum.ns += total.sum.weight_ns as f64;
            sum.seen_ns += total.sum.length_ns as f64;
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

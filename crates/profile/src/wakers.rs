//! Who ended the waits: the stack that waited, next to the one that woke it.

use std::collections::{BTreeMap, HashMap};

use crate::chains::{Chains, WakerDeeds};
use crate::classes::Rules;
use crate::function::FunctionName;
use crate::profile::Profile;
use crate::wake::Wake;

/// Waits in one place that were ended from one place.
#[derive(Clone, Debug, PartialEq)]
pub struct WakerTime {
    /// Of the stack that waited; `None`: no rule names any function of it.
    pub class: Option<String>,
    /// The function by which the wait has its class; without a class, the innermost function of the program itself.
    pub waited_in: Option<FunctionName>,
    /// Role of the threads that ended the waits; empty: not threads of the server.
    pub role: String,
    /// Where they did, chosen in the same way.
    pub ended_in: Option<FunctionName>,
    pub waits: u64,
    /// By metric.
    pub ns: Vec<f64>,
    /// What the threads that ended them did while they lasted; `None` where that is not known of any.
    pub meanwhile: Option<WakerDeeds>,
}

/// Returns the waits by where they were and who ended them, the one with the most in the first metric first.
pub fn wakers(profile: &Profile, rules: &Rules) -> Vec<WakerTime> {
    let stack = |id: u32| profile.stacks.get(&id).map_or(&[][..], Vec::as_slice);
    let mut groups: BTreeMap<_, Vec<&Wake>> = BTreeMap::new();
    // Of very many waits most are in few places.
    let mut places: HashMap<(u32, usize), _> = HashMap::new();
    let mut place_of = |id: u32, metric: usize| {
        *places.entry((id, metric)).or_insert_with(|| place(stack(id), &profile.metrics[metric], rules))
    };
    for wake in profile.wakes.iter().filter(|wake| wake.metric < profile.metrics.len()) {
        let (class, waited_in) = place_of(wake.stack, wake.metric);
        let ended_in = wake.by.and_then(|by| place_of(by, wake.metric).1);
        groups.entry((class, waited_in, wake.role.as_str(), ended_in)).or_default().push(wake);
    }
    let chains = Chains::new(profile, rules);
    let mut wakers: Vec<WakerTime> = groups
        .into_iter()
        .map(|((class, waited_in, role, ended_in), wakes)| {
            let mut ns = vec![0.0; profile.metrics.len()];
            wakes.iter().for_each(|wake| ns[wake.metric] += wake.weight_ns);
            WakerTime {
                class: class.map(str::to_string),
                waited_in: waited_in.cloned(),
                role: role.to_string(),
                ended_in: ended_in.cloned(),
                waits: wakes.len() as u64,
                ns,
                meanwhile: chains.meanwhile(&wakes),
            }
        })
        .collect();
    let first = |time: &WakerTime| time.ns.first().copied().unwrap_or(0.0);
    wakers.sort_by(|a, b| first(b).total_cmp(&first(a)));
    wakers
}

/// A wait of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SingleWait {
    /// When the thread was woken, in monotonic nanoseconds.
    pub end_ns: i64,
    pub length_ns: u64,
    pub tid: u32,
    pub state: String,
    /// `None`: no rule names any function of its stack.
    pub class: Option<String>,
    pub waited_in: Option<FunctionName>,
    /// The thread that woke it; 0: none, or not known.
    pub waker_tid: u32,
    /// That thread's role; empty: not a thread of the server.
    pub waker_role: String,
    pub ended_in: Option<FunctionName>,
}

/// Returns a stack's class and the function that shows where it is. That is the function by which it has its class. Without a class, it is the innermost
/// function of the program itself.
pub fn place<'a>(
    stack: &'a [FunctionName],
    metric: &str,
    rules: &'a Rules,
) -> (Option<&'a str>, Option<&'a FunctionName>) {
    match rules.named(stack, metric) {
        Some((place, class)) => (Some(class), stack.get(place)),
        None => (None, stack.iter().find(|function| is_own(function))),
    }
}

/// Returns whether a function is neither the kernel's, nor of a library that every lock goes through.
pub fn is_own(function: &FunctionName) -> bool {
    let module = function.module.as_str();
    let library = ["libc.so", "libc-", "libpthread", "ld-linux", "libstdc++"];
    !module.is_empty() && module != "[kernel]" && !library.iter().any(|name| module.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(path: &[(&str, &str)]) -> Vec<FunctionName> {
        let function = |(name, module): &(&str, &str)| FunctionName {
            name: name.to_string(),
            module: module.to_string(),
        };
        path.iter().map(function).collect()
    }

    #[test]
    fn a_wait_stands_next_to_what_ended_it() {
        let mut profile = Profile { metrics: vec!["lock".to_string()], ..Profile::default() };
        profile.stacks.insert(
            1,
            stack(&[
                ("futex_wait", "[kernel]"),
                ("log_write_up_to(unsigned long)", "mysqld"),
                ("main", "mysqld"),
            ]),
        );
        profile.stacks.insert(
            2,
            stack(&[
                ("futex_wake", "[kernel]"),
                ("pthread_cond_signal", "libc.so.6"),
                ("flusher()", "mysqld"),
            ]),
        );
        let wake = |weight_ns, role: &str, by| Wake {
            stack: 1,
            metric: 0,
            weight_ns,
            tid: 5,
            state: "lock".to_string(),
            begin_ns: 0,
            end_ns: 10,
            waker_tid: 6,
            role: role.to_string(),
            by,
            past: if by.is_some() { vec![("file_sync".to_string(), 10)] } else { Vec::new() },
        };
        profile.wakes = vec![
            wake(10.0, "", None),
            wake(20.0, "log writer", Some(2)),
            wake(30.0, "log writer", Some(2)),
            Wake { metric: 7, ..wake(1e9, "", None) },
        ];
        let found = wakers(&profile, &Rules::built_in());
        assert_eq!(found.len(), 2);
        let WakerTime { class, waited_in, role, ended_in, waits, ns, meanwhile } = &found[0];
        assert_eq!((class.as_deref(), role.as_str(), *waits), (Some("redo_flush"), "log writer", 2));
        assert_eq!(waited_in.as_ref().unwrap().name, "log_write_up_to(unsigned long)");
        assert_eq!(ended_in.as_ref().unwrap().name, "flusher()");
        assert_eq!(ns, &[50.0]);
        let (deed, share) = &meanwhile.as_ref().unwrap().at_once[0];
        assert_eq!((deed.state.as_str(), *share), ("file_sync", 1.0));
        assert_eq!(found[1].meanwhile, None);
        assert_eq!((found[1].role.as_str(), &found[1].ended_in), ("", &None));
    }
}

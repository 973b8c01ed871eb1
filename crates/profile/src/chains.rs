//! What those did that others waited for: the waking threads' states during the waits, followed from wait to wait to the threads that worked.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use crate::classes::Rules;
use crate::profile::Profile;
use crate::wake::Wake;

/// Most waits of a chain that are followed: longer chains go round in circles.
const DEPTH_MAX: usize = 8;
/// A wait is the one that a thread's past has when they share this much of the longer one. Both have times of the same clock, but one is
/// cut to the wait that it was recorded for.
const SHARED_MIN: f64 = 0.8;

/// What the threads that ended waits did while these lasted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Deed {
    /// Role of the thread that did it.
    pub role: String,
    /// What it was in; empty: that was not recorded so far back, or is not known.
    pub state: String,
    /// What it waited for, where that wait was chosen too and a rule names a function of its stack.
    pub class: Option<String>,
}

/// Shares of the waits' time, 0 to 1, the largest first; each list adds up to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WakerDeeds {
    /// What the threads that ended the waits did themselves.
    pub at_once: Vec<(Deed, f64)>,
    /// The same, but where they waited for a lock, what the threads did that they waited for, and so on.
    pub in_the_end: Vec<(Deed, f64)>,
}

/// The waits of a profile, to be found by thread and time.
pub(crate) struct Chains<'a> {
    profile: &'a Profile,
    rules: &'a Rules,
    /// By thread, in order of their ends.
    of_thread: HashMap<u32, Vec<&'a Wake>>,
    /// What the rules were asked before, by stack and state.
    classes: RefCell<HashMap<(u32, &'a str), Option<String>>>,
}

impl<'a> Chains<'a> {
    pub(crate) fn new(profile: &'a Profile, rules: &'a Rules) -> Chains<'a> {
        let mut of_thread: HashMap<u32, Vec<&Wake>> = HashMap::new();
        for wake in profile.wakes.iter().chain(&profile.other_wakes) {
            of_thread.entry(wake.tid).or_default().push(wake);
        }
        of_thread.values_mut().for_each(|wakes| wakes.sort_by_key(|wake| wake.end_ns));
        Chains { profile, rules, of_thread, classes: RefCell::default() }
    }

    /// `None` where nothing is known of what any of these wakers did.
    pub(crate) fn meanwhile(&self, wakes: &[&Wake]) -> Option<WakerDeeds> {
        let (mut at_once, mut in_the_end) = (Shares::default(), Shares::default());
        for wake in wakes.iter().filter(|wake| !wake.past.is_empty() && wake.end_ns > wake.begin_ns) {
            // Each wait stands for as much as it weighs, however long it was itself.
            let scale = wake.weight_ns / (wake.end_ns - wake.begin_ns) as f64;
            self.follow(wake, wake.begin_ns, wake.end_ns, 1, &mut |deed, ns| at_once.add(deed, ns * scale));
            self.follow(wake, wake.begin_ns, wake.end_ns, DEPTH_MAX, &mut |deed, ns| {
                in_the_end.add(deed, ns * scale);
            });
        }
        Some(WakerDeeds { at_once: at_once.into_sorted()?, in_the_end: in_the_end.into_sorted()? })
    }

    /// Gives what was done within `[from_ns, to_ns]` of a wait, all of it, by the thread that ended it and those that this thread waited for.
    fn follow(&self, wake: &Wake, from_ns: i64, to_ns: i64, depth: usize, give: &mut impl FnMut(Deed, f64)) {
        let deed = |state: &str, class: Option<String>| Deed {
            role: wake.role.clone(),
            state: state.to_string(),
            class,
        };
        let mut end_ns = wake.end_ns;
        for (state, ns) in wake.past.iter().rev() {
            let begin_ns = end_ns.saturating_sub_unsigned(*ns);
            let (first_ns, last_ns) = (begin_ns.max(from_ns), end_ns.min(to_ns));
            if first_ns < last_ns {
                let within_ns = (last_ns - first_ns) as f64;
                match self.wait_of(wake.waker_tid, state, begin_ns, end_ns) {
                    Some(next) if depth > 1 && is_lock(state) && !next.past.is_empty() => {
                        self.follow(next, first_ns, last_ns, depth - 1, give);
                    }
                    Some(own) => give(deed(state, self.class(own)), within_ns),
                    None => give(deed(state, None), within_ns),
                }
            }
            end_ns = begin_ns;
        }
        // Before the past begins.
        let unknown_ns = end_ns.min(to_ns) - from_ns;
        if unknown_ns > 0 {
            give(Deed { role: wake.role.clone(), ..Deed::unknown() }, unknown_ns as f64);
        }
    }

    /// The chosen wait of a thread that is the one in which it was from `begin_ns` to `end_ns`.
    fn wait_of(&self, tid: u32, state: &str, begin_ns: i64, end_ns: i64) -> Option<&'a Wake> {
        let wakes = self.of_thread.get(&tid)?;
        // It ends when the thread is woken, which is when it begins to be ready.
        let first = wakes.partition_point(|wake| wake.end_ns <= begin_ns);
        let shares_enough = |wake: &&&Wake| {
            let shared = wake.end_ns.min(end_ns).saturating_sub(wake.begin_ns.max(begin_ns)) as f64;
            shared >= SHARED_MIN * (end_ns - begin_ns) as f64 && wake.state == state
        };
        wakes[first..].iter().take_while(|wake| wake.begin_ns < end_ns).find(shares_enough).copied()
    }

    fn class(&self, wake: &'a Wake) -> Option<String> {
        let stack = self.profile.stacks.get(&wake.stack)?;
        let of_rules = || self.rules.class(stack, &wake.state).map(str::to_string);
        self.classes.borrow_mut().entry((wake.stack, &wake.state)).or_insert_with(of_rules).clone()
    }
}

impl Deed {
    fn unknown() -> Deed {
        Deed { role: String::new(), state: String::new(), class: None }
    }
}

fn is_lock(state: &str) -> bool {
    matches!(state, "lock" | "kernel_lock")
}

#[derive(Default)]
struct Shares {
    ns: BTreeMap<Deed, f64>,
}

impl Shares {
    fn add(&mut self, deed: Deed, ns: f64) {
        *self.ns.entry(deed).or_default() += ns;
    }

    fn into_sorted(self) -> Option<Vec<(Deed, f64)>> {
        let all: f64 = self.ns.values().sum();
        if all.is_nan() || all <= 0.0 {
            return None;
        }
        let mut shares: Vec<(Deed, f64)> = self.ns.into_iter().map(|(deed, ns)| (deed, ns / all)).collect();
        shares.sort_by(|a, b| b.1.total_cmp(&a.1));
        Some(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::FunctionName;
    use proptest::prelude::*;

    /// A wait for a lock that thread `waker_tid` ended.
    fn wait(tid: u32, begin_ns: i64, end_ns: i64, waker_tid: u32, past: &[(&str, u64)]) -> Wake {
        Wake {
            stack: tid,
            metric: 0,
            weight_ns: (end_ns - begin_ns) as f64,
            tid,
            state: "lock".to_string(),
            begin_ns,
            end_ns,
            waker_tid,
            role: format!("role {waker_tid}"),
            by: None,
            past: past.iter().map(|(state, ns)| ((*state).to_string(), *ns)).collect(),
        }
    }

    fn profile(wakes: Vec<Wake>) -> Profile {
        let mut profile = Profile { metrics: vec!["lock".to_string()], wakes, ..Profile::default() };
        let function = FunctionName { name: "log_write_up_to".to_string(), module: "mysqld".to_string() };
        profile.stacks.insert(2, vec![function]);
        profile
    }

    fn rows(shares: &[(Deed, f64)]) -> Vec<(&str, &str, Option<&str>, f64)> {
        let row = |(deed, share): &(Deed, f64)| {
            (deed.role.clone(), deed.state.clone(), deed.class.clone(), (share * 1000.0).round() / 1000.0)
        };
        let rows: Vec<_> = shares.iter().map(row).collect();
        let rows: &'static [_] = Box::leak(rows.into_boxed_slice());
        rows.iter().map(|(role, state, class, share)| (&**role, &**state, class.as_deref(), *share)).collect()
    }

    #[test]
    fn a_chain_is_followed_to_the_thread_that_did_the_work() {
        // 1 waits for 2, which for most of that time waits for 3, which syncs.
        let first = wait(1, 0, 100, 2, &[("cpu", 10), ("lock", 80), ("cpu", 10)]);
        let second = wait(2, 10, 90, 3, &[("cpu", 5), ("file_sync", 75)]);
        let profile = profile(vec![first.clone(), second]);
        let rules = Rules::built_in();
        let chains = Chains::new(&profile, &rules);
        let found = chains.meanwhile(&[&first]).unwrap();
        assert_eq!(
            rows(&found.at_once),
            [("role 2", "lock", Some("redo_flush"), 0.8), ("role 2", "cpu", None, 0.2)]
        );
        assert_eq!(
            rows(&found.in_the_end),
            [
                ("role 3", "file_sync", None, 0.75),
                ("role 2", "cpu", None, 0.2),
                ("role 3", "cpu", None, 0.05)
            ]
        );
    }

    #[test]
    fn what_was_not_recorded_is_shown_as_such() {
        let first = wait(1, 0, 100, 2, &[("cpu", 40)]);
        let interrupted = wait(5, 0, 100, 0, &[]);
        let profile = profile(vec![first.clone(), interrupted.clone()]);
        let rules = Rules::built_in();
        let chains = Chains::new(&profile, &rules);
        let found = chains.meanwhile(&[&first, &interrupted]).unwrap();
        assert_eq!(rows(&found.at_once), [("role 2", "", None, 0.6), ("role 2", "cpu", None, 0.4)]);
        assert_eq!(chains.meanwhile(&[&interrupted]), None);
    }

    proptest! {
        /// Also where threads wait for each other in circles.
        #[test]
        fn shares_add_up_to_one(
            waits in prop::collection::vec((1u32..5, 0i64..1000, 1i64..500, 0u32..5,
                prop::collection::vec((prop::sample::select(vec!["cpu", "lock", "file_sync"]), 0u64..300), 0..6)), 1..12),
        ) {
            let wakes: Vec<Wake> = waits
                .iter()
                .map(|(tid, begin_ns, length_ns, waker, past)| wait(*tid, *begin_ns, begin_ns + length_ns, *waker, past))
                .collect();
            let profile = profile(wakes);
            let rules = Rules::built_in();
            let chains = Chains::new(&profile, &rules);
            if let Some(found) = chains.meanwhile(&profile.wakes.iter().collect::<Vec<_>>()) {
                for shares in [found.at_once, found.in_the_end] {
                    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
                    prop_assert!((sum - 1.0).abs() < 1e-9, "{sum}");
                }
            }
        }
    }
}

//! Stacks of one moment: which threads are at the same place.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A thread, where it is now, and how it came there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackNow {
    pub tid: u32,
    pub pid: u32,
    /// Its own name.
    pub name: String,
    /// What it is there for, such as "connection".
    pub role: String,
    /// What it is in, such as "lock"; "cpu" where it runs.
    pub state: String,
    /// What it reads, writes or syncs.
    pub file: Option<PathBuf>,
    /// The connection that it works for, and what that executes, as the server says.
    pub connection: Option<u64>,
    pub statement: Option<String>,
    /// Innermost first; empty where it was on a CPU in every snapshot.
    pub functions: Vec<FunctionNow>,
    /// Whether the stack reaches the function that the thread began with.
    pub is_whole: bool,
}

/// A call on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionNow {
    pub name: String,
    /// The file's name without its folder, `[kernel]`, or `[unknown]`.
    pub module: String,
    /// Source file and line, where the build has line tables.
    pub source: Option<(String, u32)>,
}

/// Threads in one state whose stacks have the same functions.
#[derive(Clone, Debug, PartialEq)]
pub struct StackGroup<'a> {
    /// In the order of the argument of [`stack_groups`].
    pub threads: Vec<&'a StackNow>,
}

impl StackGroup<'_> {
    /// Returns how many threads have each role, most first.
    pub fn roles(&self) -> Vec<(&str, usize)> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for thread in &self.threads {
            *counts.entry(&thread.role).or_default() += 1;
        }
        let mut roles: Vec<(&str, usize)> = counts.into_iter().collect();
        roles.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        roles
    }
}

/// A state, and the names and modules of a stack's functions.
type Place<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// Returns groups of threads that are in the same state, at the same place. The largest group comes first, and groups of one size are in the order of
/// their first threads. Groups do not differ by the line within a function.
pub fn stack_groups(stacks: &[StackNow]) -> Vec<StackGroup<'_>> {
    let mut places: BTreeMap<Place<'_>, usize> = BTreeMap::new();
    let mut groups: Vec<StackGroup<'_>> = Vec::new();
    for stack in stacks {
        let functions = stack
            .functions
            .iter()
            .map(|function| (function.name.as_str(), function.module.as_str()))
            .collect();
        let place = *places.entry((&stack.state, functions)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.threads.push(stack),
            None => groups.push(StackGroup { threads: vec![stack] }),
        }
    }
    // It keeps the order of what is equal.
    groups.sort_by_key(|group| std::cmp::Reverse(group.threads.len()));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stack(tid: u32, role: &str, state: &str, functions: &[&str]) -> StackNow {
        let function = |name: &&str| FunctionNow { name: name.to_string(), ..FunctionNow::default() };
        StackNow {
            tid,
            role: role.to_string(),
            state: state.to_string(),
            functions: functions.iter().map(function).collect(),
            ..StackNow::default()
        }
    }

    #[test]
    fn threads_at_the_same_place_are_one_group_whatever_their_role() {
        let stacks = [
            stack(1, "purge", "lock", &["wait", "main"]),
            stack(2, "connection", "sleep", &["wait", "main"]),
            stack(3, "connection", "lock", &["wait", "main"]),
            stack(4, "connection", "lock", &["wait", "main"]),
            stack(5, "connection", "cpu", &[]),
        ];
        let groups = stack_groups(&stacks);
        let tids = |group: &StackGroup<'_>| group.threads.iter().map(|thread| thread.tid).collect::<Vec<_>>();
        assert_eq!(groups.iter().map(tids).collect::<Vec<_>>(), [vec![1, 3, 4], vec![2], vec![5]]);
        assert_eq!(groups[0].roles(), [("connection", 2), ("purge", 1)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_thread_is_in_one_group_and_no_group_is_empty(places in prop::collection::vec((0_usize..3, 0_usize..3), 0..30)) {
            let stacks: Vec<StackNow> = places
                .iter()
                .enumerate()
                .map(|(tid, (state, depth))| stack(tid as u32, "", ["cpu", "lock", "sleep"][*state], &["f"; 3][..*depth]))
                .collect();
            let groups = stack_groups(&stacks);
            let mut tids: Vec<u32> = groups.iter().flat_map(|group| group.threads.iter().map(|thread| thread.tid)).collect();
            tids.sort_unstable();
            prop_assert_eq!(tids, (0..stacks.len() as u32).collect::<Vec<_>>());
            prop_assert!(groups.windows(2).all(|pair| pair[0].threads.len() >= pair[1].threads.len()));
            prop_assert!(groups.iter().all(|group| !group.threads.is_empty()));
        }
    }
}

//! The server's stacks as the page takes them: one tree of all calls, and its times by level, threads and metric.

mod parts;

pub(crate) use parts::{FlamePart, parts, parts_of_other};

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use whyso_explain::profile::{CallTree, FunctionName, Profile, ProfileSample, call_tree};

use crate::source::Stacks;

#[cfg(test)]
mod tests;

/// Metrics and the states whose time they are, as `whyso functions` has them; "other" is of every further state that it knows.
const METRICS: [(&str, &[&str]); 5] = [
    ("cpu", &["cpu"]),
    ("lock", &["lock"]),
    ("io", &["file_read", "file_write", "file_sync"]),
    ("runqueue", &["runqueue"]),
    ("other", &["kernel_lock", "net_send", "page_fault", "sleep", "aio", "other"]),
];
/// Whose time it is: connections' threads, and all others.
const THREADS: [&str; 2] = ["connection", "background"];
/// A node that holds less than this of every column is folded into its caller.
const LEAST_SHARE: f64 = 0.0001;
/// The most nodes that the page is given: of more, those with less are folded, too.
const NODES_MAX: usize = 200_000;
/// Names are cut to so many characters.
const NAME_MAX: usize = 400;
const NS_PER_US: f64 = 1_000.0;

/// What the page's head holds of the stacks.
#[derive(Serialize)]
pub(crate) struct FlameHead {
    pub(crate) metrics: Vec<&'static str>,
    pub(crate) threads: Vec<&'static str>,
    pub(crate) modules: Vec<String>,
    /// Name, and place of its module; the first one stands for all calls.
    pub(crate) names: Vec<(String, usize)>,
    pub(crate) nodes: usize,
    /// The block that holds each node's depth, and the place of its name.
    pub(crate) block: u32,
    /// Of how many nodes the time is in their callers', and the share of every column that each of them held less of.
    pub(crate) folded: usize,
    pub(crate) folded_below: f64,
    pub(crate) levels: Vec<FlameLevel>,
}

#[derive(Serialize)]
pub(crate) struct FlameLevel {
    /// The level's index; `None`: of another run, or all of a recording in which no level ended.
    pub(crate) level: Option<u32>,
    /// What it is called where no level of this run tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) seconds: f64,
    /// Of the window; 0 where there are none that could be compared with this run's.
    pub(crate) transactions: u64,
    /// The block that holds its columns: exclusive microseconds of every node.
    pub(crate) block: u32,
    /// A column a metric of each kind of threads, kind by kind.
    pub(crate) columns: Vec<ColumnHead>,
}

/// What a column rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ColumnHead {
    total_us: f64,
    /// Half of the 95 % interval of the total.
    half_us: f64,
    /// Samples on CPUs, or waits that were chosen.
    samples: u64,
}

/// Stacks by part of a run, merged.
pub(crate) struct Flame {
    parts: Vec<FlamePart>,
    profile: Profile,
}

impl Flame {
    /// The stacks of one run, or of several, each with its parts that are told. `None` where no stack lies in a window.
    pub(crate) fn new(runs: Vec<(Stacks, Vec<FlamePart>)>) -> Option<Flame> {
        let mut flame = Flame { parts: Vec::new(), profile: Profile::default() };
        for (stacks, parts) in runs {
            flame.add(stacks, parts);
        }
        (!flame.profile.stacks.is_empty()).then_some(flame)
    }

    fn add(&mut self, stacks: Stacks, parts: Vec<FlamePart>) {
        let Flame { parts: before, profile } = self;
        let part_at = |t_ns: i64| {
            let holds = |part: &FlamePart| t_ns >= part.window.begin_ns && t_ns < part.window.end_ns;
            parts.iter().position(holds).map(|place| before.len() + place)
        };
        // A run numbers its own stacks from 0.
        let first_stack = profile.stacks.keys().next_back().map_or(0, |last| last + 1);
        let columns = (before.len() + parts.len()) * COLUMNS_PER_LEVEL;
        profile.metrics = (0..columns).map(|column| METRICS[column % METRICS.len()].0.to_string()).collect();
        let sampled = stacks
            .samples
            .iter()
            .map(|one| (one.t_ns, one.role.as_str(), "cpu", one.stack, one.weight_ns, 0));
        let waited = stacks.waits.iter().map(|one| {
            (one.t_ns, one.role.as_str(), one.state.as_str(), one.stack, one.weight_ns, one.length_ns)
        });
        let mut used: BTreeSet<u32> = BTreeSet::new();
        for (t_ns, role, state, stack, weight_ns, seen_ns) in sampled.chain(waited) {
            let Some(part) = part_at(t_ns) else { continue };
            let Some(metric) = METRICS.iter().position(|(_, states)| states.contains(&state)) else {
                continue;
            };
            used.insert(stack);
            let threads = usize::from(role != THREADS[0]);
            let metric = part * COLUMNS_PER_LEVEL + threads * METRICS.len() + metric;
            let (weight_ns, seen_ns) = (weight_ns as f64, seen_ns as f64);
            profile.samples.push(ProfileSample { stack: first_stack + stack, metric, weight_ns, seen_ns });
        }
        for frame in stacks.frames.into_iter().filter(|frame| used.contains(&frame.stack)) {
            let function = FunctionName { name: frame.function, module: frame.module };
            profile.stacks.entry(first_stack + frame.stack).or_default().push(function);
        }
        before.extend(parts);
    }

    /// The merged calls, with the share that folded ones held less of.
    pub(crate) fn tree(&self) -> (CallTree<'_>, f64) {
        self.tree_of(NODES_MAX)
    }

    fn tree_of(&self, nodes_max: usize) -> (CallTree<'_>, f64) {
        let mut least_share = LEAST_SHARE;
        loop {
            let tree = call_tree(&self.profile, least_share);
            if tree.nodes.len() <= nodes_max || least_share >= 1.0 {
                return (tree, least_share);
            }
            least_share *= 2.0;
        }
    }

    /// The head, without the places of blocks, and the columns of the tree itself: depths, and places of names.
    pub(crate) fn head(&self, tree: &CallTree<'_>, folded_below: f64) -> (FlameHead, [Vec<f64>; 2]) {
        let mut modules = Numbered::default();
        let mut names = Numbered::default();
        let depths = tree.nodes.iter().map(|node| f64::from(node.depth)).collect();
        let places = tree
            .nodes
            .iter()
            .map(|node| names.place((node.name, modules.place(node.module))) as f64)
            .collect();
        let halves_ns = self.profile.half_intervals_ns();
        let mut columns = vec![ColumnHead::default(); self.profile.metrics.len()];
        for sample in self.profile.samples.iter().filter(|one| self.profile.stacks.contains_key(&one.stack)) {
            let column = &mut columns[sample.metric];
            column.total_us += sample.weight_ns / NS_PER_US;
            column.samples += 1;
        }
        for (column, half_ns) in columns.iter_mut().zip(halves_ns) {
            column.total_us = column.total_us.round();
            column.half_us = (half_ns / NS_PER_US).round();
        }
        let parts = self.parts.iter().zip(columns.chunks(COLUMNS_PER_LEVEL));
        let cut = |(name, module): &(&str, usize)| (name.chars().take(NAME_MAX).collect(), *module);
        let head = FlameHead {
            metrics: METRICS.iter().map(|(name, _)| *name).collect(),
            threads: THREADS.to_vec(),
            modules: modules.list.iter().map(ToString::to_string).collect(),
            names: names.list.iter().map(cut).collect(),
            nodes: tree.nodes.len(),
            block: 0,
            folded: tree.folded,
            folded_below,
            levels: parts.map(|(part, columns)| part.head(columns.to_vec())).collect(),
        };
        (head, [depths, places])
    }

    /// The columns of a level, by its place in the head: whole microseconds.
    pub(crate) fn columns<'a>(tree: &'a CallTree<'_>, level: usize) -> impl Iterator<Item = Vec<f64>> + 'a {
        let first = level * COLUMNS_PER_LEVEL;
        (first..first + COLUMNS_PER_LEVEL).map(move |column| {
            tree.exclusive_ns(column).into_iter().map(|ns| (ns / NS_PER_US).round()).collect()
        })
    }
}

const COLUMNS_PER_LEVEL: usize = METRICS.len() * THREADS.len();

/// Distinct things in the order in which they were met.
pub(crate) struct Numbered<T> {
    places: BTreeMap<T, usize>,
    pub(crate) list: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { places: BTreeMap::new(), list: Vec::new() }
    }
}

impl<T: Clone + Ord> Numbered<T> {
    pub(crate) fn place(&mut self, one: T) -> usize {
        let next = self.list.len();
        let place = *self.places.entry(one.clone()).or_insert(next);
        if place == next {
            self.list.push(one);
        }
        place
    }
}

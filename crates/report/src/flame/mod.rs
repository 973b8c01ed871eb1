//! The server's stacks as the page takes them: one tree of all calls, and its times by level, threads and metric.

mod lines;
mod parts;
mod samples;

#[cfg(test)]
pub(crate) use lines::SourceTexts;
pub(crate) use lines::{LinesHead, texts};
pub(crate) use parts::{FlamePart, parts, parts_of_other};
pub(crate) use samples::{Places, SamplesHead};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;
use ts_rs::TS;
use whyso_profile::{
    CallTree, FunctionName, OBSERVER_ROLE, Profile, ProfileSample, SourcePlace, call_tree_with_places,
    metric_of,
};

use crate::source::Stacks;
use samples::SampleOrigin;
use whyso_model::State;
use whyso_record::{StackTotal, UNKNOWN_THREAD};

#[cfg(test)]
mod tests;

/// The metric of all states that have none of their own.
const OTHER: &str = "other";
/// How many metrics there are, [`OTHER`] the last.
const METRICS: usize = whyso_profile::METRICS.len() + 1;
/// Whose time it is: connections' threads, all other threads, and the observer. The page hides the observer's time unless it is asked for.
const THREADS: [&str; 3] = ["connection", "background", OBSERVER_ROLE];
/// A node that holds less than this of every column is folded into its caller.
const LEAST_SHARE: f64 = 0.0001;
/// The most nodes that the page has. Of more, those with less time are folded, too.
const NODES_MAX: usize = 200_000;
/// Longest name, in characters.
const NAME_MAX: usize = 400;
const NS_PER_US: f64 = 1_000.0;

/// What the page's head holds of the stacks.
#[derive(Serialize, TS)]
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
    /// The share of the stacks' time that whyso's own probes and questions took, 0 to 1.
    pub(crate) observer_share: f64,
    pub(crate) levels: Vec<FlameLevel>,
    /// What filters work on; `None` where it is too much for a page.
    pub(crate) samples: Option<SamplesHead>,
    /// Whether a build has the lines of its sources.
    pub(crate) knows_lines: bool,
    /// Where in the sources the calls were; absent where no build has them, and where samples are not separated so finely.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub(crate) lines: Option<LinesHead>,
}

#[derive(Serialize, TS)]
pub(crate) struct FlameLevel {
    /// The level's index; `None`: of another run, or all of a recording in which no level ended.
    pub(crate) level: Option<u32>,
    /// Its name where it is no level of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub(crate) name: Option<String>,
    pub(crate) seconds: f64,
    /// Of the window; 0 where there are none that could be compared with this run's.
    pub(crate) transactions: u64,
    /// The block that holds its columns: exclusive microseconds of every node.
    pub(crate) block: u32,
    /// A column a metric of each kind of threads, kind by kind.
    pub(crate) columns: Vec<FlameColumn>,
}

/// What a column is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, TS)]
pub(crate) struct FlameColumn {
    total_us: f64,
    /// Half of the 95 % interval of the total.
    half_us: f64,
    /// Samples on CPUs, or waits that were chosen.
    samples: u64,
}

/// Stacks by part of a run, merged.
pub(crate) struct Flame {
    /// First those of the run that the report is of.
    parts: Vec<FlamePart>,
    own_parts: usize,
    /// Its metrics are the columns of each part. The last ones are of what lies in no part of the first run: windows of any kind find their calls.
    profile: Profile,
    /// Where in the sources each function of a stack was, in the order of the profile's stacks; `None` where the build does not have the line.
    places: BTreeMap<u32, Vec<Option<SourcePlace>>>,
    /// Where each sample of the profile comes from.
    origins: Vec<SampleOrigin>,
    /// The observer's share of the stacks' time, 0 to 1: the largest of all runs.
    observer_share: f64,
    /// Where samples are added up over buckets of time: how long these are. 0: they are one by one.
    bucket_ns: i64,
}

impl Flame {
    /// The stacks of one run, or of several, each with its parts. `None` where no stack lies in a window.
    pub(crate) fn new(runs: Vec<(Stacks, Vec<FlamePart>)>) -> Option<Flame> {
        let own_parts = runs.first().map_or(0, |(_, parts)| parts.len());
        let mut flame = Flame {
            parts: Vec::new(),
            own_parts,
            profile: Profile::default(),
            places: BTreeMap::new(),
            origins: Vec::new(),
            observer_share: runs.iter().map(|(stacks, _)| stacks.observer_share()).fold(0.0, f64::max),
            bucket_ns: runs.iter().map(|(stacks, _)| stacks.bucket_ns()).max().unwrap_or(0),
        };
        let parts: usize = runs.iter().map(|(_, parts)| parts.len()).sum();
        for (stacks, own) in runs {
            flame.add(stacks, own, parts);
        }
        let is_in_part = |sample: &ProfileSample| sample.metric < parts * COLUMNS_PER_LEVEL;
        flame.profile.samples.iter().any(is_in_part).then_some(flame)
    }

    /// `all`: how many parts there are of all runs.
    fn add(&mut self, stacks: Stacks, parts: Vec<FlamePart>, all: usize) {
        let Flame { parts: before, profile, places, origins, .. } = self;
        let is_own = before.is_empty();
        let part_at = |t_ns: i64| {
            let holds = |part: &FlamePart| t_ns >= part.window.begin_ns && t_ns < part.window.end_ns;
            parts.iter().position(holds).map(|place| before.len() + place)
        };
        // A run numbers its own stacks from 0.
        let first_stack = profile.stacks.keys().next_back().map_or(0, |last| last + 1);
        let names = metric_names();
        let columns = (all + 1) * COLUMNS_PER_LEVEL;
        profile.metrics = (0..columns).map(|column| names[column % METRICS].to_string()).collect();
        let mut used: BTreeSet<u32> = BTreeSet::new();
        for (at, sum) in moments(&stacks) {
            let Some(metric) = metric_of(at.state) else { continue };
            let Some(part) = part_at(at.t_ns).or(is_own.then_some(all)) else { continue };
            used.insert(at.stack);
            let metric = part * COLUMNS_PER_LEVEL + threads_of(at.role) * METRICS + metric;
            profile.samples.push(ProfileSample { stack: first_stack + at.stack, metric, ..sum });
            origins.push(SampleOrigin {
                t_ns: at.t_ns,
                tid: at.tid,
                role: at.role.to_string(),
                connection: stacks.connections.at(at.tid, at.t_ns).copied(),
                statement: stacks.statements.at(at.tid, at.t_ns).cloned(),
                other_part: (!is_own).then_some(part),
            });
        }
        for frame in stacks.frames.into_iter().filter(|frame| used.contains(&frame.stack)) {
            let function = FunctionName { name: frame.function, module: frame.module };
            let place = frame.source_file.zip(frame.line).filter(|(_, line)| *line > 0);
            let place = place.map(|(file, line)| SourcePlace { file, line });
            places.entry(first_stack + frame.stack).or_default().push(place);
            profile.stacks.entry(first_stack + frame.stack).or_default().push(function);
        }
        before.extend(parts);
    }

    /// The merged calls, by stack the place of its time in them, and the share that folded ones held less of.
    pub(crate) fn tree(&self) -> (CallTree<'_>, HashMap<u32, usize>, f64) {
        self.tree_of(NODES_MAX)
    }

    fn tree_of(&self, nodes_max: usize) -> (CallTree<'_>, HashMap<u32, usize>, f64) {
        let mut least_share = LEAST_SHARE;
        loop {
            let (tree, places) = call_tree_with_places(&self.profile, least_share);
            if tree.nodes.len() <= nodes_max || least_share >= 1.0 {
                return (tree, places, least_share);
            }
            least_share *= 2.0;
        }
    }

    /// The head, without the places of blocks, and the columns of the tree itself: depths, and places of names.
    pub(crate) fn head(&self, tree: &CallTree<'_>, folded_below: f64) -> (FlameHead, [Vec<f64>; 2]) {
        let mut modules = Numbering::default();
        let mut names = Numbering::default();
        let depths = tree.nodes.iter().map(|node| f64::from(node.depth)).collect();
        let places = tree
            .nodes
            .iter()
            .map(|node| names.place((node.name, modules.place(node.module))) as f64)
            .collect();
        let halves_ns = self.profile.half_intervals_ns();
        let mut columns = vec![FlameColumn::default(); self.profile.metrics.len()];
        for sample in
            self.profile.samples.iter().filter(|sample| self.profile.stacks.contains_key(&sample.stack))
        {
            let column = &mut columns[sample.metric];
            column.total_us += sample.weight_ns / NS_PER_US;
            column.samples += sample.count;
        }
        for (column, half_ns) in columns.iter_mut().zip(halves_ns) {
            column.total_us = column.total_us.round();
            column.half_us = (half_ns / NS_PER_US).round();
        }
        let parts = self.parts.iter().zip(columns.chunks(COLUMNS_PER_LEVEL));
        let cut = |(name, module): &(&str, usize)| (name.chars().take(NAME_MAX).collect(), *module);
        let head = FlameHead {
            metrics: metric_names(),
            threads: THREADS.to_vec(),
            modules: modules.list.iter().map(ToString::to_string).collect(),
            names: names.list.iter().map(cut).collect(),
            nodes: tree.nodes.len(),
            block: 0,
            folded: tree.folded,
            folded_below,
            observer_share: self.observer_share,
            levels: parts.map(|(part, columns)| part.head(columns.to_vec())).collect(),
            samples: None,
            knows_lines: false,
            lines: None,
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

const COLUMNS_PER_LEVEL: usize = METRICS * THREADS.len();

/// When a sample or a wait was, of whom, and where.
struct Moment<'a> {
    t_ns: i64,
    tid: u32,
    role: &'a str,
    state: &'a str,
    stack: u32,
}

fn added_up<'a>(role: &'a str, total: &'a StackTotal) -> (Moment<'a>, ProfileSample) {
    let StackTotal { t_ns, state, stack, sum, .. } = total;
    let (weight_ns, count, variance_ns2) = (sum.weight_ns as f64, sum.count, sum.variance_ns2);
    let sample = ProfileSample { stack: *stack, metric: 0, weight_ns, count, variance_ns2 };
    (Moment { t_ns: *t_ns, tid: UNKNOWN_THREAD, role, state, stack: *stack }, sample)
}

/// All samples and waits, each with its weight: one by one, or added up over buckets of time. A probe is executed by a connection's
/// thread, and its time is the observer's.
fn moments(stacks: &Stacks) -> Vec<(Moment<'_>, ProfileSample)> {
    if let Some(buckets) = &stacks.buckets {
        let shown = buckets.totals.iter().map(|total| (&*total.role, total));
        let of_observer = buckets.observer.iter().map(|total| (OBSERVER_ROLE, total));
        return shown.chain(of_observer).map(|(role, total)| added_up(role, total)).collect();
    }
    let samples = stacks.samples.iter().map(|sample| (sample.role.as_str(), sample));
    let samples = samples.chain(stacks.observer_samples.iter().map(|sample| (OBSERVER_ROLE, sample)));
    let sampled = samples.map(|(role, sample)| {
        let at = Moment {
            t_ns: sample.t_ns,
            tid: sample.tid,
            role,
            state: State::Cpu.name(),
            stack: sample.stack,
        };
        (at, ProfileSample::one(sample.stack, 0, sample.weight_ns as f64, 0.0))
    });
    let waits = stacks.waits.iter().map(|wait| (wait.role.as_str(), wait));
    let waits = waits.chain(stacks.observer_waits.iter().map(|wait| (OBSERVER_ROLE, wait)));
    let waited = waits.map(|(role, wait)| {
        let at = Moment { t_ns: wait.t_ns, tid: wait.tid, role, state: &wait.state, stack: wait.stack };
        (at, ProfileSample::one(wait.stack, 0, wait.weight_ns as f64, wait.length_ns as f64))
    });
    sampled.chain(waited).collect()
}

/// The place of a role among [`THREADS`].
fn threads_of(role: &str) -> usize {
    THREADS.iter().position(|name| *name == role).unwrap_or(1)
}

/// By the places that [`metric_of`] gives.
fn metric_names() -> Vec<&'static str> {
    whyso_profile::METRICS.iter().map(|(name, _)| *name).chain([OTHER]).collect()
}

/// Distinct things in the order in which they were met.
pub(crate) struct Numbering<T> {
    places: BTreeMap<T, usize>,
    pub(crate) list: Vec<T>,
}

impl<T> Default for Numbering<T> {
    fn default() -> Numbering<T> {
        Numbering { places: BTreeMap::new(), list: Vec::new() }
    }
}

impl<T: Clone + Ord> Numbering<T> {
    pub(crate) fn place(&mut self, item: T) -> usize {
        let next = self.list.len();
        let place = *self.places.entry(item.clone()).or_insert(next);
        if place == next {
            self.list.push(item);
        }
        place
    }
}

//! The lines of the sources that stacks were at, as the page takes them.
//!
//! They are the tree of calls once more, each call with the line that it was at.

mod text;

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use ts_rs::TS;
use whyso_profile::{CallTree, SourcePlace};

use super::{Flame, Numbering};

#[cfg(test)]
pub(crate) use text::SourceTexts;
pub(crate) use text::texts;

/// The most calls with lines that the page has. Of the stacks with the least time beyond that, the lines are left out.
const NODES_MAX: usize = 200_000;
/// What stands for the place of a file where there is no line.
const NOT_KNOWN: f64 = -1.0;
const LEFT_OUT: f64 = -2.0;

/// What the page's head holds of lines.
#[derive(Serialize, TS)]
pub(crate) struct LinesHead {
    pub(crate) nodes: usize,
    /// The block that holds, in this order:
    ///
    /// - of each call: its depth, the place of its line, and its node in the tree of calls without lines;
    /// - of each line: the place of its function's name, the place of its file, and its number.
    ///
    /// Instead of a file, −1 stands for a build without lines, and −2 for a line that is left out to keep the page small.
    pub(crate) block: u32,
    /// The block that holds the files and their text, as JSON.
    pub(crate) texts_block: u32,
}

/// Where a function was on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    /// Place of the file, and the line.
    At(usize, u32),
    NotKnown,
    LeftOut,
}

/// A call: the node of its function in the tree of calls, and where it was.
type Call = (usize, Place);

/// The tree of calls with their lines, in preorder. Node 0 stands for all calls.
pub(crate) struct LineTree {
    depths: Vec<u32>,
    /// By node: its place among the lines.
    lines: Vec<usize>,
    /// By node: the node of the tree of calls that it is a part of.
    nodes: Vec<usize>,
    /// Place of the function's name, and where it was.
    names: Vec<(usize, Place)>,
    files: Vec<String>,
    /// By stack: the node that its innermost function's time is in.
    pub(crate) places: HashMap<u32, usize>,
    /// By line: what part of the metrics' time it is of, added up over metrics; in what order lines are worth their text.
    worth: Vec<f64>,
}

impl Flame {
    /// `node_of`: by stack its node in the tree; `name_of`: by node the place of its name. `None` where no build has lines.
    pub(crate) fn lines(
        &self,
        tree: &CallTree<'_>,
        node_of: &HashMap<u32, usize>,
        name_of: &[f64],
    ) -> Option<LineTree> {
        self.lines_of(tree, node_of, name_of, NODES_MAX)
    }

    fn lines_of(
        &self,
        tree: &CallTree<'_>,
        node_of: &HashMap<u32, usize>,
        name_of: &[f64],
        nodes_max: usize,
    ) -> Option<LineTree> {
        let weights = self.weights();
        let mut stacks: Vec<(u32, usize)> = node_of.iter().map(|(stack, node)| (*stack, *node)).collect();
        let weight = |stack: &u32| weights.get(stack).copied().unwrap_or(0.0);
        stacks.sort_by(|a, b| weight(&b.0).total_cmp(&weight(&a.0)).then(a.0.cmp(&b.0)));
        let callers = callers(tree);
        let mut files: Numbering<&str> = Numbering::default();
        let mut found = Calls::default();
        let mut ends: Vec<(u32, usize)> = Vec::with_capacity(stacks.len());
        for (stack, node) in &stacks {
            let places = self.places.get(stack).map_or(&[][..], Vec::as_slice);
            let is_left_out = found.calls.len() >= nodes_max;
            let mut at = |depth: usize| match places.get(depth) {
                Some(Some(_)) if is_left_out => Place::LeftOut,
                Some(Some(SourcePlace { file, line })) => Place::At(files.place(file), *line),
                _ => Place::NotKnown,
            };
            // The functions of a stack stand innermost first, and those that the tree folded are the first of them.
            let path = path_to(&callers, *node);
            let outermost = self.profile.stacks.get(stack).map_or(0, Vec::len);
            let calls = path.iter().enumerate().map(|(depth, node)| (*node, at(outermost - 1 - depth)));
            ends.push((*stack, found.enter(calls)));
        }
        if files.list.is_empty() {
            return None;
        }
        Some(found.preordered(ends, name_of, files.list.iter().map(ToString::to_string).collect(), weight))
    }

    /// By stack: its time as a part of its metric's, added up over metrics.
    fn weights(&self) -> HashMap<u32, f64> {
        let totals_ns = self.profile.total_ns();
        let mut weights: HashMap<u32, f64> = HashMap::new();
        for sample in &self.profile.samples {
            *weights.entry(sample.stack).or_default() += sample.weight_ns / totals_ns[sample.metric].max(1.0);
        }
        weights
    }
}

/// Calls in the order in which they were found, each after its caller; the first one stands for all.
#[derive(Default)]
struct Calls {
    calls: Vec<Call>,
    callees: Vec<Vec<usize>>,
    found: HashMap<(usize, Call), usize>,
}

impl Calls {
    /// From the outermost call on; the last one's place.
    fn enter(&mut self, path: impl Iterator<Item = Call>) -> usize {
        if self.calls.is_empty() {
            self.calls.push((0, Place::NotKnown));
            self.callees.push(Vec::new());
        }
        let mut at = 0;
        for call in path {
            let (caller, next) = (at, self.calls.len());
            at = *self.found.entry((caller, call)).or_insert(next);
            if at == next {
                self.calls.push(call);
                self.callees.push(Vec::new());
                self.callees[caller].push(at);
            }
        }
        at
    }

    fn preordered(
        mut self,
        ends: Vec<(u32, usize)>,
        name_of: &[f64],
        files: Vec<String>,
        weight: impl Fn(&u32) -> f64,
    ) -> LineTree {
        let mut inclusive = vec![0.0; self.calls.len()];
        for (stack, end) in &ends {
            inclusive[*end] += weight(stack);
        }
        for at in (0..self.calls.len()).rev() {
            inclusive[at] += self.callees[at].iter().map(|callee| inclusive[*callee]).sum::<f64>();
        }
        let mut tree = LineTree {
            depths: Vec::new(),
            lines: Vec::new(),
            nodes: Vec::new(),
            names: Vec::new(),
            files,
            places: HashMap::new(),
            worth: Vec::new(),
        };
        let mut names: Numbering<(usize, Place)> = Numbering::default();
        let mut place_of = vec![0; self.calls.len()];
        let mut next = vec![(0, 0)];
        while let Some((at, depth)) = next.pop() {
            place_of[at] = tree.depths.len();
            let (node, place) = self.calls[at];
            let line = names.place((name_of[node] as usize, place));
            tree.worth.resize(names.list.len(), 0.0);
            tree.worth[line] += inclusive[at];
            tree.depths.push(depth);
            tree.lines.push(line);
            tree.nodes.push(node);
            // The last one that is pushed comes first.
            let mut callees = std::mem::take(&mut self.callees[at]);
            callees.sort_by_key(|callee| std::cmp::Reverse(self.calls[*callee]));
            next.extend(callees.into_iter().map(|callee| (callee, depth + 1)));
        }
        tree.names = names.list;
        tree.places = ends.into_iter().map(|(stack, end)| (stack, place_of[end])).collect();
        tree
    }
}

impl LineTree {
    pub(crate) fn head(&self, block: u32, texts_block: u32) -> LinesHead {
        LinesHead { nodes: self.depths.len(), block, texts_block }
    }

    /// As [`LinesHead::block`] has them.
    pub(crate) fn columns(&self) -> [Vec<f64>; 6] {
        let file = |(_, place): &(usize, Place)| match place {
            Place::At(file, _) => *file as f64,
            Place::NotKnown => NOT_KNOWN,
            Place::LeftOut => LEFT_OUT,
        };
        let line = |(_, place): &(usize, Place)| match place {
            Place::At(_, line) => f64::from(*line),
            _ => 0.0,
        };
        [
            self.depths.iter().map(|depth| f64::from(*depth)).collect(),
            self.lines.iter().map(|line| *line as f64).collect(),
            self.nodes.iter().map(|node| *node as f64).collect(),
            self.names.iter().map(|(name, _)| *name as f64).collect(),
            self.names.iter().map(file).collect(),
            self.names.iter().map(line).collect(),
        ]
    }

    /// Lines by file and number, each with what it is worth.
    fn worth(&self) -> BTreeMap<(usize, u32), f64> {
        let mut worth: BTreeMap<(usize, u32), f64> = BTreeMap::new();
        for ((_, place), share) in self.names.iter().zip(&self.worth) {
            if let Place::At(file, line) = place {
                *worth.entry((*file, *line)).or_default() += share;
            }
        }
        worth
    }
}

/// By node, the one that called it; the first one stands for all.
fn callers(tree: &CallTree<'_>) -> Vec<usize> {
    let mut path: Vec<usize> = Vec::new();
    let caller = |(place, node): (usize, &whyso_profile::CallNode<'_>)| {
        path.truncate(node.depth as usize);
        let caller = path.last().copied().unwrap_or(0);
        path.push(place);
        caller
    };
    tree.nodes.iter().enumerate().map(caller).collect()
}

/// The nodes from the outermost call to a node; none of the first one.
fn path_to(callers: &[usize], node: usize) -> Vec<usize> {
    let mut path: Vec<usize> = std::iter::successors(Some(node).filter(|node| *node > 0), |node| {
        Some(callers[*node]).filter(|node| *node > 0)
    })
    .collect();
    path.reverse();
    path
}

#[cfg(test)]
mod tests;

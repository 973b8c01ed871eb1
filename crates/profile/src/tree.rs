//! Who called whom, merged over all stacks: what a flame graph draws.

use std::collections::{BTreeMap, HashMap};

use crate::function::{FunctionName, TOTAL};
use crate::profile::Profile;

/// The merged stacks of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTree<'a> {
    /// Each before those that it called, which stand in the order of their functions. The first one called all others, and is no function:
    /// it is named [`TOTAL`].
    pub nodes: Vec<CallNode<'a>>,
    /// How many more there were, whose time is in their callers' now.
    pub folded: usize,
    /// By metric: (node, exclusive time in nanoseconds), ascending and without zeros.
    times: Vec<Vec<(usize, f64)>>,
}

/// A function as it was called on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNode<'a> {
    /// How many stand above it: 0 of the first one alone.
    pub depth: u32,
    pub name: &'a str,
    pub module: &'a str,
}

impl CallTree<'_> {
    /// Returns the exclusive time of every node in one metric, in nanoseconds.
    pub fn exclusive_ns(&self, metric: usize) -> Vec<f64> {
        let mut exclusive_ns = vec![0.0; self.nodes.len()];
        for (node, ns) in self.times.get(metric).into_iter().flatten() {
            exclusive_ns[*node] = *ns;
        }
        exclusive_ns
    }
}

/// Nodes in the order in which they were found, each after its caller.
struct TreeBuilder<'a> {
    functions: Vec<Option<&'a FunctionName>>,
    callers: Vec<usize>,
    called: HashMap<(usize, &'a FunctionName), usize>,
    /// By metric: exclusive time by node.
    times: Vec<BTreeMap<usize, f64>>,
}

impl<'a> TreeBuilder<'a> {
    fn new(metrics: usize) -> TreeBuilder<'a> {
        TreeBuilder {
            functions: vec![None],
            callers: vec![0],
            called: HashMap::new(),
            times: vec![BTreeMap::new(); metrics],
        }
    }

    /// The node of a stack's innermost function.
    fn node(&mut self, stack: &'a [FunctionName]) -> usize {
        let mut node = 0;
        for function in stack.iter().rev() {
            let next = self.functions.len();
            let caller = node;
            node = *self.called.entry((caller, function)).or_insert(next);
            if node == next {
                self.functions.push(Some(function));
                self.callers.push(caller);
            }
        }
        node
    }

    /// Returns for each node whether it holds at least this share of some metric's time, with all that it called.
    fn large_nodes(&self, least_share: f64) -> Vec<bool> {
        let mut is_large = vec![false; self.functions.len()];
        is_large[0] = true;
        for times in &self.times {
            let mut inclusive = vec![0.0; self.functions.len()];
            times.iter().for_each(|(node, ns)| inclusive[*node] = *ns);
            for node in (1..inclusive.len()).rev() {
                inclusive[self.callers[node]] += inclusive[node];
            }
            let least = inclusive[0] * least_share;
            for (node, ns) in inclusive.iter().enumerate() {
                is_large[node] |= *ns > 0.0 && *ns >= least;
            }
        }
        is_large
    }

    /// Returns the large nodes, in the order of the tree, with their depths.
    fn order(&self, is_large: &[bool]) -> Vec<(usize, u32)> {
        let mut callees: Vec<Vec<usize>> = vec![Vec::new(); self.functions.len()];
        for node in (1..self.functions.len()).filter(|node| is_large[*node]) {
            callees[self.callers[node]].push(node);
        }
        let mut order = Vec::new();
        let mut next = vec![(0, 0)];
        while let Some((node, depth)) = next.pop() {
            order.push((node, depth));
            // The last one that is pushed comes first.
            callees[node].sort_by_key(|callee| std::cmp::Reverse(self.functions[*callee]));
            next.extend(callees[node].iter().map(|callee| (*callee, depth + 1)));
        }
        order
    }
}

/// Merges a profile's stacks from their outermost functions on. A node that holds less than `least_share` (0 to 1) of every metric's time, with
/// all that it called, is folded into its caller.
pub fn call_tree(profile: &Profile, least_share: f64) -> CallTree<'_> {
    call_tree_with_places(profile, least_share).0
}

/// Returns the same as [`call_tree`], and by stack the place of the node that its innermost function's time is in.
pub fn call_tree_with_places(profile: &Profile, least_share: f64) -> (CallTree<'_>, HashMap<u32, usize>) {
    let mut builder = TreeBuilder::new(profile.metrics.len());
    let mut node_of: HashMap<u32, usize> = HashMap::new();
    for (sample, stack) in profile.samples_with_stacks() {
        let node = *node_of.entry(sample.stack).or_insert_with(|| builder.node(stack));
        *builder.times[sample.metric].entry(node).or_default() += sample.weight_ns;
    }
    let is_large = builder.large_nodes(least_share);
    let order = builder.order(&is_large);
    let mut place_of = vec![0; is_large.len()];
    for (place, (node, _)) in order.iter().enumerate() {
        place_of[*node] = place;
    }
    // A caller was found before those that it called.
    for node in (1..is_large.len()).filter(|node| !is_large[*node]) {
        place_of[node] = place_of[builder.callers[node]];
    }
    let mut times = Vec::with_capacity(builder.times.len());
    for by_node in &builder.times {
        let mut by_place: BTreeMap<usize, f64> = BTreeMap::new();
        for (node, ns) in by_node {
            *by_place.entry(place_of[*node]).or_default() += ns;
        }
        times.push(by_place.into_iter().filter(|(_, ns)| *ns > 0.0).collect());
    }
    let call = |(node, depth): &(usize, u32)| match builder.functions[*node] {
        Some(function) => CallNode { depth: *depth, name: &function.name, module: &function.module },
        None => CallNode { depth: *depth, name: TOTAL, module: "" },
    };
    let tree =
        CallTree { nodes: order.iter().map(call).collect(), folded: is_large.len() - order.len(), times };
    node_of.values_mut().for_each(|node| *node = place_of[*node]);
    (tree, node_of)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::functions::functions;
    use crate::profile::ProfileSample;

    /// Stacks as `main;walk;compare`, outermost first, with the time in the metric of the same place.
    fn profile(metrics: usize, stacks: &[(String, Vec<u32>)]) -> Profile {
        let names = (0..metrics).map(|metric| format!("metric{metric}")).collect();
        let mut profile = Profile { metrics: names, ..Profile::default() };
        let function = |name: &str| FunctionName { name: name.to_string(), module: "server".to_string() };
        for (stack, (path, weights)) in stacks.iter().enumerate() {
            let stack = stack as u32;
            profile.stacks.insert(stack, path.split(';').rev().map(function).collect());
            for (metric, ns) in weights.iter().enumerate() {
                let weight_ns = f64::from(*ns);
                profile.samples.push(ProfileSample::one(stack, metric, weight_ns, 0.0));
            }
        }
        profile
    }

    fn rows(tree: &CallTree<'_>, metric: usize) -> Vec<String> {
        let row = |(node, ns): (&CallNode<'_>, f64)| {
            format!("{}{} {ns}", " ".repeat(node.depth as usize), node.name)
        };
        tree.nodes.iter().zip(tree.exclusive_ns(metric)).map(row).collect()
    }

    #[test]
    fn paths_that_begin_alike_are_one() {
        let stacks =
            [("main;walk;walk", vec![3, 0]), ("main;walk", vec![2, 5]), ("main;read;walk", vec![1, 0])];
        let profile = profile(2, &stacks.map(|(path, weights)| (path.to_string(), weights)));
        let tree = call_tree(&profile, 0.0);
        assert_eq!(
            rows(&tree, 0),
            ["<Total> 0", " main 0", "  read 0", "   walk 1", "  walk 2", "   walk 3"]
        );
        assert_eq!(tree.exclusive_ns(1), [0.0, 0.0, 0.0, 0.0, 5.0, 0.0]);
        assert_eq!(tree.folded, 0);
    }

    #[test]
    fn what_is_little_in_every_metric_is_in_its_callers_time() {
        let stacks = [("main;a;b", vec![1, 0]), ("main;c", vec![1, 50]), ("main", vec![98, 50])];
        let profile = profile(2, &stacks.map(|(path, weights)| (path.to_string(), weights)));
        let tree = call_tree(&profile, 0.02);
        assert_eq!(rows(&tree, 0), ["<Total> 0", " main 99", "  c 1"]);
        assert_eq!(tree.folded, 2);
    }

    #[test]
    fn a_profile_without_samples_is_a_tree_of_only_its_total() {
        let profile = profile(1, &[]);
        assert_eq!(rows(&call_tree(&profile, 0.0001), 0), ["<Total> 0"]);
    }

    fn stacks() -> impl Strategy<Value = Vec<(String, Vec<u32>)>> {
        let path = prop::collection::vec("[a-d]", 1..7).prop_map(|names| names.join(";"));
        prop::collection::vec((path, prop::collection::vec(0u32..1_000_000, 3)), 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn exclusive_times_add_up_to_the_profiles_totals(stacks in stacks(), least_share in 0.0..0.3) {
            let profile = profile(3, &stacks);
            let total = functions(&profile).total;
            let tree = call_tree(&profile, least_share);
            for metric in 0..3 {
                prop_assert_eq!(tree.exclusive_ns(metric).iter().sum::<f64>(), total.exclusive_ns[metric]);
            }
            prop_assert!(tree.nodes.windows(2).all(|two| two[1].depth >= 1 && two[1].depth <= two[0].depth + 1));
        }

        #[test]
        fn times_by_the_places_of_stacks_are_the_trees(stacks in stacks(), least_share in 0.0..0.3) {
            let profile = profile(3, &stacks);
            let (tree, places) = call_tree_with_places(&profile, least_share);
            for metric in 0..3 {
                let mut exclusive = vec![0.0; tree.nodes.len()];
                for sample in profile.samples.iter().filter(|sample| sample.metric == metric) {
                    exclusive[places[&sample.stack]] += sample.weight_ns;
                }
                prop_assert_eq!(exclusive, tree.exclusive_ns(metric));
            }
        }

        #[test]
        fn a_nodes_time_with_all_that_it_called_is_that_of_its_path(stacks in stacks()) {
            let profile = profile(3, &stacks);
            let tree = call_tree(&profile, 0.0);
            let exclusive = tree.exclusive_ns(0);
            let mut path: Vec<&str> = Vec::new();
            for (place, node) in tree.nodes.iter().enumerate().skip(1) {
                path.truncate(node.depth as usize - 1);
                path.push(node.name);
                let beneath = tree.nodes[place + 1..].iter().take_while(|other| other.depth > node.depth).count();
                let begins = |other: &str| other.split(';').take(path.len()).eq(path.iter().copied());
                let of_path: u32 = stacks.iter().filter(|(other, _)| begins(other)).map(|(_, weights)| weights[0]).sum();
                prop_assert_eq!(exclusive[place..=place + beneath].iter().sum::<f64>(), f64::from(of_path));
            }
        }

        #[test]
        fn the_order_of_stacks_and_samples_does_not_matter(stacks in stacks(), least_share in 0.0..0.3, by in 0usize..60) {
            let one = profile(3, &stacks);
            let mut turned = stacks.clone();
            turned.rotate_left(by.min(stacks.len()));
            turned.reverse();
            let other = profile(3, &turned);
            prop_assert_eq!(call_tree(&one, least_share), call_tree(&other, least_share));
        }
    }
}

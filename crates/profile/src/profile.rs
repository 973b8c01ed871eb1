//! What was sampled in a window: stacks, and the time that each sample stands for.

use std::collections::BTreeMap;

use crate::function::FunctionName;
use crate::wake::Wake;

/// Two standard errors to each side hold 95 % of what could have been measured.
pub(crate) const STANDARD_ERRORS: f64 = 1.96;

/// One sample, one chosen wait, or several of one stack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfileSample {
    /// Its stack, a key of [`Profile::stacks`].
    pub stack: u32,
    /// Place of its metric in [`Profile::metrics`].
    pub metric: usize,
    /// The time that it stands for.
    pub weight_ns: f64,
    /// Samples on CPUs, or waits that were chosen.
    pub count: u64,
    /// What it adds to the variance of a sum. A chosen wait counts as an independent choice, a sample on a CPU as one of a Poisson process.
    pub variance_ns2: f64,
}

impl ProfileSample {
    /// One sample or wait. `seen_ns`: how much of its weight was measured: a wait's length, nothing of a sample on a CPU. The rest is an
    /// estimate.
    pub fn one(stack: u32, metric: usize, weight_ns: f64, seen_ns: f64) -> ProfileSample {
        let variance_ns2 = weight_ns * (weight_ns - seen_ns).max(0.0);
        ProfileSample { stack, metric, weight_ns, count: 1, variance_ns2 }
    }
}

/// What was sampled in a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    pub metrics: Vec<String>,
    /// Functions by stack, innermost first.
    pub stacks: BTreeMap<u32, Vec<FunctionName>>,
    pub samples: Vec<ProfileSample>,
    /// Who ended the waits among them.
    pub wakes: Vec<Wake>,
    /// Who ended others of the same window, of whichever thread and in whichever state: chains of waits lead there.
    pub other_wakes: Vec<Wake>,
}

impl Profile {
    /// The samples with their stacks, those of a metric or a stack that is not there left out.
    pub(crate) fn samples_with_stacks(&self) -> impl Iterator<Item = (&ProfileSample, &[FunctionName])> {
        let stack = |sample: &ProfileSample| self.stacks.get(&sample.stack).filter(|stack| !stack.is_empty());
        self.samples
            .iter()
            .filter(|sample| sample.metric < self.metrics.len())
            .filter_map(move |sample| Some((sample, stack(sample)?.as_slice())))
    }

    /// Returns the time of all samples, metric by metric.
    pub fn total_ns(&self) -> Vec<f64> {
        let mut total_ns = vec![0.0; self.metrics.len()];
        for (sample, _) in self.samples_with_stacks() {
            total_ns[sample.metric] += sample.weight_ns;
        }
        total_ns
    }

    /// Returns half of the 95 % interval of each metric's total, in nanoseconds. Chosen waits count as independent choices, samples on CPUs as those of
    /// a Poisson process.
    pub fn half_intervals_ns(&self) -> Vec<f64> {
        let mut variances = vec![0.0; self.metrics.len()];
        for (sample, _) in self.samples_with_stacks() {
            variances[sample.metric] += sample.variance_ns2;
        }
        variances.into_iter().map(|variance: f64| STANDARD_ERRORS * variance.sqrt()).collect()
    }

    /// Returns each stack, from the outermost function to the innermost, with its time in one metric; those without any are left out.
    pub fn folded(&self, metric: usize) -> Vec<(Vec<&str>, f64)> {
        let mut folded: BTreeMap<Vec<&str>, f64> = BTreeMap::new();
        for (sample, stack) in self.samples_with_stacks().filter(|(sample, _)| sample.metric == metric) {
            let path = stack.iter().rev().map(|function| function.name.as_str()).collect();
            *folded.entry(path).or_default() += sample.weight_ns;
        }
        folded.into_iter().filter(|(_, ns)| *ns > 0.0).collect()
    }
}

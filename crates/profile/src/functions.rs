//! Exclusive and inclusive time by function.

use std::collections::{BTreeMap, BTreeSet};

use crate::function::{FunctionName, TOTAL};
use crate::profile::{Profile, ProfileSample};

/// A function's time, in the order of [`Profile::metrics`], in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionTime {
    pub function: FunctionName,
    pub exclusive_ns: Vec<f64>,
    pub inclusive_ns: Vec<f64>,
}

/// Every function of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Functions {
    /// All samples: what the exclusive times add up to.
    pub total: FunctionTime,
    /// The one with the most exclusive time in the first metric first.
    pub functions: Vec<FunctionTime>,
}

impl FunctionTime {
    pub(crate) fn new(function: FunctionName, metrics: usize) -> FunctionTime {
        FunctionTime { function, exclusive_ns: vec![0.0; metrics], inclusive_ns: vec![0.0; metrics] }
    }
}

impl Functions {
    /// Puts the function with the most inclusive time in the first metric first.
    pub fn sort_by_inclusive(&mut self) {
        let first = |time: &FunctionTime| time.inclusive_ns.first().copied().unwrap_or(0.0);
        self.functions.sort_by(|a, b| first(b).total_cmp(&first(a)).then(a.function.cmp(&b.function)));
    }
}

/// Returns the exclusive and inclusive time of every function. A function that calls itself counts once.
pub fn functions(profile: &Profile) -> Functions {
    let mut functions = summed(profile, |sample| sample.weight_ns);
    functions.functions.sort_by(|a, b| {
        let by = |time: &FunctionTime| {
            let first = |times: &[f64]| times.first().copied().unwrap_or(0.0);
            (first(&time.exclusive_ns), first(&time.inclusive_ns))
        };
        let (a_by, b_by) = (by(a), by(b));
        b_by.0.total_cmp(&a_by.0).then(b_by.1.total_cmp(&a_by.1)).then(a.function.cmp(&b.function))
    });
    functions
}

/// The same sums of another value of each sample than its time, in the order of the functions' names.
pub(crate) fn summed(profile: &Profile, value: impl Fn(&ProfileSample) -> f64) -> Functions {
    let metrics = profile.metrics.len();
    let total = FunctionName { name: TOTAL.to_string(), module: String::new() };
    let mut total = FunctionTime::new(total, metrics);
    let mut times: BTreeMap<&FunctionName, FunctionTime> = BTreeMap::new();
    for (sample, stack) in profile.samples_with_stacks() {
        let value = value(sample);
        total.exclusive_ns[sample.metric] += value;
        total.inclusive_ns[sample.metric] += value;
        let distinct: BTreeSet<&FunctionName> = stack.iter().collect();
        for function in distinct {
            let time = times.entry(function).or_insert_with(|| FunctionTime::new(function.clone(), metrics));
            time.inclusive_ns[sample.metric] += value;
            if *function == stack[0] {
                time.exclusive_ns[sample.metric] += value;
            }
        }
    }
    Functions { total, functions: times.into_values().collect() }
}

//! The functions that took most of the CPUs, as series that the page draws under the throughput.

use std::collections::BTreeMap;

use whyso_profile::{Bins, FunctionName, TimedSample, over_time};
use whyso_record::StackTotal;
use whyso_record::data::{Kind, SeriesKey};
use whyso_record::run::Window;

use crate::source::{Column, EVERYTHING, StackBuckets, Stacks};

/// What these series have for their source.
const SOURCE: &str = "functions";
const METRIC: &str = "on_cpus";
/// The instance that stands for all functions that have no series of their own.
const OTHERS: &str = "all others";
/// As many as there are colours.
const FUNCTIONS_MAX: usize = 8;
/// A run of twenty minutes has one value per second.
const BINS_MAX: usize = 1_200;

/// Returns how many CPUs each function kept busy by itself, as the mean of each second, at the second's middle. Of a long run, a mean covers more
/// seconds. The function with the most time comes first, all others last. Empty where no thread was found on a CPU.
pub(crate) fn series(stacks: &Stacks, origin_ns: i64) -> Vec<(SeriesKey, Column)> {
    let sample = |sample: &whyso_record::data::StackSample| TimedSample {
        t_ns: sample.t_ns,
        stack: sample.stack,
        weight_ns: sample.weight_ns as f64,
    };
    let (samples, bins) = match &stacks.buckets {
        Some(buckets) => (timed(buckets), bins_of(buckets)),
        None => {
            let samples: Vec<TimedSample> = stacks.samples.iter().map(sample).collect();
            let bins = Bins::around(&samples, origin_ns, BINS_MAX);
            (samples, bins)
        }
    };
    let Some(bins) = bins else { return Vec::new() };
    // The innermost function is all that is asked for.
    let mut innermost: BTreeMap<u32, Vec<FunctionName>> = BTreeMap::new();
    for frame in stacks.frames.iter().filter(|frame| frame.depth == 0) {
        let function = FunctionName { name: frame.function.clone(), module: frame.module.clone() };
        innermost.insert(frame.stack, vec![function]);
    }
    let times = over_time(&samples, &innermost, bins, FUNCTIONS_MAX);
    if times.functions.is_empty() {
        return Vec::new();
    }
    // The first and the last bucket lie in the time of all samples in part.
    let known = stacks.buckets.as_ref().map_or(EVERYTHING, |buckets| buckets.window);
    let windows: Vec<Window> = (0..bins.count as i64)
        .map(|bin| bins.begin_ns + bin * bins.length_ns)
        .map(|begin_ns| Window {
            begin_ns: begin_ns.max(known.begin_ns),
            end_ns: (begin_ns + bins.length_ns).min(known.end_ns),
        })
        .collect();
    let t_ns: Vec<i64> = windows.iter().map(|bin| bin.begin_ns + (bin.end_ns - bin.begin_ns) / 2).collect();
    let column = |ns: Vec<f64>| {
        let cpus = |(ns, bin): (f64, &Window)| (ns / 1e9 / bin.seconds() * 1e4).round() / 1e4;
        Column { t_ns: t_ns.clone(), value: ns.into_iter().zip(&windows).map(cpus).collect() }
    };
    let named = times.functions.into_iter().map(|(function, ns)| (instance(&function), ns));
    named.chain([(OTHERS.to_string(), times.others)]).map(|(name, ns)| (key(name), column(ns))).collect()
}

fn timed(buckets: &StackBuckets) -> Vec<TimedSample> {
    let sample = |total: &StackTotal| TimedSample {
        t_ns: total.t_ns,
        stack: total.stack,
        weight_ns: total.sum.weight_ns as f64,
    };
    buckets.on_cpus.iter().map(sample).collect()
}

/// `None` where nothing was found.
fn bins_of(buckets: &StackBuckets) -> Option<Bins> {
    let StackBuckets { short_bucket_ns: bucket_ns, window, .. } = buckets;
    let begin_ns = window.begin_ns.div_euclid(*bucket_ns) * bucket_ns;
    let count = usize::try_from((window.end_ns - begin_ns + bucket_ns - 1) / bucket_ns).ok()?;
    (count > 0).then_some(Bins { begin_ns, length_ns: *bucket_ns, count })
}

/// Functions of one name in two files are two.
fn instance(function: &FunctionName) -> String {
    if function.module.is_empty() {
        return function.name.clone();
    }
    format!("{} · {}", function.name, function.module)
}

fn key(instance: String) -> SeriesKey {
    SeriesKey {
        host: "server".to_string(),
        source: SOURCE.to_string(),
        metric: METRIC.to_string(),
        instance,
        kind: Kind::Gauge,
        unit: "CPUs".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_record::data::{StackFrame, StackSample};

    fn frame(stack: u32, depth: u32, function: String) -> StackFrame {
        StackFrame {
            stack,
            depth,
            function,
            module: "server".to_string(),
            build_id: None,
            address: 0,
            source_file: None,
            line: None,
            inlined: false,
        }
    }

    fn sample(t_ns: i64, stack: u32, weight_ns: u64) -> StackSample {
        StackSample { t_ns, tid: 1, role: "connection".to_string(), stack, weight_ns }
    }

    #[test]
    fn each_of_the_busiest_functions_has_a_series_in_cpus_and_all_others_share_one() {
        let stacks = Stacks {
            samples: (0..12)
                .map(|stack| sample(1_500_000_000, stack, 250_000_000 - u64::from(stack)))
                .collect(),
            waits: Vec::new(),
            frames: (0..12)
                .flat_map(|stack| [frame(stack, 0, format!("f{stack}")), frame(stack, 1, "main".into())])
                .collect(),
            ..Stacks::default()
        };
        let by_function = series(&stacks, 1_000_000_000);
        let names: Vec<&str> = by_function.iter().map(|(key, _)| key.instance.as_str()).collect();
        assert_eq!(names[..2], ["f0 · server", "f1 · server"]);
        assert_eq!((names.len(), names[8]), (9, "all others"));
        assert_eq!(by_function[0].1, Column { t_ns: vec![1_500_000_000], value: vec![0.25] });
        assert_eq!(by_function[8].1.value, [1.0], "four others");
    }

    #[test]
    fn a_run_without_stacks_has_no_such_series() {
        assert!(series(&Stacks::default(), 0).is_empty());
        let unnamed = Stacks { samples: vec![sample(5, 0, 1)], ..Stacks::default() };
        assert!(series(&unnamed, 0).is_empty());
    }
}

//! Which functions took the CPU when: exclusive time of the ones that took most of it, bin by bin.

use std::collections::BTreeMap;

use crate::function::FunctionName;

/// A thread that was found on a CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedSample {
    /// When: `CLOCK_MONOTONIC`, in nanoseconds.
    pub t_ns: i64,
    pub stack: u32,
    /// The time that it stands for.
    pub weight_ns: f64,
}

/// Bins of one length, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    pub begin_ns: i64,
    /// Above 0.
    pub length_ns: i64,
    pub count: usize,
}

impl Bins {
    /// Returns the fewest bins that hold all samples. The first begins a whole number of bins after `origin_ns`. A bin is as many whole seconds long
    /// as are needed for at most `count_max` bins. `None` where there is no sample.
    pub fn around(samples: &[TimedSample], origin_ns: i64, count_max: usize) -> Option<Bins> {
        const SECOND_NS: i64 = 1_000_000_000;
        let first_ns = samples.iter().map(|sample| sample.t_ns).min()?;
        let last_ns = samples.iter().map(|sample| sample.t_ns).max()?;
        let count_max = i64::try_from(count_max.max(2)).unwrap_or(i64::MAX);
        let span_ns = last_ns.saturating_sub(first_ns);
        // One bin more than the span has, as it rarely begins where a bin does.
        let seconds = (span_ns / SECOND_NS / (count_max - 1)).saturating_add(1);
        let length_ns = seconds.saturating_mul(SECOND_NS);
        let into_bin_ns = first_ns.saturating_sub(origin_ns).rem_euclid(length_ns);
        let begin_ns = first_ns.saturating_sub(into_bin_ns);
        let count = usize::try_from(last_ns.saturating_sub(begin_ns) / length_ns).ok()? + 1;
        Some(Bins { begin_ns, length_ns, count })
    }

    fn place(&self, t_ns: i64) -> Option<usize> {
        let from_begin = t_ns.checked_sub(self.begin_ns).filter(|ns| *ns >= 0)?;
        usize::try_from(from_begin / self.length_ns).ok().filter(|place| *place < self.count)
    }
}

/// Functions over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// The functions with the most time, the largest first, each with its nanoseconds in every bin.
    pub functions: Vec<(FunctionName, Vec<f64>)>,
    /// What all others had.
    pub others: Vec<f64>,
}

/// Returns the exclusive time of the `top` functions that had the most of it over all bins. `stacks` has functions by stack, innermost first. Samples
/// whose stack is not there, and samples outside the bins, are left out.
pub fn over_time(
    samples: &[TimedSample],
    stacks: &BTreeMap<u32, Vec<FunctionName>>,
    bins: Bins,
    top: usize,
) -> OverTime {
    let mut by_function: BTreeMap<&FunctionName, Vec<f64>> = BTreeMap::new();
    for sample in samples {
        let Some(place) = bins.place(sample.t_ns) else { continue };
        let Some(function) = stacks.get(&sample.stack).and_then(|stack| stack.first()) else { continue };
        by_function.entry(function).or_insert_with(|| vec![0.0; bins.count])[place] += sample.weight_ns;
    }
    let sum = |ns: &[f64]| ns.iter().sum::<f64>();
    let mut functions: Vec<(FunctionName, Vec<f64>)> =
        by_function.into_iter().map(|(function, ns)| (function.clone(), ns)).collect();
    functions.sort_by(|a, b| sum(&b.1).total_cmp(&sum(&a.1)).then_with(|| a.0.cmp(&b.0)));
    let mut others = vec![0.0; bins.count];
    for (_, ns) in functions.drain(top.min(functions.len())..) {
        others.iter_mut().zip(ns).for_each(|(sum, ns)| *sum += ns);
    }
    OverTime { functions, others }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: i64 = 1_000_000_000;

    fn sample(t_ns: i64, stack: u32) -> TimedSample {
        TimedSample { t_ns, stack, weight_ns: 10.0 }
    }

    fn stacks() -> BTreeMap<u32, Vec<FunctionName>> {
        let function = |name: &str| FunctionName { name: name.to_string(), module: "server".to_string() };
        let stack = |number: u32, names: &[&str]| (number, names.iter().map(|name| function(name)).collect());
        [
            stack(0, &["sort", "main"]),
            stack(1, &["read", "main"]),
            stack(2, &["write", "main"]),
            stack(3, &[]),
        ]
        .into()
    }

    #[test]
    fn each_second_holds_what_its_innermost_functions_took_and_the_rest_is_together() {
        let samples = [
            sample(5 * S, 0),
            sample(5 * S + 1, 0),
            sample(7 * S, 0),
            sample(7 * S, 1),
            sample(5 * S, 1),
            sample(6 * S, 2),
            sample(6 * S, 3),
            sample(6 * S, 9),
        ];
        let bins = Bins::around(&samples, S / 2, 100).unwrap();
        assert_eq!(bins, Bins { begin_ns: 4 * S + S / 2, length_ns: S, count: 3 });
        let by_function = over_time(&samples, &stacks(), bins, 2);
        let of = |place: usize| {
            (by_function.functions[place].0.name.as_str(), by_function.functions[place].1.as_slice())
        };
        assert_eq!(of(0), ("sort", &[20.0, 0.0, 10.0][..]));
        assert_eq!(of(1), ("read", &[10.0, 0.0, 10.0][..]));
        assert_eq!(by_function.others, [0.0, 10.0, 0.0]);
    }

    #[test]
    fn a_long_run_has_longer_bins_and_no_samples_have_none() {
        let samples = [sample(0, 0), sample(7_200 * S, 0)];
        let bins = Bins::around(&samples, 0, 1_200).unwrap();
        assert_eq!((bins.length_ns, bins.count), (7 * S, 1_029));
        assert_eq!(Bins::around(&[], 0, 1_200), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn nothing_is_lost_whatever_the_number_of_functions_that_are_shown(
            times_and_stacks in prop::collection::vec((0_i64..100 * S, 0_u32..3), 1..60),
            origin_ns in -S..S,
            top in 0_usize..5,
        ) {
            let samples: Vec<TimedSample> = times_and_stacks.iter().map(|(t_ns, stack)| sample(*t_ns, *stack)).collect();
            let bins = Bins::around(&samples, origin_ns, 20).unwrap();
            prop_assert!(bins.count <= 20, "{bins:?}");
            let by_function = over_time(&samples, &stacks(), bins, top);
            let sum: f64 = by_function.functions.iter().map(|(_, ns)| ns).chain([&by_function.others]).flatten().sum();
            prop_assert_eq!(sum, 10.0 * samples.len() as f64);
            prop_assert!(by_function.functions.len() <= top);
        }
    }
}

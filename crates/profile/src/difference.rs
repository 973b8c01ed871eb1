//! What differs between two profiles, function by function, and how sure the samples make it.

use std::collections::BTreeMap;

use crate::function::FunctionName;
use crate::functions::{FunctionTime, Functions, functions, summed};
use crate::profile::{Profile, STANDARD_ERRORS};

/// What makes the times of two profiles comparable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ComparedBy {
    /// Nanoseconds per transaction: how many there were here, and there.
    Transactions { here: f64, there: f64 },
    /// Shares of each profile's own time, 0 to 1, metric by metric.
    Share,
}

/// A value here and there, in the unit of [`ComparedBy`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Difference {
    pub here: f64,
    pub there: f64,
    /// Half of the 95 % interval of the difference, of the samples only.
    pub half: f64,
}

impl Difference {
    /// Returns by how much it is more here.
    pub fn value(&self) -> f64 {
        self.here - self.there
    }

    /// Returns whether the samples can distinguish it from none.
    pub fn is_distinguishable(&self) -> bool {
        self.value().abs() > self.half
    }
}

/// A function's times, by metric.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDifference {
    pub function: FunctionName,
    pub exclusive: Vec<Difference>,
    pub inclusive: Vec<Difference>,
}

/// Every function of either profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Differences {
    pub total: FunctionDifference,
    /// The one whose exclusive time differs most in the first metric first.
    pub functions: Vec<FunctionDifference>,
}

impl Differences {
    /// Puts the function first whose inclusive time differs most in the first metric.
    pub fn sort_by_inclusive(&mut self) {
        sort(&mut self.functions, |function| &function.inclusive);
    }
}

/// One side: times, and their variances.
struct Side {
    times: Functions,
    variances: Functions,
}

impl Side {
    fn new(profile: &Profile) -> Side {
        Side { times: functions(profile), variances: summed(profile, |sample| sample.variance_ns2) }
    }

    fn by_name(&self) -> BTreeMap<&FunctionName, Both<'_>> {
        let variances = self.variances.functions.iter().map(|time| (&time.function, time));
        let variances: BTreeMap<&FunctionName, &FunctionTime> = variances.collect();
        let both = |time: &FunctionTime| variances.get(&time.function).copied();
        self.times.functions.iter().map(|time| (&time.function, [Some(time), both(time)])).collect()
    }

    /// One time of a function, in the unit asked for, and its variance.
    fn scaled(&self, metric: usize, [ns, variance]: [f64; 2], transactions: Option<f64>) -> [f64; 2] {
        if let Some(transactions) = transactions {
            return [ratio(ns, transactions), ratio(variance, transactions * transactions)];
        }
        let of = |functions: &Functions| functions.total.exclusive_ns.get(metric).copied().unwrap_or(0.0);
        let (all_ns, all_variance) = (of(&self.times), of(&self.variances));
        // Of a part and the rest, which are independent: the delta method.
        let share = ratio(ns, all_ns);
        let rest = (all_variance - variance).max(0.0);
        let spread = (1.0 - share) * (1.0 - share) * variance + share * share * rest;
        [share, ratio(spread, all_ns * all_ns)]
    }
}

/// A function's time and its variance on one side; none where it is not there.
type Both<'a> = [Option<&'a FunctionTime>; 2];

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Returns what differs between two profiles of the same metrics.
pub fn differences(here: &Profile, there: &Profile, by: ComparedBy) -> Differences {
    let (here, there) = (Side::new(here), Side::new(there));
    let metrics = here.times.total.exclusive_ns.len().min(there.times.total.exclusive_ns.len());
    let transactions = match by {
        ComparedBy::Transactions { here, there } => [Some(here), Some(there)],
        ComparedBy::Share => [None, None],
    };
    let differ = |function: &FunctionName, times_here: Both<'_>, times_there: Both<'_>| {
        let at = |metric: usize, times: fn(&FunctionTime) -> &[f64]| {
            let of = |both: Both<'_>| {
                both.map(|time| time.and_then(|time| times(time).get(metric).copied()).unwrap_or(0.0))
            };
            let [here, here_variance] = here.scaled(metric, of(times_here), transactions[0]);
            let [there, there_variance] = there.scaled(metric, of(times_there), transactions[1]);
            let half = STANDARD_ERRORS * (here_variance + there_variance).sqrt();
            Difference { here, there, half }
        };
        FunctionDifference {
            function: function.clone(),
            exclusive: (0..metrics).map(|metric| at(metric, |time| &time.exclusive_ns)).collect(),
            inclusive: (0..metrics).map(|metric| at(metric, |time| &time.inclusive_ns)).collect(),
        }
    };
    let total = |side: &Side| [side.times.total.clone(), side.variances.total.clone()];
    let [total_here, variance_here] = total(&here);
    let [total_there, variance_there] = total(&there);
    let all = differ(
        &total_here.function,
        [Some(&total_here), Some(&variance_here)],
        [Some(&total_there), Some(&variance_there)],
    );
    let (by_name_here, by_name_there) = (here.by_name(), there.by_name());
    let mut names: Vec<&FunctionName> = by_name_here.keys().chain(by_name_there.keys()).copied().collect();
    names.sort();
    names.dedup();
    let mut functions: Vec<FunctionDifference> = names
        .into_iter()
        .map(|name| {
            let [times_here, times_there] = [by_name_here.get(name), by_name_there.get(name)];
            differ(name, times_here.copied().unwrap_or_default(), times_there.copied().unwrap_or_default())
        })
        .collect();
    sort(&mut functions, |function| &function.exclusive);
    Differences { total: all, functions }
}

/// The one that differs most in the first metric first.
fn sort(functions: &mut [FunctionDifference], times: fn(&FunctionDifference) -> &[Difference]) {
    let most =
        |function: &FunctionDifference| times(function).first().map_or(0.0, |first| first.value().abs());
    functions.sort_by(|a, b| most(b).total_cmp(&most(a)).then(a.function.cmp(&b.function)));
}

/// Returns each stack of either profile, from the outermost function to the innermost, with its time in one metric there and here. The times have the
/// unit that `by` asks for. Stacks without any time are left out.
pub fn folded_differences<'a>(
    here: &'a Profile,
    there: &'a Profile,
    metric: usize,
    by: ComparedBy,
) -> Vec<(Vec<&'a str>, [f64; 2])> {
    let mut folded: BTreeMap<Vec<&str>, [f64; 2]> = BTreeMap::new();
    let transactions = match by {
        ComparedBy::Transactions { here, there } => [Some(there), Some(here)],
        ComparedBy::Share => [None, None],
    };
    for (side, (profile, transactions)) in [there, here].into_iter().zip(transactions).enumerate() {
        let stacks = profile.folded(metric);
        let all_ns: f64 = stacks.iter().map(|(_, ns)| ns).sum();
        for (path, ns) in stacks {
            folded.entry(path).or_default()[side] += ratio(ns, transactions.unwrap_or(all_ns));
        }
    }
    folded.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ProfileSample;
    use proptest::prelude::*;

    /// Stacks such as `main;walk`, outermost first, each with how many samples of 10 ns there were.
    fn sampled(stacks: &[(&str, u32)]) -> Profile {
        let mut profile = Profile { metrics: vec!["cpu".to_string()], ..Profile::default() };
        for (stack, (path, samples)) in (0..).zip(stacks) {
            let name = |name: &str| FunctionName { name: name.to_string(), module: "server".to_string() };
            profile.stacks.insert(stack, path.split(';').rev().map(name).collect());
            let sample = ProfileSample::one(stack, 0, 10.0, 0.0);
            profile.samples.extend((0..*samples).map(|_| sample));
        }
        profile
    }

    fn of<'a>(all: &'a Differences, name: &str) -> &'a FunctionDifference {
        all.functions.iter().find(|function| function.function.name == name).unwrap()
    }

    #[test]
    fn times_a_transaction_are_compared_with_the_interval_of_their_difference() {
        let here = sampled(&[("main;walk", 400), ("main;new", 5)]);
        let there = sampled(&[("main;walk", 100), ("main;old", 1)]);
        let all = differences(&here, &there, ComparedBy::Transactions { here: 20.0, there: 10.0 });
        assert_eq!(all.functions[0].function.name, "walk");
        let walk = of(&all, "walk").exclusive[0];
        // 4000 ns of 20 transactions, 1000 ns of 10; 400 and 100 samples of 10 ns, as of Poisson processes.
        assert_eq!((walk.here, walk.there), (200.0, 100.0));
        let variance = 400.0 * 100.0 / 400.0 + 100.0 * 100.0 / 100.0;
        assert!((walk.half - 1.96 * f64::sqrt(variance)).abs() < 1e-9);
        assert!(walk.is_distinguishable() && !of(&all, "old").exclusive[0].is_distinguishable());
        assert_eq!(of(&all, "new").exclusive[0].there, 0.0);
        assert_eq!(of(&all, "main").exclusive[0], Difference::default());
        assert_eq!(of(&all, "main").inclusive[0].here, 202.5);
        assert_eq!(all.total.exclusive[0].value(), 202.5 - 101.0);
    }

    #[test]
    fn shares_are_compared_with_the_interval_of_a_part_of_the_whole() {
        let here = sampled(&[("main;walk", 300), ("main;read", 100)]);
        let there = sampled(&[("main;walk", 100)]);
        let all = differences(&here, &there, ComparedBy::Share);
        let walk = of(&all, "walk").exclusive[0];
        assert_eq!((walk.here, walk.there), (0.75, 1.0));
        // A part of n samples: p (1 − p) / n; what is all of it varies not at all.
        assert!((walk.half - 1.96 * f64::sqrt(0.75 * 0.25 / 400.0)).abs() < 1e-9);
        assert_eq!(all.total.exclusive[0], Difference { here: 1.0, there: 1.0, half: 0.0 });
    }

    #[test]
    fn folded_stacks_stand_there_and_here() {
        let (here, there) = (sampled(&[("main;walk", 4)]), sampled(&[("main;walk", 1), ("main", 1)]));
        let by = ComparedBy::Transactions { here: 2.0, there: 1.0 };
        let folded = folded_differences(&here, &there, 0, by);
        assert_eq!(folded, [(vec!["main"], [10.0, 0.0]), (vec!["main", "walk"], [10.0, 20.0])]);
        assert_eq!(folded_differences(&here, &there, 0, ComparedBy::Share)[1].1, [0.5, 1.0]);
    }

    fn stacks() -> impl Strategy<Value = Vec<(String, u32)>> {
        let path = prop::collection::vec("[a-d]", 1..5).prop_map(|names| names.join(";"));
        prop::collection::vec((path, 0u32..50), 0..20)
    }

    fn sampled_of(stacks: &[(String, u32)]) -> Profile {
        sampled(&stacks.iter().map(|(path, samples)| (path.as_str(), *samples)).collect::<Vec<_>>())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn exclusive_differences_add_up_and_turn_their_sign(one in stacks(), other in stacks()) {
            let (here, there) = (sampled_of(&one), sampled_of(&other));
            for by in [ComparedBy::Share, ComparedBy::Transactions { here: 3.0, there: 7.0 }] {
                let all = differences(&here, &there, by);
                let sum: f64 = all.functions.iter().map(|function| function.exclusive[0].value()).sum();
                prop_assert!((sum - all.total.exclusive[0].value()).abs() < 1e-6);
                let back = match by {
                    ComparedBy::Share => by,
                    ComparedBy::Transactions { here, there } => ComparedBy::Transactions { here: there, there: here },
                };
                let turned = differences(&there, &here, back);
                for function in &all.functions {
                    let other = of(&turned, &function.function.name);
                    prop_assert!((function.exclusive[0].value() + other.exclusive[0].value()).abs() < 1e-9);
                    prop_assert!((function.inclusive[0].half - other.inclusive[0].half).abs() < 1e-9);
                }
                let folded: f64 = folded_differences(&here, &there, 0, by).iter().map(|(_, [there, here])| here - there).sum();
                prop_assert!((folded - sum).abs() < 1e-6);
            }
        }

        #[test]
        fn a_profile_does_not_differ_from_itself(stacks in stacks()) {
            let profile = sampled_of(&stacks);
            let all = differences(&profile, &profile, ComparedBy::Share);
            prop_assert!(all.functions.iter().all(|function| function.exclusive[0].value() == 0.0 && !function.inclusive[0].is_distinguishable()));
        }
    }
}

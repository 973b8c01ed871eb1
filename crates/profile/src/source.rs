//! Time by line of the sources.

use std::collections::{BTreeMap, BTreeSet};

use crate::function::FunctionName;
use crate::profile::Profile;

/// A line of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourcePlace {
    /// As the build has it.
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// Times in nanoseconds, in the order of [`Profile::metrics`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineTime {
    pub exclusive_ns: Vec<f64>,
    pub inclusive_ns: Vec<f64>,
}

impl LineTime {
    fn new(metrics: usize) -> LineTime {
        LineTime { exclusive_ns: vec![0.0; metrics], inclusive_ns: vec![0.0; metrics] }
    }

    /// Returns whether there is any.
    pub fn is_some(&self) -> bool {
        self.inclusive_ns.iter().any(|ns| *ns > 0.0)
    }
}

/// Which samples count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SourceFilter<'a> {
    Function(&'a FunctionName),
    /// Every function that lies in this file.
    File(&'a str),
}

/// The lines of a function or of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceTimes {
    /// All of it: what the exclusive times add up to.
    pub total: LineTime,
    pub lines: BTreeMap<SourcePlace, LineTime>,
    /// Time of samples whose line the build does not have.
    pub unknown: LineTime,
}

/// Returns time by line. *Exclusive* is that of samples whose innermost function was at the line. *Inclusive* is that of samples in whose stack the line
/// is anywhere, so it includes what the line called. A line that is in a stack several times counts once. `places` has the place of each function of a
/// stack, in the order of [`Profile::stacks`].
pub fn source_times(
    profile: &Profile,
    places: &BTreeMap<u32, Vec<Option<SourcePlace>>>,
    within: SourceFilter<'_>,
) -> SourceTimes {
    let metrics = profile.metrics.len();
    let new = || LineTime::new(metrics);
    let mut times = SourceTimes { total: new(), lines: BTreeMap::new(), unknown: new() };
    for (sample, stack) in profile.samples_with_stacks() {
        let places = places.get(&sample.stack).map_or(&[][..], Vec::as_slice);
        let place = |depth: usize| places.get(depth).and_then(Option::as_ref);
        let fits = |depth: &usize| match within {
            SourceFilter::Function(function) => stack[*depth] == *function,
            SourceFilter::File(file) => place(*depth).is_some_and(|place| place.file == file),
        };
        let fitting: Vec<usize> = (0..stack.len()).filter(fits).collect();
        let Some(first) = fitting.first() else { continue };
        let is_innermost = *first == 0;
        let add = |time: &mut LineTime, is_exclusive: bool| {
            time.inclusive_ns[sample.metric] += sample.weight_ns;
            time.exclusive_ns[sample.metric] += if is_exclusive { sample.weight_ns } else { 0.0 };
        };
        add(&mut times.total, is_innermost);
        let distinct: BTreeSet<Option<&SourcePlace>> = fitting.iter().map(|depth| place(*depth)).collect();
        for line in distinct {
            let is_exclusive = is_innermost && line == place(0);
            match line {
                Some(line) => add(times.lines.entry(line.clone()).or_insert_with(new), is_exclusive),
                None => add(&mut times.unknown, is_exclusive),
            }
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::functions;
    use crate::profile::ProfileSample;
    use proptest::prelude::*;

    type Frames = Vec<(u8, u32)>;

    /// Stacks of functions `f0`, `f1`, … at lines of `f.c`, innermost first; line 0: not known. Whole weights: sums are exact.
    fn profile_of(stacks: &[(Frames, [u32; 2])]) -> (Profile, BTreeMap<u32, Vec<Option<SourcePlace>>>) {
        let mut profile =
            Profile { metrics: vec!["cpu".to_string(), "lock".to_string()], ..Profile::default() };
        let mut places = BTreeMap::new();
        for (id, (frames, weights)) in (0..).zip(stacks) {
            let name = |number: u8| FunctionName { name: format!("f{number}"), module: "server".to_string() };
            profile.stacks.insert(id, frames.iter().map(|(number, _)| name(*number)).collect());
            let place = |(_, line): &(u8, u32)| {
                (*line > 0).then(|| SourcePlace { file: "f.c".to_string(), line: *line })
            };
            places.insert(id, frames.iter().map(place).collect());
            for (metric, weight) in weights.iter().enumerate() {
                let weight_ns = f64::from(*weight);
                profile.samples.push(ProfileSample::one(id, metric, weight_ns, 0.0));
            }
        }
        (profile, places)
    }

    fn name(name: &str) -> FunctionName {
        FunctionName { name: name.to_string(), module: "server".to_string() }
    }

    fn rows(times: &SourceTimes) -> Vec<(u32, Vec<f64>, Vec<f64>)> {
        let row = |(place, time): (&SourcePlace, &LineTime)| {
            (place.line, time.exclusive_ns.clone(), time.inclusive_ns.clone())
        };
        times.lines.iter().map(row).collect()
    }

    #[test]
    fn a_line_has_its_own_time_and_that_of_what_it_called() {
        // f1 at line 12 calls f2, works itself at line 14, and calls itself from 13.
        let stacks = [
            (vec![(2, 40), (1, 12), (0, 5)], [10, 0]),
            (vec![(1, 14), (0, 5)], [3, 0]),
            (vec![(2, 41), (1, 12), (1, 13), (0, 5)], [0, 7]),
            (vec![(1, 0), (0, 5)], [1, 0]),
        ];
        let (profile, places) = profile_of(&stacks);
        let times = source_times(&profile, &places, SourceFilter::Function(&name("f1")));
        assert_eq!(
            rows(&times),
            [
                (12, vec![0.0, 0.0], vec![10.0, 7.0]),
                (13, vec![0.0, 0.0], vec![0.0, 7.0]),
                (14, vec![3.0, 0.0], vec![3.0, 0.0])
            ]
        );
        assert_eq!(times.unknown.exclusive_ns, [1.0, 0.0]);
        assert_eq!((times.total.exclusive_ns, times.total.inclusive_ns), (vec![4.0, 0.0], vec![14.0, 7.0]));
        let file = source_times(&profile, &places, SourceFilter::File("f.c"));
        assert_eq!(file.lines.len(), 6);
        assert_eq!(file.total.exclusive_ns, [13.0, 7.0]);
        assert!(!source_times(&profile, &places, SourceFilter::Function(&name("absent"))).total.is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn the_lines_add_up_to_their_function(
            stacks in prop::collection::vec((prop::collection::vec((0u8..4, 0u32..9), 0..7), any::<[u16; 2]>()), 0..40)
        ) {
            let stacks: Vec<(Frames, [u32; 2])> =
                stacks.into_iter().map(|(frames, weights)| (frames, weights.map(u32::from))).collect();
            let (profile, places) = profile_of(&stacks);
            for function in functions(&profile).functions {
                let times = source_times(&profile, &places, SourceFilter::Function(&function.function));
                prop_assert_eq!(&times.total.exclusive_ns, &function.exclusive_ns);
                prop_assert_eq!(&times.total.inclusive_ns, &function.inclusive_ns);
                let all = || times.lines.values().chain([&times.unknown]);
                for metric in 0..2 {
                    let exclusive: f64 = all().map(|line| line.exclusive_ns[metric]).sum();
                    prop_assert_eq!(exclusive, function.exclusive_ns[metric]);
                    let inclusive: f64 = all().map(|line| line.inclusive_ns[metric]).sum();
                    prop_assert!(inclusive >= function.inclusive_ns[metric]);
                    prop_assert!(all().all(|line| line.exclusive_ns[metric] <= line.inclusive_ns[metric]));
                    prop_assert!(all().all(|line| line.inclusive_ns[metric] <= function.inclusive_ns[metric]));
                }
            }
        }
    }
}

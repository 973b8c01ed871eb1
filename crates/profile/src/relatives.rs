//! Callers and callees of one function, with the time that is attributed to each.

use std::collections::BTreeMap;

use crate::function::FunctionName;
use crate::functions::{FunctionTime, functions};
use crate::profile::Profile;

/// A caller or a callee of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct AttributedTime {
    /// The part of the function's inclusive time that came through this caller, or went to this callee; in nanoseconds, by metric.
    pub attributed_ns: Vec<f64>,
    /// Its own times, of calls by any function.
    pub time: FunctionTime,
}

/// A function between those that called it and those that it called.
#[derive(Clone, Debug, PartialEq)]
pub struct Relatives {
    pub function: FunctionTime,
    /// Their attributed times add up to the function's inclusive time. Where it was the outermost, `<Total>` is its caller.
    pub callers: Vec<AttributedTime>,
    /// Their attributed times and the function's exclusive time add up to its inclusive time.
    pub callees: Vec<AttributedTime>,
}

/// Returns who called a function, and what it called. If it called itself, directly or not, its callers are those of the outermost call, and its
/// callees those of the innermost. So each sample counts once. `None` where no stack has it.
pub fn relatives(profile: &Profile, function: &FunctionName) -> Option<Relatives> {
    let all = functions(profile);
    let metrics = profile.metrics.len();
    let mut callers: BTreeMap<&FunctionName, Vec<f64>> = BTreeMap::new();
    let mut callees: BTreeMap<&FunctionName, Vec<f64>> = BTreeMap::new();
    for (sample, stack) in profile.samples_with_stacks() {
        let innermost = stack.iter().position(|other| other == function);
        let outermost = stack.iter().rposition(|other| other == function);
        let (Some(innermost), Some(outermost)) = (innermost, outermost) else { continue };
        let caller = stack.get(outermost + 1).unwrap_or(&all.total.function);
        callers.entry(caller).or_insert_with(|| vec![0.0; metrics])[sample.metric] += sample.weight_ns;
        if let Some(callee) = innermost.checked_sub(1).map(|place| &stack[place]) {
            callees.entry(callee).or_insert_with(|| vec![0.0; metrics])[sample.metric] += sample.weight_ns;
        }
    }
    let time = |name: &FunctionName| {
        let found = all.functions.iter().find(|time| time.function == *name);
        found.unwrap_or(&all.total).clone()
    };
    let attributed = |of: BTreeMap<&FunctionName, Vec<f64>>| {
        let mut attributed: Vec<AttributedTime> = of
            .into_iter()
            .map(|(name, attributed_ns)| AttributedTime { attributed_ns, time: time(name) })
            .collect();
        attributed.sort_by(|a, b| {
            let first = |relative: &AttributedTime| relative.attributed_ns.first().copied().unwrap_or(0.0);
            first(b).total_cmp(&first(a)).then(a.time.function.cmp(&b.time.function))
        });
        attributed
    };
    let own_time = all.functions.iter().find(|time| time.function == *function)?;
    Some(Relatives { function: own_time.clone(), callers: attributed(callers), callees: attributed(callees) })
}

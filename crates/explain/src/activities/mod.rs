//! What the server's threads do on a CPU: their sampled stacks by activity, as [`whyso_profile::Rules`] divides their waits by class.
//!
//! A stack's activity is that of the innermost function that `rules.txt` names. Memory allocation is an activity of its own only where
//! ordinary work of a statement asks for the memory. Memory of a connection, of a table that is opened, of a sort or of the query cache
//! belongs to these.

mod activity;

use std::sync::OnceLock;

use crate::model::SampledActivity;
use whyso_profile::{FunctionName, Rules};

pub use activity::{Activity, ActivityTime};

use Activity::{Allocation, Other};

const RULES: &str = include_str!("rules.txt");

/// Fewer samples divide nothing.
pub(crate) const SAMPLES_MIN: u64 = 30;

fn rules() -> &'static Rules {
    static PARSED: OnceLock<Rules> = OnceLock::new();
    // A test parses them.
    PARSED.get_or_init(|| Rules::parse(RULES).unwrap_or_default())
}

/// Returns the activity of a stack that was sampled on a CPU, innermost function first.
pub fn activity_of(stack: &[FunctionName]) -> Activity {
    let named = |stack| {
        rules().innermost(stack, "cpu").and_then(|(place, name)| Some((place, Activity::of_name(name)?)))
    };
    let Some((place, activity)) = named(stack) else { return Other };
    if activity != Allocation {
        return activity;
    }
    let mut around = &stack[place + 1..];
    while let Some((next, outer)) = named(around) {
        if outer != Allocation {
            return if outer.owns_allocations() { outer } else { Allocation };
        }
        around = &around[next + 1..];
    }
    Allocation
}

/// CPU time by activity over a level, all threads of the server together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activities {
    times: Vec<(Activity, f64, u64)>,
    total_ns: f64,
    samples: u64,
}

impl Activities {
    /// `None` where too few stacks were sampled.
    pub(crate) fn of(sampled: &[SampledActivity]) -> Option<Activities> {
        let sums = Activity::ALL.map(|activity| {
            let of_activity =
                sampled.iter().filter(|sum| sum.activity == activity && (0.0..1e24).contains(&sum.ns));
            let (ns, count) = of_activity.fold((0.0, 0), |(ns, count), sum| (ns + sum.ns, count + sum.count));
            (activity, ns, count)
        });
        let mut times: Vec<(Activity, f64, u64)> = sums.into_iter().filter(|(_, ns, _)| *ns > 0.0).collect();
        times.sort_by(|a, b| b.1.total_cmp(&a.1));
        let total_ns = times.iter().map(|(_, ns, _)| ns).sum();
        let samples = times.iter().map(|(_, _, count)| count).sum();
        (samples >= SAMPLES_MIN).then_some(Activities { times, total_ns, samples })
    }

    /// Returns the share of the server's CPU time, 0 to 1.
    pub(crate) fn share(&self, activities: &[Activity]) -> f64 {
        let ns: f64 = self
            .times
            .iter()
            .filter(|(activity, _, _)| activities.contains(activity))
            .map(|(_, ns, _)| ns)
            .sum();
        if self.total_ns > 0.0 { ns / self.total_ns } else { 0.0 }
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// Returns each activity's time per transaction, the largest first.
    pub(crate) fn per_transaction(&self, transactions: f64) -> Vec<ActivityTime> {
        let time = |(activity, ns, samples): &(Activity, f64, u64)| ActivityTime {
            activity: *activity,
            ms: ns / 1e6 / transactions,
            share: ns / self.total_ns,
            samples: *samples,
        };
        self.times.iter().map(time).collect()
    }

    /// Returns the activities with at least this share of the CPU time, the largest first.
    pub(crate) fn largest(&self, share_min: f64) -> Vec<(Activity, f64)> {
        let shares = self.times.iter().map(|(activity, ns, _)| (*activity, ns / self.total_ns));
        shares.filter(|(_, share)| *share >= share_min).collect()
    }
}

#[cfg(test)]
mod tests;

//! Recordings in order of time, and where what they measured changed for good.

use serde::{Deserialize, Serialize};

use super::{At, FactOf, Facts, Metric, Run, facts};
use whyso_inference::{ChangeRule, PART_MIN, Sides, change_points, contrast};

/// Recordings that are comparable, at one number of users or at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What they share: workload, data set and machine, by name.
    pub shared: Vec<(String, String)>,
    #[serde(flatten)]
    pub at: At,
    /// In order of time.
    pub points: Vec<Point>,
    /// Ids of runs whose level shows nothing about the server; they are no points.
    pub invalid: Vec<String>,
    /// Too few points to look for a change.
    pub too_few: bool,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub run: String,
    /// Wall time, nanoseconds.
    pub begin_ns: i64,
    pub value: f64,
}

/// A change for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The last run before it and the first one after it.
    pub last_before: String,
    pub first_after: String,
    /// Place of `first_after` among the points.
    pub at: usize,
    /// Geometric means of the parts on either side, and how many runs these are.
    pub before: f64,
    pub after: f64,
    pub runs_before: usize,
    pub runs_after: usize,
    pub percent: f64,
    /// 95 %, by Welch's t test of the logarithms.
    pub percent_ci95: Option<[f64; 2]>,
    /// Of such a difference by chance at one place.
    pub p: f64,
    /// What was recorded otherwise in the run after it than in the run before it.
    pub changed: Vec<FactChange>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactChange {
    pub of: FactOf,
    pub name: String,
    /// Empty where it was not recorded.
    pub from: String,
    pub to: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct History {
    pub metric: Metric,
    /// Smaller changes are not reported.
    pub matters_percent: f64,
    /// Those with the most runs first.
    pub groups: Vec<Group>,
}

/// Groups runs by what must be equal, and finds the changes in each group. `users`: only that number.
pub fn history(runs: &[Run], users: Option<u32>, metric: Metric, matters_percent: f64) -> History {
    let mut in_time: Vec<&Run> = runs.iter().collect();
    in_time.sort_by_key(|run| run.begin_ns);
    let mut groups: Vec<(Group, Vec<&Run>)> = Vec::new();
    for run in in_time {
        let shared = shared_facts(&run.facts);
        let mut levels_entered: Vec<At> = Vec::new();
        for level in &run.levels {
            let is_wanted = users.is_none_or(|users| level.at.users == users);
            let Some(value) = run.at(level.at).filter(|_| is_wanted && !levels_entered.contains(&level.at))
            else {
                continue;
            };
            levels_entered.push(level.at);
            let place = groups.iter().position(|(group, _)| group.at == level.at && group.shared == shared);
            let place = place.unwrap_or_else(|| {
                groups.push((new_group(shared.clone(), level.at), Vec::new()));
                groups.len() - 1
            });
            let (group, of_points) = &mut groups[place];
            if level.invalid_why.is_empty() {
                group.points.push(Point { run: run.id.clone(), begin_ns: run.begin_ns, value });
                of_points.push(run);
            } else {
                group.invalid.push(run.id.clone());
            }
        }
    }
    let mut groups: Vec<Group> =
        groups.into_iter().map(|(group, runs)| with_steps(group, &runs, matters_percent)).collect();
    groups.sort_by(|one, other| {
        let by_size = other.points.len().cmp(&one.points.len());
        by_size.then_with(|| one.shared.cmp(&other.shared)).then(one.at.order(other.at))
    });
    History { metric, matters_percent, groups }
}

/// What runs of a group share; the rest may change, and is what a change is asked for.
fn shared_facts(facts: &Facts) -> Vec<(String, String)> {
    let is_shared = |key: &(FactOf, String)| key.0 == FactOf::Work || *key == facts::hostname();
    let shared = facts.iter().filter(|(key, value)| is_shared(key) && !value.is_empty());
    shared.map(|(key, value)| (key.1.clone(), value.clone())).collect()
}

fn new_group(shared: Vec<(String, String)>, at: At) -> Group {
    Group { shared, at, points: Vec::new(), invalid: Vec::new(), too_few: false, steps: Vec::new() }
}

/// `runs`: those of the points.
fn with_steps(mut group: Group, runs: &[&Run], matters_percent: f64) -> Group {
    let values: Vec<f64> = group.points.iter().map(|point| point.value).collect();
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    group.too_few = logs.len() < 2 * PART_MIN;
    let wanted = ChangeRule { size_min: (1.0 + matters_percent / 100.0).ln(), ..ChangeRule::default() };
    let found = change_points(&logs, &wanted);
    for (place, change) in found.iter().enumerate() {
        let begin = if place == 0 { 0 } else { found[place - 1].at };
        let end = found.get(place + 1).map_or(values.len(), |next| next.at);
        let parts = Sides::Apart {
            first: values[begin..change.at].to_vec(),
            second: values[change.at..end].to_vec(),
        };
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let ci95 = contrast(&parts).and_then(|contrast| contrast.ci95);
        let (last, next) = (runs[change.at - 1], runs[change.at]);
        group.steps.push(Step {
            last_before: last.id.clone(),
            first_after: next.id.clone(),
            at: change.at,
            before: change.before.exp(),
            after: change.after.exp(),
            runs_before: change.at - begin,
            runs_after: end - change.at,
            percent: percent((change.after - change.before).exp()),
            percent_ci95: ci95.map(|ends| ends.map(percent)),
            p: change.p,
            changed: changed(last, next),
        });
    }
    group
}

fn changed(last: &Run, next: &Run) -> Vec<FactChange> {
    let first = |values: &[String]| values.first().cloned().unwrap_or_default();
    let differing = facts::differing(&[last], &[next]).into_iter();
    differing
        .map(|fact| FactChange {
            of: fact.of,
            from: first(&fact.first),
            to: first(&fact.second),
            name: fact.name,
        })
        .collect()
}

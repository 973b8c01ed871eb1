//! What is known of how a recording was taken, and in what recordings differ.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Run;

/// What a fact is of, in the order in which facts are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactOf {
    /// Workload and data set: recordings that differ in it are not comparable.
    Work,
    /// How it was run: seconds, CPUs and the like.
    Plan,
    Server,
    Host,
    /// A global variable of the server.
    Variable,
}

/// Values by what they are of and by name.
pub type Facts = BTreeMap<(FactOf, String), String>;

/// A fact in which recordings differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactDifference {
    pub of: FactOf,
    pub name: String,
    /// Every value of each side once, in order of time; one that was not recorded is empty.
    pub first: Vec<String>,
    pub second: Vec<String>,
}

impl FactDifference {
    /// Runs of one side differ among themselves.
    pub fn is_within_a_side(&self) -> bool {
        self.first.len() > 1 || self.second.len() > 1
    }
}

/// The fact that distinguishes recordings of different machines.
pub(super) fn hostname() -> (FactOf, String) {
    (FactOf::Host, "hostname".to_string())
}

/// Facts that are not the same in all runs of both sides, each side in order of time.
pub fn differing(first: &[&Run], second: &[&Run]) -> Vec<FactDifference> {
    let names: BTreeSet<&(FactOf, String)> =
        first.iter().chain(second).flat_map(|run| run.facts.keys()).collect();
    let values = |side: &[&Run], name: &(FactOf, String)| {
        let mut found: Vec<String> = Vec::new();
        for run in side {
            let value = run.facts.get(name).cloned().unwrap_or_default();
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found
    };
    let mut differing = Vec::new();
    for name in names {
        let (first, second) = (values(first, name), values(second, name));
        if first.len() > 1 || second.len() > 1 || first != second {
            differing.push(FactDifference { of: name.0, name: name.1.clone(), first, second });
        }
    }
    differing
}

/// Why these runs can't be compared, in a sentence; `None` where they can.
pub fn incomparable(first: &[Run], second: &[Run]) -> Option<String> {
    let (first, second): (Vec<&Run>, Vec<&Run>) = (first.iter().collect(), second.iter().collect());
    let differing = differing(&first, &second);
    let work = differing.iter().find(|fact| fact.of == FactOf::Work)?;
    let mut values: Vec<&str> = Vec::new();
    for value in work.first.iter().chain(&work.second) {
        let shown = if value.is_empty() { "none" } else { value.lines().next().unwrap_or("") };
        if !values.contains(&shown) {
            values.push(shown);
        }
    }
    // Of texts whose first lines are the same, the rest differs.
    let values = if values.len() > 1 { format!(" ({})", values.join(", ")) } else { String::new() };
    Some(format!(
        "these runs differ in {}{values}, so that their numbers are not of the same thing: leave some out, or compare them with --anyway",
        work.name
    ))
}

//! The catalogue of interventions, as it is read from its file.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use whyso_explain::model::Cause;

const FILE: &str = include_str!("../interventions.toml");

/// What removes a cause for as long as an experiment takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervention {
    pub cause: Cause,
    pub id: String,
    /// What is done, to be read after "test:".
    pub words: String,
    pub costs: Cost,
    /// What else it changes; empty where nothing is known.
    pub also: String,
    pub change: Change,
    /// Counters of the server's status: it can help only where one of them grows with the load. Empty: it always can.
    pub where_grows: Vec<String>,
    /// It removes a part of the cause at most: no gain says nothing of the rest.
    pub is_partial: bool,
}

/// What is changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Settings, each with its value.
    Set(BTreeMap<String, String>),
    /// Settings that are multiplied.
    Scale(BTreeMap<String, u64>),
    /// Options of whyso's own workloads.
    Options(BTreeMap<String, String>),
    /// The users are multiplied.
    Users(f64),
    /// A kind of statement is left out.
    LeaveOut(LeftOut),
    /// The server may use every CPU.
    AllCpus,
    /// No quota of CPU time bounds the server.
    NoQuota,
    /// The programs of others that the user named are paused.
    PauseNeighbours,
    /// A part of the server is slowed to each of these per cents of its speed. What the server would do at twice that speed is extrapolated.
    Slow(SlowPart, Vec<u8>),
    /// What the user proposes, as text. Not in the file.
    Own(String),
    /// There is no safe intervention, for this reason.
    Never(String),
}

impl Change {
    /// Whether it is this setting, or this option, that is changed.
    pub fn names(&self, name: &str) -> bool {
        match self {
            Change::Set(pairs) | Change::Options(pairs) => pairs.contains_key(name),
            Change::Scale(scale) => scale.contains_key(name),
            Change::Users(_)
            | Change::LeaveOut(_)
            | Change::AllCpus
            | Change::NoQuota
            | Change::PauseNeighbours
            | Change::Slow(..)
            | Change::Own(_)
            | Change::Never(_) => false,
        }
    }
}

/// What is slowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPart {
    Cpus,
    Storage,
}

impl SlowPart {
    /// "its CPUs at 80 % of their speed".
    pub fn at(self, speed: &str) -> String {
        match self {
            SlowPart::Cpus => format!("its CPUs at {speed} of their speed"),
            SlowPart::Storage => format!("its storage at {speed} of its speed"),
        }
    }
}

/// Which kind of statement is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOut {
    /// The one with the largest part of the response time.
    Slowest,
    /// The making of connections.
    Reconnects,
}

/// What a user gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cost {
    None,
    Durability,
    Memory,
    Semantics,
}

/// A text that is the name of no cost.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{text}' is nothing that an experiment may cost: give durability, memory, semantics, or several with commas"
)]
pub struct UnknownCost {
    pub text: String,
}

impl Cost {
    pub fn name(self) -> &'static str {
        match self {
            Cost::None => "none",
            Cost::Durability => "durability",
            Cost::Memory => "memory",
            Cost::Semantics => "semantics",
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Cost {
    type Err = UnknownCost;

    fn from_str(text: &str) -> Result<Cost, UnknownCost> {
        let all = [Cost::None, Cost::Durability, Cost::Memory, Cost::Semantics];
        all.into_iter().find(|cost| cost.name() == text).ok_or_else(|| UnknownCost { text: text.to_string() })
    }
}

/// All interventions, in the order of the file.
pub fn catalogue() -> &'static [Intervention] {
    static ALL: LazyLock<Vec<Intervention>> = LazyLock::new(|| parse(FILE).unwrap_or_default());
    &ALL
}

/// The interventions against one cause, in the order in which they are tried.
pub fn of_cause(cause: Cause) -> impl Iterator<Item = &'static Intervention> {
    catalogue().iter().filter(move |intervention| intervention.cause == cause)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    intervention: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    cause: Cause,
    id: String,
    words: String,
    costs: Cost,
    #[serde(default)]
    also: String,
    #[serde(default)]
    where_grows: Vec<String>,
    #[serde(default)]
    partial: bool,
    set: Option<BTreeMap<String, String>>,
    scale: Option<BTreeMap<String, u64>>,
    options: Option<BTreeMap<String, String>>,
    users: Option<f64>,
    leave_out: Option<LeftOut>,
    #[serde(default)]
    all_cpus: bool,
    #[serde(default)]
    no_quota: bool,
    #[serde(default)]
    pause_neighbours: bool,
    slow_cpus: Option<Vec<u8>>,
    slow_storage: Option<Vec<u8>>,
    never: Option<String>,
}

fn parse(text: &str) -> Result<Vec<Intervention>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    file.intervention.into_iter().map(Entry::intervention).collect()
}

impl Entry {
    fn intervention(self) -> Result<Intervention, String> {
        let changes = [
            self.set.map(Change::Set),
            self.scale.map(Change::Scale),
            self.options.map(Change::Options),
            self.users.map(Change::Users),
            self.leave_out.map(Change::LeaveOut),
            self.all_cpus.then_some(Change::AllCpus),
            self.no_quota.then_some(Change::NoQuota),
            self.pause_neighbours.then_some(Change::PauseNeighbours),
            self.slow_cpus.map(|speeds| Change::Slow(SlowPart::Cpus, speeds)),
            self.slow_storage.map(|speeds| Change::Slow(SlowPart::Storage, speeds)),
            self.never.map(Change::Never),
        ];
        let mut changes = changes.into_iter().flatten();
        let (Some(change), None) = (changes.next(), changes.next()) else {
            return Err(format!(
                "{}: give one of set, scale, options, users, leave_out, all_cpus, no_quota, pause_neighbours, slow_cpus, slow_storage and never",
                self.id
            ));
        };
        let Entry { cause, id, words, costs, also, where_grows, partial, .. } = self;
        Ok(Intervention { cause, id, words, costs, also, change, where_grows, is_partial: partial })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_whole() {
        let all = parse(FILE).unwrap();
        assert_eq!(catalogue(), all);
        let mut ids: Vec<&str> = all.iter().map(|intervention| intervention.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all.len(), "an id occurs twice");
        for intervention in &all {
            let Intervention { id, words, also, change, .. } = intervention;
            assert!(id.starts_with(intervention.cause.name()), "{id}");
            assert!(!words.ends_with('.') && !words.is_empty(), "{id}: {words}");
            assert_eq!(also.is_empty(), matches!(change, Change::Never(_)), "{id} says what else it changes");
        }
    }

    #[test]
    fn every_cause_has_an_entry() {
        for cause in Cause::ALL {
            assert!(of_cause(cause).next().is_some(), "{}", cause.name());
        }
    }

    #[test]
    fn an_entry_with_two_changes_or_none_is_refused() {
        let entry = |change: &str| {
            format!(
                "[[intervention]]\ncause = \"cpu\"\nid = \"x\"\nwords = \"x\"\ncosts = \"none\"\n{change}\n"
            )
        };
        assert!(parse(&entry("users = 2.0")).is_ok());
        assert!(parse(&entry("")).unwrap_err().contains("give one of"));
        assert!(parse(&entry("users = 2.0\nnever = \"y\"")).unwrap_err().contains("give one of"));
        assert!(parse(&entry("tables = 2")).is_err());
    }
}

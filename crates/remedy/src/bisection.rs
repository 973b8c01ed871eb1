//! What makes the difference between two recordings.

use serde::{Deserialize, Serialize};
use whyso_explain::model::Part;

use crate::MeasuredGain;

/// What differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceKind {
    #[default]
    Setting,
    /// An option of one of whyso's own workloads.
    Option,
    /// The number of users.
    Users,
    /// Tables, their rows, or their storage engine.
    Data,
}

/// Something in which two runs differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    pub kind: DifferenceKind,
    pub name: String,
    pub first: String,
    pub second: String,
}

/// A difference that could not be tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotTested {
    pub difference: Difference,
    /// What the first recording's server says to it.
    pub why: String,
}

/// One test of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// How many of the second recording's values were applied.
    pub settings: usize,
    /// Throughput with them, as a multiple of that without.
    pub gain: MeasuredGain,
}

/// One test between two builds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildStep {
    pub from: String,
    pub to: String,
    /// Throughput with the second, as a multiple of that with the first.
    pub gain: MeasuredGain,
}

/// A search among builds, from the oldest to the newest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuildSearch {
    pub builds: Vec<String>,
    /// The last against the first.
    pub whole: Option<MeasuredGain>,
    /// The build before the step, and the one after it; `None` where there is no step.
    pub found: Option<(String, String)>,
    pub effect: Option<MeasuredGain>,
    /// Its share of the whole, by logarithms.
    pub share: Option<f64>,
    /// Whether it surely makes more than half of the whole.
    pub is_answer: bool,
    pub steps: Vec<BuildStep>,
}

/// The part of the response time that differs most between the recordings, in milliseconds of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MovedTime {
    pub part: Part,
    pub first_ms: f64,
    pub second_ms: f64,
}

/// A search, and its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bisection {
    /// Id of the recording whose server is the baseline.
    pub first: String,
    pub second: String,
    pub users: u32,
    /// The recordings are of different versions.
    pub version_differs: bool,
    pub differences: Vec<Difference>,
    /// Of these, those whose second value the first recording's server does not take.
    #[serde(default)]
    pub not_tested: Vec<NotTested>,
    /// Throughput with all of the second recording's values, as a multiple of that with the first one's; `None` where they do not differ.
    pub whole: Option<MeasuredGain>,
    /// The difference, or the group that shares the effect. Empty where they make none.
    pub found: Vec<Difference>,
    /// What it makes if nothing else is changed.
    pub effect: Option<MeasuredGain>,
    /// Its share of the whole, by logarithms.
    pub share: Option<f64>,
    /// Whether it surely makes more than half of the whole.
    pub is_answer: bool,
    pub steps: Vec<Step>,
    /// `None` where no builds were given, or they were not needed.
    pub builds: Option<BuildSearch>,
    /// `None` where one of the recordings has no time budget.
    pub moved: Option<MovedTime>,
}

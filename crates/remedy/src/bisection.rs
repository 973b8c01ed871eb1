//! Which setting makes the difference between two recordings.

use serde::{Deserialize, Serialize};

use crate::MeasuredGain;

/// A setting in which two servers differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingDifference {
    pub name: String,
    pub first: String,
    pub second: String,
}

/// One test of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// How many of the second recording's settings were applied.
    pub settings: usize,
    /// Throughput with them, as a multiple of that without.
    pub gain: MeasuredGain,
}

/// A search, and its answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bisection {
    /// Id of the recording whose server is the baseline.
    pub first: String,
    pub second: String,
    pub users: u32,
    /// The recordings are of different versions; the search stays with the first one's.
    pub version_differs: bool,
    pub differences: Vec<SettingDifference>,
    /// Throughput with all of the second recording's settings, as a multiple of that with the first one's; `None` where they do not differ.
    pub whole: Option<MeasuredGain>,
    /// The setting, or the group that shares the effect. Empty where the settings make no difference.
    pub found: Vec<SettingDifference>,
    /// What it makes if nothing else is changed.
    pub effect: Option<MeasuredGain>,
    /// Its share of the whole, by logarithms.
    pub share: Option<f64>,
    /// Whether it surely makes more than half of the whole.
    pub is_answer: bool,
    pub steps: Vec<Step>,
}

//! What an experiment measured.

use serde::{Deserialize, Serialize};

/// A gain as it was measured: throughput as a multiple of what it was, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredGain {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

//! A number and how sure it is.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A number with its 95 % interval, in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct Estimate {
    pub value: f64,
    pub low95: f64,
    pub high95: f64,
}

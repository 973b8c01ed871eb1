//! What is reported of workers.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The workers of a program over a level's window, in the mean of the times at which they were looked at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct WorkerMemory {
    pub program: String,
    /// Processes that another process of the program started; else all.
    pub workers: f64,
    /// Memory that only one worker has, in the mean; `None` where it could not be read.
    pub private_bytes: Option<f64>,
    /// Of all workers together, with their parts of what they share with others; `None` where one's could not be read.
    pub proportional_bytes: Option<f64>,
}

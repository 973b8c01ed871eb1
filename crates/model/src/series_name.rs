//! Which series of a recording.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Names a series, as the recording does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
pub struct SeriesName {
    pub host: String,
    pub source: String,
    pub metric: String,
    pub instance: String,
}

impl SeriesName {
    /// Returns whether it is of the generator, or of its machine where the server is on another one.
    pub fn is_of_generator(&self) -> bool {
        self.host == "client"
    }
}

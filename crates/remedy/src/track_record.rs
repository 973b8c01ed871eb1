//! How often estimates of a cause's gain held in experiments.
//!
//! An estimate holds where the measured gain lies within its bounds. Only experiments count that did what the estimate is about: one that left a
//! statement out is about more than its cause.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use whyso_explain::model::Cause;

/// Made by `bench/proof/plants.py table` from its results.
const FILE: &str = include_str!("../track_records.toml");

/// What became of the estimates for one cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackRecord {
    /// Estimates that were tested.
    pub tests: u32,
    /// Those whose bounds held the measured gain.
    pub held: u32,
    /// Server builds of the tests, each once.
    pub builds: Vec<String>,
}

/// The track record of a cause; `None` where no estimate for it was ever tested.
pub fn track_record(cause: Cause) -> Option<&'static TrackRecord> {
    static ALL: LazyLock<BTreeMap<Cause, TrackRecord>> =
        LazyLock::new(|| toml::from_str(FILE).unwrap_or_default());
    ALL.get(&cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_whole() {
        let all: BTreeMap<Cause, TrackRecord> = toml::from_str(FILE).unwrap();
        for (cause, record) in &all {
            assert!(record.held <= record.tests && record.tests > 0, "{}", cause.name());
            assert!(!record.builds.is_empty() && record.builds.is_sorted(), "{}", cause.name());
            assert_eq!(track_record(*cause), Some(record));
        }
        assert_eq!(track_record(Cause::Unknown), None, "there is no estimate for it");
    }
}

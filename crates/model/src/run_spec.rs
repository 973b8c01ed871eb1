//! The plan of a run, as it was asked for and as it was resolved.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::Pacing;
use crate::performance_schema::PerformanceSchema;
use crate::slo::Requirement;

/// The plan of a run. What its command has no such option for is absent or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct RunSpec {
    /// Name of the workload; of a recorded server, the command that loads it.
    pub workload: Option<String>,
    /// Something else than whyso loads what is recorded.
    pub recorded: bool,
    /// What the watched processes are called, where they are no server's.
    pub process: Option<String>,
    /// Options of the workload, "name=value".
    pub options: Vec<String>,
    /// What the workload sends.
    pub describe: Option<String>,
    pub tables: Option<u32>,
    /// Rows of each table.
    pub rows: Option<u64>,
    /// Storage engine of the tables, such as "InnoDB".
    pub table_engine: Option<String>,
    /// The caches were emptied before each level.
    pub cold: bool,
    pub seed: Option<u64>,
    /// Users at each level, in order.
    pub users: Vec<u32>,
    /// Transactions due per second at each level, in order. Empty: a closed loop.
    pub rates_per_s: Vec<f64>,
    /// Length of a level's measured window; `None`: until something else ends it.
    pub seconds: Option<f64>,
    pub warmup_seconds_max: Option<f64>,
    /// Time between two readings of a source.
    pub interval_ms: Option<u64>,
    /// Engine that was asked for, such as "auto" or "io-uring".
    pub engine_asked: Option<String>,
    /// Event loops that were asked for; `None`: the engine chose.
    pub loops_asked: Option<u32>,
    /// At the first level.
    pub pacing: Option<Pacing>,
    pub slo: Vec<Requirement>,
    /// Settings that the server was started with, or that were set.
    pub settings: Vec<SettingReason>,
    pub server_cpus: Vec<u32>,
    /// How the server was bound to its CPUs, as text; empty where it was not.
    pub server_cpus_words: String,
    pub client_cpus: Vec<u32>,
    /// CPUs that the load was bound to, as text; empty where it was not.
    pub client_cpus_words: String,
    /// What the user should know of the server.
    pub notes: Vec<String>,
    /// `None`: not recorded.
    pub performance_schema: Option<PerformanceSchema>,
    /// `None`: not recorded.
    pub stacks: Option<Stacks>,
}

/// A setting of the server, and why it was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct SettingReason {
    pub name: String,
    pub value: String,
    /// Empty, or [`SettingReason::ASKED`] and more, where the user asked for it.
    pub why: String,
}

impl SettingReason {
    pub const ASKED: &str = "asked for";

    /// Whether the user asked for it; whyso sets others by itself.
    pub fn is_asked(&self) -> bool {
        self.why.is_empty() || self.why.starts_with(SettingReason::ASKED)
    }
}

/// How stacks of the server's threads were sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Stacks {
    #[serde(rename = "none")]
    Off,
    /// Fewer, without those of waits, and without files and lines.
    Light,
    Full,
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_plan_is_read_without_what_it_lacks_and_without_what_a_newer_version_adds() {
        let stored =
            json!({"workload": "oltp", "tables": 4, "stacks": "light", "loops_asked": null, "weather": [1]});
        let spec: RunSpec = from_value(stored).unwrap();
        assert_eq!((spec.workload.as_deref(), spec.tables, spec.rows), (Some("oltp"), Some(4), None));
        assert_eq!(spec.stacks, Some(Stacks::Light));
        assert_eq!(from_value::<RunSpec>(to_value(&spec).unwrap()).unwrap(), spec);
    }
}

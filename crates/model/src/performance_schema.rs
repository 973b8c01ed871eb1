//! How a server's Performance Schema was set in a run.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// How the Performance Schema was set, and what was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct PerformanceSchema {
    /// Preset of `--pfs`, such as "global"; `None`: nothing was asked for.
    pub preset: Option<String>,
    /// Value of `--pfs-timing`, where it was given.
    pub timing: Option<String>,
    /// The request as text; `None`: nothing was asked for.
    pub asked: Option<String>,
    pub state: PfsState,
    /// How it was set, as text, such as "as the server had it: off"; empty in the oldest recordings.
    pub words: String,
    /// `None`: the server was not read.
    pub in_force: Option<EffectiveSetup>,
    /// SQL that set it.
    pub statements: Vec<String>,
    /// SQL of the changes that the server did not take in full.
    pub not_taken: Vec<String>,
    /// Why the server was not read; `None`: it was.
    pub not_read: Option<String>,
}

/// Whether a server's Performance Schema is on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum PfsState {
    /// A build without it.
    CompiledOut,
    Off,
    On,
    /// The server was not read, or the recording does not say.
    #[default]
    #[serde(other)]
    Unknown,
}

/// How the setup tables are set, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct EffectiveSetup {
    pub instruments: usize,
    pub enabled: usize,
    /// Of those that are enabled.
    pub timed: usize,
    /// Those that are enabled.
    pub consumers: Vec<String>,
    /// "wait by CYCLE"; empty where the server has no such table.
    pub timers: Vec<String>,
    pub timers_there: Vec<AvailableTimer>,
    /// By the first part of their names: "wait", "stage", "statement", "transaction", "idle", "memory", "error".
    pub classes: Vec<EffectiveClass>,
    /// Instruments that are timed, enabled or not; `None` in the oldest recordings.
    pub timed_instruments: Option<InstrumentNames>,
}

/// How the instruments of one class are set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct EffectiveClass {
    pub class: String,
    pub instruments: usize,
    pub enabled: usize,
    /// Of those that are enabled.
    pub timed: usize,
}

/// A timer of the server; its numbers are `None` where the machine lacks it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct AvailableTimer {
    pub name: String,
    /// Units in a second.
    pub frequency: Option<i64>,
    /// Units by which it goes forward at once.
    pub resolution: Option<i64>,
    /// CPU cycles that a reading takes at least.
    pub overhead_cycles: Option<i64>,
}

/// Instruments by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct InstrumentNames {
    /// Every name that begins so; the empty one stands for all.
    pub beginnings: Vec<String>,
    pub names: Vec<String>,
}

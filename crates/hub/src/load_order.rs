//! A load that an agent sends as one of several: what the commander asks for, and how far it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use whyso_load::{EngineKind, Interval, LevelOutcome, LevelSpec, Live, Tuning};

use crate::recording_id::RecordingId;

/// A step of a load. A commander whose answer was lost asks once more: a step that was done is not done twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadOrder {
    pub load: RecordingId,
    pub step: LoadStep,
    /// Intervals up to this number have arrived, and are forgotten.
    pub seen: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum LoadStep {
    /// Connect the users.
    Open(Box<LoadRequest>),
    /// Begin a level. All times are of the agent's clock.
    Level { number: u32, spec: LevelSpec, at_ns: i64 },
    /// Begin the measured window.
    Measure { level: u32, at_ns: i64 },
    /// End the window and the level.
    Stop { level: u32, at_ns: i64 },
    /// Say how far it is.
    State,
    /// Disconnect the users.
    Close,
}

/// What is to be sent. It names no server: the agent's own file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRequest {
    /// As the agent's file calls it.
    pub target: String,
    /// Which server the target has to be, by what it says of itself; `None` where it may be any.
    #[serde(default)]
    pub server: Option<String>,
    pub source: LoadSource,
    /// Options of the workload.
    pub options: Vec<(String, String)>,
    /// Settings of each session of the load, (name, value). An agent gives them only where it may experiment.
    #[serde(default)]
    pub session: Vec<(String, String)>,
    /// Kinds of statements that its transactions do not send.
    #[serde(default)]
    pub left_out: Vec<String>,
    pub tables: u32,
    pub rows: u64,
    /// Users of this agent's largest level.
    pub users_max: u32,
    pub seed: u64,
    pub engine: EngineKind,
    pub loops: Option<u32>,
    pub tuning: Tuning,
    /// As [`whyso_load::Limits::reconnect`].
    pub reconnect: Duration,
}

/// Where the workload comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum LoadSource {
    /// One of whyso's own.
    Builtin { name: String },
    /// The text of a file of SQL.
    File { name: String, text: String },
    /// A single statement.
    Query { name: String, sql: String },
}

/// How far a load is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadPhase {
    /// Users are being connected.
    #[default]
    Opening,
    /// Users are connected, and no level runs.
    Ready,
    /// A level runs.
    Running,
    /// It has ended. If `failure` is there, by itself.
    Over,
}

/// How far a load is, and what it has done.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LoadState {
    pub phase: LoadPhase,
    /// Of the level that runs, or ran last; levels are numbered from 1.
    pub level: u32,
    pub live: Live,
    /// Its users have done all that there was to do.
    pub is_over: bool,
    /// Why the level, or all of it, ended by itself.
    pub failure: Option<String>,
    /// The oldest intervals that have not arrived, with their numbers from 1.
    pub intervals: Vec<(u64, Interval)>,
    /// Of the last level, once it has ended and all its intervals have arrived.
    pub outcome: Option<Box<LevelOutcome>>,
}

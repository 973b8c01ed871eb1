//! What goes into an explanation, and what comes out of it. Plain data.

mod evidence;
mod input;
mod output;

pub use whyso_inference::{Estimate, Steadiness, UslFit};
pub use whyso_model::{FileWait, SeriesName, Worker};
pub use whyso_series::{InFlight, UserSeconds};

pub use self::evidence::Evidence;
pub use self::input::{
    AccessLogInput, ActionInput, Counter, CpuUse, DeedShare, EndedWaits, Gauge, Input, Instruments,
    LevelInput, LoopKind, Machine, MachineInput, NodeInput, PageTimes, PfsSetup, RequestSums,
    SampledActivity, SampledClass, SloInput, StatementTime, StatementWork, Timer,
};
pub use self::output::{
    ActionEffect, Doubt, Drift, Explanation, Finding, Growth, LevelVerdict, OtherClients, Peak, ProcessTime,
    Regime, StateTime, UsersInterval, users_words,
};
pub use crate::activities::{Activity, ActivityTime};
pub use crate::budget::{Budget, ClassTime, CpuSplit, Part, PartTime};
pub use crate::locks::LockObject;
pub use crate::nodes::{Applier, Applying, BEHIND_S_MIN, NodeState, StateShare, StateThreads};
pub use crate::pauses::{Kind as PauseKind, Moments, Pauses, Regular};
pub use crate::requests::{AccessLogTime, RequestKind, ServingProcess, TracedRequests};
pub use crate::suspects::{
    Cause, Class, CpuGains, Gain, Holder, Limit, Possible, Resource, Suspect, SuspectObject,
};
pub use crate::tiers::{RequestWords, TierCause, TierFile, TierLine, TierPart, TierTime, UpstreamTime};
pub use crate::worker_memory::WorkerMemory;

//! The vocabulary: types that the other crates share, without I/O and without a clock.
//!
//! A type belongs here when two crates that do not depend on each other speak of the same thing. A type that becomes a row of a
//! recording's text tables has its column names here, and both directions of the conversion.
//!
//! ```
//! use whyso_model::{Role, State};
//!
//! assert_eq!(State::of_name("file_sync"), Some(State::FileSync));
//! assert_eq!(Role::of_name("ib_log_flush"), Role::LogFlusher);
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod facts;
mod file_wait;
mod lock_wait;
mod logged_requests;
pub mod measures;
mod moments;
mod not_measured;
mod pacing;
mod pause;
pub mod performance_schema;
pub mod role;
mod run_spec;
mod series_name;
mod size;
pub mod slo;
pub mod state;
mod stop;
pub mod tier;
mod worker;

pub use facts::{HostFacts, ServerFacts};
pub use file_wait::FileWait;
pub use lock_wait::{LockKind, LockWait};
pub use logged_requests::{LogGroup, LoggedRequests};
pub use moments::Moments;
pub use not_measured::{Missing, NotMeasured};
pub use pacing::{ArrivalRate, Arrivals, Pacing, ThinkTime};
pub use pause::PauseRow;
pub use performance_schema::PerformanceSchema;
pub use role::Role;
pub use run_spec::{RunSpec, SettingReason, Stacks};
pub use series_name::SeriesName;
pub use size::parse_size;
pub use state::{STATES, State};
pub use stop::Stop;
pub use worker::Worker;

/// Between two times at which the commands of a server's clients are handed to the recorder.
pub const COMMANDS_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

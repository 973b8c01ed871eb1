//! How a workload is sent: by an [engine](EngineKind), at a [pace](Pacing), with the time of everything measured.
//!
//! An engine is a thread per user, which blocks while it waits, or a few event loops over epoll or io_uring. All
//! engines send the same load. In a closed loop a user begins a transaction when the one before has ended. In an open
//! loop transactions are due by a schedule, and any user that is free takes the next one.
//!
//! The [`Engine`] holds the connections, with the workload's statements prepared on each. [`Engine::level`] begins a
//! level with a warm-up. [`Running::begin_measuring`] opens the measured window without a pause. [`Running::stop`]
//! closes it and returns the [`LevelOutcome`]. What is sent comes from a [`Driver`] per user: [`NativeWork`] makes
//! those of a workload.
//!
//! * A deadlock or a lock timeout (the workload's `retry_errors`) is rolled back, and counted by its number. The same
//!   transaction is begun again; its response time includes that. A lost connection is opened again for as long as
//!   [`Limits::reconnect`] allows. Any other error ends the level with a [`Failure`].
//! * Everything is counted by the time at which it was completed, against exact edges of the window.
//! * What was due and unanswered when the window ended is reported with its ages ([`LevelOutcome::in_flight`]).
//! * The users' time adds up ([`LevelOutcome::user_time`]). Users times the window's length is the time of transactions
//!   that ended, of those in flight, and the time between transactions.
//! * Every wait has a bound; see [`Limits`].
//!
//! In a warm level, a statement costs one write, one read if the answer arrives in one piece, and five plain stores.
//! With io_uring, one system call hands over many writes and reads. Nothing is allocated, logged or locked for a
//! statement. Events go through a ring, of 40 KiB for a thread and of 320 KiB for an event loop. Its writer or the
//! collector drains it. A thread has a buffer of 16 KiB to receive into, and an event loop has buffers that its
//! connections share. Histograms are one set per level.
//!
//! This crate reads no file that a server names: the answer to a LOAD DATA LOCAL of its own is what the driver
//! generates. It sends no clear-text password except over a Unix socket. It logs nothing.
//! logs nothing.
//!
//! ```no_run
//! use std::time::Duration;
//! use whyso_load::{Address, Engine, Target, Tls};
//! use whyso_workload::{Options, Workload};
//!
//! let target = Target {
//!     address: Address::Unix("/tmp/mysql.sock".into()),
//!     user: "bench".to_string(),
//!     password: String::new(),
//!     schema: "whyso".to_string(),
//!     tls: Tls::Off,
//! };
//! let workload = Workload::builtin("oltp-read-write", &Options::default())?;
//! let mut engine = Engine::connect(&target, &workload, 16, 42, None)?;
//! for users in [1, 4, 16] {
//!     let mut level = engine.level(users)?;
//!     std::thread::sleep(Duration::from_secs(5));
//!     level.begin_measuring();
//!     std::thread::sleep(Duration::from_secs(10));
//!     let outcome = level.stop();
//!     println!("{users} users: {} transactions, p99 {} ns", outcome.transactions, outcome.response.quantile_ns(0.99));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod connection;
mod driver;
mod engine;
mod engine_kind;
mod error;
mod error_code;
mod http;
mod measure;
mod merge;
mod native;
mod outcome;
mod spec;
mod sync;
mod target;
mod tuning;

pub use driver::{
    Command, Driver, Expects, Fine, Handles, Kind, Next, Preparation, Reply, Turn, Work, WorkError,
};
pub use engine::Engine;
pub use engine::alone::Alone;
pub use engine::level::Running;
pub use engine_kind::EngineKind;
pub use error::{ExecutionError, LoadError, SpecError};
pub use http::{HttpSpec, HttpWork};
pub use measure::histogram::Histogram;
pub use measure::times::{Time, Times};
pub use merge::IntervalMerge;
pub use native::NativeWork;
pub use outcome::{
    ArrivalsOutcome, CONNECT, Cause, ClientUse, EndpointOutcome, EngineUse, ErrorCode, Failure,
    GeneratorOutcome, HttpProblem, InFlight, Interval, IntervalRow, KindOutcome, LevelOutcome, Live, Outage,
    ROLLBACK, TRANSACTION, TransactionOutcome, UnknownErrorCode, UserTime,
};
pub use spec::{
    Arrivals, Endpoint, LevelSpec, LoadSpec, Pacing, Placement, Profile, ProfileError, Think, UnknownEngine,
};
pub use target::{Address, Limits, Target, Tls};
pub use tuning::{MinComplete, SchedulingPolicy, Tuning, TuningError, UnknownSchedulingPolicy};

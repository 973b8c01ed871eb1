//! Many runs that answer one question.
//!
//! A study is a TOML file ([`Spec`]): servers × conditions × variants × tunings, a sweep of users, a number of repetitions.
//!
//! - A *cell* is one server with one variant under one condition, tuned in one way.
//! - A *start* is one fresh start of a cell, and its whole sweep.
//! - A *block* is one start of every cell, in random order ([`Spec::block`]), one after the other or all at once ([`Design`]).
//! - A *pair* is two starts of the baseline, with which a study begins. They show whether the machine differs from itself.
//!
//! A [`Journal`] stores what was done. So a study can be stopped at any moment, and continues where it was. [`answer`] turns what its starts
//! measured into comparisons.
//!
//! This crate starts no server and runs no load.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod answer;
mod app;
mod cells;
mod check;
mod cluster;
mod design;
mod hints;
mod journal;
mod journal_answer;
mod measures;
mod scalar;
mod session_sweep;
mod setup;
mod spec;
mod suggest;
mod turns;

pub use answer::{
    Answer, Course, Curve, CurvePoint, CurveStep, Evenness, Interaction, Line, Pair, PairLevel, Peak,
    SettingChange, StartSummary, Step, Tops, answer,
};
pub use app::CALENDAR;
pub use cells::{Cell, Start};
pub use cluster::{ClusterOf, ClusterSetup};
pub use design::{DUET_CUT, DUET_WINDOW, Design};
pub use hints::suggest_word;
pub use journal::{
    Journal, LevelRecord, LockEvenness, Machine, Moment, PeakRecord, PointRecord, StartRecord, StoredStudy,
    Top, TopLine,
};
pub use journal_answer::journal_answer;
pub use measures::{find_measure, measure_words};
pub use scalar::Scalar;
pub use session_sweep::{Points, SessionSweep, SweepError};
pub use setup::{At, Part, Setup};
pub use spec::{Before, Repeats, Spec, StopWhen, Suggest};
pub use suggest::SuggestError;

/// What is wrong, in a sentence with what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("{0}")]
    Spec(String),
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error("{path}: {cause}")]
    Io { path: String, cause: std::io::Error },
}

impl Error {
    fn io(path: &std::path::Path, cause: std::io::Error) -> Error {
        Error::Io { path: path.display().to_string(), cause }
    }
}

//! The progress of a run, for its listener.

use std::time::Duration;

use whyso_explain::ab::AbRatio;
use whyso_record::data::LoadInterval;
use whyso_record::run::{Level, Purpose};

use whyso_tracing::BusyFunctions;

/// One piece of news.
#[derive(Debug)]
pub enum News<'a> {
    /// A step that takes a moment has begun, such as "starting MariaDB 10.11".
    Step(&'a str),
    /// Rows of the data set that are loaded.
    Loading { phase: &'a str, rows: u64, rows_total: u64 },
    /// A level runs.
    Level(Running),
    /// What the load did in about a second. Only `whyso load` sends it.
    Interval(&'a IntervalNews),
    /// The functions that the server's threads ran in the last seconds, if stacks are recorded.
    Functions(&'a BusyFunctions),
    /// A pair of windows has ended: the ratio of the sides as far as it is known, and the longest that the rest may take.
    Pair { ratio: Option<AbRatio>, left: Duration },
    /// A level has ended.
    LevelDone(&'a Level),
    /// Something that the user should know, but that does not end the run.
    Warning(&'a str),
}

/// What the load did in about a second.
#[derive(Clone, Debug)]
pub struct IntervalNews {
    pub users: u32,
    /// Name of the workload.
    pub workload: String,
    /// Transactions that were due and not begun at its end; `None` in a closed loop.
    pub backlog: Option<u64>,
    /// One a kind of statement; whole transactions first.
    pub rows: Vec<LoadInterval>,
}

/// How far a running level is.
#[derive(Clone, Copy, Debug)]
pub struct Running {
    /// Position of the level, from 0.
    pub index: u32,
    pub users: u32,
    /// What becomes due a second now, in an open loop.
    pub rate_per_s: Option<f64>,
    pub purpose: Purpose,
    pub measuring: bool,
    /// Time since the phase (warm-up or measuring) began.
    pub elapsed: Duration,
    /// Longest that the phase may take.
    pub bound: Duration,
    /// In the last half second.
    pub transactions_per_s: f64,
    /// In the last half second.
    pub queries_per_s: f64,
    /// Since the level began.
    pub errors: u64,
    /// Longest that the rest of the run may take, this level included.
    pub rest: Duration,
}

/// Hears the news. Called from the thread that called [`crate::run`], and from loaders' threads.
pub trait Listener: Sync {
    fn hear(&self, news: News<'_>);
}

/// A listener that hears nothing.
#[derive(Debug, Default)]
pub struct Quiet;

impl Listener for Quiet {
    fn hear(&self, _: News<'_>) {}
}

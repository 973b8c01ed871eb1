//! What is the same for all users of a run, and what they report to each other and to those that watch them.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::error::ScriptFailure;
use crate::random::{RandomOptions, unique};

/// `SB_CNT_MAX`.
pub(crate) const COUNTERS: usize = 8;

/// A value of an option, as scripts see it in `sysbench.opt`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OptionValue {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

/// As it is typed.
impl std::fmt::Display for OptionValue {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OptionValue::Null => Ok(()),
            OptionValue::Bool(true) => out.write_str("on"),
            OptionValue::Bool(false) => out.write_str("off"),
            OptionValue::Number(number) => write!(out, "{number}"),
            OptionValue::Text(text) => out.write_str(text),
            OptionValue::List(items) => out.write_str(&items.join(",")),
        }
    }
}

/// Where the script's text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
    /// From standard input.
    Text(String),
}

/// `--mysql-ignore-errors`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IgnoreErrors {
    All,
    These(Vec<u16>),
}

impl IgnoreErrors {
    pub(crate) fn contains(&self, errno: u16) -> bool {
        match self {
            IgnoreErrors::All => true,
            IgnoreErrors::These(errnos) => errnos.contains(&errno),
        }
    }
}

/// What the users do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// Events, until the run is over.
    Events,
    /// A command of the script, once per user.
    Command(String),
}

/// What a script's turn is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A command, or what comes before the events: only warned of.
    Prepares,
    Runs,
}

/// What one user has done.
#[derive(Debug, Default)]
struct UserSums {
    events: AtomicU64,
    busy_ns: AtomicU64,
    /// When its present event began; 0 outside one.
    since_ns: AtomicI64,
    /// What its script has counted, and connections that were reopened.
    counters: [AtomicU64; COUNTERS],
}

#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) job: Job,
    pub(crate) source: Source,
    /// As it was typed.
    pub(crate) test: String,
    pub(crate) package_path: String,
    pub(crate) argv: Vec<String>,
    pub(crate) options: Vec<(String, OptionValue)>,
    pub(crate) ignore_errors: IgnoreErrors,
    /// Statements are never prepared (`--db-ps-mode=disable`).
    pub(crate) text_only: bool,
    pub(crate) percentile: u32,
    /// Events per second; 0 without a schedule.
    pub(crate) rate: f64,
    pub(crate) random: RandomOptions,
    pub(crate) seed: u64,
    /// 0 without a limit.
    pub(crate) events_max: u64,
    /// Longest time that a script may keep other users of its loop from working.
    pub(crate) turn_max: Duration,
    /// Queries are not sent, and connections not opened (`--mysql-dry-run`).
    pub(crate) dry_run: bool,
    /// The test `cpu`, which sends nothing.
    pub(crate) is_cpu_test: bool,
    /// The servers as sysbench names them in messages, in the order in which they are used.
    pub(crate) servers: Vec<String>,

    unique: AtomicU32,
    /// Events that have begun, where their number is limited.
    pub(crate) begun: AtomicU64,
    /// Users whose `thread_init` is done.
    pub(crate) ready: AtomicU32,
    /// Users may begin events.
    pub(crate) go: AtomicBool,
    /// Users begin no further event.
    pub(crate) ending: AtomicBool,
    /// Users that have left.
    pub(crate) left: AtomicU32,
    /// Ignored errors after which we sent a ROLLBACK.
    pub(crate) rollbacks: AtomicU64,
    /// Something failed after the events had ended: the run is reported all the same.
    pub(crate) has_failed_late: AtomicBool,
    users: Vec<UserSums>,
    failure: Mutex<Option<ScriptFailure>>,
}

impl Facts {
    /// Facts without anything about the run.
    pub(crate) fn new(job: Job, source: Source, test: String, random: RandomOptions, users: u32) -> Facts {
        Facts {
            job,
            source,
            test,
            package_path: String::new(),
            argv: Vec::new(),
            options: Vec::new(),
            ignore_errors: IgnoreErrors::These(vec![1213, 1020, 1205]),
            text_only: false,
            percentile: 95,
            rate: 0.0,
            random,
            seed: 0,
            events_max: 0,
            turn_max: Duration::from_secs(30),
            dry_run: false,
            is_cpu_test: false,
            servers: Vec::new(),
            unique: AtomicU32::new(0),
            begun: AtomicU64::new(0),
            ready: AtomicU32::new(0),
            go: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            left: AtomicU32::new(0),
            rollbacks: AtomicU64::new(0),
            has_failed_late: AtomicBool::new(false),
            users: (0..users).map(|_| UserSums::default()).collect(),
            failure: Mutex::new(None),
        }
    }

    pub(crate) fn next_unique(&self) -> u32 {
        unique((self.seed as u32).wrapping_add(self.unique.fetch_add(1, Relaxed)))
    }

    /// Takes one of the events that may still begin; whether there was one.
    pub(crate) fn take_event(&self) -> bool {
        self.events_max == 0 || self.begun.fetch_add(1, Relaxed) < self.events_max
    }

    /// Counts an event of a user; `busy_ns`: how long it took.
    pub(crate) fn count_event(&self, user: u32, busy_ns: i64) {
        if let Some(sums) = self.users.get(user as usize) {
            // One thread alone writes to a user's sums.
            sums.events.store(sums.events.load(Relaxed) + 1, Relaxed);
            sums.busy_ns.store(sums.busy_ns.load(Relaxed) + busy_ns.max(0) as u64, Relaxed);
            sums.since_ns.store(0, Relaxed);
        }
    }

    /// Events of each user so far, and the time that they took, in nanoseconds.
    pub(crate) fn users(&self) -> Vec<(u64, u64)> {
        self.users.iter().map(|sums| (sums.events.load(Relaxed), sums.busy_ns.load(Relaxed))).collect()
    }

    /// Keeps the first failure, which is the one that is reported.
    pub(crate) fn fail(&self, failure: ScriptFailure) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
    }

    pub(crate) fn failure(&self) -> Option<ScriptFailure> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What users do now, for the watchdog.
    pub(crate) fn stage(&self) -> Stage {
        match self.job {
            Job::Events if self.go.load(Relaxed) => Stage::Runs,
            _ => Stage::Prepares,
        }
    }

    /// Counts one more of what sysbench counts by this number.
    pub(crate) fn count(&self, user: u32, counter: usize) {
        if let Some(counter) = self.users.get(user as usize).and_then(|sums| sums.counters.get(counter)) {
            // One thread alone writes to a user's counters.
            counter.store(counter.load(Relaxed) + 1, Relaxed);
        }
    }

    /// What scripts have counted themselves, and connections that were reopened.
    pub(crate) fn counters(&self) -> [u64; COUNTERS] {
        let mut sums = [0; COUNTERS];
        for user in &self.users {
            for (sum, counter) in sums.iter_mut().zip(&user.counters) {
                *sum += counter.load(Relaxed);
            }
        }
        sums
    }

    /// An event of a user begins.
    pub(crate) fn begin_event(&self, user: u32, now_ns: i64) {
        if let Some(sums) = self.users.get(user as usize) {
            sums.since_ns.store(now_ns, Relaxed);
        }
    }

    /// Users that are within an event.
    pub(crate) fn unfinished(&self) -> usize {
        self.users.iter().filter(|sums| sums.since_ns.load(Relaxed) != 0).count()
    }
}

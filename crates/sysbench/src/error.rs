//! What can go wrong, one enum per subject. Texts that sysbench has too are sysbench's.

use std::error;
use std::fmt;
use std::io;

use thiserror::Error;
use whyso_load::{ExecutionError, LoadError, UnknownEngine, WorkError};

use crate::random::UnknownDistribution;
use crate::say::{Priority, is_logged, note};

/// Why a command line can't be read, or not be translated from sysbench 0.4's.
#[derive(Debug, Error)]
pub(crate) enum CommandLineError {
    #[error("Unrecognized command line argument: {argument}")]
    UnknownArgument { argument: String },
    #[error(
        "--oltp-table-name={name} has no translation: tables are sbtest1, sbtest2, … today; rename the table, or leave the option out \
         and prepare again"
    )]
    TableName { name: String },
    #[error(
        "--oltp-test-mode={mode} has no translation: complex is oltp_read_write, simple is oltp_point_select"
    )]
    TestMode { mode: String },
    #[error("--{option} has no translation: `whyso sysbench {test} help` lists what there is")]
    Untranslated { option: String, test: &'static str },
}

/// Why an option can't be accepted.
#[derive(Debug, Error)]
pub(crate) enum OptionsError {
    #[error("Invalid value for the '{name}' option: '{text}'")]
    Value { name: String, text: String },
    /// Nothing declares the option, or it can't have this value.
    #[error("invalid option: --{name}{}", value.as_ref().map_or_else(String::new, |value| format!("={value}")))]
    Invalid { name: String, value: Option<String> },
}

/// Why the general options can't be used as they are.
#[derive(Debug, Error)]
pub(crate) enum SettingsError {
    // With the empty line that sysbench prints here.
    #[error("Invalid value for --threads: {value}.\n")]
    Threads { value: f64 },
    #[error("Invalid value for --{name}: {value}. Give {least} to {most}.")]
    Range { name: String, value: f64, least: f64, most: f64 },
    #[error("Invalid value for --{name}: '{text}'")]
    Value { name: &'static str, text: String },
    #[error("--{name} is not served: leave it out")]
    NotServed { name: &'static str },
    /// Hosts to record, and no recording.
    #[error("--hosts names hosts that record: give --record, too")]
    HostsWithoutRecord,
    #[error("--db-driver={driver} is not served: mysql is")]
    Driver { driver: String },
    #[error("Invalid value for --db-ps-mode: {mode}. Give auto or disable.")]
    PreparedMode { mode: String },
    #[error(transparent)]
    Distribution(#[from] UnknownDistribution),
    #[error(transparent)]
    Engine(#[from] UnknownEngine),
}

/// Why a script can't be found, loaded or run. Messages of Lua have file and line.
#[derive(Debug, Error)]
pub(crate) enum ScriptError {
    #[error("the script can't be read from standard input: {0}")]
    StandardInput(io::Error),
    #[error("Cannot find benchmark '{test}': no such built-in test, file or module")]
    NotFound { test: String },
    #[error("the Lua state can't be created: {message}")]
    State { message: String },
    #[error("user {user}'s coroutine can't be created: {message}")]
    Coroutine { user: u32, message: String },
    #[error("the thread that watches scripts can't be started: {0}")]
    Watchdog(io::Error),
    /// What Lua reports when the script's own values are read or set.
    #[error("{message}")]
    Lua { message: String },
    /// The options that the script declares can't be read. sysbench names the place in its own module.
    #[error(
        "`sysbench.cmdline.read_cmdline_options' function failed: [string \"sysbench.cmdline.lua\"]:0: {message}"
    )]
    Declaration { message: String },
    /// A function of the script raised an error.
    #[error("{0}")]
    Failed(ScriptFailure),
    /// A function of the script could not be carried out.
    #[error("{function}: {error}")]
    Execution { function: String, error: ExecutionError },
}

impl From<ScriptError> for WorkError {
    fn from(error: ScriptError) -> WorkError {
        WorkError::new(error)
    }
}

/// Why a script gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptFailure {
    /// The function that failed, as sysbench names it.
    pub(crate) function: String,
    pub(crate) message: String,
    /// Where it was, with files and lines; empty where that is unknown.
    pub(crate) trace: String,
}

impl ScriptFailure {
    /// Prints where the script was, for users who want more than sysbench's output.
    pub(crate) fn note_trace(&self) {
        if !self.trace.is_empty() && is_logged(Priority::Info) {
            note(&self.trace);
        }
    }
}

/// As sysbench prints it.
impl fmt::Display for ScriptFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.function.as_str() {
            "" => f.write_str(&self.message),
            function => write!(f, "`{function}' function failed: {}", self.message),
        }
    }
}

/// Why a run can't be started, or is abandoned.
#[derive(Debug, Error)]
pub(crate) enum RunError {
    #[error("no server is named: give --mysql-host or --mysql-socket")]
    NoServer,
    #[error(
        "only {ready} of {threads} threads were ready within {timeout_s} s; --thread-init-timeout allows more"
    )]
    NotReady { ready: u32, threads: u32, timeout_s: u64 },
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

/// Why a run can't be recorded, or its recording is not whole. It holds the error of the program that records.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct RecordingError(Box<dyn error::Error + Send + Sync>);

impl RecordingError {
    pub fn new(error: impl Into<Box<dyn error::Error + Send + Sync>>) -> RecordingError {
        RecordingError(error.into())
    }
}

/// What ends the program with a message of its log.
#[derive(Debug, Error)]
pub(crate) enum ProgramError {
    #[error(transparent)]
    CommandLine(#[from] CommandLineError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("Failed to open config file: '{path}': {error}")]
    ConfigFile { path: String, error: io::Error },
    /// A test of sysbench's that whyso does not have.
    #[error("{why}")]
    Unserved { why: String },
    #[error("cannot find the event() function in {test}")]
    NoEvent { test: String },
    #[error("can't write {path}: {error}")]
    Json { path: String, error: io::Error },
    #[error("the recording is not whole: {0}")]
    Recording(RecordingError),
    #[error("Invalid value of {option}: {limit}.")]
    PrimeLimit { option: &'static str, limit: f64 },
}

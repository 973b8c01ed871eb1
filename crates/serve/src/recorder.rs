//! What the page asks of a recorder, which the program passes in.

use std::path::PathBuf;
use std::time::Duration;

use whyso_model::Stop;

/// What is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveTarget {
    /// A server, by its DSN.
    Server(String),
    /// Processes, by their name or number.
    Processes(String),
    /// The hosts of a lab file, by their agents.
    Hosts(PathBuf),
}

/// What the Performance Schema is to count during a recording, as the file has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PfsSetup {
    pub preset: String,
    /// `None`: as the preset has it.
    pub timing: Option<String>,
    /// Only threads of these users; empty: of all.
    pub users: Vec<String>,
    /// Only threads from these hosts; empty: from all.
    pub hosts: Vec<String>,
    /// Only these tables, each as SCHEMA or SCHEMA.TABLE; empty: all.
    pub objects: Vec<String>,
}

/// A recording that the page asks for.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    pub target: LiveTarget,
    pub interval: Duration,
    /// Account for the time of the threads, where they run here.
    pub trace: bool,
    /// Take the threads' stacks, too.
    pub stacks: bool,
    /// Follow the commands of the server's clients.
    pub trace_sql: bool,
    /// Record these with their literals.
    pub keep_literals: bool,
    /// Files, or names of add-ons that ship.
    pub add_ons: Vec<String>,
    /// `None`: as the server has it, and nothing is changed.
    pub pfs: Option<PfsSetup>,
    /// Folder that holds the recordings.
    pub runs: PathBuf,
    /// Size of the recording beyond which its oldest detail is removed.
    pub bytes_max: u64,
    /// The command line that the recording shows.
    pub command_line: Vec<String>,
}

/// What a recording reports while it is begun and runs.
#[derive(Clone, Copy, Debug)]
pub enum RecordProgress<'a> {
    /// A step that takes a moment has begun.
    Step(&'a str),
    /// Something that the user should know, and that does not end the recording.
    Warning(&'a str),
    /// The recording has begun.
    Begun,
}

/// Why a recorder could not record, in one sentence.
pub type RecorderError = Box<dyn std::error::Error + Send + Sync>;

/// Records a server for the page. The program passes it in: this crate drives nothing and writes to no server.
pub trait LiveRecorder: Send + Sync {
    /// Checks what a recording would be asked for, without reaching anything.
    ///
    /// # Errors
    /// What of it can't be, in one sentence.
    fn check(&self, _request: &RecordRequest) -> Result<(), RecorderError> {
        Ok(())
    }

    /// Records until `stop` is asked, and calls `progress` meanwhile.
    ///
    /// # Errors
    /// Why nothing could be recorded, or why the recording was cut short, in one sentence.
    fn record(
        &self,
        request: &RecordRequest,
        progress: &(dyn Fn(RecordProgress<'_>) + Sync),
        stop: &Stop,
    ) -> Result<(), RecorderError>;
}

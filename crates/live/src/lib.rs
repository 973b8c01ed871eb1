//! A server as it is now, in the terminal, each second, and any time of the last hour.
//!
//! The screen shows throughput, response time, where the time of requests goes, waits, statements, and locks with who holds them.
//!
//! [`History`] is a tap of a recorder: it keeps in memory what is recorded. [`show`] draws it until the user has seen enough. What is
//! drawn is computed by the functions that explain a recording ([`whyso_explain`], [`whyso_series`]); this crate arranges it, asks no server
//! and reads no file.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::sync::mpsc::Receiver;
//! use whyso_live::{About, AskError, Control, History, Server};
//! use whyso_record::{Options, Recorder};
//!
//! struct Nobody;
//! impl Control for Nobody {
//!     fn toggle_recording(&self) {}
//!     fn recording_since_ns(&self) -> Option<i64> {
//!         None
//!     }
//!     fn note(&self, _text: &str) -> Result<(), whyso_live::NoteError> {
//!         Ok(())
//!     }
//!     fn is_over(&self) -> bool {
//!         false
//!     }
//!     fn trouble(&self) -> Option<String> {
//!         None
//!     }
//!     fn not_measured(&self) -> Vec<whyso_model::NotMeasured> {
//!         Vec::new()
//!     }
//!     fn explain(&self, _statement: &str) -> Receiver<Result<String, AskError>> {
//!         std::sync::mpsc::channel().1
//!     }
//!     fn kill(&self, _connection: u64, _statement: &str) -> Receiver<Result<String, AskError>> {
//!         std::sync::mpsc::channel().1
//!     }
//!     fn may_kill(&self) -> bool {
//!         false
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let recorder = Recorder::create("runs/example".as_ref(), Options::default())?;
//! let history = Arc::new(History::default());
//! recorder.tap(history.clone());
//! let server = Server { history: &history, about: &About::default(), control: &Nobody };
//! whyso_live::show(&[server])?;
//! # Ok(())
//! # }
//! ```

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod history;
mod screen;

use std::sync::mpsc::Receiver;

pub use history::{History, HostHistories};
pub use screen::show;

/// Why a note could not be added to the recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoteError {
    /// The recorder's own message.
    #[error("{0}")]
    Recorder(String),
}

/// Why the server did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AskError(pub String);

/// What is watched, as the head of the screen says it.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Such as "localhost:/run/mysqld/mysqld.sock".
    pub endpoint: String,
    /// Such as "MariaDB 10.11.6".
    pub server: String,
    pub machine: whyso_explain::model::Machine,
    /// The server's variables when the watching began.
    pub variables: std::collections::BTreeMap<String, String>,
    /// Folder of the recording that the user may begin.
    pub recording: String,
}

/// One of the servers that are shown, one at a time.
#[derive(Clone, Copy)]
pub struct Server<'a> {
    pub history: &'a History,
    pub about: &'a About,
    pub control: &'a dyn Control,
}

/// What the keys do beyond the screen. No call may wait for long.
pub trait Control: Sync {
    /// Begins a window of the recording, or ends it.
    fn toggle_recording(&self);
    /// Since when, in monotonic nanoseconds; `None` where none is under way.
    fn recording_since_ns(&self) -> Option<i64>;
    /// Whether a recording has all that was watched, and not only windows of it.
    fn keeps_all(&self) -> bool {
        false
    }
    /// Adds a note to the recording.
    ///
    /// # Errors
    /// The recorder can't keep it.
    fn note(&self, text: &str) -> Result<(), NoteError>;
    /// Something else than a key ends the watching, such as a signal.
    fn is_over(&self) -> bool;
    /// Why nothing can be recorded any more, such as a full disk.
    fn trouble(&self) -> Option<String>;
    /// What is not measured and why.
    fn not_measured(&self) -> Vec<whyso_model::NotMeasured>;
    /// Begins to ask how the server executes a statement, as its literals are left out. The answer comes later.
    fn explain(&self, statement: &str) -> Receiver<Result<String, AskError>>;
    /// Begins to end the statement that a connection executes, if it still is this one. The answer comes later.
    fn kill(&self, connection: u64, statement: &str) -> Receiver<Result<String, AskError>>;
    /// Whether the user allowed that statements are ended.
    fn may_kill(&self) -> bool;
}

//! What can go wrong, in sentences that say what to do.

use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done. The text of each is one clear sentence for the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The DSN, or what completes it, can't be understood.
    #[error("{0}")]
    Dsn(String),

    /// A password of the command line that could not be overwritten there.
    #[error(
        "process lists would show the password of this command line as long as whyso runs, as it can't be overwritten there: give it in MYSQL_PWD or \
         ~/.my.cnf instead"
    )]
    PasswordVisible,

    /// Nothing answers, or what answers is no server.
    #[error("cannot reach the server at {endpoint}: {why}")]
    Unreachable { endpoint: String, why: String },

    #[error("{endpoint} denied access to user '{user}'{}: {server_says}", if *.password_given { "" } else { " (no password was given: put it into MYSQL_PWD or ~/.my.cnf)" })]
    AccessDenied { endpoint: String, user: String, password_given: bool, server_says: String },

    /// The server let whyso log in, and then did not answer.
    #[error(
        "the server at {endpoint} did not answer within {seconds} s while whyso was {doing}: it may be stopped, or somebody holds a lock, as FLUSH TABLES WITH \
         READ LOCK does; SHOW PROCESSLIST shows who waits, and connect_timeout in the DSN changes the bound"
    )]
    NoAnswer { endpoint: String, doing: String, seconds: u64 },

    /// The server's answer is no answer to what was asked.
    #[error("the server at {endpoint} could not be understood while whyso was {doing}: {why}")]
    NoProtocol { endpoint: String, doing: String, why: whyso_connect::DriverPanic },

    /// What a server sent in answer to a statement is no MySQL protocol.
    #[error("the server cannot be understood when it is asked to {doing}: {why}")]
    Unreadable { doing: String, why: String },

    /// The server refused a statement.
    #[error("the server refused to {doing}: {source}")]
    Refused { doing: String, source: mysql_async::Error },

    /// A container, or a server in it, that can't be reached.
    #[error("{0}")]
    Container(String),

    /// A program of others that can't be paused.
    #[error("{0}")]
    Neighbour(String),

    /// A server that can't be slowed for an experiment.
    #[error("{0}")]
    Slow(String),

    /// What a session executes is not what was wanted of it.
    #[error("whyso can't {doing}: {why}")]
    Session { doing: String, why: String },

    /// No server program where one was looked for, or one that does not run.
    #[error("{0}")]
    Binary(String),

    /// The sample application that does not start, or is none.
    #[error("{0}")]
    App(String),

    /// A server build that is not available.
    #[error("{0}")]
    Build(String),

    /// A name that is no build's.
    #[error("{0}")]
    BuildName(String),

    /// A server option that the server does not know.
    #[error("the server does not know the knob '{name}': {}", knob_hint(.nearest.as_deref(), .server))]
    UnknownKnob {
        name: String,
        server: String,
        /// A knob that may have been meant.
        nearest: Option<String>,
    },

    #[error(
        "the knob '{name}' cannot be changed while the server runs: give it with --set to a throw-away server, or in the server's own configuration"
    )]
    ReadOnlyKnob { name: String },

    #[error("the knob '{name}' does not take the value '{value}': {why}")]
    KnobValue { name: String, value: String, why: String },

    #[error(
        "the user may not set the knob '{name}': grant SYSTEM_VARIABLES_ADMIN or SUPER; the server says: {server_says}"
    )]
    KnobPrivilege { name: String, server_says: String },

    /// This server, or this user, can't set up the Performance Schema as requested.
    #[error("{0}")]
    PerformanceSchema(String),

    /// The server did not come up; the last lines of its log follow.
    #[error("the server did not start: {why}{}", lines_after(.log))]
    Start { why: String, log: Vec<String> },

    /// A request for CPUs that are not available here.
    #[error("{0}")]
    Cpus(String),

    /// A schema or table that whyso may not write to.
    #[error("{0}")]
    NotOurs(String),

    /// A data set that makes no sense.
    #[error("{0}")]
    Dataset(String),

    #[error("{what} '{}': {source}", .path.display())]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
}

fn knob_hint(nearest: Option<&str>, server: &str) -> String {
    match nearest {
        Some(nearest) => format!("did you mean '{nearest}'?"),
        None => format!("check its spelling, or whether {server} has it"),
    }
}

impl Error {
    /// Adds to an unknown knob the one that may have been meant, among those that the server has.
    pub(crate) fn with_nearest<'a>(self, known: impl IntoIterator<Item = &'a str>) -> Error {
        match self {
            Error::UnknownKnob { name, server, .. } => {
                let nearest = crate::knobs::nearest(&name, known);
                Error::UnknownKnob { name, server, nearest }
            }
            other => other,
        }
    }

    /// The knob that the server does not have, or does not take the value of; `None` for any other error.
    pub fn knob(&self) -> Option<&str> {
        match self {
            Error::UnknownKnob { name, .. }
            | Error::ReadOnlyKnob { name }
            | Error::KnobValue { name, .. }
            | Error::KnobPrivilege { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Whether the user asked for something that can't be (exit status 2), rather than something
    /// having failed (exit status 1).
    pub fn is_wrong_use(&self) -> bool {
        matches!(
            self,
            Error::Dsn(_)
                | Error::PasswordVisible
                | Error::UnknownKnob { .. }
                | Error::ReadOnlyKnob { .. }
                | Error::KnobValue { .. }
                | Error::KnobPrivilege { .. }
                | Error::PerformanceSchema(_)
                | Error::Cpus(_)
                | Error::BuildName(_)
                | Error::Container(_)
                | Error::NotOurs(_)
                | Error::Dataset(_)
        )
    }
}

impl Error {
    /// Whether the server answered a statement with an error, so that it is known not to have carried it out.
    pub(crate) fn is_servers_answer(&self) -> bool {
        match self {
            Error::UnknownKnob { .. } | Error::ReadOnlyKnob { .. } | Error::KnobValue { .. } => true,
            Error::Refused { source, .. } => server_code(source).is_some(),
            _ => false,
        }
    }
}

fn lines_after(log: &[String]) -> String {
    if log.is_empty() {
        return String::new();
    }
    format!("; its log ends with:\n  {}", log.join("\n  "))
}

/// Puts a path and what was tried to an I/O error.
pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::Io { what, path, source }
}

/// Puts what was tried to a server's refusal: "the server refused to DOING: …".
pub(crate) fn refused(doing: impl Into<String>) -> impl FnOnce(mysql_async::Error) -> Error {
    let doing = doing.into();
    move |source| match source {
        mysql_async::Error::Server(error) if error.code == whyso_connect::MALFORMED => {
            Error::Unreadable { doing, why: error.message }
        }
        source => Error::Refused { doing, source },
    }
}

/// The server's error number, where the error came from the server.
pub(crate) fn server_code(error: &mysql_async::Error) -> Option<u16> {
    match error {
        mysql_async::Error::Server(server) => Some(server.code),
        _ => None,
    }
}

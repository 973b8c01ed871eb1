//! What a recording lacks, and why.

use std::fmt;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Something that was not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct NotMeasured {
    pub source: Missing,
    /// What is missing, for people.
    pub what: String,
    /// Why, and what would change that; empty where `what` says it.
    #[serde(default)]
    pub reason: String,
}

/// The part of a recording that is missing, for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// The time of the server's threads, by the tracer.
    ServerThreads,
    /// Where requests begin and end: the states of threads are sampled instead.
    Requests,
    /// The commands of the server's clients, or something of each.
    Commands,
    /// Which connections threads worked for, by the tracer and by the server.
    ThreadConnections,
    /// Which thread works for which connection, by the server.
    ConnectionThreads,
    /// Stacks of any kind: none were asked for.
    Stacks,
    /// Stacks of threads that wait: only those on CPUs were asked for.
    WaitStacks,
    /// Stacks that were asked for, and could not be sampled.
    ThreadStacks,
    /// Names of functions of the server's program.
    FunctionNames,
    /// Counts of the Performance Schema.
    PerformanceSchema,
    /// Waits by instrument of the Performance Schema, or their time.
    InstrumentWaits,
    /// Current events of sessions, by the Performance Schema.
    SessionEvents,
    /// Who waits for whom in row locks.
    RowLockWaits,
    MetadataLockWaits,
    /// Which table a metadata lock is on, and who holds it.
    MetadataLockTables,
    /// InnoDB's own count of waits by lock.
    InnodbMutexes,
    /// Anything that no program looks for.
    #[default]
    #[serde(other)]
    Other,
}

impl Missing {
    /// Returns whether it is a count that the Performance Schema keeps.
    pub fn is_of_performance_schema(self) -> bool {
        matches!(self, Missing::PerformanceSchema | Missing::InstrumentWaits | Missing::SessionEvents)
    }

    /// Returns whether a table of lock waits is less complete for it.
    pub fn is_of_locks(self) -> bool {
        matches!(
            self,
            Missing::RowLockWaits
                | Missing::MetadataLockWaits
                | Missing::MetadataLockTables
                | Missing::InstrumentWaits
                | Missing::PerformanceSchema
                | Missing::InnodbMutexes
        )
    }
}

impl NotMeasured {
    pub fn new(source: Missing, what: impl Into<String>, reason: impl Into<String>) -> NotMeasured {
        NotMeasured { source, what: what.into(), reason: reason.into() }
    }

    /// Reads a line such as "the disk: it has no counters", whose reason follows the first colon.
    pub fn of_line(source: Missing, line: &str) -> NotMeasured {
        match line.split_once(": ") {
            Some((what, reason)) => NotMeasured::new(source, what, reason),
            None => NotMeasured::new(source, line, ""),
        }
    }

    /// The time of the server's threads, for this reason.
    pub fn server_threads(reason: impl Into<String>) -> NotMeasured {
        NotMeasured::new(Missing::ServerThreads, "the time of the server's threads", reason)
    }

    /// The commands of the server's clients, for this reason.
    pub fn commands(reason: impl Into<String>) -> NotMeasured {
        NotMeasured::new(Missing::Commands, "the commands of the server's clients", reason)
    }

    /// What a recording lacks for which no stacks were asked.
    pub fn stacks() -> NotMeasured {
        let what = "where inside the server the time goes";
        NotMeasured::new(Missing::Stacks, what, "which function, and which lock (no stacks were taken)")
    }

    /// What a recording lacks with stacks of threads on CPUs only.
    pub fn wait_stacks() -> NotMeasured {
        let what = "where inside the server threads wait";
        let reason =
            "in which function, and for which lock (the stacks of waits were not taken; --stacks takes them)";
        NotMeasured::new(Missing::WaitStacks, what, reason)
    }
}

impl From<String> for NotMeasured {
    fn from(line: String) -> NotMeasured {
        NotMeasured::of_line(Missing::Other, &line)
    }
}

/// "the disk: it has no counters".
impl fmt::Display for NotMeasured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.as_str() {
            "" => f.write_str(&self.what),
            reason => write!(f, "{}: {reason}", self.what),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_line_is_written_as_it_was_read() {
        for line in ["the disk", "the disk: none: at all", "waits by instrument: it is off"] {
            assert_eq!(NotMeasured::of_line(Missing::Other, line).to_string(), line);
        }
    }

    #[test]
    fn a_source_of_a_newer_version_is_any_other() {
        let newer: NotMeasured = from_value(json!({"source": "the_weather", "what": "wind"})).unwrap();
        assert_eq!(newer, NotMeasured::new(Missing::Other, "wind", ""));
    }
}

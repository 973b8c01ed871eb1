//! The replication of a server at one reading.

use super::channel::Channel;
use super::workers::Number;

/// The replication of a server at one reading.
#[derive(Debug, Default)]
pub(super) struct ReplicationState {
    pub(super) channels: Vec<Channel>,
    /// (instance, metric, value) of the threads that apply.
    pub(super) workers: Vec<Number>,
    /// `None` where it writes no binary log, or does not show who fetches it.
    pub(super) replicas: Option<u64>,
    pub(super) binary_log_pos: Option<u64>,
    /// What is not granted, as text for people.
    pub(super) refused: Vec<String>,
}

//! Processes of any kind that are recorded together with a first target.

use whyso_tracing::Processes;

use crate::Error;
use crate::cluster_node::{ClusterNode, PROGRAM};

/// Programs that are recorded together with the first target, at most: each has a tracer of its own.
pub(super) const PROGRAMS_MAX: usize = 4;

/// Processes as a node.
pub(super) fn node(processes: Processes) -> ClusterNode {
    ClusterNode {
        name: processes.words.clone(),
        role: PROGRAM,
        dsn: None,
        port: None,
        pid: processes.pids.first().copied(),
        is_loaded: false,
        entry: None,
        ndb_id: None,
        processes: Some(processes),
    }
}

/// The other programs of a recording, as nodes. `known`: processes of the targets before them.
///
/// # Errors
/// There is no such process, or one is named twice.
pub(super) fn nodes(asked: &[String], known: &[u32]) -> Result<Vec<ClusterNode>, Error> {
    let mut known = known.to_vec();
    let mut found = Vec::new();
    for asked in asked {
        let processes = Processes::find(asked)?;
        if let Some(twice) = processes.pids.iter().find(|pid| known.contains(pid)) {
            return Err(Error::Plan(format!(
                "process {twice} of {} belongs to another target of the recording: name each once",
                processes.words
            )));
        }
        known.extend(&processes.pids);
        found.push(node(processes));
    }
    Ok(found)
}

//! Processes of any kind that are recorded together with a first target.

use whyso_model::tier::short_name;
use whyso_record::run::PROGRAM;
use whyso_tracing::Processes;

use crate::Error;
use crate::cluster_node::ClusterNode;

/// Programs that are recorded together with the first target, at most: each has a tracer of its own.
pub(super) const PROGRAMS_MAX: usize = 4;

/// Hosts of series that a recording has in any case.
const TAKEN: [&str; 2] = ["server", "client"];

/// Gives nodes of the same name names that differ: the processes in full.
pub(super) fn tell_apart(nodes: &mut [ClusterNode]) {
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    for (at, node) in nodes.iter_mut().enumerate() {
        let is_twice = names.iter().enumerate().any(|(other, name)| other != at && *name == node.name);
        if let Some(processes) = node.processes.as_ref().filter(|_| is_twice) {
            node.name.clone_from(&processes.words);
        }
    }
}

/// Processes as a node.
pub(super) fn node(processes: Processes) -> ClusterNode {
    let short = short_name(&processes.words);
    let name = match TAKEN.contains(&short) {
        true => format!("program {short}"),
        false => short.to_string(),
    };
    ClusterNode {
        name,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_never_has_the_name_of_a_host_that_is_there_in_any_case() {
        let named = |name: &str| {
            let processes = Processes {
                words: name.to_string(),
                pids: vec![7],
                name: name.to_string(),
                is_kernel: false,
            };
            node(processes).name
        };
        assert_eq!(
            ["apache2", "server", "client", "process 7 (client)", "process 7 (php-fpm8.2)"].map(named),
            ["apache2", "program server", "program client", "program client", "php-fpm8.2"]
        );
        let of = |words: &str| {
            node(Processes { words: words.to_string(), pids: vec![7], name: String::new(), is_kernel: false })
        };
        let mut nodes = [of("process 7 (php)"), of("process 8 (php)"), of("process 9 (apache2)")];
        tell_apart(&mut nodes);
        assert_eq!(nodes.map(|node| node.name), ["process 7 (php)", "process 8 (php)", "apache2"]);
    }

    #[test]
    fn a_process_of_two_targets_is_refused() {
        let own = std::process::id();
        let twice = nodes(&[own.to_string()], &[own]).unwrap_err().to_string();
        assert!(twice.contains("belongs to another target"), "{twice}");
        assert_eq!(nodes(&[own.to_string()], &[]).unwrap()[0].pid, Some(own));
    }
}

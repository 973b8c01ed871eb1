//! How many workers each recorded program had, and their memory.

mod model;

pub use model::WorkerMemory;

use std::collections::BTreeMap;

use whyso_words::{bytes, number};

use crate::level::Level;
use crate::model::{Finding, Worker};

/// Programs with several processes.
pub(crate) fn workers(level: &Level) -> Vec<WorkerMemory> {
    let mut programs: BTreeMap<&str, Vec<Vec<&Worker>>> = BTreeMap::new();
    for table in level.workers {
        let mut by_program: BTreeMap<&str, Vec<&Worker>> = BTreeMap::new();
        for worker in table {
            by_program.entry(&worker.program).or_default().push(worker);
        }
        for (program, processes) in by_program {
            programs.entry(program).or_default().push(processes);
        }
    }
    programs.into_iter().filter_map(|(program, times)| memory(program, &times)).collect()
}

fn memory(program: &str, times: &[Vec<&Worker>]) -> Option<WorkerMemory> {
    if times.iter().all(|processes| processes.len() < 2) {
        return None;
    }
    let (mut workers, mut private, mut together) = (0.0, Vec::new(), Vec::new());
    for processes in times {
        let own: Vec<&&Worker> = processes.iter().filter(|process| process.is_worker).collect();
        workers += own.len() as f64;
        private.extend(own.iter().filter_map(|worker| worker.private_bytes).map(|bytes| bytes as f64));
        let sum =
            own.iter().map(|worker| worker.proportional_bytes.map(|bytes| bytes as f64)).sum::<Option<f64>>();
        together.extend(sum);
    }
    Some(WorkerMemory {
        program: program.to_string(),
        workers: workers / times.len() as f64,
        private_bytes: mean(&private),
        proportional_bytes: mean(&together),
    })
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// "php-fpm8.2: 5 workers, 23 MiB each of their own"
pub(crate) fn findings(level: &Level, all: &[WorkerMemory]) -> Vec<Finding> {
    let available = level.gauge("memory", "available_bytes", "").filter(|_| !level.is_over_hosts());
    let free = available.map(|gauge| gauge.mean).filter(|bytes| *bytes > 0.0);
    let finding = |memory: &WorkerMemory| {
        let plural = if memory.workers == 1.0 { "" } else { "s" };
        let mut text = format!("{}: {} worker{plural}", memory.program, number(memory.workers));
        match memory.private_bytes {
            Some(private) => text.push_str(&format!(", {} each of their own", bytes(private))),
            None => text.push_str("; their memory could not be read"),
        }
        if let Some(together) = memory.proportional_bytes {
            text.push_str(&format!(", {} together with their parts of what they share", bytes(together)));
        }
        text.push('.');
        if let Some(free) = free {
            text.push_str(&format!(" The machine had {} available.", bytes(free)));
        }
        Finding { id: "worker-memory".to_string(), text, evidence: Vec::new() }
    };
    all.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Input, LevelInput};

    fn worker(program: &str, pid: u32, is_worker: bool, mib: u64) -> Worker {
        let bytes = (mib > 0).then_some(mib << 20);
        Worker {
            program: program.to_string(),
            pid,
            is_worker,
            private_bytes: bytes,
            proportional_bytes: bytes.map(|bytes| bytes * 2),
        }
    }

    fn texts(workers: Vec<Vec<Worker>>) -> Vec<String> {
        let level = LevelInput { end_ns: 10_000_000_000, workers, ..LevelInput::default() };
        let input = Input { levels: vec![level], process: Some("php-fpm".to_string()), ..Input::default() };
        let findings = crate::explain(&input).findings;
        findings
            .into_iter()
            .filter(|finding| finding.id == "worker-memory")
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn the_manager_is_no_worker_and_times_are_averaged() {
        let at = |mib: u64| {
            vec![
                worker("php-fpm", 1, false, 90),
                worker("php-fpm", 2, true, mib),
                worker("php-fpm", 3, true, mib),
            ]
        };
        let found = texts(vec![at(20), at(26)]);
        assert_eq!(
            found,
            [
                "php-fpm: 2 workers, 23 MiB each of their own, 92 MiB together with their parts of what they share."
            ]
        );
    }

    #[test]
    fn one_process_has_no_line_and_memory_that_was_not_read_no_number() {
        assert_eq!(texts(vec![vec![worker("nginx", 1, true, 5)]]), [] as [String; 0]);
        let found = texts(vec![vec![worker("nginx", 1, true, 0), worker("nginx", 2, true, 0)]]);
        assert_eq!(found, ["nginx: 2 workers; their memory could not be read."]);
    }
}

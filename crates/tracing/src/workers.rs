//! The processes of a program with their memory, as a text table.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_model::Worker;
use whyso_record::Recorder;
use whyso_record::data::TextRows;
use whyso_trace::ThreadSums;

/// Processes of a program that are listed, at most.
const PROCESSES_MAX: usize = 4_096;
/// Of these, the memory of so many is read.
const MEMORIES_MAX: usize = 64;
/// Adding up a process's memory takes the kernel longer, the more it has. Larger ones are left out.
const RESIDENT_BYTES_MAX: u64 = 2 << 30;
/// How long the memory of all processes of a program may take.
const READ_TIME_MAX: Duration = Duration::from_millis(100);

/// Hands over the processes of programs, by each one's host and threads.
pub(crate) fn record<'a>(recorder: &Recorder, programs: impl Iterator<Item = (&'a str, &'a [ThreadSums])>) {
    let all = processes();
    let mut rows = Vec::new();
    for (program, threads) in programs {
        // Of processes that have not run since the tracing began, no thread is known.
        let pids = family(&threads.iter().map(|thread| thread.pid).collect(), &all);
        rows.extend(workers(program, &pids).into_iter().map(|worker| worker.into_cells().to_vec()));
    }
    recorder.rows(TextRows {
        source: Worker::SOURCE.to_string(),
        t_ns: monotonic_ns(),
        columns: Worker::COLUMNS.map(str::to_string).to_vec(),
        rows,
    });
}

/// A process of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    pid: u32,
    name: String,
    parent: u32,
}

/// Every process that can be seen, as proc_pid_stat(5) has it.
fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// The name may have anything.
fn parse_stat(pid: u32, stat: &str) -> Option<Process> {
    let (begin, end) = (stat.find('(')?, stat.rfind(')')?);
    let parent = stat.get(end + 1..)?.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(Process { pid, name: stat.get(begin + 1..end)?.to_string(), parent })
}

/// The known processes, those of the same name that they started, and those of the same name that started them with what these started.
fn family(known: &BTreeSet<u32>, all: &[Process]) -> BTreeSet<u32> {
    let mut found = known.clone();
    loop {
        let before = found.len();
        let of = |pid: u32| all.iter().find(|process| process.pid == pid);
        let parents: Vec<u32> = found
            .iter()
            .filter_map(|pid| of(*pid))
            .filter_map(|child| of(child.parent).filter(|parent| parent.name == child.name))
            .map(|parent| parent.pid)
            .collect();
        found.extend(parents);
        let is_child = |process: &&Process| {
            found.contains(&process.parent)
                && of(process.parent).is_some_and(|parent| parent.name == process.name)
        };
        let children: Vec<u32> = all.iter().filter(is_child).map(|process| process.pid).collect();
        found.extend(children);
        if found.len() == before || found.len() > PROCESSES_MAX {
            return found;
        }
    }
}

fn workers(program: &str, pids: &BTreeSet<u32>) -> Vec<Worker> {
    let until = Instant::now() + READ_TIME_MAX;
    let parents: Vec<(u32, Option<u32>)> =
        pids.iter().take(PROCESSES_MAX).map(|pid| (*pid, parent_of(*pid))).collect();
    let is_child = |parent: &Option<u32>| parent.is_some_and(|parent| pids.contains(&parent));
    let has_children = parents.iter().any(|(_, parent)| is_child(parent));
    let worker = |(at, (pid, parent)): (usize, &(u32, Option<u32>))| {
        let memory = if at < MEMORIES_MAX && Instant::now() < until { memory_of(*pid) } else { None };
        Worker {
            program: program.to_string(),
            pid: *pid,
            is_worker: is_child(parent) || !has_children,
            private_bytes: memory.map(|(private, _)| private),
            proportional_bytes: memory.map(|(_, proportional)| proportional),
        }
    };
    parents.iter().enumerate().map(worker).collect()
}

/// `None`: the process is gone.
fn parent_of(pid: u32) -> Option<u32> {
    parse_stat(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?).map(|process| process.parent)
}

/// What only this process has, and that with its part of what it shares, in bytes. `None`: it is gone, too large, or another user's.
fn memory_of(pid: u32) -> Option<(u64, u64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    if kib(&status, "VmRSS")? > RESIDENT_BYTES_MAX {
        return None;
    }
    parse_rollup(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

fn parse_rollup(text: &str) -> Option<(u64, u64)> {
    let private = kib(text, "Private_Clean")?.saturating_add(kib(text, "Private_Dirty")?);
    Some((private, kib(text, "Pss")?))
}

/// The value of a line "NAME: 12 kB", in bytes.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1_024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_and_parent_are_read() {
        let own = std::process::id();
        let (private, proportional) = memory_of(own).unwrap();
        assert!(private > 0 && proportional >= private, "{private} of {proportional}");
        assert_eq!(parent_of(own), Some(std::os::unix::process::parent_id()));
        let odd = Process { pid: 7, name: "a) b".to_string(), parent: 12 };
        assert_eq!(parse_stat(7, "7 (a) b) S 12 7 7"), Some(odd));
        assert_eq!(parse_stat(7, ")("), None);
        assert_eq!(
            parse_rollup("Rss: 4 kB\nPss: 3 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 1 kB"),
            Some((2_048, 3_072))
        );
        assert_eq!(parse_rollup("Pss: x kB"), None);
    }

    #[test]
    fn workers_are_those_that_another_process_of_the_program_started() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = std::process::id();
        let found = workers("web", &[own, child.id()].into());
        let alone = workers("web", &[own].into());
        child.kill().unwrap();
        child.wait().unwrap();
        let by_pid = |pid: u32| found.iter().find(|worker| worker.pid == pid).unwrap();
        assert!(!by_pid(own).is_worker && by_pid(child.id()).is_worker, "{found:?}");
        assert!(by_pid(own).private_bytes.is_some());
        assert!(alone[0].is_worker, "one that started no other does the work itself");
    }

    #[test]
    fn a_worker_that_has_not_run_yet_belongs_to_its_program() {
        let process = |pid: u32, name: &str, parent: u32| Process { pid, name: name.to_string(), parent };
        let all = [
            process(1, "init", 0),
            process(10, "apache2", 1),
            process(11, "apache2", 10),
            process(12, "apache2", 10),
            process(13, "rotatelogs", 10),
            process(20, "apache2", 1),
        ];
        assert_eq!(family(&[11].into(), &all), [10, 11, 12].into(), "neither what logs nor another Apache");
        assert_eq!(family(&[13].into(), &all), [13].into());
        assert_eq!(family(&[99].into(), &all), [99].into(), "one that has ended");
        assert!(processes().iter().any(|process| process.pid == std::process::id()));
    }
}

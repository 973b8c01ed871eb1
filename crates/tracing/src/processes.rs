//! Processes of any kind, by their number or by their name: what `--process` asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use whyso_trace::Program;

use thiserror::Error;

/// Bytes that the kernel keeps of a name.
const NAME_BYTES_MAX: usize = 15;
/// Fields of `/proc/PID/stat` between a process's parent and its flags.
const FLAGS_AFTER_PARENT: usize = 4;
/// The flag of threads of the kernel's own, `PF_KTHREAD`.
const OF_KERNEL: u32 = 0x0020_0000;
/// Most names that an error lists where several fit.
const CANDIDATES_MAX: usize = 8;

/// There is no such process, or several names match; the sentence names them.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ProcessNotFound(String);

/// Processes that were asked for, and all that they had started by then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Processes {
    /// As people call them: "apache2", or "process 4711 (apache2)".
    pub words: String,
    /// In order. The first is one of those that were asked for.
    pub pids: Vec<u32>,
    /// The name by which processes that begin later are recognised; empty where the user named a number.
    pub name: String,
    /// They are threads of the kernel's own, such as those of its NFS server.
    pub is_kernel: bool,
}

impl Processes {
    /// Finds the processes that a number, a name or a part of one means; this program itself is never meant by a name.
    ///
    /// # Errors
    /// There is none, or the part is one of several names.
    pub fn find(asked: &str) -> Result<Processes, ProcessNotFound> {
        Processes::among(asked, &running(), std::process::id())
    }

    fn among(asked: &str, running: &BTreeMap<u32, Process>, own: u32) -> Result<Processes, ProcessNotFound> {
        let asked = asked.trim();
        if let Ok(pid) = asked.parse::<u32>() {
            let process = running.get(&pid);
            let process = process.ok_or_else(|| {
                ProcessNotFound(format!("there is no process {pid}: `ps -e` lists those there are"))
            })?;
            let words = format!("process {pid} ({})", process.name);
            let pids = with_descendants(&[pid], running);
            return Ok(Processes { words, pids, name: String::new(), is_kernel: process.is_kernel });
        }
        let name = chosen(asked, running, own)?;
        let named = running.iter().filter(|(pid, process)| process.name == name && **pid != own);
        let (pids, of_kernel): (Vec<u32>, Vec<bool>) =
            named.map(|(pid, process)| (*pid, process.is_kernel)).unzip();
        let is_kernel = of_kernel.contains(&true);
        Ok(Processes { words: name.clone(), pids: with_descendants(&pids, running), name, is_kernel })
    }

    pub fn program(&self) -> Program {
        Program { pids: self.pids.clone(), name: self.name.clone(), is_kernel: self.is_kernel }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    /// A thread of the kernel's own.
    is_kernel: bool,
}

/// The name that was asked for, or the only one that has it as a part. The kernel's own threads are meant by a whole name only.
fn chosen(asked: &str, running: &BTreeMap<u32, Process>, own: u32) -> Result<String, ProcessNotFound> {
    let others = || running.iter().filter(|(pid, _)| **pid != own).map(|(_, process)| process);
    let names: BTreeSet<&str> = others().map(|process| process.name.as_str()).collect();
    let cut = (0..=NAME_BYTES_MAX.min(asked.len())).rev().find(|at| asked.is_char_boundary(*at)).unwrap_or(0);
    let exact = &asked[..cut];
    if !exact.is_empty() && names.contains(exact) {
        return Ok(exact.to_string());
    }
    let fitting: BTreeSet<&str> = others()
        .filter(|process| !process.is_kernel)
        .map(|process| process.name.as_str())
        .filter(|name| !asked.is_empty() && name.contains(asked))
        .collect();
    let fitting: Vec<&str> = fitting.into_iter().collect();
    match fitting.as_slice() {
        [only] => Ok((*only).to_string()),
        [] => Err(ProcessNotFound(format!(
            "no process is called '{asked}': `ps -e` lists the names; give one, a part of one, or a process's number"
        ))),
        several => {
            let shown = several.iter().take(CANDIDATES_MAX).copied().collect::<Vec<_>>().join(", ");
            let more = several.len().saturating_sub(CANDIDATES_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Err(ProcessNotFound(format!(
                "'{asked}' is a part of several processes' names: {shown}{more}; give one whole, or a process's number"
            )))
        }
    }
}

/// Those processes, and after them all that they have started.
fn with_descendants(pids: &[u32], running: &BTreeMap<u32, Process>) -> Vec<u32> {
    let mut found = pids.to_vec();
    let mut at = 0;
    while at < found.len() {
        let parent = found[at];
        let children = running.iter().filter(|(_, process)| process.parent == parent).map(|(pid, _)| *pid);
        let fresh: Vec<u32> = children.filter(|pid| !found.contains(pid)).collect();
        found.extend(fresh);
        at += 1;
    }
    found
}

/// Every process, and the kernel's own threads, but those that have ended.
fn running() -> BTreeMap<u32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let process = |pid: u32| {
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let process = of_stat(&String::from_utf8_lossy(&stat))?;
        (!command_line.is_empty() || process.is_kernel).then_some((pid, process))
    };
    numbers.filter_map(process).collect()
}

/// `4711 (a name) S 1 …`: the name may hold blanks and parentheses.
fn of_stat(stat: &str) -> Option<Process> {
    let (begin, end) = (stat.find('(')?, stat.rfind(')')?);
    let mut fields = stat.get(end + 1..)?.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let flags: u32 = fields.nth(FLAGS_AFTER_PARENT)?.parse().ok()?;
    let name = stat.get(begin + 1..end)?.to_string();
    Some(Process { name, parent, is_kernel: flags & OF_KERNEL != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> BTreeMap<u32, Process> {
        let all = [
            (1, "init", 0),
            (10, "apache2", 1),
            (11, "apache2", 10),
            (12, "rotatelogs", 10),
            (20, "php-fpm8.2", 1),
            (21, "php8.2", 1),
            (30, "a-name-that-is-", 1),
            (40, "nfsd", 2),
            (41, "nfsd", 2),
            (99, "whyso", 1),
        ];
        let process = |name: &str, parent| Process { name: name.to_string(), parent, is_kernel: parent == 2 };
        all.into_iter().map(|(pid, name, parent)| (pid, process(name, parent))).collect()
    }

    fn find(asked: &str) -> Result<Processes, String> {
        Processes::among(asked, &running(), 99).map_err(|error| error.to_string())
    }

    #[test]
    fn a_name_means_every_process_of_it_and_what_they_started() {
        let found = find("apache2").unwrap();
        assert_eq!((found.words.as_str(), &found.pids[..]), ("apache2", &[10, 11, 12][..]));
        assert_eq!(found.name, "apache2", "those that begin later are known by it");
        assert_eq!(find("rotate").unwrap().pids, [12], "a part that only one name has");
        assert_eq!(find("a-name-that-is-longer").unwrap().pids, [30], "the kernel keeps 15 bytes");
    }

    #[test]
    fn threads_of_the_kernel_are_meant_by_their_whole_name() {
        let found = find("nfsd").unwrap();
        assert_eq!((&found.pids[..], found.is_kernel), (&[40, 41][..], true));
        assert!(find("nfs").unwrap_err().starts_with("no process is called 'nfs'"));
        assert!(!find("apache2").unwrap().is_kernel);
    }

    #[test]
    fn a_number_means_one_process_and_what_it_started() {
        let found = find("10").unwrap();
        assert_eq!((found.words.as_str(), &found.pids[..]), ("process 10 (apache2)", &[10, 11, 12][..]));
        assert_eq!(found.name, "");
    }

    #[test]
    fn what_is_not_there_or_is_several_is_explained_in_a_sentence() {
        assert_eq!(find("4711").unwrap_err(), "there is no process 4711: `ps -e` lists those there are");
        assert!(find("nginx").unwrap_err().starts_with("no process is called 'nginx': "));
        assert!(find("").unwrap_err().starts_with("no process is called ''"));
        assert!(find("whyso").unwrap_err().starts_with("no process is called 'whyso'"), "never itself");
        let several = find("php").unwrap_err();
        assert!(
            several.starts_with("'php' is a part of several processes' names: php-fpm8.2, php8.2;"),
            "{several}"
        );
    }

    #[test]
    fn a_name_may_hold_anything() {
        let process = of_stat("7 (a) (b c) S 3 7 7 0 -1 4194560 9").unwrap();
        assert!(!process.is_kernel && of_stat("8 (nfsd) S 2 0 0 0 -1 2129984 0").unwrap().is_kernel);
        assert_eq!((process.name.as_str(), process.parent), ("a) (b c", 3));
        for odd in ["", ")(", "7 (a", "7 (a) S", "7 (a) S x", "7 (a) S 3 7 7 0"] {
            assert_eq!(of_stat(odd), None, "{odd}");
        }
    }

    #[test]
    fn this_process_is_found_by_its_number() {
        let own = std::process::id();
        let found = Processes::find(&own.to_string()).unwrap();
        assert_eq!(found.pids[0], own);
    }
}

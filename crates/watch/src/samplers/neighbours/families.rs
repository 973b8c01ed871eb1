//! Whose child a process is.

use std::collections::HashMap;

use super::processes::Stat;

/// Generations of parents that are followed, at most.
const DEPTH_MAX: usize = 64;

/// Which of these processes, of which the first in its line of parents counts, a process is or descends from.
pub(super) struct Families {
    parents: HashMap<u32, u32>,
}

impl Families {
    pub(super) fn of(processes: &[Stat]) -> Families {
        Families { parents: processes.iter().map(|stat| (stat.pid, stat.parent)).collect() }
    }

    /// The nearest of `heads` that the process is or descends from.
    pub(super) fn head_of(&self, pid: u32, heads: &[u32]) -> Option<u32> {
        let mut at = pid;
        for _ in 0..DEPTH_MAX {
            if heads.contains(&at) {
                return Some(at);
            }
            at = *self.parents.get(&at)?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_head_counts() {
        let stat = |pid: u32, parent: u32| Stat {
            pid,
            name: String::new(),
            parent,
            is_kernels: false,
            cpu_ticks: 0,
            start_ticks: 0,
            resident_pages: 0,
        };
        // whyso (5) started a server (7), which started a script (9); and a command (8).
        let families =
            Families::of(&[stat(1, 0), stat(5, 1), stat(7, 5), stat(9, 7), stat(8, 5), stat(6, 6)]);
        let head = |pid| families.head_of(pid, &[5, 7]);
        assert_eq!([5, 7, 9, 8].map(head), [Some(5), Some(7), Some(7), Some(5)]);
        assert_eq!([1, 6, 99].map(head), [None, None, None]);
    }
}

//! What the load's threads, and the process, have used of the machine.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::measure::ring::Ring;
use crate::outcome::ClientUse;

/// A reading of every thread of a level, and of the process.
pub(crate) struct Usage {
    threads: Vec<ThreadUsage>,
    process_cpu_ns: i64,
    answers: u64,
    answer_delay_ns: u64,
    busy_poll_cpu_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct ThreadUsage {
    cpu_ns: u64,
    run_delay_ns: u64,
}

impl Usage {
    pub(crate) fn read(rings: &[Ring]) -> Usage {
        Usage {
            threads: rings.iter().map(ThreadUsage::read).collect(),
            process_cpu_ns: whyso_clock::process_cpu_ns(),
            answers: rings.iter().map(|ring| ring.answers.load(Relaxed)).sum(),
            answer_delay_ns: rings.iter().map(|ring| ring.answer_delay_ns.load(Relaxed)).sum(),
            busy_poll_cpu_ns: rings.iter().map(|ring| ring.busy_poll_cpu_ns.load(Relaxed)).sum(),
        }
    }

    /// What was used between two readings of the same threads.
    pub(crate) fn until(&self, end: &Usage, window_ns: u64, cpus_allowed: u32) -> ClientUse {
        let mut used = ClientUse {
            process_cpu_ns: (end.process_cpu_ns - self.process_cpu_ns).max(0) as u64,
            threads: end.threads.len() as u32,
            cpus_allowed,
            max_rss_kb: max_rss_kb(),
            window_ns,
            answers: end.answers - self.answers,
            answer_delay_ns: end.answer_delay_ns - self.answer_delay_ns,
            busy_poll_cpu_ns: end.busy_poll_cpu_ns - self.busy_poll_cpu_ns,
            ..ClientUse::default()
        };
        for (before, after) in self.threads.iter().zip(&end.threads) {
            let cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns);
            used.threads_cpu_ns += cpu_ns;
            used.busiest_thread_cpu_ns = used.busiest_thread_cpu_ns.max(cpu_ns);
            used.run_delay_ns += after.run_delay_ns.saturating_sub(before.run_delay_ns);
        }
        used
    }
}

impl ThreadUsage {
    fn read(ring: &Ring) -> ThreadUsage {
        let thread_id = ring.thread_id.load(Acquire);
        let finished = || ThreadUsage {
            cpu_ns: ring.cpu_ns.load(Relaxed),
            run_delay_ns: ring.run_delay_ns.load(Relaxed),
        };
        if ring.finished.load(Acquire) {
            return finished();
        }
        match cpu_ns_of(thread_id) {
            Some(cpu_ns) => ThreadUsage { cpu_ns, run_delay_ns: run_delay_ns_of(thread_id) },
            // It ended between the two reads.
            None => finished(),
        }
    }
}

/// CPU time of a thread of this process, in nanoseconds; `None` once it has ended.
fn cpu_ns_of(thread_id: i32) -> Option<u64> {
    if thread_id <= 0 {
        return None;
    }
    // How Linux numbers the CPU clock of a thread: include/linux/posix-timers.h, CPUCLOCK_SCHED | CPUCLOCK_PERTHREAD.
    let clock = (!thread_id) << 3 | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that outlives the call, and a clock that does not exist is an error.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    (result == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Time that a thread was runnable but not running, in nanoseconds; 0 where the kernel does not keep it.
pub(crate) fn run_delay_ns_of(thread_id: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread_id}/schedstat")).unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// Peak resident memory of this process, in KiB; 0 where it can't be read.
fn max_rss_kb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|field| field.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_time_of_another_thread_is_its_own() {
        let ring = Ring::new(crate::measure::ring::CAPACITY_OF_ONE);
        std::thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let (go, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                while whyso_clock::thread_cpu_ns() < 20_000_000 {}
                sender.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
                wait.recv().unwrap();
            });
            ring.thread_id.store(receiver.recv().unwrap(), Relaxed);
            let usage = ThreadUsage::read(&ring);
            assert!((20_000_000..60_000_000).contains(&usage.cpu_ns), "{}", usage.cpu_ns);
            go.send(()).unwrap();
        });
    }

    #[test]
    fn a_process_has_a_peak_of_memory() {
        assert!(max_rss_kb() > 500);
    }

    #[test]
    fn no_thread_has_no_cpu_time() {
        assert_eq!(cpu_ns_of(0), None);
        assert_eq!(cpu_ns_of(i32::MAX >> 3), None);
    }
}

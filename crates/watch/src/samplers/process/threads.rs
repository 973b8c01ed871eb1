//! The threads of a process: time on a CPU, time ready without one, switches.
//!
//! A thread that was there at the first reading, or whose name differs from the process's own, has
//! series of its own, named `tid:name`. At most 32 threads have them. All others, above all the threads
//! of connections, are added up by name (`role_*`). So a thousand users make four series and not
//! four thousand. A role's sums never fall when a thread ends.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};

use super::parse::{SchedStat, parse_schedstat, parse_switches};
use crate::metric::{Metric, counter, gauge};
use crate::sink::Batch;
use crate::text::number;

/// Threads with series of their own, at most.
const FOLLOWED_MAX: usize = 32;
/// Roles, at most: a server that names each thread differently must not make a role of each.
const ROLES_MAX: usize = 32;
const OTHER_ROLE: &str = "other";

/// Names that servers give to the threads of connections: there may be thousands of them.
const CONNECTION_NAMES: [&str; 4] = ["one_connection", "connection", "pool_worker", "thread_pool"];

pub(crate) const THREAD_METRICS: [Metric; 9] = [
    counter("thread_run_ns", "ns", "time that the thread was on a CPU"),
    counter("thread_runqueue_ns", "ns", "time that the thread was ready but had no CPU"),
    counter("thread_timeslices", "1", "times that the thread was put on a CPU"),
    counter("thread_voluntary_switches", "1", "times that the thread gave up its CPU to wait"),
    counter("thread_involuntary_switches", "1", "times that the thread was put off its CPU"),
    counter("role_run_ns", "ns", "time on a CPU of all threads of this name without their own series"),
    counter("role_runqueue_ns", "ns", "time ready without a CPU of all threads of this name"),
    counter("role_timeslices", "1", "times that a thread of this name was put on a CPU"),
    gauge("role_threads", "1", "threads of this name without their own series"),
];

#[derive(Default)]
pub(super) struct Threads {
    /// In the order of their numbers, so that their series keep their places in a reading.
    by_tid: BTreeMap<u32, Thread>,
    roles: Vec<Role>,
    totals: SchedStat,
    /// Name of the process itself, which its threads bear until they name themselves.
    process_name: String,
    walk: u64,
    followed: usize,
    path: String,
    text: String,
}

struct Thread {
    sums: SchedStat,
    switches: Option<(u64, u64)>,
    name: String,
    /// `tid:name`.
    instance: String,
    /// `None` for a thread with series of its own.
    role: Option<usize>,
    first_walk: u64,
    last_walk: u64,
}

struct Role {
    name: String,
    sums: SchedStat,
    threads: u64,
}

impl Threads {
    /// Reads every thread of `pid` once.
    pub(super) fn read(&mut self, pid: u32) -> io::Result<()> {
        self.walk += 1;
        if self.walk == 1 {
            let name = std::fs::read(format!("/proc/{pid}/comm"))?;
            self.process_name = String::from_utf8_lossy(&name).trim().to_string();
        }
        for entry in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let Ok(entry) = entry else {
                break;
            };
            if let Some(tid) = entry.file_name().to_str().and_then(number) {
                self.read_thread(pid, tid as u32);
            }
        }
        self.forget_ended();
        Ok(())
    }

    pub(super) fn totals(&self) -> SchedStat {
        self.totals
    }

    pub(super) fn followed(&self) -> u64 {
        self.followed as u64
    }

    pub(super) fn put(&self, batch: &mut Batch<'_>) {
        for thread in self.by_tid.values() {
            if thread.role.is_some() {
                continue;
            }
            let sums = thread.sums;
            batch.put(&THREAD_METRICS[0], &thread.instance, sums.run_ns);
            batch.put(&THREAD_METRICS[1], &thread.instance, sums.runqueue_ns);
            batch.put(&THREAD_METRICS[2], &thread.instance, sums.timeslices);
            if let Some((voluntary, involuntary)) = thread.switches {
                batch.put(&THREAD_METRICS[3], &thread.instance, voluntary);
                batch.put(&THREAD_METRICS[4], &thread.instance, involuntary);
            }
        }
        for role in &self.roles {
            batch.put(&THREAD_METRICS[5], &role.name, role.sums.run_ns);
            batch.put(&THREAD_METRICS[6], &role.name, role.sums.runqueue_ns);
            batch.put(&THREAD_METRICS[7], &role.name, role.sums.timeslices);
            batch.put(&THREAD_METRICS[8], &role.name, role.threads);
        }
    }

    /// A thread may end at any moment: what can't be read is left out.
    fn read_thread(&mut self, pid: u32, tid: u32) {
        let sums = match self.load(pid, tid, "schedstat") {
            Ok(()) => parse_schedstat(&self.text),
            Err(_) => None,
        };
        let Some(sums) = sums else {
            return;
        };
        let walk = self.walk;
        let (before, first_walk) = match self.by_tid.get(&tid) {
            Some(thread) => (Some(thread.sums), thread.first_walk),
            None => (None, walk),
        };
        // Threads name themselves after their start: the name of a new one is read twice.
        if walk <= first_walk + 1 {
            self.name_thread(pid, tid, first_walk);
        }
        let added = sums.since(before.unwrap_or_default());
        self.totals.add(added);
        let Some(thread) = self.by_tid.get_mut(&tid) else {
            return;
        };
        thread.sums = sums;
        thread.last_walk = walk;
        match thread.role {
            Some(role) => self.roles[role].sums.add(added),
            None => self.read_switches(pid, tid),
        }
    }

    fn read_switches(&mut self, pid: u32, tid: u32) {
        if self.load(pid, tid, "status").is_err() {
            return;
        }
        let switches = parse_switches(&self.text);
        if let Some(thread) = self.by_tid.get_mut(&tid) {
            thread.switches = switches;
        }
    }

    fn name_thread(&mut self, pid: u32, tid: u32, first_walk: u64) {
        if self.load(pid, tid, "comm").is_err() {
            return;
        }
        let name = self.text.trim();
        if let Some(thread) = self.by_tid.get(&tid)
            && thread.name == name
        {
            return;
        }
        let name = name.to_string();
        if let Some(old) = self.by_tid.remove(&tid) {
            self.uncount(&old);
        }
        let role = self.role_of(&name, first_walk);
        match role {
            Some(role) => self.roles[role].threads += 1,
            None => self.followed += 1,
        }
        let thread = Thread {
            sums: SchedStat::default(),
            switches: None,
            instance: format!("{tid}:{name}"),
            name,
            role,
            first_walk,
            last_walk: self.walk,
        };
        self.by_tid.insert(tid, thread);
    }

    fn role_of(&mut self, name: &str, first_walk: u64) -> Option<usize> {
        let connection = CONNECTION_NAMES.contains(&name);
        let there_from_the_start = first_walk == 1;
        let has_own_name = name != self.process_name;
        let follow = !connection && (there_from_the_start || has_own_name);
        if follow && self.followed < FOLLOWED_MAX {
            return None;
        }
        if let Some(role) = self.roles.iter().position(|role| role.name == name) {
            return Some(role);
        }
        if self.roles.len() > ROLES_MAX {
            return Some(ROLES_MAX);
        }
        let name = match self.roles.len() {
            ROLES_MAX => OTHER_ROLE,
            _ => name,
        };
        self.roles.push(Role { name: name.to_string(), sums: SchedStat::default(), threads: 0 });
        Some(self.roles.len() - 1)
    }

    fn uncount(&mut self, thread: &Thread) {
        match thread.role {
            Some(role) => self.roles[role].threads -= 1,
            None => self.followed -= 1,
        }
    }

    fn forget_ended(&mut self) {
        let walk = self.walk;
        let (roles, followed) = (&mut self.roles, &mut self.followed);
        self.by_tid.retain(|_, thread| {
            let alive = thread.last_walk == walk;
            if !alive {
                match thread.role {
                    Some(role) => roles[role].threads -= 1,
                    None => *followed -= 1,
                }
            }
            alive
        });
    }

    fn load(&mut self, pid: u32, tid: u32, file: &str) -> io::Result<()> {
        self.path.clear();
        self.text.clear();
        // Writing to a string does not fail.
        let _ = write!(self.path, "/proc/{pid}/task/{tid}/{file}");
        let mut bytes = [0_u8; 4096];
        let length = File::open(&self.path)?.read(&mut bytes)?;
        self.text.push_str(&String::from_utf8_lossy(&bytes[..length]));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::sink::memory::collect;

    #[test]
    fn threads_of_connections_are_added_up_and_their_sum_outlives_them() {
        let mut threads = Threads::default();
        let pid = std::process::id();
        threads.read(pid).unwrap();
        let (ready, is_ready) = channel();
        let (end, may_end) = channel::<()>();
        let connection = std::thread::Builder::new()
            .name("one_connection".to_string())
            .spawn(move || {
                let mut sum = 0_u64;
                for number in 0..3_000_000_u64 {
                    sum = std::hint::black_box(sum.wrapping_add(number));
                }
                ready.send(sum).unwrap();
                let _ = may_end.recv();
            })
            .unwrap();
        is_ready.recv().unwrap();
        threads.read(pid).unwrap();
        threads.read(pid).unwrap();
        let values = collect(|batch| threads.put(batch));
        assert_eq!(values["role_threads one_connection"], 1.0);
        let run_ns = values["role_run_ns one_connection"];
        assert!(run_ns > 0.0);
        drop(end);
        connection.join().unwrap();
        // The kernel may show it for a moment after it was joined.
        let begin = std::time::Instant::now();
        let mut values = BTreeMap::new();
        while values.get("role_threads one_connection") != Some(&0.0) && begin.elapsed().as_secs() < 10 {
            threads.read(pid).unwrap();
            values = collect(|batch| threads.put(batch));
        }
        assert_eq!(values["role_threads one_connection"], 0.0);
        assert!(values["role_run_ns one_connection"] >= run_ns);
    }
}

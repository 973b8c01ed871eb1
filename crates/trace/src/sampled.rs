//! Where the time goes without BPF: what /proc shows of each thread, several times per second.
//!
//! CPU time and the wait for a CPU are the kernel's own sums, which everybody may read. The rest of a thread's time goes to the state
//! that it was found in. To read that state takes CAP_SYS_PTRACE, or to be the server's user (see [`Sampler::sees_waits`]).
//! Requests are not seen: what the threads of connections do, apart from waiting for their clients, replaces them. A thread
//! that a server keeps for connections to come waits like one that waits for a lock, only longer (see [`PARKED_NS`]).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use whyso_clock::monotonic_ns;

use crate::reading::{LOST_REASONS, OtherSums, Reading, Sums, ThreadSums};
use crate::system_calls::state_of_syscall;
use whyso_model::{Role, STATES, State};

/// Between two samples, at first.
const INTERVAL: Duration = Duration::from_millis(50);
/// Share of one CPU that sampling may take; above it samples become rarer.
const COST_MAX: f64 = 0.02;
/// Samples never become rarer than this.
const INTERVAL_MAX: Duration = Duration::from_secs(2);
/// A connection's thread that has waited for a lock for so long without ever running has no connection: none of that wait
/// counts for requests. Servers keep threads (`thread_cache_size`) for minutes.
const PARKED_NS: u64 = 5_000_000_000;
/// Functions of the kernel that wait themselves only for the lock of a file's inode or of its position: `wchan` names who called the
/// functions of semaphores and mutexes, and never these.
const LOCKERS: [&str; 8] = [
    "__fdget_pos",
    "btrfs_inode_lock",
    "do_truncate",
    "ext4_buffered_write_iter",
    "ext4_dio_write_iter",
    "fdget_pos",
    "generic_file_write_iter",
    "xfs_ilock",
];

struct Thread {
    name: String,
    role: Role,
    born_ns: u64,
    sampled_ns: u64,
    run_ns: u64,
    wait_ns: u64,
    state: State,
    states: [u64; STATES],
    /// What of `states` is the requests'.
    in_requests: [u64; STATES],
    /// Waited for a lock since it ran last: for its request, or without a connection.
    waits_ns: u64,
}

/// Samples the threads of one process.
pub struct Sampler {
    pid: u32,
    threads: HashMap<u32, Thread>,
    gone: Sums,
    sees_waits: bool,
    interval: Duration,
    path: String,
    text: String,
}

impl Sampler {
    /// Begins with what the process's threads did up to now left out.
    ///
    /// # Errors
    /// There is no such process, or its threads can't be read.
    pub fn start(pid: u32) -> std::io::Result<Sampler> {
        let mut sampler = Sampler {
            pid,
            threads: HashMap::new(),
            gone: Sums::default(),
            sees_waits: std::fs::read(format!("/proc/{pid}/task/{pid}/syscall")).is_ok(),
            interval: INTERVAL,
            path: String::new(),
            text: String::new(),
        };
        sampler.try_sample()?;
        Ok(sampler)
    }

    /// Whether it may be read what the threads wait for. Where not, only their time on a CPU and ready for one is known,
    /// all else is [`State::Other`], and nothing is known of requests.
    pub fn sees_waits(&self) -> bool {
        self.sees_waits
    }

    /// How long to wait until the next sample.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Another process takes the place of the one before.
    pub fn watch(&mut self, pid: u32) {
        self.retire(|_| true);
        self.pid = pid;
    }

    /// Enters what the threads did since the last sample. A process that is gone has no threads.
    pub fn sample(&mut self) {
        let began_ns = monotonic_ns();
        if self.try_sample().is_err() {
            self.retire(|_| true);
        }
        let took_ns = (monotonic_ns() - began_ns).max(0) as f64;
        let wanted = Duration::from_nanos((took_ns / COST_MAX) as u64);
        self.interval = wanted.clamp(INTERVAL, INTERVAL_MAX);
    }

    /// Returns all sums up to the last sample.
    pub fn read(&mut self) -> Reading {
        self.sample();
        let mut sums = self.gone.clone();
        let mut threads = Vec::new();
        for (tid, thread) in &self.threads {
            enter(&mut sums, thread, true);
            threads.push(ThreadSums {
                tid: *tid,
                pid: self.pid,
                name: thread.name.clone(),
                role: thread.role,
                born_ns: thread.born_ns,
                requests: 0,
                states: thread.states,
                now: thread.state,
            });
        }
        threads.sort_by_key(|thread| thread.tid);
        let lost = LOST_REASONS.map(|why| (why, 0));
        Reading {
            at_ns: monotonic_ns(),
            server: sums.server,
            client: sums.client,
            others: OtherSums::default(),
            roles: sums.roles,
            threads,
            lost,
            ..Reading::default()
        }
    }

    fn try_sample(&mut self) -> std::io::Result<()> {
        let mut tids = Vec::new();
        for entry in std::fs::read_dir(format!("/proc/{}/task", self.pid))?.flatten() {
            let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            if self.sample_thread(tid).is_some() {
                tids.push(tid);
            }
        }
        tids.sort_unstable();
        self.retire(|tid| tids.binary_search(&tid).is_err());
        Ok(())
    }

    fn sample_thread(&mut self, tid: u32) -> Option<()> {
        let (run_ns, wait_ns) = {
            let mut numbers = self.file(tid, "schedstat")?.split_whitespace().map(str::parse::<u64>);
            (numbers.next()?.ok()?, numbers.next()?.ok()?)
        };
        let blocked = self.blocked_in(tid);
        let now_ns = monotonic_ns().unsigned_abs();
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.enter(now_ns, run_ns, wait_ns, blocked);
        } else {
            let name = self.file(tid, "comm")?.trim().to_string();
            let role = Role::of_name(&name);
            let state = blocked.unwrap_or(if self.sees_waits { State::Cpu } else { State::Other });
            let thread = Thread {
                name,
                role,
                born_ns: now_ns,
                sampled_ns: now_ns,
                run_ns,
                wait_ns,
                state,
                states: [0; STATES],
                in_requests: [0; STATES],
                waits_ns: 0,
            };
            self.threads.insert(tid, thread);
        }
        let is_main = tid == self.pid;
        let thread = self.threads.get_mut(&tid)?;
        // The main thread listens; any other that waits for a client works for it.
        if thread.role == Role::Other && thread.state == State::NetReceive && !is_main {
            thread.role = Role::Connection;
        }
        Some(())
    }

    /// What the thread is blocked in; `None` while it is on a CPU or ready.
    fn blocked_in(&mut self, tid: u32) -> Option<State> {
        let role = self.threads.get(&tid).map_or(Role::Other, |thread| thread.role);
        let text = self.file(tid, "syscall")?;
        let mut words = text.split_whitespace();
        let number = words.next()?;
        if number == "running" {
            return None;
        }
        let number: i64 = number.parse().ok()?;
        if number < 0 {
            return Some(State::PageFault);
        }
        let state = state_of_syscall(number);
        if state == State::Lock && is_idle(role, words) {
            return Some(State::Idle);
        }
        if matches!(state, State::FileRead | State::FileWrite | State::FileSync) {
            let function = self.file(tid, "wchan").unwrap_or_default();
            if LOCKERS.iter().any(|locker| function.starts_with(locker)) {
                return Some(State::KernelLock);
            }
        }
        Some(state)
    }

    fn file(&mut self, tid: u32, name: &str) -> Option<&str> {
        self.path.clear();
        // Writing to a string never fails.
        let _ = write!(self.path, "/proc/{}/task/{tid}/{name}", self.pid);
        self.text.clear();
        File::open(&self.path).ok()?.read_to_string(&mut self.text).ok()?;
        Some(&self.text)
    }

    fn retire(&mut self, is_gone: impl Fn(u32) -> bool) {
        let gone = &mut self.gone;
        self.threads.retain(|tid, thread| {
            let over = is_gone(*tid);
            if over {
                enter(gone, thread, false);
            }
            !over
        });
    }
}

impl Thread {
    fn enter(&mut self, now_ns: u64, run_ns: u64, wait_ns: u64, blocked: Option<State>) {
        let passed_ns = now_ns.saturating_sub(self.sampled_ns);
        let ran_ns = run_ns.saturating_sub(self.run_ns).min(passed_ns);
        let waited_ns = wait_ns.saturating_sub(self.wait_ns).min(passed_ns - ran_ns);
        if let Some(state) = blocked {
            self.state = state;
        }
        // Found running: what it was blocked in meanwhile was not seen; the last that was seen stands for it.
        let rest = if self.state == State::Cpu { State::Other } else { self.state };
        let rest_ns = passed_ns - ran_ns - waited_ns;
        let spent = [(State::Cpu, ran_ns), (State::Runqueue, waited_ns), (rest, rest_ns)];
        for (state, ns) in spent {
            self.states[state as usize] += ns;
        }
        if self.role == Role::Connection {
            self.enter_in_requests(spent);
        }
        (self.sampled_ns, self.run_ns, self.wait_ns) = (now_ns, run_ns, wait_ns);
    }

    /// Enters what a connection's thread did for its request.
    fn enter_in_requests(&mut self, [cpu, runqueue, (rest, rest_ns)]: [(State, u64); 3]) {
        let ran = cpu.1 > 0;
        if ran {
            // It continues: what it waited for was its request's, unless it waited for a connection.
            if self.waits_ns < PARKED_NS {
                self.in_requests[State::Lock as usize] += self.waits_ns;
            }
            self.waits_ns = 0;
        }
        self.in_requests[State::Cpu as usize] += cpu.1;
        self.in_requests[State::Runqueue as usize] += runqueue.1;
        match rest {
            State::Lock => self.waits_ns += rest_ns,
            State::NetReceive => {}
            rest => self.in_requests[rest as usize] += rest_ns,
        }
    }
}

/// Whether a thread that waits for a futex, by the arguments of the call, sleeps until there is work. It waits on a condition, not for a
/// mutex, and set itself a time at which it wakes up. Where requests are not seen, only threads that work for no connection do that.
fn is_idle<'a>(role: Role, arguments: impl Iterator<Item = &'a str>) -> bool {
    const COMMAND: u64 = 0x7f;
    const WAIT_BITSET: u64 = 9;
    if matches!(role, Role::Other | Role::Connection | Role::Replication) {
        return false;
    }
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let arguments: Vec<u64> = arguments.map_while(number).take(4).collect();
    matches!(arguments[..], [_, command, _, until] if command & COMMAND == WAIT_BITSET && until != 0)
}

fn enter(sums: &mut Sums, thread: &Thread, lives: bool) {
    let of_role: &mut (u64, [u64; STATES]) = sums.roles.entry(thread.role).or_default();
    of_role.0 += u64::from(lives);
    for (sum, ns) in of_role.1.iter_mut().zip(thread.states) {
        *sum += ns;
    }
    for (sum, ns) in sums.server.in_requests.iter_mut().zip(thread.in_requests) {
        *sum += ns;
        sums.server.request_ns += ns;
    }
}

/// Time by role without its threads, for tests.
#[cfg(test)]
fn of_role(reading: &Reading, role: Role, state: State) -> u64 {
    reading.roles.get(&role).map_or(0, |(_, states)| states[state as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};
    use std::time::Instant;

    /// Threads of one test are those of the process that the other samples.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    #[test]
    fn a_timed_wait_on_a_condition_is_idle_where_no_request_can_be_meant() {
        let timed = "0x7f1 0x189 0x0 0x7f2 0x0 0xffffffff 0x7f3 0x7f4";
        let is = |role, text: &str| is_idle(role, text.split_whitespace());
        assert!(is(Role::PageCleaner, timed) && is(Role::Io, timed));
        assert!(!is(Role::Connection, timed) && !is(Role::Other, timed) && !is(Role::Replication, timed));
        assert!(!is(Role::Purge, "0x7f1 0x189 0x0 0x0 0x0 0xffffffff"), "it may wait for a latch");
        assert!(!is(Role::Purge, "0x7f1 0x80 0x2 0x7f2 0x0 0x0"), "a mutex");
        assert!(!is(Role::Purge, ""));
    }

    #[test]
    fn sleeping_spinning_and_receiving_are_distinguished() {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let over = AtomicBool::new(false);
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let reading = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            scope.spawn(move || {
                let _ = theirs.read(&mut [0; 1]);
            });
            let mut sampler = Sampler::start(std::process::id()).unwrap();
            let before = sampler.read();
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(500) {
                std::thread::sleep(sampler.interval());
                sampler.sample();
            }
            let after = sampler.read();
            over.store(true, Ordering::Relaxed);
            ours.write_all(b"x").unwrap();
            let sum = |state| {
                let of = |reading: &Reading| {
                    [Role::Other, Role::Connection].map(|role| of_role(reading, role, state))
                };
                of(&after).iter().sum::<u64>() - of(&before).iter().sum::<u64>()
            };
            [State::Sleep, State::Cpu].map(sum)
        });
        let [sleep_ns, cpu_ns] = reading;
        assert!(sleep_ns > 300_000_000, "slept {sleep_ns} ns of 500,000,000");
        assert!(cpu_ns > 50_000_000, "span {cpu_ns} ns of 500,000,000");
    }

    #[test]
    fn a_wait_for_a_files_lock_is_no_wait_for_the_disk() {
        const EXT4: i64 = 0xef53;
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        // SAFETY: all zeros are a valid `statfs`.
        let mut about: libc::statfs = unsafe { std::mem::zeroed() };
        let path = std::ffi::CString::new(folder.path().as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the path ends in a zero byte, and both live through the call.
        let status = unsafe { libc::statfs(path.as_ptr(), &raw mut about) };
        #[allow(clippy::useless_conversion, reason = "the type differs from platform to platform")]
        if status != 0 || i64::from(about.f_type) != EXT4 {
            whyso_testing::not_tested(format!("{} lies on no ext4", folder.path().display()));
            return;
        }
        let over = AtomicBool::new(false);
        let file = folder.path().join("log");
        let locked_ns = std::thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    let mut log = File::options().create(true).append(true).open(&file).unwrap();
                    let line = vec![b'x'; 2_000_000];
                    while !over.load(Ordering::Relaxed) {
                        log.write_all(&line).unwrap();
                        log.set_len(0).unwrap();
                    }
                });
            }
            let mut sampler = Sampler::start(std::process::id()).unwrap();
            let began = Instant::now();
            while began.elapsed() < Duration::from_secs(1) {
                std::thread::sleep(sampler.interval());
                sampler.sample();
            }
            let reading = sampler.read();
            over.store(true, Ordering::Relaxed);
            of_role(&reading, Role::Other, State::KernelLock)
        });
        assert!(locked_ns > 200_000_000, "five threads waited {locked_ns} ns of five seconds");
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error_and_one_that_goes_is_not() {
        assert!(Sampler::start(u32::MAX).is_err());
        let mut sampler = Sampler::start(std::process::id()).unwrap();
        sampler.watch(u32::MAX);
        assert!(sampler.read().threads.is_empty());
    }

    fn connection(state: State) -> Thread {
        Thread {
            name: "x".to_string(),
            role: Role::Connection,
            born_ns: 0,
            sampled_ns: 0,
            run_ns: 0,
            wait_ns: 0,
            state,
            states: [0; STATES],
            in_requests: [0; STATES],
            waits_ns: 0,
        }
    }

    #[test]
    fn a_wait_for_a_lock_is_the_requests_and_one_for_a_connection_is_not() {
        let locked = State::Lock as usize;
        let mut thread = connection(State::Lock);
        for at in 1..=10 {
            thread.enter(at * 50_000_000, 0, 0, Some(State::Lock));
        }
        assert_eq!(thread.in_requests[locked], 0, "whether it has a connection is not known yet");
        thread.enter(501_000_000, 1_000_000, 0, Some(State::NetReceive));
        assert_eq!(
            (thread.in_requests[locked], thread.in_requests[State::Cpu as usize]),
            (500_000_000, 1_000_000)
        );
        thread.enter(502_000_000, 1_500_000, 0, Some(State::Lock));
        // Kept for another connection, for a while longer than any lock takes.
        thread.enter(502_000_000 + 2 * PARKED_NS, 1_500_000, 0, Some(State::Lock));
        thread.enter(503_000_000 + 2 * PARKED_NS, 1_600_000, 0, Some(State::NetReceive));
        assert_eq!(thread.in_requests[locked], 500_000_000);
        assert_eq!(
            thread.in_requests[State::NetReceive as usize],
            0,
            "waiting for its client is no part of a request"
        );
        let all: u64 = thread.states.iter().sum();
        assert_eq!(all, 503_000_000 + 2 * PARKED_NS, "all of its time is in its states");
    }

    #[test]
    fn all_of_a_threads_time_is_accounted_for() {
        let mut thread = Thread { sampled_ns: 1_000, run_ns: 50, wait_ns: 10, ..connection(State::Lock) };
        thread.enter(2_000, 350, 110, None);
        assert_eq!(thread.states[State::Cpu as usize], 300);
        assert_eq!(thread.states[State::Runqueue as usize], 100);
        assert_eq!(thread.states[State::Lock as usize], 600);
        // The kernel's sums may run ahead of our clock.
        thread.enter(2_100, 1_000, 1_000, Some(State::Sleep));
        assert_eq!(thread.states.iter().sum::<u64>(), 1_100);
    }
}

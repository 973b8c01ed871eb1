//! One process, the server's or the generator's, and its threads: from `/proc/PID`.
//!
//! Sources are `server_process` (instance `server`) and `generator_process` (instance `generator`),
//! each with gaps of its own. `run_ns` is the process's CPU clock, which contains ended threads, to the
//! nanosecond. `runqueue_ns` is the sum over the threads' `schedstat`; what a thread waited between its
//! last reading and its end is lost to it. `user_ns` and `system_ns` contain ended threads, in ticks of
//! mostly 10 ms.
//!
//! Threads are described in [`threads`]. How often the costly parts are read is bounded: see
//! [`Pace`].

mod parse;
mod threads;

use std::fs::File;
use std::io;

use whyso_clock::{monotonic_ns, thread_cpu_ns};

use crate::metric::{Metric, counter, gauge};
use crate::pid::Pid;
use crate::sampler::{Failure, Sampler};
use crate::schedule::Pace;
use crate::sink::Batch;
use crate::text::{Machine, read_whole};

use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};
pub(crate) use parse::{MEMORY, parse_stat};
pub(crate) use threads::THREAD_METRICS;

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["server_process", "generator_process"],
    counts: "one process and its threads",
    origin: "`/proc/PID`",
    metrics: &[&METRICS, &THREAD_METRICS],
    start,
};

/// Starts a sampler for the generator, and one for a server on this machine.
fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let generator = Pid::new(Some(context.spec.generator_pid));
    let mut samplers = vec![ScheduledSampler::of_generator(Process::generator(generator, context.machine))];
    if context.server_is_here() {
        let server = Process::server(context.server_pid.clone(), context.machine);
        samplers.push(ScheduledSampler::of_server(server));
    }
    samplers
}

pub(crate) const METRICS: [Metric; 22] = [
    counter("user_ns", "ns", "time in user code, of ended threads too, in ticks"),
    counter("system_ns", "ns", "time in the kernel, of ended threads too, in ticks"),
    counter("minor_faults", "1", "page faults answered from memory"),
    counter("major_faults", "1", "page faults that had to read from a disk"),
    gauge("threads", "1", "threads of the process"),
    counter("io_delay_ns", "ns", "time that threads waited for a disk, where the kernel counts it"),
    gauge("resident_bytes", "bytes", "memory that the process has in RAM"),
    MEMORY[0],
    MEMORY[1],
    MEMORY[2],
    MEMORY[3],
    counter("read_call_bytes", "bytes", "returned by read calls, from the page cache too"),
    counter("write_call_bytes", "bytes", "given to write calls"),
    counter("read_calls", "1", "read calls"),
    counter("write_calls", "1", "write calls"),
    counter("disk_read_bytes", "bytes", "read from devices on behalf of the process"),
    counter("disk_write_bytes", "bytes", "sent towards devices on behalf of the process"),
    gauge("open_files", "1", "file descriptors in use"),
    counter("run_ns", "ns", "time on a CPU, of ended threads too"),
    counter("runqueue_ns", "ns", "time in which threads were ready but had no CPU"),
    counter("timeslices", "1", "times that a thread was put on a CPU"),
    gauge("threads_followed", "1", "threads that have series of their own"),
];

pub(crate) struct Process {
    source: &'static str,
    instance: &'static str,
    pid: Pid,
    machine: Machine,
    /// What is followed now: pid and start time, by which a process differs from the next one of its number.
    current: Option<(u32, u64)>,
    threads: threads::Threads,
    threads_pace: Pace,
    files_pace: Pace,
    buffer: Vec<u8>,
}

impl Process {
    pub(crate) fn server(pid: Pid, machine: Machine) -> Process {
        Process::new("server_process", "server", pid, machine)
    }

    pub(crate) fn generator(pid: Pid, machine: Machine) -> Process {
        Process::new("generator_process", "generator", pid, machine)
    }

    fn new(source: &'static str, instance: &'static str, pid: Pid, machine: Machine) -> Process {
        Process {
            source,
            instance,
            pid,
            machine,
            current: None,
            threads: threads::Threads::default(),
            threads_pace: Pace::default(),
            files_pace: Pace::default(),
            buffer: Vec::new(),
        }
    }

    fn text(&mut self, pid: u32, file: &str) -> io::Result<String> {
        let file = File::open(format!("/proc/{pid}/{file}"))?;
        let length = read_whole(&file, &mut self.buffer)?;
        Ok(String::from_utf8_lossy(&self.buffer[..length]).into_owned())
    }

    fn failure_of(&self, pid: u32, error: &io::Error) -> Failure {
        Failure::quick(format!("the {}'s process {pid} cannot be read: {error}", self.instance))
    }

    fn read_whole_process(&mut self, pid: u32, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let instance = self.instance;
        let stat = self.text(pid, "stat").map_err(|error| self.failure_of(pid, &error))?;
        let Some(stat) = parse_stat(&stat) else {
            return Err(Failure::quick(format!("/proc/{pid}/stat is not readable")));
        };
        if stat.state == 'Z' {
            return Err(Failure::quick(format!("the {instance}'s process {pid} has ended")));
        }
        if self.current != Some((pid, stat.start_ticks)) {
            self.current = Some((pid, stat.start_ticks));
            self.threads = threads::Threads::default();
        }
        let tick_ns = self.machine.tick_ns;
        let numbers = [
            stat.user_ticks.saturating_mul(tick_ns),
            stat.system_ticks.saturating_mul(tick_ns),
            stat.minor_faults,
            stat.major_faults,
            stat.threads,
            stat.io_delay_ticks.saturating_mul(tick_ns),
            stat.resident_pages.saturating_mul(self.machine.page_bytes),
        ];
        for (metric, value) in METRICS.iter().zip(numbers) {
            batch.put(metric, instance, value);
        }
        if let Ok(status) = self.text(pid, "status") {
            parse::parse_status(&status, instance, batch);
        }
        match self.text(pid, "io") {
            Ok(io) => parse::parse_io(&io, &METRICS[11..17], instance, batch),
            Err(error) => {
                batch.absent(format!("the {instance}'s own reads and writes: /proc/PID/io: {error}"))
            }
        }
        Ok(())
    }

    fn read_open_files(&mut self, pid: u32, batch: &mut Batch<'_>) {
        let began_ns = monotonic_ns();
        if !self.files_pace.due(began_ns) {
            return;
        }
        let cpu_before_ns = thread_cpu_ns();
        match count_open_files(pid) {
            Ok(count) => batch.put(&METRICS[17], self.instance, count),
            Err(error) => batch.absent(format!("the {}'s open files: /proc/PID/fd: {error}", self.instance)),
        }
        self.files_pace.spent(began_ns, thread_cpu_ns() - cpu_before_ns);
    }

    fn read_threads(&mut self, pid: u32, batch: &mut Batch<'_>) {
        let began_ns = monotonic_ns();
        if !self.threads_pace.due(began_ns) {
            return;
        }
        let cpu_before_ns = thread_cpu_ns();
        match self.threads.read(pid) {
            Ok(()) => {
                let totals = self.threads.totals();
                batch.put(&METRICS[18], self.instance, process_cpu_ns(pid).unwrap_or(totals.run_ns));
                batch.put(&METRICS[19], self.instance, totals.runqueue_ns);
                batch.put(&METRICS[20], self.instance, totals.timeslices);
                batch.put(&METRICS[21], self.instance, self.threads.followed());
                self.threads.put(batch);
            }
            Err(error) => batch.absent(format!("the {}'s threads: /proc/PID/task: {error}", self.instance)),
        }
        self.threads_pace.spent(began_ns, thread_cpu_ns() - cpu_before_ns);
    }
}

impl Sampler for Process {
    fn source(&self) -> &'static str {
        self.source
    }

    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        let Some(pid) = self.pid.get() else {
            if self.current.is_some() {
                return Err(Failure::quick(format!("the {} is not running", self.instance)));
            }
            batch.nothing_to_read();
            return Ok(());
        };
        self.read_whole_process(pid, batch)?;
        self.read_open_files(pid, batch);
        self.read_threads(pid, batch);
        Ok(())
    }
}

/// CPU time that a process has used in all its threads, the ended ones included. `None` where its clock can't be read.
pub fn process_cpu_ns(pid: u32) -> Option<u64> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both pointers are to locals that outlive the calls.
    let is_read = unsafe {
        libc::clock_getcpuclockid(pid as libc::pid_t, &raw mut clock) == 0
            && libc::clock_gettime(clock, &raw mut time) == 0
    };
    is_read.then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

fn count_open_files(pid: u32) -> io::Result<u64> {
    let path = format!("/proc/{pid}/fd");
    // Since Linux 6.2 the folder's size is the count; before, it is 0.
    let size = std::fs::metadata(&path)?.len();
    if size > 0 {
        return Ok(size);
    }
    Ok(std::fs::read_dir(&path)?.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::memory::collect;

    #[test]
    fn our_own_process_has_all_its_numbers() {
        let pid = Pid::new(Some(std::process::id()));
        let mut sampler = Process::generator(pid, Machine::read());
        let values = collect(|batch| sampler.read(batch).unwrap());
        for metric in &METRICS {
            let name = format!("{} generator", metric.name);
            assert!(values.contains_key(&name), "{name} in {values:?}");
        }
        assert!(values["resident_bytes generator"] > 1e6);
        assert!(values["run_ns generator"] > 0.0);
        assert!(values["threads_followed generator"] >= 1.0);
    }

    /// A server that keeps no threads for its connections ends one with each.
    #[test]
    fn what_ended_threads_used_counts() {
        let mut sampler = Process::server(Pid::new(Some(std::process::id())), Machine::read());
        let mut read = || collect(|batch| sampler.read(batch).unwrap())["run_ns server"];
        let before_ns = read();
        let used_ns = std::thread::spawn(|| {
            while thread_cpu_ns() < 60_000_000 {}
            thread_cpu_ns()
        });
        let used_ns = used_ns.join().unwrap() as f64;
        // Threads are read at most so often as their pace allows.
        let grown_ns = (0..100)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                read() - before_ns
            })
            .find(|grown_ns| *grown_ns >= used_ns);
        assert!(grown_ns.is_some(), "{used_ns} ns were used");
    }

    #[test]
    fn a_process_that_ends_is_a_gap() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut sampler = Process::server(Pid::new(Some(child.id())), Machine::read());
        let values = collect(|batch| sampler.read(batch).unwrap());
        assert_eq!(values["threads server"], 1.0);
        child.kill().unwrap();
        child.wait().unwrap();
        collect(|batch| {
            let failure = sampler.read(batch).unwrap_err();
            assert!(matches!(failure, Failure::Broken { .. }), "{failure:?}");
        });
    }

    #[test]
    fn no_process_at_all_is_no_reading() {
        let mut sampler = Process::server(Pid::new(None), Machine::read());
        let values = collect(|batch| sampler.read(batch).unwrap());
        assert!(values.is_empty());
    }
}

//! What the tests share: the tracer where it is allowed, and the process that it watches.
#![allow(dead_code, reason = "no test file uses all of it")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use whyso_model::State;
use whyso_trace::{Error, Reading, StackSampling, ThreadSums, TraceSpec, Tracer};

/// One test of a file at a time: the tracer takes threads named load-N of the whole program for the generator's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The tracer. `None`, which is reported, where this machine does not allow it. What fails otherwise fails the test.
pub(crate) fn tracer(servers: &[u32]) -> Option<Tracer> {
    match Tracer::start(&TraceSpec {
        servers: servers.to_vec(),
        stacks: StackSampling::Full,
        ..TraceSpec::default()
    }) {
        Ok(tracer) => Some(tracer),
        Err(why @ (Error::NotAllowed | Error::NoBtf)) => {
            whyso_testing::tracer_not_tested(why);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The process of `subject.rs`; it ends with this.
pub(crate) struct Subject {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Subject {
    pub(crate) fn start(arguments: &[&str], folder: &Path) -> Subject {
        let mut child = Command::new(env!("CARGO_BIN_EXE_trace-subject"))
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Subject { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The words of the next line that it prints.
    pub(crate) fn line(&mut self) -> Vec<String> {
        let line = self.lines.next().expect("the subject prints one more line").unwrap();
        line.split_whitespace().map(String::from).collect()
    }

    /// Sends one byte to each of this many threads that wait for one.
    pub(crate) fn go(&mut self, threads: usize) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(&vec![b'g'; threads]).unwrap();
        input.flush().unwrap();
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn thread(reading: &Reading, tid: u32) -> &ThreadSums {
    reading.threads.iter().find(|thread| thread.tid == tid).expect("the thread is in the reading")
}

/// Of a thread between two readings, by state.
#[derive(Debug)]
pub(crate) struct Between(pub(crate) [u64; whyso_model::STATES]);

impl Between {
    pub(crate) fn of(before: &Reading, after: &Reading, tid: u32) -> Between {
        let mut states = thread(after, tid).states;
        for (state, before) in states.iter_mut().zip(thread(before, tid).states) {
            *state -= before;
        }
        Between(states)
    }

    pub(crate) fn ns(&self, state: State) -> u64 {
        self.0[state as usize]
    }

    /// Ready and not running.
    pub(crate) fn ready_ns(&self) -> u64 {
        self.ns(State::Runqueue) + self.ns(State::Wakeup)
    }

    pub(crate) fn sum_ns(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Whether they differ by at most a share of the second, plus `ns`.
pub(crate) fn agree(counted: u64, expected: u64, share: f64, ns: u64) -> bool {
    counted.abs_diff(expected) as f64 <= expected as f64 * share + ns as f64
}

/// What a hypervisor took from all CPUs since boot, in nanoseconds. The kernel leaves it out of what a thread ran. To the tracer the
/// thread ran.
pub(crate) fn stolen_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = stat.split_whitespace().nth(8).map_or(0, |word| word.parse::<u64>().unwrap());
    ticks * 10_000_000
}

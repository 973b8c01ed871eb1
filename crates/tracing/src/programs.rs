//! Takes stacks of every program on this machine except the server, in a thread of its own.
//!
//! They are recorded apart from the server's: no account, no budget and no profile of the server has them.

mod busiest;
mod following;

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whyso_clock::{monotonic_ns, thread_cpu_ns};
use whyso_record::Recorder;
use whyso_record::data::{Kind, ProgramSample, Reading, SeriesKey, Status, Value};
use whyso_stacks::{End, Frame, ModuleId, Names, Registers, StackId, Table, Unwinding};
use whyso_trace::{ProgramOrigin, ProgramRecord, ProgramStacks};

use crate::cost::program_values;
use crate::error::Error;
use crate::stacks::{COST_MAX, STACKS_AT_ONCE, cpus, kernel_frames, rows};
use busiest::{Busiest, SOURCE};
use following::{Decision, Following};

/// Between two readings of what the program took.
const READ_INTERVAL: Duration = Duration::from_millis(200);
/// Between two adjustments of how often a sample is recorded, and two readings of what that costs.
const INTERVAL: Duration = Duration::from_secs(1);
/// Between two publications of the busiest functions.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(5);
/// Distinct stacks of programs in a run: about 30 MB. What is new after that is lost, and counted.
const STACKS_MAX: usize = 50_000;
/// Files whose functions are known. After that, no further process is followed.
const MODULES_MAX: usize = 1024;
/// Of so many samples at most one is recorded.
const SAMPLE_EVERY_MAX: u64 = 64;
/// Requests to the thread that wait, at most.
const REQUESTS_MAX: usize = 4;
/// What whyso itself is called among the programs.
const WHYSO: &str = "whyso (this one)";

enum Request {
    /// Now is a good time to name functions: nothing is measured.
    Name,
}

/// A thread that takes stacks of programs.
pub(crate) struct ProgramTaking {
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl ProgramTaking {
    /// `host`: of this machine's series.
    ///
    /// # Errors
    /// No thread could be started.
    pub(crate) fn start(
        stacks: ProgramStacks,
        host: &str,
        recorder: Recorder,
    ) -> Result<ProgramTaking, Error> {
        let (sender, requests) = sync_channel(REQUESTS_MAX);
        let host = host.to_string();
        let run = move || ProgramTaker::new(stacks, &host, recorder).run(&requests);
        let spawned = std::thread::Builder::new().name("programs".to_string()).spawn(run);
        Ok(ProgramTaking { requests: Some(sender), thread: Some(spawned.map_err(Error::Thread)?) })
    }

    /// Has the functions of new stacks named, between two levels. Never waits.
    pub(crate) fn name(&self) {
        if let Some(requests) = &self.requests {
            // Should it be that far behind, it is asked again after the next level.
            let _ = requests.try_send(Request::Name);
        }
    }
}

impl Drop for ProgramTaking {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic there is no reason to lose the recording.
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct ProgramTaker {
    stacks: ProgramStacks,
    recorder: Recorder,
    work: Work,
    names: Names,
    cpu_before_ns: i64,
    due: Instant,
    publish_due: Instant,
}

/// Everything except the program, so that it can be worked on while that is read.
struct Work {
    unwinding: Unwinding,
    table: Table,
    following: Following,
    samples: Vec<ProgramSample>,
    busiest: Busiest,
    lost: Lost,
    /// CPU time of this thread in this second that does not depend on the number of samples.
    fixed_ns: i64,
    /// And how much of that may be spent on reading modules.
    fixed_max_ns: i64,
}

/// Samples of which something was lost, by why.
#[derive(Debug, Default)]
struct Lost {
    /// Only their stacks in user space: the process was found for the first time.
    found_once: u64,
    too_many_processes: u64,
    too_costly: u64,
    /// Of processes that began after as many files were read as are read in one recording.
    too_many_files: u64,
    /// The sample is lost.
    too_many_stacks: u64,
}

impl ProgramTaker {
    fn new(stacks: ProgramStacks, host: &str, recorder: Recorder) -> ProgramTaker {
        let work = Work {
            unwinding: Unwinding::default(),
            table: Table::new(STACKS_MAX),
            following: Following::default(),
            samples: Vec::new(),
            busiest: Busiest::new(host),
            lost: Lost::default(),
            fixed_ns: 0,
            fixed_max_ns: (INTERVAL.as_nanos() as f64 * cpus() as f64 * COST_MAX / 2.0) as i64,
        };
        let now = Instant::now();
        ProgramTaker {
            stacks,
            recorder,
            work,
            // Debug information of all programs would take more memory than all else.
            names: Names::of_symbols_only(),
            cpu_before_ns: 0,
            due: now + INTERVAL,
            publish_due: now + PUBLISH_INTERVAL,
        }
    }

    fn run(&mut self, requests: &Receiver<Request>) {
        self.cpu_before_ns = thread_cpu_ns();
        loop {
            let asked = requests.recv_timeout(READ_INTERVAL);
            // A buffer that can't be read once is read the next time; what it lost meanwhile is counted.
            let _ = self.stacks.take(|record| self.work.enter(record));
            match asked {
                Ok(Request::Name) => self.name(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= self.due {
                self.due = Instant::now() + INTERVAL;
                if Instant::now() >= self.publish_due {
                    self.publish_due = Instant::now() + PUBLISH_INTERVAL;
                    self.publish();
                }
                self.follow_the_load();
                self.record();
            }
        }
        self.publish();
        self.record();
        self.name();
    }

    /// Records fewer samples where they take long to unwind: each carries its weight.
    fn follow_the_load(&mut self) {
        let cpu_ns = thread_cpu_ns();
        let of_samples_ns = cpu_ns - self.cpu_before_ns - self.work.fixed_ns;
        (self.cpu_before_ns, self.work.fixed_ns) = (cpu_ns, 0);
        let cost = of_samples_ns as f64 / (INTERVAL.as_nanos() as f64 * cpus() as f64);
        let every = self.stacks.sample_every();
        self.stacks.set_sample_every(next_every(every, cost));
    }

    /// Hands over what was sampled since the last time.
    fn record(&mut self) {
        let begin_ns = monotonic_ns();
        let work = &mut self.work;
        work.samples.sort_by_key(|sample| sample.t_ns);
        self.recorder.program_stacks(&std::mem::take(&mut work.samples));
        let Lost { found_once, too_many_processes, too_costly, too_many_files, too_many_stacks } = work.lost;
        let counted = [
            ("lost", "not read in time", Kind::Counter, "1", self.stacks.lost()),
            ("lost", "odd", Kind::Counter, "1", self.stacks.odd()),
            ("lost", "too many stacks", Kind::Counter, "1", too_many_stacks),
            ("unfollowed", "process found once", Kind::Counter, "1", found_once),
            ("unfollowed", "too many processes", Kind::Counter, "1", too_many_processes),
            ("unfollowed", "too costly", Kind::Counter, "1", too_costly),
            ("unfollowed", "too many files", Kind::Counter, "1", too_many_files),
            ("cpu_ns", "", Kind::Counter, "ns", thread_cpu_ns().unsigned_abs()),
            ("sample_every", "", Kind::Gauge, "1", self.stacks.sample_every()),
        ];
        let value = |(metric, instance, kind, unit, value): (&str, &str, Kind, &str, u64)| {
            let id = self.recorder.series(&SeriesKey {
                host: "client".to_string(),
                source: "program_stacks".to_string(),
                metric: metric.to_string(),
                instance: instance.to_string(),
                kind,
                unit: unit.to_string(),
            });
            (id, Value::Int(i64::try_from(value).unwrap_or(i64::MAX)))
        };
        let mut values: Vec<_> = counted.into_iter().map(value).collect();
        values.extend(program_values(&self.recorder, "program_stacks", &self.stacks.cost()));
        let (source, end_ns) = ("program_stacks".to_string(), monotonic_ns());
        self.recorder.reading(Reading { source, begin_ns, end_ns, status: Status::Ok, values });
    }

    /// Writes the counters of the busiest functions.
    fn publish(&mut self) {
        let (begin_ns, cpu_ns) = (monotonic_ns(), thread_cpu_ns());
        let (names, unwinding) = (&mut self.names, &self.work.unwinding);
        let counters = self.work.busiest.publish(|frame| names.symbol_of(frame, unwinding));
        self.work.fixed_ns += thread_cpu_ns() - cpu_ns;
        let value = |(key, ns): (SeriesKey, u64)| {
            (self.recorder.series(&key), Value::Int(i64::try_from(ns).unwrap_or(i64::MAX)))
        };
        let values: Vec<_> = counters.into_iter().map(value).collect();
        let (source, end_ns) = (SOURCE.to_string(), monotonic_ns());
        self.recorder.reading(Reading { source, begin_ns, end_ns, status: Status::Ok, values });
    }

    /// Names the functions of the stacks that are new.
    fn name(&mut self) {
        let cpu_ns = thread_cpu_ns();
        let fresh = self.work.table.take_fresh();
        for part in fresh.chunks(STACKS_AT_ONCE) {
            self.recorder.program_frames(&rows::frames(part, &mut self.names, &self.work.unwinding));
        }
        self.work.fixed_ns += thread_cpu_ns() - cpu_ns;
    }
}

/// Of how many samples one is recorded in the next second. `cost`: the share of all CPUs that samples took in the last one.
fn next_every(every: u64, cost: f64) -> u64 {
    if cost > COST_MAX {
        (every * 2).min(SAMPLE_EVERY_MAX)
    } else if cost < COST_MAX / 2.0 {
        (every / 2).max(1)
    } else {
        every
    }
}

/// The name of a program in the table. Of threads of the kernel, one for all that do the same: "kworker/0:1" is "[kworker]".
fn program_name(record: &ProgramRecord<'_>) -> String {
    match record.origin {
        ProgramOrigin::Own => WHYSO.to_string(),
        ProgramOrigin::Process => record.name.clone(),
        ProgramOrigin::Kernel => format!("[{}]", record.name.split('/').next().unwrap_or_default()),
    }
}

fn origin_name(origin: ProgramOrigin) -> &'static str {
    match origin {
        ProgramOrigin::Process => "process",
        ProgramOrigin::Kernel => "kernel",
        ProgramOrigin::Own => whyso_model::role::OBSERVER,
    }
}

impl Work {
    fn enter(&mut self, record: &ProgramRecord<'_>) {
        let stack = &record.stack;
        let program = program_name(record);
        let mut frames = kernel_frames(&stack.kernel);
        let (user, end) = self.user(record);
        frames.extend(user);
        self.busiest.enter(&program, self.place(&frames), stack.weight_ns);
        let Some(StackId(number)) = self.table.intern(frames, end) else {
            self.lost.too_many_stacks += 1;
            return;
        };
        self.samples.push(ProgramSample {
            t_ns: stack.t_ns,
            pid: if record.origin == ProgramOrigin::Kernel { 0 } else { stack.pid },
            program,
            origin: origin_name(record.origin).to_string(),
            stack: number,
            weight_ns: stack.weight_ns,
        });
    }

    /// Where the innermost function of a stack begins; `None` where that is not known.
    fn place(&self, frames: &[Frame]) -> Option<Frame> {
        let innermost = frames.first().filter(|frame| frame.module != ModuleId::NONE)?;
        Some(self.unwinding.function_of(*innermost))
    }

    fn user(&mut self, record: &ProgramRecord<'_>) -> (Vec<Frame>, End) {
        let (pid, from) = (record.stack.pid, record.stack.registers);
        if from.stack_pointer == 0 {
            return (Vec::new(), End::Root);
        }
        let has_room = self.unwinding.module_count() < MODULES_MAX;
        let may_begin = self.fixed_ns < self.fixed_max_ns && has_room;
        let has_just_begun = match self.following.decide(pid, Instant::now(), may_begin) {
            Decision::Followed { has_just_begun, gives_up } => {
                if let Some(other) = gives_up {
                    self.unwinding.forget(other);
                }
                has_just_begun
            }
            unfollowed => {
                match unfollowed {
                    Decision::TooMany => self.lost.too_many_processes += 1,
                    Decision::TooCostly if !has_room => self.lost.too_many_files += 1,
                    Decision::TooCostly => self.lost.too_costly += 1,
                    _ => self.lost.found_once += 1,
                }
                return (Vec::new(), End::Lost);
            }
        };
        let registers = Registers {
            instruction_pointer: from.instruction_pointer,
            stack_pointer: from.stack_pointer,
            frame_pointer: from.frame_pointer,
            link_register: from.link_register,
        };
        let cpu_ns = if has_just_begun { thread_cpu_ns() } else { 0 };
        let stack = self.unwinding.user(pid, registers, record.stack.user);
        if has_just_begun {
            self.fixed_ns += thread_cpu_ns() - cpu_ns;
        }
        (stack.frames, stack.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_samples_are_recorded_where_they_cost_too_much_and_all_again_later() {
        let dear = COST_MAX * 2.0;
        assert_eq!([next_every(1, dear), next_every(2, dear), next_every(64, dear)], [2, 4, 64]);
        assert_eq!([next_every(4, COST_MAX * 0.75), next_every(4, 0.0), next_every(1, 0.0)], [4, 2, 1]);
    }
}

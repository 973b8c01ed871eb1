//! Takes stacks of a server, or of a program, in a thread of its own during a run: unwinds them, keeps each once, and records what was sampled.

mod busy;
mod owner;
pub(crate) mod rows;
mod waits;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whyso_clock::{monotonic_ns, thread_cpu_ns};
use whyso_model::Role;
use whyso_model::role::{OBSERVER, OTHER_CLIENT};
use whyso_record::Recorder;
use whyso_record::data::{Kind, Reading, StackSample, Status, Value};
use whyso_stacks::{End, Frame, Interrupts, ModuleId, Names, Registers, StackId, Table, Unwinding};
use whyso_trace::{Client, StackKind, StackRecord, StackSampling, Stacks};

use crate::error::Error;

use busy::Busy;
pub use busy::BusyFunctions;
use busy::LatestFunctions;
pub(crate) use owner::{Owner, StacksOfProgram};
use waits::Waits;

/// Between two readings of what the programs took.
const READ_INTERVAL: Duration = Duration::from_millis(50);
/// The same where no waits are taken: there is little to read, and waking up for it costs, too.
const LIGHT_READ_INTERVAL: Duration = Duration::from_millis(200);
/// Between two adjustments of how often waits are chosen, and two readings of what that costs.
const INTERVAL: Duration = Duration::from_secs(1);
/// Most waits per second that are recorded on each CPU, on average. The period follows.
const WAITS_PER_S_AND_CPU: u64 = 200;
/// The share of all CPUs' time that this thread takes at most, on average. It holds as long as choosing fewer waits can help: the
/// period follows that, too.
pub(crate) const COST_MAX: f64 = 0.005;
/// Distinct stacks of a run: about 60 MB. What is new after that is lost, and counted.
pub(crate) const STACKS_MAX: usize = 100_000;
/// Stacks whose functions are recorded together.
pub(crate) const STACKS_AT_ONCE: usize = 1000;
/// Requests to the thread that wait, at most.
const REQUESTS_MAX: usize = 4;

enum Request {
    /// Now is a good time to name functions: nothing is measured.
    Name,
}

/// A thread that takes stacks.
pub(crate) struct StackTaking {
    requests: Option<SyncSender<Request>>,
    latest_functions: LatestFunctions,
    thread: Option<JoinHandle<()>>,
}

impl StackTaking {
    /// # Errors
    /// No thread could be started.
    pub(crate) fn start(
        stacks: Stacks,
        owner: Owner,
        strange_is_load: Arc<AtomicBool>,
        recorder: Recorder,
    ) -> Result<StackTaking, Error> {
        let (sender, requests) = sync_channel(REQUESTS_MAX);
        let latest_functions = LatestFunctions::default();
        // To name functions takes time, which a light sampling has only once the level has ended.
        let shows_busy = owner == Owner::Server && stacks.sampling() == StackSampling::Full;
        let busy = shows_busy.then(|| Busy::new(latest_functions.clone()));
        let run = move || StackTaker::new(stacks, owner, strange_is_load, recorder, busy).run(&requests);
        let spawned = std::thread::Builder::new().name("stacks".to_string()).spawn(run);
        let thread = spawned.map_err(Error::Thread)?;
        Ok(StackTaking { requests: Some(sender), latest_functions, thread: Some(thread) })
    }

    /// The functions that were busiest in the last seconds; `None` until there is something new, and in a light sampling.
    pub(crate) fn busy_functions(&self) -> Option<BusyFunctions> {
        self.latest_functions.take()
    }

    /// Has the functions of new stacks named, between two levels. Never waits.
    pub(crate) fn name(&self) {
        if let Some(requests) = &self.requests {
            // Should it be that far behind, it is asked again after the next level.
            let _ = requests.try_send(Request::Name);
        }
    }
}

impl Drop for StackTaking {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic there is no reason to lose the recording.
            let _ = thread.join();
        }
    }
}

/// What the thread works with.
struct StackTaker {
    stacks: Stacks,
    owner: Owner,
    recorder: Recorder,
    work: Work,
    names: Names,
    waits_before: u64,
    cpu_before_ns: i64,
    period_before_ns: u64,
    due: Instant,
}

/// Everything except the programs, so that it can be worked on while they are read.
struct Work {
    unwinding: Unwinding,
    table: Table,
    interrupts: Interrupts,
    waits: Waits,
    /// With the process of each.
    samples: Vec<(u32, StackSample)>,
    takes_cpu: bool,
    /// Who ends waits is recorded, too.
    takes_wakers: bool,
    busy: Option<Busy>,
    /// Processes whose threads are the server's: nobody else's stack is followed.
    servers: BTreeSet<u32>,
    /// Whether requests of clients that nobody knows are the load's.
    strange_is_load: Arc<AtomicBool>,
    /// Stacks that the table had no place for.
    full: u64,
    chosen: u64,
}

impl StackTaker {
    fn new(
        stacks: Stacks,
        owner: Owner,
        strange_is_load: Arc<AtomicBool>,
        recorder: Recorder,
        busy: Option<Busy>,
    ) -> StackTaker {
        let names = match stacks.sampling() {
            StackSampling::Full => Names::default(),
            StackSampling::Light | StackSampling::Off => Names::of_symbols_only(),
        };
        let work = Work {
            unwinding: Unwinding::default(),
            table: Table::new(STACKS_MAX),
            interrupts: Interrupts::of_this_kernel(),
            waits: Waits::default(),
            samples: Vec::new(),
            takes_cpu: owner.takes_cpu(),
            takes_wakers: owner == Owner::Server,
            busy,
            servers: BTreeSet::new(),
            strange_is_load,
            full: 0,
            chosen: 0,
        };
        StackTaker {
            stacks,
            owner,
            recorder,
            work,
            names,
            waits_before: 0,
            cpu_before_ns: 0,
            period_before_ns: u64::MAX,
            due: Instant::now() + INTERVAL,
        }
    }

    fn run(&mut self, requests: &Receiver<Request>) {
        self.cpu_before_ns = thread_cpu_ns();
        let takes_waits = self.stacks.sampling().takes_waits();
        let interval = if takes_waits { READ_INTERVAL } else { LIGHT_READ_INTERVAL };
        loop {
            let asked = requests.recv_timeout(interval);
            // A buffer that can't be read once is read the next time; what it lost meanwhile is counted.
            let _ = self.stacks.take(|record| self.work.enter(record));
            self.stacks.begin_reading();
            match asked {
                Ok(Request::Name) => self.name(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= self.due {
                self.due = Instant::now() + INTERVAL;
                if takes_waits {
                    self.follow_the_load();
                }
                self.record();
                if let Some(busy) = &mut self.work.busy {
                    busy.publish_when_due(&mut self.names, &self.work.unwinding);
                }
            }
        }
        self.work.waits.give_up();
        self.record();
        self.name();
    }

    /// Chooses fewer waits where there are many, or where they take long to unwind: each carries its weight.
    fn follow_the_load(&mut self) {
        let cpus = cpus();
        let chosen = self.work.chosen - self.waits_before;
        self.waits_before = self.work.chosen;
        let most = WAITS_PER_S_AND_CPU * cpus;
        let cpu_ns = thread_cpu_ns();
        let cost = (cpu_ns - self.cpu_before_ns) as f64 / (INTERVAL.as_nanos() as f64 * cpus as f64);
        self.cpu_before_ns = cpu_ns;
        let period_ns = self.stacks.period_ns();
        // Within this second the programs have chosen fewer already.
        let is_raised = period_ns > self.period_before_ns;
        // The rest of the cost is that of the samples from the CPUs, whose number is fixed.
        let is_of_waits = chosen > most / 8;
        if (chosen > most && !is_raised) || (cost > COST_MAX && is_of_waits) {
            self.stacks.set_period_ns(period_ns * 2);
        } else if !is_raised && chosen * 5 < most * 2 && (cost < COST_MAX / 2.0 || !is_of_waits) {
            self.stacks.set_period_ns(period_ns / 2);
        }
        self.period_before_ns = self.stacks.period_ns();
    }

    /// Hands over what was sampled since the last time.
    fn record(&mut self) {
        let begin_ns = monotonic_ns();
        let work = &mut self.work;
        work.samples.sort_by_key(|(_, sample)| sample.t_ns);
        self.owner.samples(&self.recorder, std::mem::take(&mut work.samples));
        let waits = work.waits.take_whole(begin_ns, &mut work.table, &mut work.full);
        self.owner.waits(&self.recorder, waits);
        let lost = self.stacks.lost();
        let mut counted = vec![
            ("lost", "not read in time", Kind::Counter, "1", lost.records),
            ("lost", "odd", Kind::Counter, "1", lost.odd),
            ("lost", "too many stacks", Kind::Counter, "1", work.full),
            ("cpu_ns", "", Kind::Counter, "ns", thread_cpu_ns().unsigned_abs()),
        ];
        if self.stacks.sampling().takes_waits() {
            counted.extend([
                ("lost", "no storage", Kind::Counter, "1", lost.storage),
                ("lost", "never came back", Kind::Counter, "1", work.waits.without_user),
                ("waits", "", Kind::Counter, "1", work.chosen),
                ("period_ns", "", Kind::Gauge, "ns", self.stacks.period_ns()),
            ]);
        }
        let value = |(metric, instance, kind, unit, value): (&str, &str, Kind, &str, u64)| {
            let id = self.owner.series(&self.recorder, (metric, instance), kind, unit);
            (id, Value::Int(i64::try_from(value).unwrap_or(i64::MAX)))
        };
        let mut values: Vec<_> = counted.into_iter().map(value).collect();
        values.extend(self.owner.cost(&self.recorder, &self.stacks.cost()));
        let (source, end_ns) = (self.owner.source().to_string(), monotonic_ns());
        self.recorder.reading(Reading { source, begin_ns, end_ns, status: Status::Ok, values });
    }

    /// Names the functions of the stacks that are new.
    fn name(&mut self) {
        let fresh = self.work.table.take_fresh();
        for part in fresh.chunks(STACKS_AT_ONCE) {
            let frames = rows::frames(part, &mut self.names, &self.work.unwinding);
            self.owner.frames(&self.recorder, frames);
        }
    }
}

pub(crate) fn cpus() -> u64 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64)
}

impl Work {
    fn enter(&mut self, record: &StackRecord<'_>) {
        match record.kind {
            StackKind::OnCpu => self.on_cpu(record),
            StackKind::Wait => {
                self.chosen += 1;
                self.servers.insert(record.pid);
                let role = self.role(record);
                self.waits.begin(record, role, kernel_frames(&record.kernel));
            }
            StackKind::Waker => self.waker(record),
            StackKind::Ready => {
                self.chosen += 1;
                self.servers.insert(record.pid);
                let (frames, end) = self.user(record);
                self.waits.whole(record, self.role(record), frames, end);
            }
            StackKind::Past => self.waits.past(record),
            StackKind::Back => {
                let (frames, end) = self.user(record);
                self.waits.enter_return(record.tid, record.wait, &frames, end);
            }
        }
    }

    /// A connection's thread stands for its client: what it does for others than the load does not belong to the load.
    fn role(&self, record: &StackRecord<'_>) -> &'static str {
        let strange_is_load = || self.strange_is_load.load(Ordering::Relaxed);
        match (record.role, record.client) {
            (Role::Connection, Some(Client::Own)) => OBSERVER,
            (Role::Connection, Some(Client::Unknown)) if !strange_is_load() => OTHER_CLIENT,
            (role, _) => role.name(),
        }
    }

    fn on_cpu(&mut self, record: &StackRecord<'_>) {
        if !self.takes_cpu {
            return;
        }
        self.servers.insert(record.pid);
        let mut frames = kernel_frames(&record.kernel);
        let (user, end) = self.user(record);
        frames.extend(user);
        if let (Some(busy), Some(innermost)) = (&mut self.busy, frames.first()) {
            busy.enter(*innermost, record.weight_ns, &self.unwinding);
        }
        let Some(StackId(stack)) = self.table.intern(frames, end) else {
            self.full += 1;
            return;
        };
        let sample = StackSample {
            t_ns: record.t_ns,
            tid: record.tid,
            role: self.role(record).to_string(),
            stack,
            weight_ns: record.weight_ns,
        };
        self.samples.push((record.pid, sample));
    }

    fn waker(&mut self, record: &StackRecord<'_>) {
        if !self.takes_wakers {
            return;
        }
        let of_interrupt = self.interrupts.frames(&record.kernel);
        let mut frames = kernel_frames(&record.kernel);
        if of_interrupt > 0 {
            frames.truncate(of_interrupt);
            let stack = self.table.intern(frames, End::Root);
            self.waits.woken(record.wait, 0, stack);
            return;
        }
        let mut end = End::Root;
        if self.servers.contains(&record.pid) {
            let (user, its_end) = self.user(record);
            frames.extend(user);
            end = its_end;
        }
        let stack = if frames.is_empty() { None } else { self.table.intern(frames, end) };
        self.waits.woken(record.wait, record.tid, stack);
    }

    fn user(&mut self, record: &StackRecord<'_>) -> (Vec<Frame>, End) {
        let from = record.registers;
        if from.stack_pointer == 0 {
            // A thread of the kernel's.
            return (Vec::new(), End::Root);
        }
        let registers = Registers {
            instruction_pointer: from.instruction_pointer,
            stack_pointer: from.stack_pointer,
            frame_pointer: from.frame_pointer,
            link_register: from.link_register,
        };
        let stack = self.unwinding.user(record.pid, registers, record.user);
        (stack.frames, stack.end)
    }
}

/// Addresses within each function: the first is sampled, the others are where a call returns to.
pub fn kernel_frames(addresses: &[u64]) -> Vec<Frame> {
    let within = |(place, address): (usize, &u64)| Frame {
        module: ModuleId::KERNEL,
        address: if place == 0 { *address } else { address.saturating_sub(1) },
    };
    addresses.iter().enumerate().map(within).collect()
}

//! Follows the commands of the server's clients in a thread of its own during a run, and records them.

mod calibration;
mod intake;
mod shape;
mod statement_texts;

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql_async::Opts;
use whyso_clock::{monotonic_ns, thread_cpu_ns};
use whyso_model::COMMANDS_INTERVAL;
use whyso_model::NotMeasured;
use whyso_record::Recorder;
use whyso_record::data::{Kind, Reading, SeriesId, SeriesKey, Status, Value};
use whyso_record::run::RunInfo;
use whyso_stacks::{MappedFunctions, functions_of_process};
use whyso_trace::dispatcher::{Code, is_of_dispatcher};
use whyso_trace::{Dispatcher, NOTHING, Places, SqlTrace, Tracer};

use crate::cost::program_values;

use crate::error::Error;
use crate::literals::Literals;
pub use intake::CommandIntake;

/// Between two readings of what the programs took.
const READ_INTERVAL: Duration = Duration::from_millis(50);
/// Between two hand-overs to the recorder.
const INTERVAL: Duration = COMMANDS_INTERVAL;
/// Requests to the thread that wait, at most.
const REQUESTS_MAX: usize = 4;

/// Whose commands are followed, and what of them is recorded.
#[derive(Clone, Debug)]
pub struct FollowSpec {
    pub literals: Literals,
    /// To ask the server by commands of our own what it counts where.
    pub opts: Opts,
}

enum Request {
    /// The server was started again, as this process.
    Server(u32),
}

/// A thread that follows commands.
pub(crate) struct SqlTracing {
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl SqlTracing {
    /// # Errors
    /// Why the commands of this server can't be followed.
    pub(crate) fn start(
        tracer: &Tracer,
        pid: u32,
        follow: FollowSpec,
        info: &mut RunInfo,
        recorder: &Recorder,
    ) -> Result<SqlTracing, Error> {
        let (file, dispatcher) = dispatcher_of(pid)?;
        let trace = tracer.sql(pid, &file.file, &dispatcher)?;
        let (sender, requests) = sync_channel(REQUESTS_MAX);
        let mut follower = Follower::new(trace, &dispatcher, follow.literals, follow.opts, recorder.clone());
        info.not_measured.extend(follower.calibrate());
        let spawned =
            std::thread::Builder::new().name("sql".to_string()).spawn(move || follower.run(&requests));
        let thread = spawned.map_err(Error::Thread)?;
        Ok(SqlTracing { requests: Some(sender), thread: Some(thread) })
    }

    /// Never waits.
    pub(crate) fn server_pid_changed(&self, pid: u32) {
        if let Some(requests) = &self.requests {
            // Should it be that far behind, the new server's commands are not followed; the log ends there.
            let _ = requests.try_send(Request::Server(pid));
        }
    }
}

impl Drop for SqlTracing {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic there is no reason to lose the recording.
            let _ = thread.join();
        }
    }
}

/// Where a server's process dispatches commands.
fn dispatcher_of(pid: u32) -> Result<(MappedFunctions, Dispatcher), Error> {
    let found = functions_of_process(pid, is_of_dispatcher)?;
    let file = found.ok_or(Error::NoDispatcher)?;
    let code = file.functions.iter().map(|function| Code {
        name: &function.name,
        address: function.address,
        offset: function.offset,
        code: &function.code,
    });
    let dispatcher = Dispatcher::of(&code.collect::<Vec<_>>())?;
    Ok((file, dispatcher))
}

/// What the thread works with.
struct Follower {
    trace: SqlTrace,
    recorder: Recorder,
    intake: CommandIntake,
    probes_ns: Option<f64>,
    /// CPU time of the thread when it began to read.
    cpu_before_ns: i64,
    due: Instant,
    opts: Opts,
}

impl Follower {
    fn new(
        mut trace: SqlTrace,
        dispatcher: &Dispatcher,
        literals: Literals,
        opts: Opts,
        recorder: Recorder,
    ) -> Follower {
        let probes_ns = trace.probes_cost_ns(dispatcher).ok();
        let due = Instant::now() + INTERVAL;
        Follower {
            trace,
            recorder,
            intake: CommandIntake::new(literals),
            probes_ns,
            cpu_before_ns: 0,
            due,
            opts,
        }
    }

    /// Finds out where the server keeps its counts. Returns what is unknown of commands, and why.
    fn calibrate(&mut self) -> Vec<NotMeasured> {
        let intake = &mut self.intake;
        let found = calibration::calibrate(&mut self.trace, &self.opts, |command| intake.enter(command));
        let (places, missing) = found.unwrap_or_else(|why| {
            (Places::default(), vec![format!("their rows, errors and connections: {why}")])
        });
        self.trace.set_places(&places);
        missing.into_iter().map(NotMeasured::commands).collect()
    }

    fn run(&mut self, requests: &Receiver<Request>) {
        self.cpu_before_ns = thread_cpu_ns();
        let mut is_behind = false;
        loop {
            let wait = if is_behind { Duration::ZERO } else { READ_INTERVAL };
            let request = requests.recv_timeout(wait);
            // A buffer that can't be read once is read the next time; what it lost meanwhile is counted.
            is_behind = self.trace.take(|command| self.intake.enter(command)).unwrap_or(false);
            match request {
                Ok(Request::Server(pid)) => self.follow(pid),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= self.due {
                self.due = Instant::now() + INTERVAL;
                self.record();
            }
        }
        self.intake.give_up_unknown();
        self.record();
    }

    fn follow(&mut self, pid: u32) {
        // Where the new process can't be followed, the log ends here.
        self.intake.server_restarted();
        if let Ok((file, dispatcher)) = dispatcher_of(pid) {
            self.trace.set_places(&Places::default());
            let _ = self.trace.follow(pid, &file.file, &dispatcher);
            // It may be another build now.
            self.calibrate();
        }
    }

    /// Hands over what ended since the last time.
    fn record(&mut self) {
        let begin_ns = monotonic_ns();
        self.intake.hand_over(&self.recorder);
        let lost = self.trace.lost();
        let mut values = vec![
            self.value("commands", "", Kind::Counter, "1", to_value(self.intake.followed)),
            self.value("lost", "not read in time", Kind::Counter, "1", to_value(lost.records)),
            self.value("lost", "no storage", Kind::Counter, "1", to_value(lost.storage)),
            self.value("lost", "no end", Kind::Counter, "1", to_value(lost.ends)),
            self.value("lost", "odd", Kind::Counter, "1", to_value(lost.odd)),
            self.value(
                "lost",
                "too many statements",
                Kind::Counter,
                "1",
                to_value(self.intake.statements_lost()),
            ),
            self.value("cpu_ns", "", Kind::Counter, "ns", Value::Int(thread_cpu_ns() - self.cpu_before_ns)),
        ];
        if let Some(ns) = self.probes_ns {
            values.push(self.value("probes_ns", "", Kind::Gauge, "ns", Value::Float(ns)));
        }
        // Without the one that only ran when the probes themselves were measured.
        let costs: Vec<_> = self.trace.cost().into_iter().filter(|cost| cost.program != NOTHING).collect();
        values.extend(program_values(&self.recorder, "sql", &costs));
        let (source, end_ns) = ("sql".to_string(), monotonic_ns());
        self.recorder.reading(Reading { source, begin_ns, end_ns, status: Status::Ok, values });
    }

    fn value(&self, metric: &str, instance: &str, kind: Kind, unit: &str, value: Value) -> (SeriesId, Value) {
        let id = self.recorder.series(&SeriesKey {
            host: "client".to_string(),
            source: "sql".to_string(),
            metric: metric.to_string(),
            instance: instance.to_string(),
            kind,
            unit: unit.to_string(),
        });
        (id, value)
    }
}

fn to_value(count: u64) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

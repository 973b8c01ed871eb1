//! Follows the commands of the server's clients in a thread of its own during a run, and records them.

mod calibration;
mod shape;
mod statement_texts;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mysql_async::Opts;
use whyso_clock::{monotonic_ns, thread_cpu_ns};
use whyso_model::COMMANDS_INTERVAL;
use whyso_model::NotMeasured;
use whyso_record::Recorder;
use whyso_record::data::{ClientCommand, CommandTimes, Kind, Reading, SeriesId, SeriesKey, Status, Value};
use whyso_record::run::RunInfo;
use whyso_stacks::{MappedFunctions, functions_of_process};
use whyso_trace::dispatcher::{Code, is_of_dispatcher};
use whyso_trace::{Client, Command, Dispatcher, NOTHING, Places, SqlTrace, Tracer, command_name};

use crate::cost::program_values;

use crate::error::Error;
use crate::literals::Literals;
use statement_texts::StatementTexts;

/// Between two readings of what the programs took.
const READ_INTERVAL: Duration = Duration::from_millis(50);
/// Between two hand-overs to the recorder.
const INTERVAL: Duration = COMMANDS_INTERVAL;
/// A command that began later was sent when the programs were attached already.
const UNSEEN_TIME_MAX: Duration = Duration::from_secs(1);
/// Commands from before then are not held any longer until their sender is known: the samplers send one every five seconds.
const SENDERS_TIME_MAX: Duration = Duration::from_secs(6);
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
        let texts = StatementTexts::new(follow.literals);
        let mut follower = Follower::new(trace, &dispatcher, texts, follow.opts, recorder.clone());
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
    work: Work,
    probes_ns: Option<f64>,
    /// CPU time of the thread when it began to read.
    cpu_before_ns: i64,
    due: Instant,
    opts: Opts,
}

/// Everything except the programs, so that it can be worked on while they are read.
struct Work {
    texts: StatementTexts,
    commands: Vec<ClientCommand>,
    /// Commands whose sender is not known, by connection: they began when the programs had just been attached. The next command there
    /// shows who sent them.
    unknown: HashMap<u64, Vec<ClientCommand>>,
    since: Instant,
    followed: u64,
}

impl Follower {
    fn new(
        mut trace: SqlTrace,
        dispatcher: &Dispatcher,
        texts: StatementTexts,
        opts: Opts,
        recorder: Recorder,
    ) -> Follower {
        let probes_ns = trace.probes_cost_ns(dispatcher).ok();
        let work =
            Work { texts, commands: Vec::new(), unknown: HashMap::new(), since: Instant::now(), followed: 0 };
        let due = Instant::now() + INTERVAL;
        Follower { trace, recorder, work, probes_ns, cpu_before_ns: 0, due, opts }
    }

    /// Finds out where the server keeps its counts. Returns what is unknown of commands, and why.
    fn calibrate(&mut self) -> Vec<NotMeasured> {
        let work = &mut self.work;
        let found = calibration::calibrate(&mut self.trace, &self.opts, |command| work.enter(command));
        let (places, missing) = found.unwrap_or_else(|why| {
            (Places::default(), vec![format!("their rows, errors and connections: {why}")])
        });
        self.trace.set_places(&places);
        missing.into_iter().map(NotMeasured::commands).collect()
    }

    fn run(&mut self, requests: &Receiver<Request>) {
        self.cpu_before_ns = thread_cpu_ns();
        loop {
            let request = requests.recv_timeout(READ_INTERVAL);
            // A buffer that can't be read once is read the next time; what it lost meanwhile is counted.
            let _ = self.trace.take(|command| self.work.enter(command));
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
        self.work.give_up_unknown();
        self.record();
    }

    fn follow(&mut self, pid: u32) {
        self.work.texts.forget_connections();
        // Where the new process can't be followed, the log ends here.
        self.work.since = Instant::now();
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
        let work = &mut self.work;
        if work.since.elapsed() > SENDERS_TIME_MAX {
            work.give_up_unknown();
        }
        work.commands.sort_by_key(|command| command.t_ns);
        self.recorder.statements(&work.texts.take_fresh());
        self.recorder.commands(&std::mem::take(&mut work.commands));
        let lost = self.trace.lost();
        let mut values = vec![
            self.value("commands", "", Kind::Counter, "1", to_value(self.work.followed)),
            self.value("lost", "not read in time", Kind::Counter, "1", to_value(lost.records)),
            self.value("lost", "no storage", Kind::Counter, "1", to_value(lost.storage)),
            self.value("lost", "no end", Kind::Counter, "1", to_value(lost.ends)),
            self.value("lost", "odd", Kind::Counter, "1", to_value(lost.odd)),
            self.value("lost", "too many statements", Kind::Counter, "1", to_value(self.work.texts.full)),
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

impl Work {
    fn enter(&mut self, command: &Command<'_>) {
        self.followed += 1;
        let texts = self.texts.of(command);
        let times = command.times.map(|times| CommandTimes {
            cpu_ns: times.cpu_ns,
            runqueue_ns: times.runqueue_ns,
            lock_ns: times.lock_ns,
            io_ns: times.io_ns,
        });
        let entered = ClientCommand {
            t_ns: command.begin_ns,
            tid: command.tid,
            client: Cow::Borrowed(command.client.name()),
            command: command_name(command.number),
            response_ns: command.end_ns.saturating_sub(command.begin_ns).max(0).unsigned_abs(),
            times,
            rows_sent: command.counts.rows_sent,
            rows_examined: command.counts.rows_examined,
            rows_affected: command.counts.rows_affected,
            error: command.counts.error,
            connection: command.counts.connection_id,
            length: command.length,
            prepared: texts.prepared,
            statement: texts.statement,
            text: texts.text,
        };
        if command.client != Client::Unknown {
            let before = self.unknown.remove(&command.connection).into_iter().flatten();
            self.commands
                .extend(before.map(|command| ClientCommand { client: entered.client.clone(), ..command }));
        } else if self.since.elapsed() < UNSEEN_TIME_MAX {
            self.unknown.entry(command.connection).or_default().push(entered);
            return;
        }
        self.commands.push(entered);
    }

    /// Who sent what is left stays unknown.
    fn give_up_unknown(&mut self) {
        self.commands.extend(std::mem::take(&mut self.unknown).into_values().flatten());
    }
}

fn to_value(count: u64) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

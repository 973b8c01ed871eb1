//! Records a server that something else loads. Nothing is written to it, and it needs no schema of ours.

use std::io::BufRead;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use whyso_clock::monotonic_ns;
use whyso_record::run::{AS_IT_CAME, Ended, Latency, Level, LevelResult, Purpose, Window};
use whyso_server::Dsn;
use whyso_trace::{Reading, Role, State, ThreadSums};
use whyso_watch::Watcher;

use crate::counting::Sight;
use crate::held_command::spawn_held;
use crate::prepare::AskPassword;
use crate::progress::{Listener, News, Stop};
use crate::recording::{Recording, record_event, watch_spec};
use crate::run::{GOODBYE_TIME_MAX, Outcome, runtime};
use crate::sql_trace::Literals;
use crate::tracing::{ToTrace, Tracing};
use crate::{Error, facts};

/// How often it is looked whether a window is to begin or to end.
const LOOK: Duration = Duration::from_millis(20);
/// A command that was told to end is ended by force after this.
const COMMAND_END_TIME_MAX: Duration = Duration::from_secs(10);
/// Read by every MySQL and MariaDB, and holds nobody's data.
const NEUTRAL_SCHEMA: &str = "information_schema";
const NS_PER_MS: f64 = 1e6;

/// What is recorded, and for how long.
#[derive(Clone, Debug)]
pub struct RecordPlan {
    pub dsn: String,
    /// Length of the window; `None`: until the command ends, or until Ctrl-C.
    pub length: Option<Duration>,
    /// A command that loads the server, with its arguments; empty: something else does.
    pub command: Vec<String>,
    /// Windows begin and end when the user says so, by Enter or by SIGUSR1.
    pub toggle: bool,
    pub interval: Duration,
    pub trace: bool,
    /// Take stacks of the server's threads.
    pub stacks: bool,
    /// Follow the commands of the server's clients.
    pub sql: Option<Literals>,
    /// Folder that holds the recordings.
    pub out: PathBuf,
    /// The command line, secrets masked.
    pub command_line: Vec<String>,
}

impl RecordPlan {
    fn check(&self) -> Result<(), Error> {
        if self.toggle && !self.command.is_empty() {
            return Err(Error::Plan(
                "--toggle can't be given with a command: the command's own time is the window".to_string(),
            ));
        }
        if self.length.is_some_and(|length| length < Duration::from_secs(1)) {
            return Err(Error::Plan("--for must be at least one second".to_string()));
        }
        Ok(())
    }
}

/// Records until the plan's end, and gives where.
///
/// # Errors
/// The server can't be reached, the command can't be started, or no window was recorded.
pub fn record(
    plan: &RecordPlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Outcome, Error> {
    plan.check()?;
    let runtime = runtime()?;
    let mut dsn = Dsn::resolve(&plan.dsn)?;
    if !dsn.schema_given {
        dsn.schema = NEUTRAL_SCHEMA.to_string();
    }
    listener.hear(News::Step(&format!("connecting to {}", dsn.endpoint())));
    let mut prompt = |question: &str| {
        ask_password(question)
            .ok_or_else(|| std::io::Error::other("there is no terminal to ask at: set MYSQL_PWD"))
    };
    runtime.block_on(async { dsn.log_in(&mut prompt).await?.disconnect().await.map_err(gone) })?;
    let server = facts::server_now(&dsn, false, None, &runtime)?;
    let spec = json!({
        "workload": plan.command.first().map_or("recorded", String::as_str),
        "seconds": plan.length.map(|length| length.as_secs_f64()),
        "interval_ms": plan.interval.as_millis() as u64,
        "server_cpus": server.cpus,
        "client_cpus": facts::allowed_cpus(),
        "recorded": true,
    });
    let mut info = facts::new_info(&plan.command_line, spec, server, None);
    info.not_measured.push(
        "response times as clients see them: the load is not whyso's own, so that only what the kernel saw of its \
         requests is known, and no percentiles"
            .to_string(),
    );
    let pid = info.server.pid;
    let mut recording = Recording::begin(&plan.out, info)?;
    let watcher = Watcher::start(watch_spec(&dsn, pid, None, plan.interval), recording.recorder.clone())?;
    let wanted = ToTrace {
        trace: plan.trace,
        stacks: plan.stacks,
        sql: plan.sql,
        load_is_here: !plan.command.is_empty(),
    };
    let tracing = Tracing::begin(&mut recording, wanted);
    let attended = Attended { plan, listener, stop, dsn, runtime, tracing };
    attended.go(recording, watcher)
}

fn gone(error: mysql_async::Error) -> Error {
    Error::Failed(format!("the server closed the connection: {error}"))
}

/// A recording that goes on.
struct Attended<'a> {
    plan: &'a RecordPlan,
    listener: &'a dyn Listener,
    stop: &'a Stop,
    dsn: Dsn,
    runtime: Runtime,
    tracing: Option<Tracing>,
}

/// One edge of a window.
struct Edge {
    at_ns: i64,
    read: Option<Reading>,
    questions: u64,
}

impl Attended<'_> {
    fn go(mut self, mut recording: Recording, watcher: Watcher) -> Result<Outcome, Error> {
        let outcome = if self.plan.toggle { self.toggled(&mut recording) } else { self.once(&mut recording) };
        let failure = outcome.err().map(|error| error.to_string());
        self.tracing = None;
        let variables = facts::variables_now(&self.dsn, &self.runtime);
        // Ctrl-C is how a recording without an end is ended: it is complete all the same.
        let interrupted =
            self.stop.is_asked() && (self.plan.length.is_some() || !self.plan.command.is_empty());
        let finished = recording.finish(watcher, variables, failure, interrupted);
        self.runtime.shutdown_timeout(GOODBYE_TIME_MAX);
        finished
    }

    /// One window: the command's time, or the time that was asked for.
    fn once(&self, recording: &mut Recording) -> Result<(), Error> {
        let begin = self.edges().take()?;
        record_event(&recording.recorder, "level_begin", "recording".to_string());
        let began = Instant::now();
        let mut failed = None;
        if self.plan.command.is_empty() {
            let what = match self.plan.length {
                Some(length) => format!("recording for {} s", length.as_secs_f64()),
                None => "recording until Ctrl-C".to_string(),
            };
            self.listener.hear(News::Step(&what));
            while !self.stop.is_asked() && self.plan.length.is_none_or(|length| began.elapsed() < length) {
                std::thread::sleep(LOOK);
            }
        } else {
            failed = self.command(began)?;
        }
        let end = self.edges().take()?;
        record_event(&recording.recorder, "level_end", "recording".to_string());
        let ended = match &failed {
            None => Ended::Complete { at_ns: end.at_ns },
            Some(why) => Ended::CutShort { at_ns: end.at_ns, why: why.clone() },
        };
        let problem = recording.level(self.level(0, &begin, &end, ended));
        match failed.or(problem) {
            Some(why) => Err(Error::Failed(why)),
            None => Ok(()),
        }
    }

    /// Runs the command to its end. Gives why it failed, where it did.
    fn command(&self, began: Instant) -> Result<Option<String>, Error> {
        let [program, arguments @ ..] = &self.plan.command[..] else { return Ok(None) };
        self.listener.hear(News::Step(&format!("running {program}")));
        let mut command = Command::new(program);
        // What it prints is not mixed with the table and the JSON that follow.
        command.args(arguments).stdin(Stdio::null()).stdout(std::io::stderr()).env_remove("MYSQL_PWD");
        // Its first connections are to be seen, too.
        let spawned = spawn_held(command, |pid| {
            if let Some(tracing) = &self.tracing {
                tracing.generator(pid);
            }
        });
        let mut child =
            spawned.map_err(|error| Error::Failed(format!("{program} can't be started: {error}")))?;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(None),
                Ok(Some(status)) => return Ok(Some(format!("{program} failed ({status})"))),
                Ok(None) => {}
                Err(error) => return Err(Error::Failed(format!("{program} can't be waited for: {error}"))),
            }
            let over = self.plan.length.is_some_and(|length| began.elapsed() >= length);
            if over || self.stop.is_asked() {
                end_command(&mut child);
                return Ok((!over).then(|| "interrupted by Ctrl-C".to_string()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// A window each time that the user says so. Its edges are taken in a thread of its own, at once: what has to be written at
    /// a window's end takes its time.
    fn toggled(&self, recording: &mut Recording) -> Result<(), Error> {
        let toggles = Toggles::listen(&self.runtime);
        self.listener.hear(News::Step(&format!(
            "press Enter, or send SIGUSR1 to process {}, to begin and to end a window; Ctrl-C ends the recording",
            std::process::id()
        )));
        let ends_at = self.plan.length.map(|length| Instant::now() + length);
        let (stop, edges) = (self.stop, self.edges());
        let has_failed = AtomicBool::new(false);
        let (take, taken) = channel();
        std::thread::scope(|scope| {
            let has_failed = &has_failed;
            scope.spawn(move || {
                while !has_failed.load(Ordering::Relaxed) {
                    let over = stop.is_asked() || ends_at.is_some_and(|at| Instant::now() >= at);
                    if over || toggles.asked() {
                        let sent = take.send((edges.take(), over));
                        if over || sent.is_err() {
                            return;
                        }
                    }
                    std::thread::sleep(LOOK);
                }
            });
            let windows = self.windows(recording, taken);
            has_failed.store(windows.is_err(), Ordering::Relaxed);
            windows
        })
    }

    /// Records the windows between these edges, each with whether it is the last.
    fn windows(
        &self,
        recording: &mut Recording,
        edges: Receiver<(Result<Edge, Error>, bool)>,
    ) -> Result<(), Error> {
        let mut begin: Option<Edge> = None;
        for (edge, over) in edges {
            let edge = edge?;
            match begin.take() {
                None if over => {}
                None => {
                    record_event(&recording.recorder, "level_begin", "recording".to_string());
                    self.listener.hear(News::Step("a window begins"));
                    begin = Some(edge);
                }
                Some(first) => self.window(recording, &first, &edge)?,
            }
        }
        Ok(())
    }

    fn window(&self, recording: &mut Recording, first: &Edge, last: &Edge) -> Result<(), Error> {
        record_event(&recording.recorder, "level_end", "recording".to_string());
        let index = recording.info.levels.len() as u32;
        let level = self.level(index, first, last, Ended::Complete { at_ns: last.at_ns });
        self.listener.hear(News::Step(&format!(
            "the window ends: {} requests in {:.1} s",
            level.result.queries, level.result.seconds
        )));
        match recording.level(level) {
            Some(problem) => Err(Error::Failed(problem)),
            None => Ok(()),
        }
    }

    fn edges(&self) -> Edges<'_> {
        Edges { tracing: self.tracing.as_ref(), dsn: &self.dsn, runtime: &self.runtime }
    }

    /// What the kernel saw of the requests between two edges, as a level's result: a request stands for a transaction.
    fn level(&self, index: u32, begin: &Edge, end: &Edge, ended: Ended) -> Level {
        let window = Window { begin_ns: begin.at_ns, end_ns: end.at_ns };
        let seconds = window.seconds().max(1e-9);
        let mut result = LevelResult {
            seconds,
            workload: self.plan.command.first().map_or_else(|| "recorded".to_string(), Clone::clone),
            pacing: AS_IT_CAME.to_string(),
            ..LevelResult::default()
        };
        let mut users = 0;
        match (&begin.read, &end.read) {
            (Some(from), Some(to)) if self.edges().sees_requests() => {
                result.transactions = to.server.requests - from.server.requests;
                result.latency_ms = mean_of(from, to);
                users = at_work(&from.threads, &to.threads);
            }
            (Some(from), Some(to)) => {
                let asked = end.questions.saturating_sub(begin.questions);
                (result.transactions, result.latency_ms) = mean_without_requests(from, to, asked);
                users = ran(&from.threads, &to.threads);
            }
            _ => result.transactions = end.questions.saturating_sub(begin.questions),
        }
        result.service_ms = result.latency_ms;
        result.queries = result.transactions;
        result.transactions_per_s = result.transactions as f64 / seconds;
        result.queries_per_s = result.transactions_per_s;
        let no_warmup = Window { begin_ns: begin.at_ns, end_ns: begin.at_ns };
        Level {
            index,
            users,
            purpose: Purpose::Sweep,
            warmup: no_warmup,
            warmup_steady: false,
            window,
            result,
            ended,
        }
    }
}

/// The mean time of a request: from when it was in the server's socket to when its answer was in the client's. Where the
/// generator was traced too, what it did with the answer until its next request is in it: the whole of its cycle.
fn mean_of(from: &Reading, to: &Reading) -> Latency {
    let requests = to.server.requests - from.server.requests;
    let answers = to.client.answers - from.client.answers;
    let mean = |ns: u64, count: u64| if count == 0 { 0.0 } else { ns as f64 / count as f64 / NS_PER_MS };
    let served_ns =
        to.server.request_ns - from.server.request_ns + to.server.transit_ns - from.server.transit_ns;
    let (was, is) = (&from.client, &to.client);
    let cycle_ns = (is.wire_ns - was.wire_ns) + (is.delay_ns - was.delay_ns) + (is.held_ns - was.held_ns);
    // A generator of which only a part of the connections was seen tells nothing of the others.
    let seen = answers > 0 && answers * 10 >= requests * 9;
    Latency {
        mean: if seen { mean(cycle_ns, answers) } else { mean(served_ns, requests) },
        ..Latency::default()
    }
}

/// Requests and their mean time where the tracer does not see the server's side of them: as the generator had them where
/// that was traced, else as many as the server counted, and as long as samples of its connections' threads make them.
fn mean_without_requests(from: &Reading, to: &Reading, asked: u64) -> (u64, Latency) {
    let answers = to.client.answers - from.client.answers;
    if answers > 0 {
        return (answers, mean_of(from, to));
    }
    let served_ns = to.server.request_ns - from.server.request_ns;
    let mean = if asked == 0 { 0.0 } else { served_ns as f64 / asked as f64 / NS_PER_MS };
    (asked, Latency { mean, ..Latency::default() })
}

/// Threads of connections that ran between two readings.
fn ran(from: &[ThreadSums], to: &[ThreadSums]) -> u32 {
    let cpu_ns = |thread: &ThreadSums| thread.states[State::Cpu as usize];
    let before = |thread: &ThreadSums| from.iter().find(|one| one.tid == thread.tid).map_or(0, cpu_ns);
    let of_connections = to.iter().filter(|thread| thread.role == Role::Connection);
    of_connections.filter(|thread| cpu_ns(thread) > before(thread)).count() as u32
}

/// Threads that answered a request between two readings: as many connections were at work, where each has a thread.
fn at_work(from: &[ThreadSums], to: &[ThreadSums]) -> u32 {
    let before = |thread: &ThreadSums| {
        from.iter()
            .find(|one| one.tid == thread.tid && one.born_ns == thread.born_ns)
            .map_or(0, |one| one.requests)
    };
    // One request alone is a login, of our own samplers too.
    to.iter().filter(|thread| thread.requests > before(thread) + 1).count() as u32
}

fn end_command(child: &mut Child) {
    if let Some(pid) = rustix::process::Pid::from_raw(child.id() as i32) {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let asked = Instant::now();
    while asked.elapsed() < COMMAND_END_TIME_MAX {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(LOOK);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// What takes a window's edges.
#[derive(Clone, Copy)]
struct Edges<'a> {
    tracing: Option<&'a Tracing>,
    dsn: &'a Dsn,
    runtime: &'a Runtime,
}

impl Edges<'_> {
    fn sees_requests(self) -> bool {
        self.tracing.is_some_and(|tracing| tracing.sight() == Sight::Requests)
    }

    fn take(self) -> Result<Edge, Error> {
        let read = self.tracing.and_then(Tracing::edge);
        let questions = if self.sees_requests() { 0 } else { self.questions()? };
        let at_ns = read.as_ref().map_or_else(monotonic_ns, |read| read.at_ns);
        Ok(Edge { at_ns, read, questions })
    }

    /// Statements that the server has executed since it started.
    fn questions(self) -> Result<u64, Error> {
        use mysql_async::prelude::Queryable;
        self.runtime.block_on(async {
            let asked = tokio::time::timeout(GOODBYE_TIME_MAX, async {
                let mut conn = self.dsn.connect().await?;
                let row: Option<(String, u64)> =
                    conn.query_first("SHOW GLOBAL STATUS LIKE 'Questions'").await.map_err(gone)?;
                conn.disconnect().await.map_err(gone)?;
                Ok(row.map_or(0, |(_, value)| value))
            });
            asked
                .await
                .unwrap_or_else(|_| Err(Error::Failed("the server does not answer any more".to_string())))
        })
    }
}

/// What the user says while it is recorded.
struct Toggles {
    said: Receiver<()>,
}

impl Toggles {
    fn listen(runtime: &Runtime) -> Toggles {
        let (say, said) = channel();
        let by_key = say.clone();
        // It ends with the process: a line that never comes can't be waited for with a bound.
        let _ = std::thread::Builder::new().name("keys".to_string()).spawn(move || {
            for line in std::io::stdin().lock().lines() {
                if line.is_err() || by_key.send(()).is_err() {
                    break;
                }
            }
        });
        runtime.spawn(async move {
            let kind = tokio::signal::unix::SignalKind::user_defined1();
            let Ok(mut signals) = tokio::signal::unix::signal(kind) else { return };
            while signals.recv().await.is_some() && say.send(()).is_ok() {}
        });
        Toggles { said }
    }

    fn asked(&self) -> bool {
        match self.said.try_recv() {
            Ok(()) => true,
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => false,
        }
    }
}

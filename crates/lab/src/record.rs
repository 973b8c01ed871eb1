//! Records a server that something else loads, or processes of any kind. Nothing is written to a server, and it needs no
//! schema of ours.

mod level;
mod toggles;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;
use whyso_clock::monotonic_ns;
use whyso_record::run::{Ended, Level, ServerFacts};
use whyso_server::knobs::Undo;
use whyso_server::{Dsn, schema};
use whyso_trace::Reading;
use whyso_watch::{WatchSpec, Watcher};

use crate::counting::{Counting, Sight};
use crate::held_command::spawn_held;
use crate::leave::put_back_on;
use crate::prepare::AskPassword;
use crate::processes::Processes;
use crate::progress::{Listener, News, Stop};
use crate::recording::{Recording, SLOW_INTERVAL, record_event, watch_spec};
use crate::run::{GOODBYE_TIME_MAX, Outcome, runtime};
use crate::sql_trace::{Literals, ToFollow};
use crate::tracing::{ToTrace, Tracing};
use crate::{Error, facts, login, pfs_setup};
use level::{Seen, level};
use toggles::Toggles;

/// How often it is looked whether a window is to begin or to end.
const LOOK: Duration = Duration::from_millis(20);
/// A command that was told to end is ended by force after this.
const COMMAND_END_TIME_MAX: Duration = Duration::from_secs(10);

/// What is recorded.
#[derive(Clone, Debug)]
pub enum Recorded {
    /// A server, by its DSN.
    Server(String),
    /// Processes of any kind, by a number, a name, or a part of one.
    Processes(String),
}

/// What is recorded, and for how long.
#[derive(Clone, Debug)]
pub struct RecordPlan {
    pub of: Recorded,
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
    /// Sources of the user's own.
    pub add_ons: Vec<whyso_watch::AddOn>,
    /// Where samples go beside the recording.
    pub relay: whyso_relay::Wanted,
    /// What the Performance Schema is to count; `None`: as the server has it, and nothing is changed.
    pub pfs: Option<whyso_server::knobs::pfs::Wanted>,
    /// Folder that holds the recordings.
    pub out: PathBuf,
    /// Size of the recording beyond which its oldest detail is removed.
    pub bytes_max: Option<u64>,
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
        if let Some(wanted) = &self.pfs {
            wanted.check()?;
            if matches!(self.of, Recorded::Processes(_)) {
                return Err(Error::Plan("--pfs is for a server: give its --dsn".to_string()));
            }
        }
        if !self.trace && matches!(self.of, Recorded::Processes(_)) {
            return Err(Error::Plan(
                "of a process all is told by the tracer: leave --no-trace away".to_string(),
            ));
        }
        Ok(())
    }

    /// What the load is called: something else drives it.
    fn workload(&self) -> &str {
        self.command.first().map_or("recorded", String::as_str)
    }

    fn spec(&self, server_cpus: &[u32]) -> serde_json::Value {
        json!({
            "workload": self.workload(),
            "seconds": self.length.map(|length| length.as_secs_f64()),
            "interval_ms": self.interval.as_millis() as u64,
            "server_cpus": server_cpus,
            "client_cpus": facts::allowed_cpus(),
            "recorded": true,
        })
    }

    /// `dsn`: the server's; of processes there is none.
    fn to_trace(&self, dsn: Option<&Dsn>) -> ToTrace {
        let load_is_here = !self.command.is_empty();
        let sql = self.sql.zip(dsn).map(|(literals, dsn)| ToFollow { literals, opts: dsn.opts() });
        ToTrace { trace: self.trace, stacks: self.stacks, sql, load_is_here }
    }
}

/// Records until the plan's end, and gives where.
///
/// # Errors
/// The server can't be reached, there is no such process or it may not be watched, the command can't be started, or no window was
/// recorded.
pub fn record(
    plan: &RecordPlan,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Outcome, Error> {
    plan.check()?;
    match &plan.of {
        Recorded::Server(dsn) => record_server(plan, dsn, listener, stop, ask_password),
        Recorded::Processes(asked) => record_processes(plan, asked, listener, stop),
    }
}

/// Processes of any kind: there are no requests, and there is nobody to ask.
fn record_processes(
    plan: &RecordPlan,
    asked: &str,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Outcome, Error> {
    let processes = Processes::find(asked)?;
    let (counting, lost) = Counting::of_processes(&processes, plan.stacks).map_err(Error::Failed)?;
    let runtime = runtime()?;
    let pid = processes.pids.first().copied();
    let server = ServerFacts { endpoint: processes.words.clone(), pid, ..ServerFacts::default() };
    let mut spec = plan.spec(&facts::allowed_cpus());
    spec["process"] = json!(processes.words);
    let mut info = facts::new_info(&plan.command_line, spec, server, None);
    info.not_measured = vec![facts::COUNTERS_ALONE.to_string()];
    info.not_measured.extend(lost);
    if processes.pids.len() > 1 {
        info.not_measured.push(format!(
            "memory, page faults and open files of the other {} processes: the kernel's own counters were read of process {} alone",
            processes.pids.len() - 1,
            processes.pids[0]
        ));
    }
    let watched = WatchSpec {
        interval: plan.interval,
        slow_interval: SLOW_INTERVAL.max(plan.interval),
        server_pid: pid,
        server_host: "server".to_string(),
        generator_pid: std::process::id(),
        add_ons: plan.add_ons.clone(),
        ..WatchSpec::default()
    };
    let mut recording = Recording::begin_within(&plan.out, info, plan.bytes_max)?;
    recording.relay(&plan.relay)?;
    let watcher = Watcher::start(watched, recording.recorder.clone())?;
    let tracing = Tracing::with(counting, &mut recording, plan.to_trace(None)).map_err(Error::Failed)?;
    let attended = Attended { plan, listener, stop, dsn: None, runtime, tracing: Some(tracing) };
    attended.go(recording, watcher)
}

fn record_server(
    plan: &RecordPlan,
    dsn: &str,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Outcome, Error> {
    let runtime = runtime()?;
    let mut dsn = login::neutral(dsn)?;
    listener.hear(News::Step(&format!("connecting to {}", dsn.endpoint())));
    let (mut undo, performance_schema) = runtime.block_on(set_up(plan, &mut dsn, listener, ask_password))?;
    let recorded = record_set_up(plan, &dsn, performance_schema, runtime, listener, stop);
    if let Some(undo) = &mut undo {
        listener.hear(News::Step("putting everything back"));
        crate::run::runtime()?.block_on(put_back_on(&dsn, undo, listener));
    }
    recorded
}

/// Logs in, and sets what the Performance Schema is to count where that was asked for.
async fn set_up(
    plan: &RecordPlan,
    dsn: &mut Dsn,
    listener: &dyn Listener,
    ask_password: &AskPassword,
) -> Result<(Option<Undo>, serde_json::Value), Error> {
    let mut conn = login::log_in(dsn, ask_password).await?;
    if dsn.schema_given && !schema::exists(&mut conn, &dsn.schema).await? {
        return Err(login::no_such_schema(dsn, "a recording makes none"));
    }
    for undone in pfs_setup::undo_pending(&mut conn).await? {
        listener
            .hear(News::Warning(&format!("an earlier run ended without putting a setting back; {undone}")));
    }
    let (mut undo, mut told) = (None, serde_json::Value::Null);
    if let Some(wanted) = &plan.pfs {
        let mut journal = Undo::open(&mut conn).await?;
        told = pfs_setup::set_up(wanted, &mut conn, &mut journal).await?;
        undo = Some(journal);
    }
    conn.disconnect().await.map_err(gone)?;
    Ok((undo, told))
}

/// Records a server that is set up.
fn record_set_up(
    plan: &RecordPlan,
    dsn: &Dsn,
    performance_schema: serde_json::Value,
    runtime: Runtime,
    listener: &dyn Listener,
    stop: &Stop,
) -> Result<Outcome, Error> {
    let server = facts::server_now(dsn, false, None, &runtime)?;
    let mut spec = plan.spec(&server.cpus);
    spec["performance_schema"] = match performance_schema {
        serde_json::Value::Null => pfs_setup::as_it_is(dsn, &runtime),
        asked => asked,
    };
    let mut info = facts::new_info(&plan.command_line, spec, server, None);
    info.not_measured.push(
        "response times as clients see them: the load is not whyso's own, so that only what the kernel saw of its \
         requests is known, and no percentiles"
            .to_string(),
    );
    let pid = info.server.pid;
    let mut recording = Recording::begin_within(&plan.out, info, plan.bytes_max)?;
    recording.relay(&plan.relay)?;
    let mut watched = watch_spec(dsn, pid, None, plan.interval);
    watched.add_ons.clone_from(&plan.add_ons);
    let watcher = Watcher::start(watched, recording.recorder.clone())?;
    let tracing = Tracing::begin(&mut recording, plan.to_trace(Some(dsn)));
    let attended = Attended { plan, listener, stop, dsn: Some(dsn.clone()), runtime, tracing };
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
    /// `None`: processes that nobody can ask.
    dsn: Option<Dsn>,
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
        let variables = self.dsn.as_ref().and_then(|dsn| facts::variables_now(dsn, &self.runtime));
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
                self.wait_a_look();
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
            self.wait_a_look();
        }
    }

    fn wait_a_look(&self) {
        std::thread::sleep(LOOK);
        self.tell_functions();
    }

    fn tell_functions(&self) {
        if let Some(busy) = self.tracing.as_ref().and_then(Tracing::busy_functions) {
            self.listener.hear(News::Functions(&busy));
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
        loop {
            let (edge, over) = match edges.recv_timeout(LOOK) {
                Ok(taken) => taken,
                Err(RecvTimeoutError::Timeout) => {
                    self.tell_functions();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
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
    }

    fn window(&self, recording: &mut Recording, first: &Edge, last: &Edge) -> Result<(), Error> {
        record_event(&recording.recorder, "level_end", "recording".to_string());
        let index = recording.info.levels.len() as u32;
        let level = self.level(index, first, last, Ended::Complete { at_ns: last.at_ns });
        self.listener.hear(News::Step(&format!(
            "the window ends: {:.1} s{}",
            level.result.seconds,
            if self.dsn.is_some() { format!(", {} requests", level.result.queries) } else { String::new() }
        )));
        match recording.level(level) {
            Some(problem) => Err(Error::Failed(problem)),
            None => Ok(()),
        }
    }

    fn edges(&self) -> Edges<'_> {
        Edges { tracing: self.tracing.as_ref(), dsn: self.dsn.as_ref(), runtime: &self.runtime }
    }

    fn level(&self, index: u32, begin: &Edge, end: &Edge, ended: Ended) -> Level {
        let (of_server, requests) = (self.dsn.is_some(), self.edges().sees_requests());
        level(Seen { workload: self.plan.workload(), of_server, requests }, index, begin, end, ended)
    }
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
    dsn: Option<&'a Dsn>,
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
        let Some(dsn) = self.dsn else { return Ok(0) };
        self.runtime.block_on(async {
            let asked = tokio::time::timeout(GOODBYE_TIME_MAX, async {
                let mut conn = dsn.connect().await?;
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

//! A recording that is running: its windows, and its end.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use whyso_record::run::{Level, RunEnd};
use whyso_server::Dsn;
use whyso_watch::Watcher;

use super::edges::{Edge, Edges};
use super::level::{LevelContext, level};
use super::plan::RecordPlan;
use super::site_level::RecordedLoad;
use super::successor::Successor;
use super::toggles::Toggles;
use super::windows::Windows;
use crate::Stop;
use crate::held_command::spawn_held;
use crate::other_nodes::OtherNodes;
use crate::progress::{Listener, News};
use crate::recording::{Outcome, Recording, record_event};
use crate::runtime::GOODBYE_TIME_MAX;
use crate::{Error, facts};
use whyso_tracing::Tracing;

/// Between two checks whether a window is to begin or to end.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Bound on the end of a command after SIGTERM. Then SIGKILL ends it.
const COMMAND_END_TIME_MAX: Duration = Duration::from_secs(10);

/// A recording that is running.
pub(super) struct RecordingSession<'a> {
    pub(super) plan: &'a RecordPlan,
    pub(super) listener: &'a dyn Listener,
    pub(super) stop: &'a Stop,
    /// `None`: processes that nobody can ask.
    pub(super) dsn: Option<Dsn>,
    pub(super) runtime: Runtime,
    pub(super) watcher: Watcher,
    /// The other nodes of its cluster.
    pub(super) others: OtherNodes<'a>,
    pub(super) tracing: Option<Tracing>,
    pub(super) successor: Successor,
}

impl RecordingSession<'_> {
    pub(super) fn run(mut self, mut recording: Recording) -> Result<Outcome, Error> {
        let outcome = if let Some(site) = &self.plan.load {
            let load = RecordedLoad { site, meanwhile: &self, listener: self.listener, stop: self.stop };
            load.run(&mut recording)
        } else if self.plan.toggle {
            self.record_toggled(&mut recording)
        } else {
            self.record_once(&mut recording)
        };
        let failure = outcome.err().map(|error| error.to_string());
        self.tracing = None;
        let variables =
            self.dsn.as_ref().and_then(|dsn| facts::variables_now(dsn, &self.watcher, &self.runtime));
        // Ctrl-C is how a recording without an end is ended: it is complete all the same.
        let interrupted = self.stop.is_asked()
            && (self.plan.length.is_some() || self.plan.load.is_some() || !self.plan.command.is_empty());
        self.others.stop(&mut recording.info);
        let finished = recording.finish(self.watcher, variables, failure, interrupted);
        self.runtime.shutdown_timeout(GOODBYE_TIME_MAX);
        finished
    }

    /// One window: the command's time, or the time that was asked for.
    fn record_once(&self, recording: &mut Recording) -> Result<(), Error> {
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
                self.wait_and_check();
            }
        } else {
            failed = self.command(began)?;
        }
        let end = self.edges().take()?;
        record_event(&recording.recorder, "level_end", "recording".to_string());
        let ended = match &failed {
            None => RunEnd::Complete { at_ns: end.at_ns },
            Some(why) => RunEnd::CutShort { at_ns: end.at_ns, why: why.clone() },
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
        // Its first connections are recorded, too.
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
            self.wait_and_check();
        }
    }

    fn wait_and_check(&self) {
        std::thread::sleep(CHECK_INTERVAL);
        self.check();
    }

    pub(super) fn check(&self) {
        if let Some(dsn) = &self.dsn {
            self.successor.check(dsn, &self.runtime, &self.watcher, self.tracing.as_ref());
        }
        self.others.follow(&self.watcher, self.tracing.as_ref());
        if let Some(busy) = self.tracing.as_ref().and_then(Tracing::busy_functions) {
            self.listener.hear(News::Functions(&busy));
        }
    }

    /// Records a window each time that the user asks for one.
    fn record_toggled(&self, recording: &mut Recording) -> Result<(), Error> {
        let toggles = Toggles::listen(&self.runtime);
        self.listener.hear(News::Step(&format!(
            "press Enter, or send SIGUSR1 to process {}, to begin and to end a window; Ctrl-C ends the recording",
            std::process::id()
        )));
        let ends_at = self.plan.length.map(|length| Instant::now() + length);
        let is_over = || self.stop.is_asked() || ends_at.is_some_and(|at| Instant::now() >= at);
        self.until_over(recording, toggles, is_over, None)
    }

    /// Records windows that begin and end by `toggles`. A thread of its own takes their edges at once, because writing at a window's
    /// end takes time. With `windows`, their state and what goes wrong are set there, and a failure ends nothing.
    pub(super) fn until_over(
        &self,
        recording: &mut Recording,
        toggles: Toggles,
        is_over: impl Fn() -> bool + Send,
        windows: Option<&Windows>,
    ) -> Result<(), Error> {
        let edges = self.edges();
        let has_failed = AtomicBool::new(false);
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            let has_failed = &has_failed;
            scope.spawn(move || {
                while !has_failed.load(Ordering::Relaxed) {
                    let over = is_over();
                    if over || toggles.is_pressed() {
                        let sent = sender.send((edges.take(), over));
                        if over || sent.is_err() {
                            return;
                        }
                    }
                    std::thread::sleep(CHECK_INTERVAL);
                }
            });
            let recorded = self.windows(recording, receiver, windows);
            has_failed.store(recorded.is_err(), Ordering::Relaxed);
            recorded
        })
    }

    /// Records the windows between these edges, each with whether it is the last.
    fn windows(
        &self,
        recording: &mut Recording,
        edges: Receiver<(Result<Edge, Error>, bool)>,
        windows: Option<&Windows>,
    ) -> Result<(), Error> {
        let mut begin: Option<Edge> = None;
        loop {
            let (edge, over) = match edges.recv_timeout(CHECK_INTERVAL) {
                Ok(received) => received,
                Err(RecvTimeoutError::Timeout) => {
                    self.check();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let done = edge.and_then(|edge| match begin.take() {
                None if over => Ok(()),
                None => {
                    record_event(&recording.recorder, "level_begin", "recording".to_string());
                    self.listener.hear(News::Step("a window begins"));
                    begin = Some(edge);
                    Ok(())
                }
                Some(first) => self.window(recording, &first, &edge),
            });
            match (windows, done) {
                (None, Err(error)) => return Err(error),
                (Some(windows), done) => windows.set(begin.as_ref().map(|edge| edge.at_ns), done.err()),
                (None, Ok(())) => {}
            }
        }
    }

    fn window(&self, recording: &mut Recording, first: &Edge, last: &Edge) -> Result<(), Error> {
        record_event(&recording.recorder, "level_end", "recording".to_string());
        let index = recording.info.levels.len() as u32;
        let level = self.level(index, first, last, RunEnd::Complete { at_ns: last.at_ns });
        self.listener.hear(News::Step(&format!(
            "the window ends: {}{}",
            whyso_words::seconds(level.result.seconds),
            if self.dsn.is_some() {
                format!(", {}", whyso_words::count(level.result.queries, "request"))
            } else {
                String::new()
            }
        )));
        match recording.level(level) {
            Some(problem) => Err(Error::Failed(problem)),
            None => Ok(()),
        }
    }

    pub(super) fn edges(&self) -> Edges<'_> {
        Edges {
            tracing: self.tracing.as_ref(),
            dsn: self.dsn.as_ref(),
            watcher: &self.watcher,
            runtime: &self.runtime,
        }
    }

    pub(super) fn level(&self, index: u32, begin: &Edge, end: &Edge, ended: RunEnd) -> Level {
        let (of_server, requests) = (self.dsn.is_some(), self.edges().sees_requests());
        level(LevelContext { workload: self.plan.workload(), of_server, requests }, index, begin, end, ended)
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
        std::thread::sleep(CHECK_INTERVAL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

//! A server that is shown while it is watched. It is recorded all the while, so that what was shown can be kept, and the recording stays only
//! where the user wanted one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};

use whyso_clock::monotonic_ns;
use whyso_explain::model::Machine;
use whyso_record::run::RunInfo;
use whyso_record::{Recorder, Tap};
use whyso_watch::Watcher;

use super::plan::{RecordPlan, RecordTarget};
use super::server::with_server;
use super::session::RecordingSession;
use super::toggles::Toggles;
use super::windows::Windows;
use crate::Stop;
use crate::login::AskPassword;
use crate::process::check_processes;
use crate::progress::Listener;
use crate::recording::{Outcome, Recording};
use crate::runtime::GOODBYE_TIME_MAX;
use crate::session_actions::SessionActions;
use crate::{Error, facts};
use whyso_query::machine;

/// What shows a server while it is watched.
pub trait Show: Sync {
    /// Returns the tap that receives all readings, from before the first one on.
    fn tap(&self) -> Arc<dyn Tap>;

    /// Shows it until the user has seen enough, or [`WatchedServer::is_over`].
    ///
    /// # Errors
    /// Why it can't be shown.
    fn show(&self, watched: &WatchedServer<'_>) -> Result<(), Error>;
}

/// A server that is watched.
pub struct WatchedServer<'a> {
    run: &'a RunInfo,
    path: &'a Path,
    recorder: Recorder,
    watcher: &'a Watcher,
    stop: &'a Stop,
    toggles: Sender<()>,
    windows: &'a Windows,
    sessions: Option<SessionActions>,
}

impl WatchedServer<'_> {
    /// What is known of the server and of this machine.
    pub fn run(&self) -> &RunInfo {
        self.run
    }

    pub fn machine(&self) -> Machine {
        machine(self.run)
    }

    /// Where it is recorded.
    pub fn path(&self) -> &Path {
        self.path
    }

    /// A window of the recording is to begin now, or to end. The recording stays once it has one.
    pub fn toggle(&self) {
        // Nobody listens any more where it is over.
        let _ = self.toggles.send(());
    }

    /// Since when, in monotonic nanoseconds, a window is under way.
    pub fn recording_since_ns(&self) -> Option<i64> {
        self.windows.since_ns()
    }

    /// Adds a note to the recording, now.
    ///
    /// # Errors
    /// Its folder can't be written.
    pub fn note(&self, text: &str) -> Result<(), Error> {
        Ok(whyso_record::add_note(self.path, monotonic_ns(), text)?)
    }

    /// What may be asked of the server's sessions.
    pub fn sessions(&self) -> Option<&SessionActions> {
        self.sessions.as_ref()
    }

    /// Whether something else than the user's keys ends it, such as a signal.
    pub fn is_over(&self) -> bool {
        self.stop.is_asked()
    }

    /// Why nothing can be recorded at present.
    pub fn trouble(&self) -> Option<String> {
        self.recorder.failed().or_else(|| self.windows.trouble())
    }

    /// What is not measured and why.
    pub fn not_measured(&self) -> Vec<whyso_model::NotMeasured> {
        let mut lines = self.run.not_measured.clone();
        lines.extend(
            self.watcher.not_measured().into_iter().filter(|line| !self.run.not_measured.contains(line)),
        );
        lines
    }
}

/// Watches a server until `show` returns. Gives the recording where the user wanted one; else nothing is left of it.
///
/// # Errors
/// The server can't be reached, nothing can be recorded, or it can't be shown.
pub fn watch(
    plan: &RecordPlan,
    show: &dyn Show,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<Option<Outcome>, Error> {
    plan.check()?;
    check_processes()?;
    let RecordTarget::Server(dsn) = &plan.target else {
        return Err(Error::Plan("watch is for a server: give its --dsn".to_string()));
    };
    with_server(plan, dsn, listener, stop, ask_password, |session, recording| session.show(recording, show))
}

impl RecordingSession<'_> {
    fn show(mut self, mut recording: Recording, show: &dyn Show) -> Result<Option<Outcome>, Error> {
        recording.recorder.tap(show.tap());
        let windows = Windows::new();
        let (toggles, presses) = channel();
        // As it was when the watching began: what comes later is for the end of the recording.
        let (run, path) = (recording.info.clone(), recording.path.clone());
        let watched = WatchedServer {
            run: &run,
            path: &path,
            recorder: recording.recorder.clone(),
            watcher: &self.watcher,
            stop: self.stop,
            toggles,
            windows: &windows,
            sessions: self.dsn.clone().map(|dsn| SessionActions { dsn, path: path.clone() }),
        };
        let is_over = AtomicBool::new(false);
        let toggles = Toggles::from_channel(presses);
        let (shown, recorded) = std::thread::scope(|scope| {
            let shower = scope.spawn(|| {
                let shown = show.show(&watched);
                is_over.store(true, Ordering::SeqCst);
                shown
            });
            let over = || is_over.load(Ordering::SeqCst) || shower.is_finished();
            let recorded = self.until_over(&mut recording, toggles, over, Some(&windows));
            let shown = shower.join().unwrap_or_else(|_| {
                Err(Error::Failed(
                    "the screen ended by a mistake of whyso's own; please report it".to_string(),
                ))
            });
            (shown, recorded)
        });
        self.tracing = None;
        if recording.info.levels.is_empty() {
            recording.discard(self.watcher)?;
            return shown.and(recorded).map(|()| None);
        }
        let variables =
            self.dsn.as_ref().and_then(|dsn| facts::variables_now(dsn, &self.watcher, &self.runtime));
        let failure = recorded.err().map(|error| error.to_string());
        self.others.stop(&mut recording.info);
        let outcome = recording.finish(self.watcher, variables, failure, false)?;
        self.runtime.shutdown_timeout(GOODBYE_TIME_MAX);
        shown.map(|()| Some(outcome))
    }
}

//! A server that is shown while it is watched. It is recorded all the while, so that what was seen can be kept, and the recording stays only
//! where the user wanted one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use whyso_clock::monotonic_ns;
use whyso_explain::model::Machine;
use whyso_record::run::RunInfo;
use whyso_record::{Recorder, Tap};
use whyso_watch::Watcher;

use super::attended::Attended;
use super::toggles::Toggles;
use super::{RecordPlan, Recorded, on_server};
use crate::Stop;
use crate::prepare::AskPassword;
use crate::progress::Listener;
use crate::recording::Recording;
use crate::run::Outcome;
use crate::{Error, facts};
use whyso_query::machine;

/// No window is under way.
const NONE: i64 = 0;

/// What shows a server while it is watched.
pub trait Show: Sync {
    /// Is told all that is read, from before the first reading on.
    fn tap(&self) -> Arc<dyn Tap>;

    /// Shows it until the user has seen enough, or [`Watched::is_over`].
    ///
    /// # Errors
    /// Why it can't be shown.
    fn show(&self, watched: &Watched<'_>) -> Result<(), Error>;
}

/// A server that is watched.
pub struct Watched<'a> {
    run: &'a RunInfo,
    path: &'a Path,
    recorder: Recorder,
    watcher: &'a Watcher,
    stop: &'a Stop,
    toggles: Sender<()>,
    windows: &'a Windows,
}

impl Watched<'_> {
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
        Some(self.windows.since_ns.load(Ordering::Relaxed)).filter(|since_ns| *since_ns != NONE)
    }

    /// Adds a note to the recording, now.
    ///
    /// # Errors
    /// Its folder can't be written.
    pub fn note(&self, text: &str) -> Result<(), Error> {
        Ok(whyso_record::add_note(self.path, monotonic_ns(), text)?)
    }

    /// Whether something else than the user's keys ends it, such as a signal.
    pub fn is_over(&self) -> bool {
        self.stop.is_asked()
    }

    /// Why nothing can be recorded at present.
    pub fn trouble(&self) -> Option<String> {
        let told = self.windows.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        self.recorder.failed().or_else(|| told.clone())
    }

    /// What is not measured and why, in plain words.
    pub fn not_measured(&self) -> Vec<String> {
        let mut lines = self.run.not_measured.clone();
        lines.extend(
            self.watcher.not_measured().into_iter().filter(|line| !self.run.not_measured.contains(line)),
        );
        lines
    }
}

/// The windows of a recording that is shown.
#[derive(Debug)]
pub(super) struct Windows {
    since_ns: AtomicI64,
    trouble: Mutex<Option<String>>,
}

impl Windows {
    fn new() -> Windows {
        Windows { since_ns: AtomicI64::new(NONE), trouble: Mutex::default() }
    }

    /// `since_ns`: of the window that is under way; `trouble`: why the last one could not begin or end.
    pub(super) fn tell(&self, since_ns: Option<i64>, trouble: Option<Error>) {
        self.since_ns.store(since_ns.unwrap_or(NONE), Ordering::Relaxed);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble.map(|error| error.to_string());
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
    let Recorded::Server(dsn) = &plan.of else {
        return Err(Error::Plan("watch is for a server: give its --dsn".to_string()));
    };
    on_server(plan, dsn, listener, stop, ask_password, |attended, recording| attended.shown(recording, show))
}

impl Attended<'_> {
    fn shown(mut self, mut recording: Recording, show: &dyn Show) -> Result<Option<Outcome>, Error> {
        recording.recorder.tap(show.tap());
        let windows = Windows::new();
        let (toggles, said) = channel();
        // As it was when the watching began: what comes later is for the end of the recording.
        let (run, path) = (recording.info.clone(), recording.path.clone());
        let watched = Watched {
            run: &run,
            path: &path,
            recorder: recording.recorder.clone(),
            watcher: &self.watcher,
            stop: self.stop,
            toggles,
            windows: &windows,
        };
        let is_over = AtomicBool::new(false);
        let toggles = Toggles::told(said);
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
        let outcome = recording.finish(self.watcher, variables, failure, false)?;
        self.runtime.shutdown_timeout(crate::run::GOODBYE_TIME_MAX);
        shown.map(|()| Some(outcome))
    }
}

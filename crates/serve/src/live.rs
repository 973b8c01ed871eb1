//! Recordings that the page begins and ends, of servers and processes that a file names. It shows them like any other.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::Serialize;
use utoipa::ToSchema;
use whyso_model::Stop;
use whyso_record::list_runs;

use crate::error::{Answer, Refusal};
use crate::recorder::{LiveRecorder, RecordProgress};
use crate::recordings::lock;
use crate::servers_file::LiveServer;

const WARNINGS_MAX: usize = 20;
/// Longest time for recordings to end when the program ends.
const END_WITHIN: Duration = Duration::from_secs(20);
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// The failure of a recording whose thread panicked.
const PANIC: &str = "the recording ended because of a mistake in whyso: please report it";

/// The state of a server's recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Phase {
    #[default]
    Idle,
    /// The server is being reached, and the recording begun.
    Starting,
    Recording,
    Ending,
    Failed,
}

#[derive(Clone, Debug, Default)]
struct RecordingState {
    phase: Phase,
    run: Option<String>,
    /// The current step, or why it failed.
    words: String,
    warnings: Vec<String>,
}

struct RunningRecording {
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
}

/// Enters what a recording reports.
fn enter(state: &Mutex<RecordingState>, progress: RecordProgress<'_>) {
    let mut state = lock(state);
    match progress {
        RecordProgress::Step(step) => state.words = step.to_string(),
        RecordProgress::Warning(warning) if state.warnings.len() < WARNINGS_MAX => {
            state.warnings.push(warning.to_string());
        }
        RecordProgress::Begun if state.phase == Phase::Starting => state.phase = Phase::Recording,
        _ => {}
    }
}

/// Enters the end of a recording when it is dropped, also after a panic: no server stays in its last phase.
struct RecordingEnd<'a> {
    state: &'a Mutex<RecordingState>,
    failure: Option<String>,
}

impl RecordingEnd<'_> {
    fn with(mut self, failure: Option<String>) {
        self.failure = failure;
    }
}

impl Drop for RecordingEnd<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        state.phase = if self.failure.is_some() { Phase::Failed } else { Phase::Idle };
        state.words = self.failure.take().unwrap_or_default();
    }
}

/// A server as the page lists it, never with its DSN.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListedServer {
    name: String,
    #[schema(inline)]
    phase: Phase,
    /// The run that is being recorded.
    #[schema(required)]
    run: Option<String>,
    /// The current step, or why the recording failed.
    words: String,
    warnings: Vec<String>,
}

/// The servers, and the recordings of them that are running.
pub(crate) struct Live {
    runs: PathBuf,
    servers: Vec<LiveServer>,
    recorder: Arc<dyn LiveRecorder>,
    states: BTreeMap<String, Arc<Mutex<RecordingState>>>,
    running: Mutex<BTreeMap<String, RunningRecording>>,
}

impl Live {
    pub(crate) fn new(runs: PathBuf, servers: Vec<LiveServer>, recorder: Arc<dyn LiveRecorder>) -> Live {
        let states = servers.iter().map(|server| (server.name.clone(), Arc::default())).collect();
        Live { runs, servers, recorder, states, running: Mutex::default() }
    }

    pub(crate) fn list(&self) -> Answer<Vec<ListedServer>> {
        self.find_runs()?;
        let listed = self.servers.iter().map(|server| {
            let RecordingState { phase, run, words, warnings } = self.state_of(&server.name);
            ListedServer { name: server.name.clone(), phase, run, words, warnings }
        });
        Ok(listed.collect())
    }

    fn state_of(&self, name: &str) -> RecordingState {
        self.states.get(name).map(|state| lock(state).clone()).unwrap_or_default()
    }

    /// Finds the run of a recording that has begun. Its name ends with this process's number; a run that no server has yet belongs to the server that
    /// is starting.
    fn find_runs(&self) -> Answer<()> {
        let waits = |state: &RecordingState| {
            matches!(state.phase, Phase::Starting | Phase::Recording) && state.run.is_none()
        };
        let waiting = self.states.values().find(|state| waits(&lock(state)));
        let Some(waiting) = waiting else { return Ok(()) };
        let assigned: Vec<String> =
            self.states.values().filter_map(|state| lock(state).run.clone()).collect();
        let own = format!("-{}", std::process::id());
        let mut runs = list_runs(&self.runs)?.into_iter().rev();
        let begun = runs.find(|run| run.live && run.id.ends_with(&own) && !assigned.contains(&run.id));
        if let Some(run) = begun {
            let mut state = lock(waiting);
            state.run = Some(run.id);
            state.phase = Phase::Recording;
        }
        Ok(())
    }

    /// Begins to record a server. [`Live::list`] shows its state.
    pub(crate) fn start(&self, name: &str) -> Answer<()> {
        let server = self.servers.iter().find(|server| server.name == name);
        let state = self.states.get(name);
        let (Some(server), Some(state)) = (server, state) else {
            return Err(Refusal::not_found("the file of servers has no server of this name"));
        };
        self.find_runs()?;
        let mut running = lock(&self.running);
        running.retain(|_, recording| !recording.thread.is_finished());
        if running.contains_key(name) {
            return Err(Refusal::conflict("this server is being recorded already"));
        }
        if self.states.values().any(|state| lock(state).phase == Phase::Starting) {
            return Err(Refusal::conflict("another recording is starting: try again in a moment"));
        }
        let request = server.request(&self.runs).map_err(|error| Refusal::conflict(error.to_string()))?;
        *lock(state) = RecordingState { phase: Phase::Starting, ..RecordingState::default() };
        let stop = Arc::new(Stop::new());
        let (state, stop_too) = (Arc::clone(state), Arc::clone(&stop));
        let recorder = Arc::clone(&self.recorder);
        let thread = thread::spawn(move || {
            let end = RecordingEnd { state: &state, failure: Some(PANIC.to_string()) };
            let recorded = recorder.record(&request, &|progress| enter(&state, progress), &stop_too);
            end.with(recorded.err().map(|error| error.to_string()));
        });
        running.insert(name.to_string(), RunningRecording { stop, thread });
        Ok(())
    }

    /// Ends the recording of a server.
    pub(crate) fn stop(&self, name: &str) -> Answer<()> {
        let running = lock(&self.running);
        let Some(recording) = running.get(name).filter(|recording| !recording.thread.is_finished()) else {
            return Err(Refusal::conflict("this server is not being recorded"));
        };
        recording.stop.ask();
        if let Some(state) = self.states.get(name) {
            lock(state).phase = Phase::Ending;
        }
        Ok(())
    }

    /// Ends every recording, and waits for them.
    pub(crate) fn end(&self) {
        let running = lock(&self.running);
        for recording in running.values() {
            recording.stop.ask();
        }
        let by = Instant::now() + END_WITHIN;
        while running.values().any(|recording| !recording.thread.is_finished()) && Instant::now() < by {
            thread::sleep(CHECK_EVERY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::{RecordRequest, RecorderError};

    struct Nothing;

    impl LiveRecorder for Nothing {
        fn record(
            &self,
            _: &RecordRequest,
            _: &(dyn Fn(RecordProgress<'_>) + Sync),
            _: &Stop,
        ) -> Result<(), RecorderError> {
            Err("nothing is recorded here".into())
        }
    }

    #[test]
    fn a_recording_that_panics_leaves_its_server_failed() {
        let state =
            Arc::new(Mutex::new(RecordingState { phase: Phase::Starting, ..RecordingState::default() }));
        let of_thread = Arc::clone(&state);
        let thread = thread::spawn(move || {
            let _end = RecordingEnd { state: &of_thread, failure: Some(PANIC.to_string()) };
            panic!("this text is expected");
        });
        assert!(thread.join().is_err());
        let state = lock(&state);
        assert!(state.phase == Phase::Failed && state.words == PANIC, "{state:?}");
    }

    #[test]
    fn a_server_that_is_not_named_or_not_recorded_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let live = Live::new(folder.path().to_path_buf(), Vec::new(), Arc::new(Nothing));
        assert!(live.start("mysql://root@evil/").is_err());
        assert!(live.stop("x").is_err());
        assert_eq!(live.list().unwrap().len(), 0);
    }
}

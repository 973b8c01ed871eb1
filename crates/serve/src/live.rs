//! Servers that a file names. The page begins and ends recordings of them, and shows these like any other.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use whyso_model::{Stop, parse_size};
use whyso_record::list_runs;

use crate::error::{Answer, Error, NAME_CHARACTERS_MAX, Refusal, SERVERS_MAX, ServersFileError};
use crate::recordings::lock;

const FILE_BYTES_MAX: u64 = 256 << 10;
const WARNINGS_MAX: usize = 20;
/// Default size of a recording, beyond which its oldest detail is removed.
const DISK_MAX: u64 = 4 << 30;
/// Longest time for recordings to end when the program ends.
const END_WITHIN: Duration = Duration::from_secs(20);
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// The failure of a recording whose thread panicked.
const PANIC: &str = "the recording ended because of a mistake in whyso: please report it";

/// A server that may be recorded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveServer {
    /// Name on the page.
    pub name: String,
    pub dsn: String,
    #[serde(default = "LiveServer::interval_ms")]
    pub interval_ms: u64,
    /// Whether to account for the time of its threads, if it runs here.
    #[serde(default = "LiveServer::trace")]
    pub trace: bool,
    #[serde(default)]
    pub stacks: bool,
    /// Size of a recording beyond which its oldest detail goes, such as "2GiB".
    #[serde(default)]
    pub disk_max: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    server: Vec<LiveServer>,
}

impl LiveServer {
    fn interval_ms() -> u64 {
        1000
    }

    fn trace() -> bool {
        true
    }

    /// Reads the servers that a file names. It can hold passwords, so nobody else may be able to read it.
    ///
    /// # Errors
    /// The file can't be read, others can read it, or it is no file of servers.
    pub fn from_file(path: &Path) -> Result<Vec<LiveServer>, Error> {
        let io = |cause| Error::Io { path: path.to_path_buf(), cause };
        let about = fs::metadata(path).map_err(io)?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(Error::ServersFileOpen(path.to_path_buf()));
        }
        let in_file = |error| Error::Servers(path.to_path_buf(), error);
        if about.len() > FILE_BYTES_MAX {
            return Err(in_file(ServersFileError::TooLarge));
        }
        let text = fs::read_to_string(path).map_err(io)?;
        LiveServer::parse_file(&text).map_err(in_file)
    }

    fn parse_file(text: &str) -> Result<Vec<LiveServer>, ServersFileError> {
        let File { server } = toml::from_str(text)?;
        if server.len() > SERVERS_MAX {
            return Err(ServersFileError::TooMany);
        }
        for (place, entry) in server.iter().enumerate() {
            let is_sound = !entry.name.trim().is_empty()
                && entry.name.chars().count() <= NAME_CHARACTERS_MAX
                && !entry.name.chars().any(char::is_control);
            if !is_sound {
                return Err(ServersFileError::Name);
            }
            if server[..place].iter().any(|other| other.name == entry.name) {
                return Err(ServersFileError::SameName(entry.name.clone()));
            }
            if !(100..=600_000).contains(&entry.interval_ms) {
                return Err(ServersFileError::Interval(entry.name.clone()));
            }
            entry.bytes_max()?;
        }
        Ok(server)
    }

    fn bytes_max(&self) -> Result<u64, ServersFileError> {
        let Some(size) = &self.disk_max else { return Ok(DISK_MAX) };
        parse_size(size)
            .map_err(|why| ServersFileError::DiskMax { server: self.name.clone(), why: why.to_string() })
    }

    fn request(&self, runs: &Path) -> RecordRequest {
        RecordRequest {
            dsn: self.dsn.clone(),
            interval: Duration::from_millis(self.interval_ms),
            trace: self.trace,
            stacks: self.stacks,
            runs: runs.to_path_buf(),
            bytes_max: self.bytes_max().unwrap_or(DISK_MAX),
            command_line: vec!["whyso".to_string(), "serve".to_string(), self.name.clone()],
        }
    }
}

/// A recording that the page asks for.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    pub dsn: String,
    pub interval: Duration,
    /// Account for the time of the server's threads, where it runs here.
    pub trace: bool,
    /// Take the threads' stacks, too.
    pub stacks: bool,
    /// Folder that holds the recordings.
    pub runs: PathBuf,
    /// Size of the recording beyond which its oldest detail is removed.
    pub bytes_max: u64,
    /// The command line that the recording shows.
    pub command_line: Vec<String>,
}

/// What a recording reports while it is begun and runs.
#[derive(Clone, Copy, Debug)]
pub enum RecordProgress<'a> {
    /// A step that takes a moment has begun.
    Step(&'a str),
    /// Something that the user should know, and that does not end the recording.
    Warning(&'a str),
    /// The recording has begun.
    Begun,
}

/// Why a recorder could not record, in one sentence.
pub type RecorderError = Box<dyn std::error::Error + Send + Sync>;

/// Records a server for the page. The program passes it in: this crate drives nothing and writes to no server.
pub trait LiveRecorder: Send + Sync {
    /// Records until `stop` is asked, and calls `progress` meanwhile.
    ///
    /// # Errors
    /// Why nothing could be recorded, or why the recording was cut short, in one sentence.
    fn record(
        &self,
        request: &RecordRequest,
        progress: &(dyn Fn(RecordProgress<'_>) + Sync),
        stop: &Stop,
    ) -> Result<(), RecorderError>;
}

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
        *lock(state) = RecordingState { phase: Phase::Starting, ..RecordingState::default() };
        let stop = Arc::new(Stop::new());
        let (request, state, stop_too) = (server.request(&self.runs), Arc::clone(state), Arc::clone(&stop));
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

    fn read(text: &str) -> Result<Vec<LiveServer>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers.toml");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        LiveServer::from_file(&path)
    }

    #[test]
    fn a_file_of_servers_is_read_and_what_is_wrong_in_it_is_reported() {
        let shop = "[[server]]\nname = \"shop\"\ndsn = \"mysql://root@localhost/?socket=/s\"\n";
        let servers = read(shop).unwrap();
        assert_eq!(
            (servers[0].name.as_str(), servers[0].interval_ms, servers[0].trace),
            ("shop", 1000, true)
        );
        assert_eq!(read("").unwrap().len(), 0);
        for (text, word) in [
            (format!("{shop}{shop}"), "two servers are called shop"),
            (format!("{shop}interval_ms = 5\n"), "must be 100"),
            (format!("{shop}disk_max = \"much\"\n"), "disk_max"),
            (format!("{shop}password = \"x\"\n"), "unknown field"),
            ("[[server]]\nname = \"\"\ndsn = \"\"\n".to_string(), "needs a name"),
        ] {
            let message = read(&text).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_by_what_it_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("servers.toml");
        fs::write(&path, "").unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = LiveServer::from_file(&path).unwrap_err();
            assert!(matches!(refused, Error::ServersFileOpen(_)), "{refused}");
            let message = refused.to_string();
            assert!(message.contains("passwords") && message.contains("chmod 600"), "{message}");
            assert!(!message.contains("token"), "{message}");
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

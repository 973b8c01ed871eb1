//! Servers that a file names: recordings of them are begun and ended from the page, and shown like any other while they go on.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use whyso_model::{Stop, parse_size};
use whyso_record::list_runs;

use crate::error::{Answer, Error, Refused};
use crate::open::lock;

const SERVERS_MAX: usize = 50;
const NAME_CHARACTERS_MAX: usize = 60;
const FILE_BYTES_MAX: u64 = 256 << 10;
const WARNINGS_MAX: usize = 20;
/// A recording keeps to this size where the file says nothing: its oldest detail goes.
const DISK_MAX: u64 = 4 << 30;
/// Recordings that are still being ended when the program ends have so long.
const END_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What is said where the thread that records ends in a panic.
const PANIC: &str = "the recording ended by a mistake of whyso's own; please report it";

/// A server that may be recorded.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveServer {
    /// As the page calls it.
    pub name: String,
    pub dsn: String,
    #[serde(default = "LiveServer::interval_ms")]
    pub interval_ms: u64,
    /// Account for the time of its threads, where it runs here.
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

    /// Those that a file names. It may hold passwords: nobody else may read it.
    ///
    /// # Errors
    /// It can't be read, others can read it, or it says something else.
    pub fn from_file(path: &Path) -> Result<Vec<LiveServer>, Error> {
        let io = |cause| Error::Io { path: path.to_path_buf(), cause };
        let about = fs::metadata(path).map_err(io)?;
        if about.permissions().mode() & 0o077 != 0 {
            return Err(Error::ServersFileOpen(path.to_path_buf()));
        }
        let wrong = |why: String| Error::Config(path.to_path_buf(), why);
        if about.len() > FILE_BYTES_MAX {
            return Err(wrong("it is too large".to_string()));
        }
        let text = fs::read_to_string(path).map_err(io)?;
        let File { server } = toml::from_str(&text).map_err(|error| wrong(error.message().to_string()))?;
        if server.len() > SERVERS_MAX {
            return Err(wrong(format!("it names more than {SERVERS_MAX} servers")));
        }
        for (place, one) in server.iter().enumerate() {
            let is_sound = !one.name.trim().is_empty()
                && one.name.chars().count() <= NAME_CHARACTERS_MAX
                && !one.name.chars().any(char::is_control);
            if !is_sound {
                return Err(wrong(format!(
                    "a server needs a name of at most {NAME_CHARACTERS_MAX} characters"
                )));
            }
            if server[..place].iter().any(|other| other.name == one.name) {
                return Err(wrong(format!("two servers are called {}", one.name)));
            }
            if !(100..=600_000).contains(&one.interval_ms) {
                return Err(wrong(format!("interval_ms of {} must be 100 to 600000", one.name)));
            }
            one.bytes_max().map_err(|why| wrong(format!("disk_max of {}: {why}", one.name)))?;
        }
        Ok(server)
    }

    fn bytes_max(&self) -> Result<u64, String> {
        self.disk_max.as_deref().map_or(Ok(DISK_MAX), parse_size)
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

/// What records a server for the page. The program hands it in: this crate drives nothing and writes to no server.
pub trait LiveRecorder: Send + Sync {
    /// Records until `stop` is asked, and calls `progress` meanwhile.
    ///
    /// # Errors
    /// One sentence says why nothing could be recorded, or why the recording was cut short.
    fn record(
        &self,
        request: &RecordRequest,
        progress: &(dyn Fn(RecordProgress<'_>) + Sync),
        stop: &Stop,
    ) -> Result<(), String>;
}

/// What goes on with one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    #[default]
    Idle,
    /// Being reached, and the recording begun.
    Starting,
    Recording,
    Ending,
    Failed,
}

#[derive(Clone, Debug, Default)]
struct Told {
    phase: Phase,
    run: Option<String>,
    /// The step that goes on, or why it failed.
    words: String,
    warnings: Vec<String>,
}

struct Going {
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
}

/// Keeps what a recording reports.
fn keep(told: &Mutex<Told>, progress: RecordProgress<'_>) {
    let mut told = lock(told);
    match progress {
        RecordProgress::Step(step) => told.words = step.to_string(),
        RecordProgress::Warning(warning) if told.warnings.len() < WARNINGS_MAX => {
            told.warnings.push(warning.to_string());
        }
        RecordProgress::Begun if told.phase == Phase::Starting => told.phase = Phase::Recording,
        _ => {}
    }
}

/// Tells how a recording ended, however it did: no server stays in the phase that it was in.
struct End<'a> {
    told: &'a Mutex<Told>,
    failure: Option<String>,
}

impl End<'_> {
    fn with(mut self, failure: Option<String>) {
        self.failure = failure;
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut told = lock(self.told);
        told.phase = if self.failure.is_some() { Phase::Failed } else { Phase::Idle };
        told.words = self.failure.take().unwrap_or_default();
    }
}

/// As the page lists them: never with their DSN.
#[derive(Serialize)]
pub(crate) struct Listed {
    name: String,
    phase: Phase,
    run: Option<String>,
    words: String,
    warnings: Vec<String>,
}

/// The servers, and the recordings of them that go on.
pub(crate) struct Live {
    runs: PathBuf,
    servers: Vec<LiveServer>,
    recorder: Arc<dyn LiveRecorder>,
    told: BTreeMap<String, Arc<Mutex<Told>>>,
    going: Mutex<BTreeMap<String, Going>>,
}

impl Live {
    pub(crate) fn new(runs: PathBuf, servers: Vec<LiveServer>, recorder: Arc<dyn LiveRecorder>) -> Live {
        let told = servers.iter().map(|one| (one.name.clone(), Arc::default())).collect();
        Live { runs, servers, recorder, told, going: Mutex::default() }
    }

    pub(crate) fn list(&self) -> Answer<Vec<Listed>> {
        self.find_runs()?;
        let listed = self.servers.iter().map(|one| {
            let Told { phase, run, words, warnings } = self.told_of(&one.name);
            Listed { name: one.name.clone(), phase, run, words, warnings }
        });
        Ok(listed.collect())
    }

    fn told_of(&self, name: &str) -> Told {
        self.told.get(name).map(|told| lock(told).clone()).unwrap_or_default()
    }

    /// A recording that has begun is told by the number of this program in its name: one that nobody has yet is of the server that is being started.
    fn find_runs(&self) -> Answer<()> {
        let waits =
            |told: &Told| matches!(told.phase, Phase::Starting | Phase::Recording) && told.run.is_none();
        let waiting = self.told.values().find(|told| waits(&lock(told)));
        let Some(waiting) = waiting else { return Ok(()) };
        let known: Vec<String> = self.told.values().filter_map(|told| lock(told).run.clone()).collect();
        let own = format!("-{}", std::process::id());
        let mut runs = list_runs(&self.runs)?.into_iter().rev();
        let begun = runs.find(|run| run.live && run.id.ends_with(&own) && !known.contains(&run.id));
        if let Some(run) = begun {
            let mut told = lock(waiting);
            told.run = Some(run.id);
            told.phase = Phase::Recording;
        }
        Ok(())
    }

    /// Begins to record a server; what comes of it is told by [`Live::list`].
    pub(crate) fn start(&self, name: &str) -> Answer<()> {
        let server = self.servers.iter().find(|one| one.name == name);
        let told = self.told.get(name);
        let (Some(server), Some(told)) = (server, told) else {
            return Err(Refused::not_found("the file of servers names none that is called so"));
        };
        self.find_runs()?;
        let mut going = lock(&self.going);
        going.retain(|_, one| !one.thread.is_finished());
        if going.contains_key(name) {
            return Err(Refused::conflict("this server is being recorded already"));
        }
        if self.told.values().any(|told| lock(told).phase == Phase::Starting) {
            return Err(Refused::conflict("another recording is just being begun: try again in a moment"));
        }
        *lock(told) = Told { phase: Phase::Starting, ..Told::default() };
        let stop = Arc::new(Stop::new());
        let (request, told, stop_too) = (server.request(&self.runs), Arc::clone(told), Arc::clone(&stop));
        let recorder = Arc::clone(&self.recorder);
        let thread = thread::spawn(move || {
            let end = End { told: &told, failure: Some(PANIC.to_string()) };
            let recorded = recorder.record(&request, &|progress| keep(&told, progress), &stop_too);
            end.with(recorded.err());
        });
        going.insert(name.to_string(), Going { stop, thread });
        Ok(())
    }

    /// Ends the recording of a server.
    pub(crate) fn stop(&self, name: &str) -> Answer<()> {
        let going = lock(&self.going);
        let Some(one) = going.get(name).filter(|one| !one.thread.is_finished()) else {
            return Err(Refused::conflict("this server is not being recorded"));
        };
        one.stop.ask();
        if let Some(told) = self.told.get(name) {
            lock(told).phase = Phase::Ending;
        }
        Ok(())
    }

    /// Ends every recording, and waits for them.
    pub(crate) fn end(&self) {
        let going = lock(&self.going);
        for one in going.values() {
            one.stop.ask();
        }
        let by = Instant::now() + END_WITHIN;
        while going.values().any(|one| !one.thread.is_finished()) && Instant::now() < by {
            thread::sleep(LOOK_EVERY);
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
        ) -> Result<(), String> {
            Err("nothing is recorded here".to_string())
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
    fn a_file_of_servers_is_read_and_what_is_wrong_in_it_is_told() {
        let one = "[[server]]\nname = \"shop\"\ndsn = \"mysql://root@localhost/?socket=/s\"\n";
        let servers = read(one).unwrap();
        assert_eq!(
            (servers[0].name.as_str(), servers[0].interval_ms, servers[0].trace),
            ("shop", 1000, true)
        );
        assert_eq!(read("").unwrap().len(), 0);
        for (text, word) in [
            (format!("{one}{one}"), "two servers are called shop"),
            (format!("{one}interval_ms = 5\n"), "must be 100"),
            (format!("{one}disk_max = \"much\"\n"), "disk_max"),
            (format!("{one}password = \"x\"\n"), "unknown field"),
            ("[[server]]\nname = \"\"\ndsn = \"\"\n".to_string(), "needs a name"),
        ] {
            let told = read(&text).unwrap_err().to_string();
            assert!(told.contains(word), "{told}");
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
            let told = refused.to_string();
            assert!(
                told.contains("passwords") && !told.contains("token") && told.contains("chmod 600"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_recording_that_panics_leaves_its_server_failed() {
        let told = Arc::new(Mutex::new(Told { phase: Phase::Starting, ..Told::default() }));
        let of_thread = Arc::clone(&told);
        let thread = thread::spawn(move || {
            let _end = End { told: &of_thread, failure: Some(PANIC.to_string()) };
            panic!("this text is expected");
        });
        assert!(thread.join().is_err());
        let told = lock(&told);
        assert!(told.phase == Phase::Failed && told.words == PANIC, "{told:?}");
    }

    #[test]
    fn a_server_that_is_not_named_or_not_recorded_is_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let live = Live::new(folder.path().to_path_buf(), Vec::new(), Arc::new(Nothing));
        assert!(live.start("mysql://root@evil/").is_err());
        assert!(live.stop("x").is_err());
        assert_eq!(live.list().unwrap().len(), 0);
    }
}

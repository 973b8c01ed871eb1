//! What the program around this library does with a run: it records it, and writes its result for other programs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use whyso_load::{Endpoint, EngineKind, Interval, LevelOutcome, Pacing};

use crate::error::RecordingError;
use crate::facts::Facts;
use crate::settings::Settings;

/// Options whose values are nobody else's business.
const SECRETS: [&str; 1] = ["mysql-password"];

/// A run of events.
#[derive(Clone, Debug)]
pub struct Run {
    /// As it was typed; "-" for a script on standard input.
    pub test: String,
    /// The servers, in the order in which they are used; at least one.
    pub endpoints: Vec<Endpoint>,
    pub threads: u32,
    pub pacing: Pacing,
    /// `None`: no limit.
    pub time: Option<Duration>,
    pub warmup: Duration,
    pub seed: u64,
    pub engine: EngineKind,
    /// The percentile that is reported, 1 to 100; `None`: none is.
    pub percentile: Option<u32>,
    /// Every option and its value, those of the script too; no passwords.
    pub options: Vec<(String, String)>,
    /// A file that names hosts whose agents record, too.
    pub hosts: Option<PathBuf>,
}

/// The program around this library.
pub trait Surroundings {
    /// Begins to record a run in a folder of its own within `folder`: what its servers and this machine do, and what the
    /// load reports. Called when the users are connected and nothing was sent yet.
    ///
    /// # Errors
    /// Why it can't be recorded; the run does not begin.
    fn record(&self, run: &Run, folder: &Path) -> Result<Box<dyn Recording>, RecordingError>;

    /// The result as the object that `whyso load --json` prints.
    fn json(&self, run: &Run, outcome: &LevelOutcome) -> String;
}

/// A run that is being recorded.
pub trait Recording {
    /// Takes what the load did in about a second. Intervals come in order and without gaps, warm-up included.
    fn interval(&mut self, interval: &Interval);

    /// The measured window begins, or is about to end: what is read only now and then is read now. Does not wait.
    fn window_edge(&mut self) {}

    /// Ends the recording; gives its folder. `interrupted`: somebody broke the run off.
    ///
    /// # Errors
    /// Why it is not whole.
    fn finish(self: Box<Self>, outcome: &LevelOutcome, interrupted: bool) -> Result<PathBuf, RecordingError>;
}

impl Run {
    pub(crate) fn new(settings: &Settings, facts: &Facts, pacing: Pacing) -> Run {
        let shown = facts.options.iter().filter(|(name, _)| !SECRETS.contains(&name.as_str()));
        Run {
            test: facts.test.clone(),
            endpoints: settings.endpoints.clone(),
            threads: settings.threads,
            pacing,
            time: settings.time,
            warmup: settings.warmup,
            seed: facts.seed,
            engine: settings.engine,
            percentile: (settings.percentile > 0).then_some(settings.percentile),
            options: shown.map(|(name, value)| (name.clone(), value.to_string())).collect(),
            hosts: settings.hosts.clone(),
        }
    }
}

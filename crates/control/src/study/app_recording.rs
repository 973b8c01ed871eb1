//! The recording of a start of the sample application, from before its load to after it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use whyso_explain::model::Part;
use whyso_record::Recording;
use whyso_server::app::App;
use whyso_trace::{StackSampling, StacksOf};

use crate::progress::{Listener, News};
use crate::record::{RecordPlan, RecordTarget, Taps, record};
use crate::recording::Outcome;
use crate::{Error, Stop};

/// Longest that the tracer may take until it records.
const BEGINS_WITHIN: Duration = Duration::from_secs(60);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
const INTERVAL: Duration = Duration::from_secs(1);
/// What is recorded of an application, where it runs; the first one answers the clients.
const PROGRAMS: [&str; 3] = ["httpd", "php-fpm", "memcached"];

/// From this share of a request's time on, a wait is named.
const NAMED_MIN: f64 = 0.05;
/// From this share of the waits on, they are for one file.
const MOST_MIN: f64 = 0.5;
/// From this share of requests on, the threads of a program work on several by turns.
const BY_TURNS_MIN: f64 = 0.5;

/// A recording that has begun. It ends when this is dropped.
pub(super) struct AppRecording {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Result<Outcome, Error>>>,
}

/// Hears that the window has begun.
struct Beginning(Arc<AtomicBool>);

impl Listener for Beginning {
    fn hear(&self, news: News<'_>) {
        if matches!(news, News::Step(_)) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

impl AppRecording {
    /// Begins to record the programs of an application into `runs`, and returns when the window has begun.
    ///
    /// # Errors
    /// They can't be traced, or the user asked for the end.
    pub(super) fn begin(
        app: &App,
        runs: &Path,
        command: &[String],
        asked: &Stop,
    ) -> Result<AppRecording, Error> {
        let pid = |name: &&str| app.processes.iter().find(|(program, _)| program == name);
        let mut pids = PROGRAMS.iter().filter_map(pid).map(|(_, pid)| pid.to_string());
        let first = pids.next().ok_or_else(|| Error::Failed("Apache has ended".to_string()))?;
        let plan = RecordPlan {
            target: RecordTarget::Processes(first),
            nodes: Vec::new(),
            other_dsns: Vec::new(),
            other_processes: pids.collect(),
            length: None,
            command: Vec::new(),
            toggle: false,
            interval: INTERVAL,
            trace: true,
            stacks: StackSampling::Off,
            stacks_of: StacksOf::Server,
            sql: None,
            add_ons: Vec::new(),
            access_logs: Vec::new(),
            relay: whyso_relay::RelayTargets::default(),
            taps: Taps::default(),
            load: None,
            hosts: None,
            pfs: None,
            out: runs.to_path_buf(),
            labels: whyso_record::Labels::default(),
            bytes_max: None,
            command_line: command.to_vec(),
        };
        let (stop, has_begun) = (Arc::new(Stop::new()), Arc::new(AtomicBool::new(false)));
        let (of_thread, heard) = (stop.clone(), Beginning(has_begun.clone()));
        let thread = std::thread::spawn(move || record(&plan, &heard, &of_thread, &|_| None));
        let recording = AppRecording { stop, thread: Some(thread) };
        let deadline = Instant::now() + BEGINS_WITHIN;
        while !has_begun.load(Ordering::SeqCst) {
            if recording.thread.as_ref().is_some_and(JoinHandle::is_finished) {
                let ended = recording.end();
                return Err(ended.err().unwrap_or_else(|| {
                    Error::Failed("the recording of the application ended at once".to_string())
                }));
            }
            if asked.is_asked() {
                return Err(Error::Interrupted);
            }
            if Instant::now() >= deadline {
                return Err(Error::Failed(format!(
                    "the recording of the application did not begin within {} s: give trace = false",
                    BEGINS_WITHIN.as_secs()
                )));
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
        Ok(recording)
    }

    /// Ends the recording, and returns its folder.
    ///
    /// # Errors
    /// It was cut short, or can't be written.
    pub(super) fn end(mut self) -> Result<PathBuf, Error> {
        self.stop.ask();
        let Some(thread) = self.thread.take() else { return Err(Error::Interrupted) };
        let outcome = thread.join().map_err(|_| Error::Failed("the recording panicked".to_string()))??;
        match outcome.failure {
            Some(failure) => Err(Error::Failed(failure)),
            None => Ok(outcome.path),
        }
    }
}

impl Drop for AppRecording {
    fn drop(&mut self) {
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            // Its outcome is of no use where the start failed.
            let _ = thread.join();
        }
    }
}

/// Waits for locks inside the kernel and for files, of a request to the first program.
#[derive(Default)]
pub(super) struct FileWaits {
    /// For locks inside the kernel, within the request, in milliseconds in the mean; `None` where no request was seen.
    pub(super) ms: Option<f64>,
    /// Of threads of the first program that answer requests, for files and such locks outside of these; `None` where that is not known.
    pub(super) after_ms: Option<f64>,
    /// For which files or folders, in sentences.
    pub(super) texts: Vec<String>,
}

/// Reads these waits from a recording. `folder`: the application's, which no text names, as it differs from start to start.
pub(super) fn file_waits(path: &Path, folder: &Path) -> Result<FileWaits, Error> {
    let recording = Recording::open(path)?;
    let explained = whyso_explain::explain(&whyso_query::input(&recording)?);
    let Some(first) = explained.tiers.iter().find(|tier| tier.is_first && !tier.is_database) else {
        return Ok(FileWaits::default());
    };
    let named = |path: &str| path.replace(&format!("{}/", folder.display()), "");
    let waits = || first.lines.iter().filter(|line| line.part == Some(Part::KernelLock) && !line.is_divided);
    let longest = waits().max_by(|a, b| a.ms.total_cmp(&b.ms));
    let text = longest.filter(|line| line.share >= NAMED_MIN).and_then(|line| {
        let tier = explained.tiers.iter().find(|tier| tier.name == line.tier)?;
        let own = tier.parts.iter().find(|part| part.part == Part::KernelLock)?;
        let file = own.file.as_ref().filter(|file| file.share >= MOST_MIN)?;
        let path = named(&file.path);
        Some(format!("requests waited for a lock inside the kernel: that of {path}, in {}", tier.name))
    });
    let after = || first.after.iter().filter(|part| part.part != Part::Cpu);
    let longest = after().filter(|part| part.ms >= NAMED_MIN * first.mean_ms);
    let after_text = longest.flat_map(|part| &part.file).find(|file| file.share >= MOST_MIN).map(|file| {
        format!("after their answers, threads of {} waited for {}", first.name, named(&file.path))
    });
    Ok(FileWaits {
        ms: Some(waits().map(|line| line.ms).sum()),
        // Of threads that work on several requests by turns it is not known.
        after_ms: (first.interleaved < BY_TURNS_MIN).then(|| after().map(|part| part.ms).sum()),
        texts: text.into_iter().chain(after_text).collect(),
    })
}

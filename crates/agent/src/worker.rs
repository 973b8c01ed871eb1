//! Blocks of a study that another machine commands: taken from the hub's queue, carried out here, and handed over.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use whyso_control::{Quiet, Stop, check_study_of_others, pack_unit, study_unit};
use whyso_hub::{Bus, Frame, RecordingId, WorkPiece, WorkState};
use whyso_study::StoredStudy;

/// Between two words to the hub that a block is under way.
const KEEP_INTERVAL: Duration = Duration::from_secs(8);
/// After a question or a part that the hub did not take.
const AGAIN_INTERVAL: Duration = Duration::from_secs(1);
/// Nobody has asked for this long: after its block the worker takes no other.
const UNASKED_TIME_MAX: Duration = Duration::from_secs(90);
/// Bytes of a result in one part.
const PART_BYTES: usize = 1 << 20;
const RESULT: &str = "result";
const RUNS: &str = "runs";

/// A worker of one study.
pub(crate) struct Worker {
    stop: Arc<Stop>,
    shared: Arc<Mutex<SharedWork>>,
    is_over: Arc<AtomicBool>,
}

struct SharedWork {
    piece: Option<(u32, Instant)>,
    done: u32,
    problem: Option<String>,
    asked_at: Instant,
}

impl Worker {
    /// Begins to take blocks. `folder`: for what is under way.
    ///
    /// # Errors
    /// Why this study can't be carried out here, as a sentence.
    pub(crate) fn begin(
        work: &RecordingId,
        study: &str,
        folder: PathBuf,
        bus: watch::Receiver<Option<Bus>>,
    ) -> Result<Worker, String> {
        let study = StoredStudy::parse(study.as_bytes()).map_err(|error| error.to_string())?;
        check_study_of_others(&study).map_err(|error| error.to_string())?;
        let stop = Arc::new(Stop::new());
        let asked_at = Instant::now();
        let shared = Arc::new(Mutex::new(SharedWork { piece: None, done: 0, problem: None, asked_at }));
        let is_over = Arc::new(AtomicBool::new(false));
        let worker =
            Worker { stop: Arc::clone(&stop), shared: Arc::clone(&shared), is_over: Arc::clone(&is_over) };
        let at_work = WorkerThread { work: work.clone(), study, folder, bus, stop, shared };
        let thread = std::thread::Builder::new().name("worker".to_string()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(at_work.run()),
                Err(error) => at_work.lock().problem = Some(error.to_string()),
            }
            is_over.store(true, Ordering::Release);
        });
        thread.map(|_| worker).map_err(|error| format!("no thread could be started: {error}"))
    }

    pub(crate) fn state(&self) -> WorkState {
        let mut shared = lock(&self.shared);
        shared.asked_at = Instant::now();
        WorkState {
            is_at_work: !self.is_over(),
            piece: shared.piece.map(|(number, since)| (number, since.elapsed().as_secs())),
            done: shared.done,
            problem: shared.problem.clone(),
        }
    }

    pub(crate) fn end(&self) {
        self.stop.ask();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(shared: &Mutex<SharedWork>) -> MutexGuard<'_, SharedWork> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

struct WorkerThread {
    work: RecordingId,
    study: StoredStudy,
    folder: PathBuf,
    bus: watch::Receiver<Option<Bus>>,
    stop: Arc<Stop>,
    shared: Arc<Mutex<SharedWork>>,
}

impl WorkerThread {
    fn lock(&self) -> MutexGuard<'_, SharedWork> {
        lock(&self.shared)
    }

    fn bus(&self) -> Option<Bus> {
        self.bus.borrow().clone()
    }

    async fn run(&self) {
        while !self.stop.is_asked() {
            let is_unasked = self.lock().asked_at.elapsed() > UNASKED_TIME_MAX;
            if is_unasked {
                return;
            }
            let taken = match self.bus() {
                Some(bus) => bus.take_work(&self.work).await,
                None => Ok(None),
            };
            match taken {
                Ok(Some(piece)) => {
                    self.lock().piece = Some((piece.number, Instant::now()));
                    self.do_piece(&piece).await;
                    self.lock().piece = None;
                }
                // The queue is empty, or the hub away for a while.
                Ok(None) | Err(_) => tokio::time::sleep(AGAIN_INTERVAL).await,
            }
            if self.lock().problem.is_some() {
                return;
            }
        }
    }

    async fn do_piece(&self, piece: &WorkPiece) {
        let folder = self.folder.join(format!("{}-{}-{}", self.work, piece.number, piece.attempt));
        // That of an agent that was killed.
        let _ = fs::remove_dir_all(&folder);
        let done = self.carry_out(piece, &folder).await;
        match done {
            Ok(()) => {
                let result = folder.join(RESULT);
                if self.hand_over(piece, &result).await && piece.done().await.is_ok() {
                    self.lock().done += 1;
                }
            }
            Err(_) if self.stop.is_asked() => {
                // Where the hub does not hear it, it finds out by itself.
                let _ = piece.give_back().await;
            }
            Err(problem) => {
                let _ = piece.give_back().await;
                self.lock().problem = Some(problem);
            }
        }
        let _ = fs::remove_dir_all(&folder);
    }

    /// Carries a block out in a thread of its own, and lets the hub know meanwhile that this goes well.
    async fn carry_out(&self, piece: &WorkPiece, folder: &Path) -> Result<(), String> {
        let made = folder.parent().map_or(Ok(()), fs::create_dir_all);
        made.map_err(|error| format!("can't write {}: {error}", folder.display()))?;
        let (study, number, stop) = (self.study.clone(), piece.number, Arc::clone(&self.stop));
        let here = folder.to_path_buf();
        let mut doing = tokio::task::spawn_blocking(move || {
            let command = ["whyso", "agent", "run"].map(str::to_string);
            let records = study_unit(study, number, &here, &command, &Quiet, &stop)?;
            pack_unit(&records, &here.join(RUNS), &here.join(RESULT))
        });
        loop {
            match tokio::time::timeout(KEEP_INTERVAL, &mut doing).await {
                Ok(Ok(done)) => return done.map_err(|error| error.to_string()),
                Ok(Err(error)) => return Err(format!("the thread that carried it out ended: {error}")),
                // Where the hub is away for long, another one gets the block as well, and the first result counts.
                Err(_) => drop(piece.keep().await),
            }
        }
    }

    /// Hands a result over, part by part. Returns whether the hub keeps all of it.
    async fn hand_over(&self, piece: &WorkPiece, result: &Path) -> bool {
        let Ok(mut file) = File::open(result) else { return false };
        let mut left = file.metadata().map_or(0, |facts| facts.len());
        let mut number = 0;
        loop {
            let mut entries = Vec::new();
            let Ok(read) = file.by_ref().take(PART_BYTES as u64).read_to_end(&mut entries) else {
                return false;
            };
            left = left.saturating_sub(read as u64);
            number += 1;
            let is_last = left == 0 || read == 0;
            let Ok(bytes) = (Frame { number, is_last, lost: 0, entries }).to_bytes() else { return false };
            while !self.publish(piece, bytes::Bytes::from(bytes.clone())).await {
                if self.stop.is_asked() {
                    return false;
                }
                let _ = piece.keep().await;
                tokio::time::sleep(AGAIN_INTERVAL).await;
            }
            if is_last {
                return true;
            }
        }
    }

    async fn publish(&self, piece: &WorkPiece, bytes: bytes::Bytes) -> bool {
        let Some(bus) = self.bus() else { return false };
        bus.publish_result(&self.work, piece, bytes).await.is_ok()
    }
}

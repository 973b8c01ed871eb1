//! The recorder: takes what a run produces, without holding it up.

mod disk;
mod idle;
mod rest;
mod sealer;
mod writer;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use arrow::array::RecordBatch;

pub(crate) use disk::Disk;

use crate::command_table;
use crate::data::{
    ClientCommand, Event, Kind, LoadInterval, ProgramSample, ProgramWait, Reading, SeriesId, SeriesKey,
    StackFrame, StackSample, StackWait, StatementText, StatesInterval, TextRows,
};
use crate::error::{Error, Result};
use crate::layout;
use crate::program_table;
use crate::run::RunInfo;
use crate::stack_table;
use crate::sweep::sweep;
use idle::IdleThreads;
use rest::ConnectionsAtRest;

/// Longest wait for a segment to be sealed.
const SEAL_S_MAX: u64 = 120;
/// Longest wait for a run to be finished: an hour of samples may have to be compacted.
const FINISH_S_MAX: u64 = 600;

/// How a recording is written.
#[derive(Clone, Debug)]
pub struct Options {
    /// Space that is set aside on the disk so that a run ends properly when it is full.
    pub reserve_bytes: u64,
    /// What may wait to be written; more is lost, and counted as such.
    pub queue_bytes_max: usize,
    /// Longest time that something waits before it is in a file.
    pub flush_ms: u64,
    /// Longest time that a segment stays a write-ahead file.
    pub segment_s: u64,
    /// Whether the recorder's own cost is recorded, as source "recorder".
    pub own_cost: bool,
    /// Size of the folder beyond which the oldest detail is removed. It is checked when a segment is sealed, so that one segment more may
    /// lie there for a while. Roll-ups stay.
    pub bytes_max: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            reserve_bytes: 64 << 20,
            queue_bytes_max: 64 << 20,
            flush_ms: 250,
            segment_s: 300,
            own_cost: true,
            bytes_max: None,
        }
    }
}

/// What a finished recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Size of the folder.
    pub bytes: u64,
    pub samples: u64,
    pub series: u32,
    /// Readings, rows, events and intervals that could not be recorded.
    pub lost: u64,
}

/// What recording has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnCost {
    /// CPU of the recorder's threads.
    pub cpu_ns: i64,
    /// Bytes written, those that were later replaced too.
    pub written_bytes: u64,
    /// What a caller handed over and could not be recorded, in pieces.
    pub lost: u64,
}

/// Receives what a recorder receives, in the thread of the recorder's caller: no call may wait.
pub trait Tap: Send + Sync {
    /// A series that is new; it comes before every reading with its number.
    fn series(&self, id: SeriesId, key: &SeriesKey);
    fn reading(&self, reading: &Reading);
    fn load(&self, _interval: &LoadInterval) {}
    fn rows(&self, _rows: &TextRows) {}
    fn event(&self, _event: &Event) {}
    fn states(&self, _interval: &StatesInterval) {}
    /// Rows of a stream that is no other call's: stacks, waits, frames, commands, statements, and those of [`Recorder::batch`].
    fn batch(&self, _stream: &str, _batch: &RecordBatch) {}
    /// `run.json` as it is now.
    fn run(&self, _json: &[u8]) {}
}

/// Writes a recording. Clones write the same one; nothing here waits for the disk except [`Recorder::seal`] and [`Recorder::finish`].
///
/// When the last clone goes without [`Recorder::finish`], what it had received is written, and the recording counts as cut short.
#[derive(Clone)]
pub struct Recorder {
    inner: Arc<Inner>,
}

struct Inner {
    sender: Sender<Message>,
    shared: Arc<RecorderState>,
    queue_bytes_max: usize,
}

/// What the recorder's threads share with its users.
pub(crate) struct RecorderState {
    disk: Disk,
    bytes_max: Option<u64>,
    series: Mutex<Series>,
    taps: RwLock<Vec<Arc<dyn Tap>>>,
    idle_threads: Mutex<IdleThreads>,
    connections_at_rest: Mutex<ConnectionsAtRest>,
    queued_bytes: AtomicUsize,
    samples: AtomicU64,
    lost: AtomicU64,
    writer_cpu_ns: AtomicI64,
    sealer_cpu_ns: AtomicI64,
}

#[derive(Default)]
pub(crate) struct Series {
    ids: HashMap<[String; 4], SeriesId>,
    keys: Vec<SeriesKey>,
}

pub(crate) enum Message {
    Series(SeriesId, SeriesKey),
    Reading(Reading),
    Rows(TextRows),
    Event(Event),
    Load(LoadInterval),
    Batch { stream: String, batch: RecordBatch },
    Run(Vec<u8>),
    Seal(Sender<Result<()>>),
    Finish(Sender<Result<()>>),
    Discard(Sender<Result<()>>),
}

impl Message {
    /// About what it takes in memory while it waits.
    fn bytes(&self) -> usize {
        let payload_bytes = match self {
            Message::Series(..) => 200,
            Message::Reading(reading) => reading.values.len() * 24,
            Message::Rows(rows) => {
                let cells = rows.rows.iter().flatten();
                cells.map(|cell| 24 + cell.as_ref().map_or(0, String::len)).sum()
            }
            Message::Event(event) => event.text.len(),
            Message::Load(load) => (load.response.len() + load.service.len()) * 16 + load.errors.len() * 40,
            Message::Batch { batch, .. } => batch.get_array_memory_size(),
            Message::Run(json) => json.len(),
            Message::Seal(_) | Message::Finish(_) | Message::Discard(_) => 0,
        };
        100 + payload_bytes
    }
}

impl Recorder {
    /// Begins a recording in `dir`, which is made where it does not exist and must not hold a recording yet. A `run.json` is written at once.
    pub fn create(dir: &Path, options: Options) -> Result<Recorder> {
        if dir.join(layout::RUN).exists() {
            return Err(Error::Exists(dir.to_path_buf()));
        }
        if let Some(runs) = dir.parent() {
            sweep(runs);
        }
        let disk = Disk::create(dir, options.reserve_bytes)?;
        let id = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let anchors = vec![whyso_clock::Anchor::now()];
        let tool_version = env!("CARGO_PKG_VERSION").to_string();
        let run = RunInfo { id, tool_version, anchors, ..RunInfo::default() };
        disk.put(layout::RUN, &run_json(&run)?)?;
        let shared = Arc::new(RecorderState {
            disk,
            bytes_max: options.bytes_max,
            series: Mutex::default(),
            taps: RwLock::default(),
            idle_threads: Mutex::default(),
            connections_at_rest: Mutex::default(),
            queued_bytes: AtomicUsize::new(0),
            samples: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            writer_cpu_ns: AtomicI64::new(0),
            sealer_cpu_ns: AtomicI64::new(0),
        });
        let (sender, receiver) = mpsc::channel();
        let inner = Inner { sender, shared: Arc::clone(&shared), queue_bytes_max: options.queue_bytes_max };
        let recorder = Recorder { inner: Arc::new(inner) };
        let own = options.own_cost.then(|| recorder.own_series());
        let started = thread::Builder::new()
            .name("recorder".to_string())
            .spawn(move || writer::run(&shared, &receiver, &options, own));
        started.map_err(|cause| Error::io(dir, cause))?;
        Ok(recorder)
    }

    /// From now on `tap` receives what is recorded, beginning with the series that there are.
    pub fn tap(&self, tap: Arc<dyn Tap>) {
        // Within the lock, so that no series comes between those that there are and those to come.
        let series = self.inner.shared.series();
        for (id, key) in series.keys.iter().enumerate() {
            tap.series(SeriesId(id as u32), key);
        }
        let mut taps = self.inner.shared.taps.write().unwrap_or_else(PoisonError::into_inner);
        taps.push(tap);
    }

    fn call_taps(&self, call: impl Fn(&dyn Tap)) {
        let taps = self.inner.shared.taps.read().unwrap_or_else(PoisonError::into_inner);
        taps.iter().for_each(|tap| call(tap.as_ref()));
    }

    /// Number of a series, the same for the same host, source, metric and instance.
    pub fn series(&self, key: &SeriesKey) -> SeriesId {
        let name = [&key.host, &key.source, &key.metric, &key.instance].map(String::clone);
        let mut series = self.inner.shared.series();
        if let Some(id) = series.ids.get(&name) {
            return *id;
        }
        let id = SeriesId(series.keys.len() as u32);
        series.ids.insert(name, id);
        series.keys.push(key.clone());
        self.call_taps(|tap| tap.series(id, key));
        // Within the lock, so that no reading with this number can overtake it.
        self.send(Message::Series(id, key.clone()));
        id
    }

    pub fn reading(&self, reading: Reading) {
        self.call_taps(|tap| tap.reading(&reading));
        self.give(Message::Reading(reading));
    }

    pub fn rows(&self, rows: TextRows) {
        self.call_taps(|tap| tap.rows(&rows));
        let at_rest = &self.inner.shared.connections_at_rest;
        let rows = at_rest.lock().unwrap_or_else(PoisonError::into_inner).pass(rows);
        self.give(Message::Rows(rows));
    }

    pub fn event(&self, event: Event) {
        self.call_taps(|tap| tap.event(&event));
        self.give(Message::Event(event));
    }

    pub fn load(&self, load: LoadInterval) {
        self.call_taps(|tap| tap.load(&load));
        self.give(Message::Load(load));
    }

    /// What the server's threads did since the snapshot before.
    pub fn states(&self, interval: &StatesInterval) {
        self.call_taps(|tap| tap.states(interval));
        let mut idle = self.idle_threads();
        for batch in idle.pass(interval) {
            self.give_batch(layout::STATES, false, batch);
        }
    }

    fn idle_threads(&self) -> MutexGuard<'_, IdleThreads> {
        self.inner.shared.idle_threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is held back of threads that do nothing.
    fn release_idle_threads(&self) {
        if let Some(batch) = self.idle_threads().release() {
            self.give_batch(layout::STATES, false, batch);
        }
    }

    /// Threads that were found on CPUs, in order of time.
    pub fn stacks(&self, samples: &[StackSample]) {
        self.give_batch(layout::STACKS, samples.is_empty(), stack_table::samples_batch(samples));
    }

    /// Waits that were chosen, in order of time.
    pub fn waits(&self, waits: &[StackWait]) {
        self.give_batch(layout::WAITS, waits.is_empty(), stack_table::waits_batch(waits));
    }

    /// The functions of stacks that [`Recorder::stacks`] and [`Recorder::waits`] name; each stack once, and whole.
    pub fn frames(&self, frames: &[StackFrame]) {
        self.give_batch(layout::FRAMES, frames.is_empty(), stack_table::frames_batch(frames));
    }

    /// Programs other than the server that were found on CPUs, in order of time.
    pub fn program_stacks(&self, samples: &[ProgramSample]) {
        let batch = program_table::samples_batch(samples);
        self.give_batch(layout::PROGRAM_STACKS, samples.is_empty(), batch);
    }

    /// Waits of programs other than the server that were chosen, in order of time.
    pub fn program_waits(&self, waits: &[ProgramWait]) {
        self.give_batch(layout::PROGRAM_WAITS, waits.is_empty(), program_table::waits_batch(waits));
    }

    /// The functions of stacks that [`Recorder::program_stacks`] and [`Recorder::program_waits`] name; each stack once, and whole.
    pub fn program_frames(&self, frames: &[StackFrame]) {
        self.give_batch(layout::PROGRAM_FRAMES, frames.is_empty(), stack_table::frames_batch(frames));
    }

    /// Commands of clients, in order of time.
    pub fn commands(&self, commands: &[ClientCommand]) {
        let batch = command_table::commands_batch(commands);
        self.give_batch(layout::COMMANDS, commands.is_empty(), batch);
    }

    /// The statements that [`Recorder::commands`] names; each once.
    pub fn statements(&self, statements: &[StatementText]) {
        let batch = command_table::statements_batch(statements);
        self.give_batch(layout::STATEMENTS, statements.is_empty(), batch);
    }

    fn give_batch(&self, stream: &str, empty: bool, batch: Result<RecordBatch>) {
        match batch {
            _ if empty => {}
            Ok(batch) if stream != layout::STATES => self.tapped_batch(stream, batch),
            Ok(batch) => self.give(Message::Batch { stream: stream.to_string(), batch }),
            Err(_) => {
                self.inner.shared.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn tapped_batch(&self, stream: &str, batch: RecordBatch) {
        self.call_taps(|tap| tap.batch(stream, &batch));
        self.give(Message::Batch { stream: stream.to_string(), batch });
    }

    /// Appends rows to a stream of any columns, such as "locks". The name is of lower-case letters, digits and `_`;
    /// all batches of a stream should have the same columns.
    pub fn batch(&self, stream: &str, batch: RecordBatch) -> Result<()> {
        let is_reserved = layout::rollup_streams().any(|name| name == stream)
            || [layout::COLLECTIONS, layout::SAMPLES, layout::LOAD, layout::EVENTS, "series"]
                .contains(&stream)
            || [layout::STATES, layout::STACKS, layout::WAITS, layout::FRAMES].contains(&stream)
            || [layout::PROGRAM_STACKS, layout::PROGRAM_WAITS, layout::PROGRAM_FRAMES].contains(&stream)
            || [layout::COMMANDS, layout::STATEMENTS].contains(&stream);
        let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if is_reserved || stream.is_empty() || !stream.bytes().all(letter) {
            return Err(Error::StreamName(stream.to_string()));
        }
        self.tapped_batch(stream, batch);
        Ok(())
    }

    /// Replaces `run.json`, as a whole.
    pub fn set_run(&self, run: &RunInfo) {
        match run_json(run) {
            Ok(json) => {
                self.call_taps(|tap| tap.run(&json));
                self.send(Message::Run(json));
            }
            Err(error) => self.inner.shared.disk.fail(&error),
        }
    }

    /// Seals what was received until now into Parquet, and returns when that is done: between two levels, where it disturbs no measurement.
    ///
    /// Fails when the recording has failed, or when the disk does not answer within two minutes.
    pub fn seal(&self) -> Result<()> {
        self.release_idle_threads();
        self.ask(Message::Seal, SEAL_S_MAX)
    }

    /// Seals and compacts everything and ends the recording. What comes afterwards is counted as lost.
    pub fn finish(&self) -> Result<Summary> {
        self.release_idle_threads();
        self.ask(Message::Finish, FINISH_S_MAX)?;
        let shared = &self.inner.shared;
        Ok(Summary {
            bytes: crate::folder::folder_bytes(&shared.disk.dir),
            samples: shared.samples.load(Ordering::Relaxed),
            series: shared.series().keys.len() as u32,
            lost: shared.lost.load(Ordering::Relaxed),
        })
    }

    /// Ends the recording and removes its folder, for one that nobody wants. What comes afterwards is counted as lost.
    ///
    /// # Errors
    /// The folder can't be removed.
    pub fn discard(&self) -> Result<()> {
        self.ask(Message::Discard, SEAL_S_MAX)
    }

    /// Why recording had to stop, such as a full disk. The run should then end; what it did so far is kept.
    pub fn failed(&self) -> Option<String> {
        self.inner.shared.disk.failed()
    }

    pub fn own_cost(&self) -> OwnCost {
        self.inner.shared.own_cost()
    }

    /// What waits to be written, in bytes.
    pub fn queued_bytes(&self) -> usize {
        self.inner.shared.queued_bytes.load(Ordering::Relaxed)
    }

    fn give(&self, message: Message) {
        if self.queued_bytes() > self.inner.queue_bytes_max {
            self.inner.shared.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.send(message);
    }

    fn send(&self, message: Message) {
        let bytes = message.bytes();
        self.inner.shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if self.inner.sender.send(message).is_err() {
            self.inner.shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.inner.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn ask(&self, question: impl Fn(Sender<Result<()>>) -> Message, seconds_max: u64) -> Result<()> {
        let (reply, answer): (_, Receiver<Result<()>>) = mpsc::channel();
        self.send(question(reply));
        match answer.recv_timeout(Duration::from_secs(seconds_max)) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => Err(Error::Timeout(seconds_max)),
            Err(RecvTimeoutError::Disconnected) => {
                let why = self.failed().unwrap_or_else(|| "it was finished before".to_string());
                Err(Error::Ended(why))
            }
        }
    }

    fn own_series(&self) -> [SeriesId; 4] {
        let series = |metric: &str, kind, unit: &str| {
            self.series(&SeriesKey {
                host: "client".to_string(),
                source: writer::OWN_SOURCE.to_string(),
                metric: metric.to_string(),
                instance: String::new(),
                kind,
                unit: unit.to_string(),
            })
        };
        [
            series("cpu_ns", Kind::Counter, "ns"),
            series("written_bytes", Kind::Counter, "bytes"),
            series("queued_bytes", Kind::Gauge, "bytes"),
            series("lost", Kind::Counter, "1"),
        ]
    }
}

impl RecorderState {
    pub(crate) fn series(&self) -> MutexGuard<'_, Series> {
        // Nothing that holds this lock can panic half way through a change.
        self.series.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(crate) fn own_cost(&self) -> OwnCost {
        OwnCost {
            cpu_ns: self.writer_cpu_ns.load(Ordering::Relaxed) + self.sealer_cpu_ns.load(Ordering::Relaxed),
            written_bytes: self.disk.written_bytes(),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }
}

fn run_json(run: &RunInfo) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(run).map_err(|cause| Error::damaged(Path::new(layout::RUN), "JSON", cause))
}

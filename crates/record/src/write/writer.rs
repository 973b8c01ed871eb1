//! The recorder's thread: from the queue into write-ahead files.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;

use super::disk::Wal;
use super::sealer::{self, Job};
use super::{Message, Options, RecorderState};
use crate::data::{Event, LoadInterval, Reading, SeriesId, SeriesKey, Status, Value};
use crate::error::{Error, Result};
use crate::layout;
use crate::table::{self, Collection, Sample};
use crate::wal;

pub(crate) const OWN_SOURCE: &str = "recorder";
/// Samples that wait before they are written ahead of time, to bound memory.
const PENDING_SAMPLES_MAX: usize = 100_000;
const OWN_COST_EVERY: Duration = Duration::from_secs(1);

struct Writer<'a> {
    shared: &'a Arc<RecorderState>,
    /// Number of the segment that is being written.
    segment: u32,
    segment_began: Instant,
    /// When the first and the last reading of the segment were taken.
    span_ns: Option<(i64, i64)>,
    series_wal: Option<Wal>,
    wals: HashMap<String, Wal>,
    sources: HashMap<String, Source>,
    pending: Pending,
    /// How much of `lost` an event has reported.
    lost_reported: u64,
    jobs: SyncSender<Job>,
    /// Nobody wants what was recorded.
    discarded: bool,
}

struct Source {
    name: Arc<str>,
    next_collection: i64,
}

#[derive(Default)]
struct Pending {
    series: Vec<(u32, SeriesKey)>,
    collections: Vec<Collection>,
    samples: Vec<Sample>,
    load: Vec<LoadInterval>,
    events: Vec<Event>,
    batches: Vec<(String, RecordBatch)>,
}

pub(crate) fn run(
    shared: &Arc<RecorderState>,
    queue: &Receiver<Message>,
    options: &Options,
    own: Option<[SeriesId; 4]>,
) {
    let (jobs, jobs_receiver) = mpsc::sync_channel(1);
    let sealer_shared = Arc::clone(shared);
    let sealer = thread::Builder::new()
        .name("sealer".to_string())
        .spawn(move || sealer::run(&sealer_shared, &jobs_receiver));
    let sealer = match sealer {
        Ok(sealer) => sealer,
        Err(cause) => return shared.disk.fail(&Error::io(&shared.disk.dir, cause)),
    };
    let mut writer = Writer {
        shared,
        segment: 1,
        segment_began: Instant::now(),
        span_ns: None,
        series_wal: None,
        wals: HashMap::new(),
        sources: HashMap::new(),
        pending: Pending::default(),
        lost_reported: 0,
        jobs,
        discarded: false,
    };
    let finish = writer.take_messages(queue, options, own);
    writer.end(finish, sealer);
}

impl Writer<'_> {
    /// Until the recording is finished, which is then to be answered, or nobody is left to record.
    fn take_messages(
        &mut self,
        queue: &Receiver<Message>,
        options: &Options,
        own: Option<[SeriesId; 4]>,
    ) -> Option<Sender<Result<()>>> {
        let flush_every = Duration::from_millis(options.flush_ms);
        let segment_length = Duration::from_secs(options.segment_s);
        let mut flushed = Instant::now();
        let mut own_cost_read = Instant::now();
        loop {
            let wait = flush_every.saturating_sub(flushed.elapsed());
            match queue.recv_timeout(wait) {
                Ok(Message::Discard(reply)) => {
                    self.discarded = true;
                    return Some(reply);
                }
                Ok(Message::Finish(reply)) => {
                    own.into_iter().for_each(|own| self.read_own_cost(own));
                    self.flush();
                    return Some(reply);
                }
                Ok(message) => {
                    self.shared.queued_bytes.fetch_sub(message.bytes(), Ordering::Relaxed);
                    self.take(message);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.flush();
                    return None;
                }
            }
            if let Some(own) = own.filter(|_| own_cost_read.elapsed() >= OWN_COST_EVERY) {
                own_cost_read = Instant::now();
                self.read_own_cost(own);
            }
            if flushed.elapsed() >= flush_every || self.pending.samples.len() >= PENDING_SAMPLES_MAX {
                self.flush();
                flushed = Instant::now();
            }
            if self.segment_began.elapsed() >= segment_length {
                self.rotate(None);
            }
        }
    }

    fn take(&mut self, message: Message) {
        let readings_refused = self.shared.disk.failed().is_some();
        match message {
            // A disk that was full keeps what is left for the end of the run and what explains it.
            Message::Reading(_) | Message::Rows(_) | Message::Batch { .. } if readings_refused => {
                self.lose(1)
            }
            Message::Series(id, key) => self.pending.series.push((id.0, key)),
            Message::Reading(reading) => self.take_reading(reading),
            Message::Rows(rows) => {
                let stream = layout::rows_stream(&rows.source);
                self.collect(&stream, rows.t_ns, rows.t_ns, Status::Ok);
                match table::rows_batch(&rows) {
                    Ok(batch) if batch.num_rows() > 0 => self.pending.batches.push((stream, batch)),
                    Ok(_) => {}
                    Err(_) => self.lose(1),
                }
            }
            Message::Event(event) => self.pending.events.push(event),
            Message::Load(load) => self.pending.load.push(load),
            Message::Batch { stream, batch } => self.pending.batches.push((stream, batch)),
            Message::Run(json) => {
                if let Err(error) = self.shared.disk.put(layout::RUN, &json) {
                    self.shared.disk.fail(&error);
                }
            }
            Message::Seal(reply) => {
                self.flush();
                self.rotate(Some(reply));
            }
            Message::Finish(_) | Message::Discard(_) => {}
        }
    }

    fn take_reading(&mut self, reading: Reading) {
        let collection = self.collect(&reading.source, reading.begin_ns, reading.end_ns, reading.status);
        let sample = |(series, value): (SeriesId, Value)| Sample { series: series.0, collection, value };
        self.shared.samples.fetch_add(reading.values.len() as u64, Ordering::Relaxed);
        self.pending.samples.extend(reading.values.into_iter().map(sample));
    }

    /// Notes that a source was read, and returns the number of the reading. It has the source's number in the upper 32 bits, and the
    /// count of its readings in the lower. So the numbers of one source follow each other, which compresses to nothing.
    fn collect(&mut self, source: &str, begin_ns: i64, end_ns: i64, status: Status) -> i64 {
        let number = self.sources.len() as i64;
        if !self.sources.contains_key(source) {
            let new = Source { name: Arc::from(source), next_collection: number << 32 };
            self.sources.insert(source.to_string(), new);
        }
        let mut id = number << 32;
        let mut name: Arc<str> = Arc::from(source);
        if let Some(source) = self.sources.get_mut(source) {
            id = source.next_collection;
            name = Arc::clone(&source.name);
            source.next_collection += 1;
        }
        self.pending.collections.push(Collection { id, source: name, begin_ns, end_ns, status });
        let (first_ns, last_ns) = self.span_ns.unwrap_or((begin_ns, end_ns));
        self.span_ns = Some((first_ns.min(begin_ns), last_ns.max(end_ns)));
        id
    }

    fn read_own_cost(&mut self, [cpu, written, queued, lost]: [SeriesId; 4]) {
        let begin_ns = whyso_clock::monotonic_ns();
        self.note_cpu();
        let cost = self.shared.own_cost();
        let queued_bytes = self.shared.queued_bytes.load(Ordering::Relaxed);
        let values = vec![
            (cpu, Value::Int(cost.cpu_ns)),
            (written, Value::Int(cost.written_bytes as i64)),
            (queued, Value::Int(queued_bytes as i64)),
            (lost, Value::Int(cost.lost as i64)),
        ];
        let end_ns = whyso_clock::monotonic_ns();
        if self.shared.disk.failed().is_none() {
            self.take_reading(Reading {
                source: OWN_SOURCE.to_string(),
                begin_ns,
                end_ns,
                status: Status::Ok,
                values,
            });
        }
    }

    fn note_cpu(&self) {
        self.shared.writer_cpu_ns.store(whyso_clock::thread_cpu_ns(), Ordering::Relaxed);
    }

    fn lose(&self, pieces: u64) {
        self.shared.lost.fetch_add(pieces, Ordering::Relaxed);
    }

    /// Hands everything that waits to the operating system: it then survives the end of this process.
    fn flush(&mut self) {
        self.tell_losses();
        let pending = mem::take(&mut self.pending);
        if !pending.series.is_empty() {
            let written = table::series_batch(&pending.series).and_then(|batch| self.append_series(&batch));
            self.note(written, pending.series.len());
        }
        // Collections come before samples: a sample without its collection has no time, one without samples is whole.
        if !pending.collections.is_empty() {
            let written = table::collections_batch(&pending.collections)
                .and_then(|batch| self.append(layout::COLLECTIONS, &batch));
            self.note(written, pending.collections.len());
        }
        if !pending.samples.is_empty() {
            let written =
                table::samples_batch(&pending.samples).and_then(|batch| self.append(layout::SAMPLES, &batch));
            self.note(written, pending.samples.len());
        }
        if !pending.load.is_empty() {
            let written =
                table::load_batch(&pending.load).and_then(|batch| self.append(layout::LOAD, &batch));
            self.note(written, pending.load.len());
        }
        for (stream, batch) in &pending.batches {
            let written = self.append(stream, batch);
            self.note(written, batch.num_rows());
        }
        if !pending.events.is_empty() {
            let written =
                table::events_batch(&pending.events).and_then(|batch| self.append(layout::EVENTS, &batch));
            self.note(written, pending.events.len());
        }
        self.note_cpu();
    }

    fn tell_losses(&mut self) {
        let lost = self.shared.lost.load(Ordering::Relaxed);
        if lost > self.lost_reported {
            let text =
                format!("{} readings or intervals were lost: {}", lost - self.lost_reported, self.why_lost());
            self.lost_reported = lost;
            let t_ns = whyso_clock::monotonic_ns();
            self.pending.events.push(Event {
                t_ns,
                host: "client".to_string(),
                kind: "lost".to_string(),
                text,
            });
        }
    }

    fn why_lost(&self) -> String {
        self.shared.disk.failed().unwrap_or_else(|| "they came faster than they could be written".to_string())
    }

    fn note(&self, written: Result<()>, pieces: usize) {
        if let Err(error) = written {
            self.shared.disk.fail(&error);
            self.lose(pieces as u64);
        }
    }

    fn append_series(&mut self, batch: &RecordBatch) -> Result<()> {
        let payload = wal::encode(batch)?;
        if self.series_wal.is_none() {
            self.series_wal = Some(Wal::create(&self.shared.disk, layout::SERIES_WAL)?);
        }
        self.series_wal.as_mut().map_or(Ok(()), |file| file.append(&self.shared.disk, &payload))
    }

    fn append(&mut self, stream: &str, batch: &RecordBatch) -> Result<()> {
        let payload = wal::encode(batch)?;
        if !self.wals.contains_key(stream) {
            let new = Wal::create(&self.shared.disk, &layout::wal_name(stream, self.segment))?;
            self.wals.insert(stream.to_string(), new);
        }
        self.wals.get_mut(stream).map_or(Ok(()), |file| file.append(&self.shared.disk, &payload))
    }

    /// Begins the next segment and has this one sealed. While the sealer is still at work on another, a segment that nobody waits for continues.
    fn rotate(&mut self, reply: Option<Sender<Result<()>>>) {
        self.flush();
        let must = reply.is_some();
        let job = Job::Seal { segment: self.segment, span_ns: self.span_ns.unwrap_or((0, 0)), reply };
        // A reply is awaited: waiting for the sealer here is what its caller asked for, and the queue takes what comes meanwhile.
        let sent = if must { self.jobs.send(job).is_ok() } else { self.jobs.try_send(job).is_ok() };
        if sent {
            self.wals.clear();
            self.segment += 1;
            self.span_ns = None;
            self.segment_began = Instant::now();
        }
    }

    fn end(mut self, finish: Option<Sender<Result<()>>>, sealer: JoinHandle<()>) {
        let Some(reply) = finish else { return };
        self.wals.clear();
        self.series_wal = None;
        if self.discarded {
            drop(self.jobs);
            // A segment that is being sealed is written to its end before the folder goes.
            let _ = sealer.join();
            let dir = &self.shared.disk.dir;
            let removed = std::fs::remove_dir_all(dir).map_err(|cause| Error::io(dir, cause));
            let _ = reply.send(removed);
            return;
        }
        let span_ns = self.span_ns.unwrap_or((0, 0));
        let (sealed, answer) = mpsc::channel();
        let asked = self.jobs.send(Job::Finish { segment: self.segment, span_ns, reply: sealed });
        let result = match asked {
            Ok(()) => answer.recv().unwrap_or_else(|_| Err(Error::Ended("its thread has gone".to_string()))),
            Err(_) => Err(Error::Ended("its thread has gone".to_string())),
        };
        drop(self.jobs);
        // The thread has answered, or is gone: this only collects it.
        let _ = sealer.join();
        // The caller may have given up waiting.
        let _ = reply.send(result);
    }
}

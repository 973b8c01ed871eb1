//! What a sampler is, and the loop that every sampler's thread runs.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use whyso_clock::{monotonic_ns, thread_cpu_ns};
use whyso_record::data::{Reading, SeriesId, Status, Value};

use crate::cost::Cost;
use crate::schedule::{Patience, Schedule, back_off_ns};
use crate::sink::{Batch, SeriesCache, Sink};
use crate::stop::Stop;

/// Reads one source. Each sampler has a thread of its own, so that one that hangs delays no other.
pub(crate) trait Sampler: Send {
    fn source(&self) -> &'static str;

    /// Puts what it reads into `batch`.
    fn read(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure>;

    /// The last reading, when the watching ends; bounded to a second.
    fn finish(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure> {
        batch.nothing_to_read();
        Ok(())
    }

    /// CPU time that processes used for it so far, beside its own thread.
    fn others_cpu_ns(&self) -> u64 {
        0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The source does not exist here, and will not: said once, and the sampler ends.
    Absent(String),
    /// A gap: said once, then tried again until it is back.
    Broken { why: String, patience: Patience },
    /// The watching ended in mid-reading.
    Stopped,
}

impl Failure {
    pub(crate) fn quick(why: String) -> Failure {
        Failure::Broken { why, patience: Patience::Quick }
    }
}

/// What was not measured, in plain words, each line once.
#[derive(Clone, Default)]
pub(crate) struct Notes {
    lines: Arc<Mutex<BTreeSet<String>>>,
}

impl Notes {
    pub(crate) fn add(&self, line: String) {
        match self.lines.lock() {
            Ok(mut lines) => lines.insert(line),
            Err(poisoned) => poisoned.into_inner().insert(line),
        };
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        match self.lines.lock() {
            Ok(lines) => lines.iter().cloned().collect(),
            Err(poisoned) => poisoned.into_inner().iter().cloned().collect(),
        }
    }
}

/// All that a sampler's thread needs beside the sampler.
pub(crate) struct Surroundings {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) host: String,
    pub(crate) first_ns: i64,
    pub(crate) interval_ns: i64,
    pub(crate) stop: Stop,
    pub(crate) notes: Notes,
    pub(crate) cost: Arc<Cost>,
}

struct Outage {
    since_ns: i64,
    failures: u32,
}

/// A sampler in its thread.
pub(crate) struct Runner {
    sampler: Box<dyn Sampler>,
    around: Surroundings,
    cache: SeriesCache,
    schedule: Schedule,
    outage: Option<Outage>,
}

impl Runner {
    pub(crate) fn new(sampler: Box<dyn Sampler>, around: Surroundings) -> Runner {
        let schedule = Schedule::new(around.first_ns, around.interval_ns);
        Runner { sampler, around, cache: SeriesCache::default(), schedule, outage: None }
    }

    /// Reads until it is stopped, or until the source turns out to be absent.
    pub(crate) fn run(mut self) {
        while !self.around.stop.wait_until(self.schedule.next_ns()) {
            match self.read_once(false) {
                Ok(()) => {}
                Err(Failure::Stopped) => break,
                Err(Failure::Absent(why)) => {
                    self.around.notes.add(why);
                    return;
                }
                Err(Failure::Broken { why, patience }) => self.broken(why, patience),
            }
        }
        if self.outage.is_none() {
            // The run is over: a failure of this last look changes nothing that was recorded.
            let _ = self.read_once(true);
        }
    }

    fn read_once(&mut self, last: bool) -> Result<(), Failure> {
        let source = self.sampler.source();
        let begin_ns = monotonic_ns();
        let mut batch = Batch::new(&*self.around.sink, &self.around.host, source, &mut self.cache);
        let outcome = match last {
            false => self.sampler.read(&mut batch),
            true => self.sampler.finish(&mut batch),
        };
        let idle = batch.is_idle();
        let (values, absent) = batch.into_parts();
        let end_ns = monotonic_ns();
        for line in absent {
            self.around.notes.add(line);
        }
        match &outcome {
            Ok(()) => {
                self.back(end_ns);
                if !idle {
                    self.record(begin_ns, end_ns, Status::Ok, values);
                }
            }
            Err(Failure::Broken { .. }) => {
                self.record(begin_ns, end_ns, Status::Failed, Vec::new());
                self.around.cost.failed.fetch_add(1, Ordering::Relaxed);
            }
            Err(Failure::Absent(_) | Failure::Stopped) => return outcome,
        }
        if !last {
            self.note_missed(end_ns);
        }
        self.note_cost(begin_ns, end_ns);
        outcome
    }

    fn record(&self, begin_ns: i64, end_ns: i64, status: Status, values: Vec<(SeriesId, Value)>) {
        if status == Status::Ok {
            self.around.cost.readings.fetch_add(1, Ordering::Relaxed);
        }
        self.around.sink.reading(Reading {
            source: self.sampler.source().to_string(),
            begin_ns,
            end_ns,
            status,
            values,
        });
    }

    /// All readings that one slow one made impossible are one record: from when the first was due.
    fn note_missed(&mut self, end_ns: i64) {
        let Some(missed) = self.schedule.advance(end_ns) else {
            return;
        };
        self.around.cost.missed.fetch_add(missed.count, Ordering::Relaxed);
        self.record(missed.first_ns, end_ns, Status::Missed, Vec::new());
    }

    fn note_cost(&self, begin_ns: i64, end_ns: i64) {
        let cost = &self.around.cost;
        let duration_ns = (end_ns - begin_ns).max(0).unsigned_abs();
        let cpu_ns = thread_cpu_ns().max(0).unsigned_abs() + self.sampler.others_cpu_ns();
        cost.duration_ns.fetch_add(duration_ns, Ordering::Relaxed);
        cost.last_duration_ns.store(duration_ns, Ordering::Relaxed);
        cost.cpu_ns.store(cpu_ns, Ordering::Relaxed);
    }

    /// One event when a gap begins; further failures only wait longer.
    fn broken(&mut self, why: String, patience: Patience) {
        let now_ns = monotonic_ns();
        let failures = match &mut self.outage {
            Some(outage) => {
                outage.failures = outage.failures.saturating_add(1);
                outage.failures
            }
            None => {
                self.outage = Some(Outage { since_ns: now_ns, failures: 1 });
                self.event("gap", now_ns, why);
                1
            }
        };
        let next_ns = now_ns + back_off_ns(failures, patience);
        if next_ns > self.schedule.next_ns() {
            self.schedule.not_before(next_ns);
        }
    }

    fn back(&mut self, now_ns: i64) {
        if let Some(outage) = self.outage.take() {
            let gap_s = (now_ns - outage.since_ns) as f64 / 1e9;
            self.event("gap_end", now_ns, format!("back after {gap_s:.1} s"));
        }
    }

    fn event(&self, kind: &str, t_ns: i64, text: String) {
        self.around.sink.event(whyso_record::data::Event {
            t_ns,
            host: self.around.host.clone(),
            kind: kind.to_string(),
            text: format!("{}: {text}", self.sampler.source()),
        });
    }
}

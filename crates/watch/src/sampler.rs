//! What a sampler is, and the loop that every sampler's thread runs.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use whyso_clock::{monotonic_ns, thread_cpu_ns};
use whyso_model::{Missing, NotMeasured};
use whyso_record::data::{Reading, SeriesId, Status, Value};

use crate::cost::Cost;
use crate::schedule::{Patience, Schedule, back_off_ns};
use crate::sink::{Batch, SeriesCache, Sink};
use crate::stop::{Stop, Woken};

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

    /// CPU time that processes used for it up to now, in addition to its own thread.
    fn others_cpu_ns(&self) -> u64 {
        0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The source does not exist here, and will not: reported once, and the sampler ends.
    Absent(String),
    /// The same, where another line reports it already.
    NotHere,
    /// A gap: reported once, then tried again until it is back.
    Broken { why: String, patience: Patience },
    /// The watching ended during a reading.
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
    lines: Arc<Mutex<BTreeMap<String, NotMeasured>>>,
}

impl Notes {
    pub(crate) fn add(&self, line: NotMeasured) {
        let words = line.to_string();
        match self.lines.lock() {
            Ok(mut lines) => lines.insert(words, line),
            Err(poisoned) => poisoned.into_inner().insert(words, line),
        };
    }

    pub(crate) fn lines(&self) -> Vec<NotMeasured> {
        match self.lines.lock() {
            Ok(lines) => lines.values().cloned().collect(),
            Err(poisoned) => poisoned.into_inner().values().cloned().collect(),
        }
    }
}

/// All that a sampler's thread needs in addition to the sampler.
pub(crate) struct Surroundings {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) host: String,
    pub(crate) first_ns: i64,
    pub(crate) interval_ns: i64,
    /// It is read less often than the run asks for, and in addition where a window begins or ends.
    pub(crate) reads_at_edges: bool,
    pub(crate) stop: Stop,
    pub(crate) notes: Notes,
    pub(crate) cost: Arc<Cost>,
}

struct Outage {
    since_ns: i64,
    failures: u32,
}

/// Why a reading is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occasion {
    /// It is due.
    Due,
    /// A window begins or ends.
    Edge,
    /// The watching ends.
    End,
}

/// A sampler with its schedule and what it wrote last.
pub(crate) struct Runner {
    sampler: Box<dyn Sampler>,
    around: Surroundings,
    cache: SeriesCache,
    schedule: Schedule,
    outage: Option<Outage>,
    /// The window of the last reading that was recorded.
    last: Option<(i64, i64)>,
    /// Readings are being put off, which was reported.
    is_slowed: bool,
    /// Readings in a row that were not put off.
    in_time: u32,
    /// CPU time that the sampler's programs used, as it was recorded last.
    others_cpu_ns: u64,
}

/// After this many readings in time a source is no longer called slowed.
const IN_TIME_MIN: u32 = 5;
/// How long all the last readings of one thread may take together: the watching ends within two seconds.
const LAST_READINGS_NS_MAX: i64 = 1_200_000_000;

/// Reads each when it is due, one at a time, until they are stopped or every source turned out to be absent.
pub(crate) fn run_in_turn(mut runners: Vec<Runner>) {
    let mut edges = 0;
    while let Some(next) = runners.iter_mut().min_by_key(|runner| runner.schedule.next_ns()) {
        let may_continue = match next.around.stop.wait_until(next.schedule.next_ns(), &mut edges) {
            Woken::Stopped => false,
            Woken::Due => next.take_turn(Occasion::Due),
            Woken::AtEdge => {
                let mut at_edges = runners.iter_mut().filter(|runner| runner.is_read_at_edges());
                at_edges.all(|runner| runner.take_turn(Occasion::Edge))
            }
        };
        if !may_continue {
            break;
        }
        runners.retain(|runner| !runner.schedule.is_over());
    }
    let begin_ns = monotonic_ns();
    for runner in runners.iter_mut().filter(|runner| runner.outage.is_none()) {
        if monotonic_ns() - begin_ns < LAST_READINGS_NS_MAX {
            // The run is over: a failure of this last reading changes nothing that was recorded.
            let _ = runner.read_once(Occasion::End);
        }
    }
}

/// Returns what is missing without a sampler.
fn missing_of(source: &str) -> Missing {
    match source {
        "connections" => Missing::ConnectionThreads,
        "innodb_mutexes" => Missing::InnodbMutexes,
        _ if source.starts_with("pfs") => Missing::PerformanceSchema,
        _ => Missing::Other,
    }
}

impl Runner {
    pub(crate) fn new(sampler: Box<dyn Sampler>, around: Surroundings) -> Runner {
        let schedule = Schedule::new(around.first_ns, around.interval_ns);
        Runner {
            sampler,
            around,
            cache: SeriesCache::default(),
            schedule,
            outage: None,
            last: None,
            is_slowed: false,
            in_time: 0,
            others_cpu_ns: 0,
        }
    }

    pub(crate) fn source(&self) -> &'static str {
        self.sampler.source()
    }

    fn end(&mut self) {
        self.schedule = Schedule::over();
    }

    /// After a failure it waits for its turn.
    fn is_read_at_edges(&self) -> bool {
        self.around.reads_at_edges && self.outage.is_none()
    }

    /// Takes a reading, and notes its failure. False when the watching has ended.
    fn take_turn(&mut self, occasion: Occasion) -> bool {
        match self.read_once(occasion) {
            Ok(()) => {}
            Err(Failure::Stopped) => return false,
            Err(Failure::Absent(why)) => {
                self.around.notes.add(NotMeasured::of_line(missing_of(self.source()), &why));
                self.end();
            }
            Err(Failure::NotHere) => self.end(),
            Err(Failure::Broken { why, patience }) => self.note_failure(why, patience),
        }
        true
    }

    fn read_once(&mut self, occasion: Occasion) -> Result<(), Failure> {
        let source = self.sampler.source();
        let begin_ns = monotonic_ns();
        let cpu_before_ns = thread_cpu_ns();
        let mut batch = Batch::new(&*self.around.sink, &self.around.host, source, &mut self.cache);
        let outcome = match occasion {
            Occasion::Due | Occasion::Edge => self.sampler.read(&mut batch),
            Occasion::End => self.sampler.finish(&mut batch),
        };
        let (idle, put_off) = (batch.is_idle(), batch.is_put_off());
        let parts = batch.into_parts();
        let end_ns = monotonic_ns();
        for line in parts.absent {
            self.around.notes.add(line);
        }
        match &outcome {
            // What is put off has not come back.
            Ok(()) if put_off => {}
            Ok(()) => {
                self.note_recovery(end_ns);
                if let Some((begin_ns, end_ns)) = self.last.filter(|_| !parts.before.is_empty()) {
                    self.give(begin_ns, end_ns, Status::Ok, parts.before);
                }
                if !idle {
                    self.record(begin_ns, end_ns, Status::Ok, parts.values);
                    self.last = Some((begin_ns, end_ns));
                }
            }
            Err(Failure::Broken { .. }) => {
                self.record(begin_ns, end_ns, Status::Failed, Vec::new());
                self.around.cost.failed.fetch_add(1, Ordering::Relaxed);
            }
            Err(Failure::Absent(_) | Failure::NotHere | Failure::Stopped) => return outcome,
        }
        if occasion == Occasion::Due {
            self.note_missed(end_ns);
            self.note_put_off(put_off, end_ns);
        }
        self.note_cost(begin_ns, end_ns, thread_cpu_ns() - cpu_before_ns);
        outcome
    }

    fn record(&self, begin_ns: i64, end_ns: i64, status: Status, values: Vec<(SeriesId, Value)>) {
        if status == Status::Ok {
            self.around.cost.readings.fetch_add(1, Ordering::Relaxed);
        }
        self.give(begin_ns, end_ns, status, values);
    }

    fn give(&self, begin_ns: i64, end_ns: i64, status: Status, values: Vec<(SeriesId, Value)>) {
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

    /// One event when readings begin to be put off, and one when there is time for them again.
    fn note_put_off(&mut self, put_off: bool, now_ns: i64) {
        if put_off {
            self.around.cost.missed.fetch_add(1, Ordering::Relaxed);
        }
        self.in_time = if put_off { 0 } else { self.in_time.saturating_add(1) };
        // One that is put off every other time is slowed all the time.
        let is_slowed = put_off || (self.is_slowed && self.in_time < IN_TIME_MIN);
        if is_slowed == std::mem::replace(&mut self.is_slowed, is_slowed) {
            return;
        }
        let took_ms = self.around.cost.last_duration_ns.load(Ordering::Relaxed) as f64 / 1e6;
        let text = match is_slowed {
            true if took_ms > 0.0 => format!(
                "read less often than it is due, to keep what reading takes in its bound: the last one took {took_ms:.0} ms"
            ),
            true => "not read yet, to keep what reading takes in its bound".to_string(),
            false => "read again".to_string(),
        };
        self.event(if is_slowed { "slowed" } else { "slowed_end" }, now_ns, text);
    }

    fn note_cost(&mut self, begin_ns: i64, end_ns: i64, cpu_ns: i64) {
        let duration_ns = (end_ns - begin_ns).max(0).unsigned_abs();
        let others_ns = self.sampler.others_cpu_ns();
        let of_others_ns = others_ns.saturating_sub(std::mem::replace(&mut self.others_cpu_ns, others_ns));
        let cost = &self.around.cost;
        cost.duration_ns.fetch_add(duration_ns, Ordering::Relaxed);
        cost.last_duration_ns.store(duration_ns, Ordering::Relaxed);
        cost.cpu_ns.fetch_add(cpu_ns.max(0).unsigned_abs() + of_others_ns, Ordering::Relaxed);
    }

    /// One event when a gap begins; further failures only wait longer.
    fn note_failure(&mut self, why: String, patience: Patience) {
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

    fn note_recovery(&mut self, now_ns: i64) {
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

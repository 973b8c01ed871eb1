//! What was watched, kept in memory for as long as there is room: numbers, tables with text, events.

mod hosts;
mod points;
pub(crate) mod read;
mod tables;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use whyso_record::Tap;
use whyso_record::data::{Event, Reading, SeriesId, SeriesKey, StatesInterval, Status, TextRows};

pub use hosts::HostHistories;
use points::Points;
pub(crate) use read::Buckets;
use tables::{Tables, bytes_of};

/// How long values are kept at most.
const KEPT_NS: i64 = 3_600_000_000_000;
/// Points of all series together, of 16 bytes each.
const POINTS_MAX: usize = 4_000_000;
/// Bytes of the tables of one source, and of the threads' states.
const TABLE_BYTES_MAX: usize = 32 << 20;
const EVENTS_MAX: usize = 2_000;
const TEXTS_MAX: usize = 20_000;
/// Time between two checks of what may be forgotten.
const FORGET_INTERVAL_NS: i64 = 10_000_000_000;
/// The part of the time that stays if memory is too small for all of it.
const KEPT_SHARE: f64 = 0.9;

/// What was watched. It is a tap of a recorder: see [`Tap`].
#[derive(Debug, Default)]
pub struct History {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    keys: Vec<SeriesKey>,
    points: Vec<Points>,
    /// By source and metric: those of each instance.
    by_metric: HashMap<(String, String), Vec<usize>>,
    by_source: HashMap<String, Vec<usize>>,
    sources: HashMap<String, Source>,
    tables: HashMap<String, Tables<TextRows>>,
    states: Tables<StatesInterval>,
    /// Text of a line of the Performance Schema's tables, by its name. It is reported once.
    texts: HashMap<String, String>,
    events: VecDeque<Event>,
    first_ns: Option<i64>,
    last_ns: i64,
    /// Nothing before is known any more.
    from_ns: i64,
    forget_at_ns: i64,
}

/// When a source was read.
#[derive(Debug, Default)]
struct Source {
    readings_ns: VecDeque<i64>,
    /// Since when it can't be read.
    failed_ns: Option<i64>,
}

impl History {
    /// Adds the user's note, with the time of now.
    pub fn note(&self, text: &str) {
        let (t_ns, host) = (whyso_clock::monotonic_ns(), String::new());
        self.event(&Event { t_ns, host, kind: "note".to_string(), text: text.to_string() });
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tap for History {
    fn series(&self, id: SeriesId, key: &SeriesKey) {
        let mut inner = self.lock();
        // Numbers come one after the other.
        if inner.keys.len() != id.0 as usize {
            return;
        }
        let at = inner.keys.len();
        inner.keys.push(key.clone());
        inner.points.push(Points::default());
        inner.by_metric.entry((key.source.clone(), key.metric.clone())).or_default().push(at);
        inner.by_source.entry(key.source.clone()).or_default().push(at);
    }

    fn reading(&self, reading: &Reading) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let source = inner.sources.entry(reading.source.clone()).or_default();
        match reading.status {
            Status::Ok => {
                source.failed_ns = None;
                source.readings_ns.push_back(reading.end_ns);
            }
            Status::Failed => {
                source.failed_ns.get_or_insert(reading.end_ns);
            }
            Status::Missed => {}
        }
        for (id, value) in &reading.values {
            let at = id.0 as usize;
            if let (Some(points), Some(key)) = (inner.points.get_mut(at), inner.keys.get(at)) {
                points.push(key.kind, reading.end_ns, *value);
            }
        }
        inner.first_ns.get_or_insert(reading.end_ns);
        inner.last_ns = inner.last_ns.max(reading.end_ns);
        inner.forget();
    }

    fn rows(&self, rows: &TextRows) {
        let bytes = bytes_of(rows);
        let mut inner = self.lock();
        if rows.source.starts_with("pfs_") {
            inner.learn(rows);
        }
        inner.tables.entry(rows.source.clone()).or_default().push(rows.t_ns, bytes, rows.clone());
    }

    fn event(&self, event: &Event) {
        self.lock().event(event.clone());
    }

    fn states(&self, snapshot: &StatesInterval) {
        let bytes_per_thread = snapshot.states.len() * 2 + 100;
        let bytes = snapshot.threads.len() * bytes_per_thread;
        self.lock().states.push(snapshot.t_ns, bytes, snapshot.clone());
    }
}

impl Inner {
    fn event(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn learn(&mut self, rows: &TextRows) {
        for row in &rows.rows {
            if let [Some(name), _, Some(text), ..] = &row[..]
                && self.texts.len() < TEXTS_MAX
            {
                self.texts.insert(name.clone(), text.clone());
            }
        }
    }

    fn forget(&mut self) {
        if self.last_ns < self.forget_at_ns {
            return;
        }
        self.forget_at_ns = self.last_ns + FORGET_INTERVAL_NS;
        self.from_ns = self.from_ns.max(self.last_ns - KEPT_NS);
        loop {
            for points in &mut self.points {
                points.forget_before(self.from_ns);
            }
            let point_count: usize = self.points.iter().map(Points::len).sum();
            let span_ns = self.last_ns - self.from_ns.max(self.first_ns.unwrap_or(0));
            if point_count <= POINTS_MAX || span_ns < FORGET_INTERVAL_NS {
                break;
            }
            self.from_ns = self.last_ns - (span_ns as f64 * KEPT_SHARE) as i64;
        }
        for source in self.sources.values_mut() {
            let old = source.readings_ns.partition_point(|t_ns| *t_ns < self.from_ns);
            source.readings_ns.drain(..old);
        }
        for tables in self.tables.values_mut() {
            tables.forget_before(self.from_ns);
        }
        self.states.forget_before(self.from_ns);
    }
}

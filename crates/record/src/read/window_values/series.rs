//! A series, as far as it was read: which of its buckets come from roll-ups, and what they add.

use std::rc::Rc;

use whyso_series::{GaugeTotal, Increase, Rollup, Step, growth};

use super::WindowValue;
use super::windows::{Windows, is_long};
use crate::data::{Kind, SeriesId, Value};
use crate::read::collections::{ReadingBucket, Source};
use crate::read::samples::exact_growth;
use crate::run::Window;

/// A roll-up whose readings are at more uneven distances is read from samples. Its mean is off by at most half of this part of its range.
const UNEVENNESS_MAX: f64 = 0.1;
/// Every smaller whole number is an `f64`.
const EXACT_MAX: f64 = (1_u64 << 53) as f64;

/// What is added up of a series over a window.
#[derive(Clone, Copy)]
pub(super) enum Total {
    Counter(Increase),
    Gauge(GaugeTotal),
}

impl Total {
    pub(super) fn value(&self) -> Option<WindowValue> {
        match self {
            Total::Counter(increase) => increase.observed().map(WindowValue::Counter),
            Total::Gauge(total) => {
                total.mean().zip(total.max()).map(|(mean, max)| WindowValue::Gauge { mean, max })
            }
        }
    }
}

/// The newest reading that was added.
#[derive(Clone, Copy)]
struct Newest {
    t_ns: i64,
    value: Value,
    collection: i64,
}

/// A series, as far as it was read.
pub(super) struct Series<'r> {
    pub(super) id: SeriesId,
    pub(super) kind: Kind,
    /// Where it lies, in order of time.
    pub(super) entries: Vec<Entry<'r>>,
    newest: Option<Newest>,
    /// The entry that was last read to its end.
    read_to: Option<usize>,
    /// By window, in order of where these begin.
    pub(super) totals: Vec<Total>,
}

/// What a unit has of a series.
pub(super) struct Entry<'r> {
    pub(super) unit: usize,
    pub(super) source: &'r Source,
    /// Readings of its source from the series' first to its last one.
    pub(super) readings: Rc<[ReadingBucket]>,
    /// Whether the series has a sample of each of them.
    pub(super) complete: bool,
}

impl Entry<'_> {
    pub(super) fn first_ns(&self) -> i64 {
        self.readings[0].first_ns
    }

    pub(super) fn last_ns(&self) -> i64 {
        self.readings[self.readings.len() - 1].last_ns
    }
}

/// Where the readings of a bucket come from.
#[derive(Clone, Copy)]
pub(super) enum Piece {
    Rollup { bucket: usize, rollup: Rollup },
    Samples { bucket: usize },
}

impl<'r> Series<'r> {
    pub(super) fn new(id: SeriesId, kind: Kind, entries: Vec<Entry<'r>>, windows: &Windows) -> Series<'r> {
        let none = match kind {
            Kind::Counter => Total::Counter(Increase::NONE),
            Kind::Gauge => Total::Gauge(GaugeTotal::NONE),
        };
        let totals = vec![none; windows.sorted.len()];
        Series { id, kind, entries, newest: None, read_to: None, totals }
    }

    /// The newest reading before an entry's first, and the first after its last.
    pub(super) fn neighbours_ns(&self, entry: usize) -> (i64, i64) {
        let before = entry.checked_sub(1).and_then(|before| self.entries.get(before));
        let after = self.entries.get(entry + 1);
        (before.map_or(i64::MIN, Entry::last_ns), after.map_or(i64::MAX, Entry::first_ns))
    }

    /// Whether no reading lies between an entry and the one before it.
    fn adjoins(&self, entry: usize) -> bool {
        let (before, entry) = (&self.entries[entry - 1].readings, &self.entries[entry].readings);
        before[before.len() - 1].last.checked_add(1) == Some(entry[0].first)
    }

    /// Plans where the buckets of an entry come from. Those that no window has a part of are left out, unless they are next to one.
    pub(super) fn plan(&mut self, at: usize, rollups: &[Rollup], windows: &Windows) -> Vec<Piece> {
        let (before_ns, after_ns) = self.neighbours_ns(at);
        let entry = &self.entries[at];
        let mut pieces = Vec::with_capacity(entry.readings.len());
        let mut rollups = rollups.iter().peekable();
        let mut follows = at > 0 && self.read_to == Some(at - 1) && self.adjoins(at);
        for (bucket, readings) in entry.readings.iter().enumerate() {
            let before_ns = bucket.checked_sub(1).map_or(before_ns, |before| entry.readings[before].last_ns);
            let after_ns = entry.readings.get(bucket + 1).map_or(after_ns, |after| after.first_ns);
            // Of a series that lacks samples, it is not known which readings are next to a window.
            if entry.complete && !windows.any_over(before_ns, after_ns) {
                follows = false;
                continue;
            }
            while rollups.next_if(|rollup| rollup.t_ns < readings.t_ns).is_some() {}
            let rollup = rollups.peek().filter(|rollup| rollup.t_ns == readings.t_ns);
            let is_first = at == 0 && bucket == 0 && entry.complete;
            let is_within = |window: &Window| {
                is_long(window) && window.begin_ns <= readings.first_ns && readings.last_ns <= window.end_ns
            };
            let is_cut =
                windows.over(readings.first_ns, readings.last_ns).any(|(_, window)| !is_within(window));
            let rollup = rollup.filter(|rollup| is_usable(rollup, readings, self.kind, is_first, follows));
            pieces.push(match rollup.filter(|_| !is_cut) {
                Some(rollup) => Piece::Rollup { bucket, rollup: **rollup },
                None => Piece::Samples { bucket },
            });
            follows = true;
        }
        self.read_to = follows.then_some(at);
        pieces
    }

    /// Adds an entry, piece by piece. `samples`: at least those that the plan asks for.
    pub(super) fn add(&mut self, at: usize, plan: &[Piece], samples: &[(i64, Value)], windows: &Windows) {
        let source = self.entries[at].source;
        let readings = Rc::clone(&self.entries[at].readings);
        let mut samples = samples.iter().copied().peekable();
        for piece in plan {
            match *piece {
                Piece::Samples { bucket } => {
                    let last = readings[bucket].last;
                    while let Some((collection, value)) = samples.next_if(|(number, _)| *number <= last) {
                        self.add_reading(source, collection, value, windows);
                    }
                }
                Piece::Rollup { bucket, rollup } => {
                    let bucket = &readings[bucket];
                    while let Some((collection, value)) =
                        samples.next_if(|(number, _)| *number < bucket.first)
                    {
                        self.add_reading(source, collection, value, windows);
                    }
                    while samples.next_if(|(number, _)| *number <= bucket.last).is_some() {}
                    self.add_rollup(source, bucket, &rollup, windows);
                }
            }
        }
        for (collection, value) in samples {
            self.add_reading(source, collection, value, windows);
        }
    }

    fn add_reading(&mut self, source: &Source, collection: i64, value: Value, windows: &Windows) {
        let Some(reading) = source.window(collection) else { return };
        let now = Newest { t_ns: reading.end_ns, value, collection };
        let is_finite = value.as_f64().is_finite();
        match self.kind {
            Kind::Counter if is_finite => self.add_step(now, windows),
            // What a counter grew by over a gap is known all the same.
            Kind::Counter => return,
            Kind::Gauge => {
                self.add_line(source, now, windows);
                for (window, edges) in windows.over(now.t_ns, now.t_ns) {
                    if let Total::Gauge(total) = &mut self.totals[window] {
                        total.add_reading(now.t_ns, value.as_f64(), edges.begin_ns, edges.end_ns);
                    }
                }
            }
        }
        self.newest = Some(now);
    }

    fn add_rollup(&mut self, source: &Source, bucket: &ReadingBucket, rollup: &Rollup, windows: &Windows) {
        let first =
            Newest { t_ns: bucket.first_ns, value: Value::Float(rollup.first), collection: bucket.first };
        match self.kind {
            Kind::Counter => {
                let before = self.newest.map(|newest| newest.value.as_f64());
                let is_first_step_in = rollup.count == bucket.count && rollup.hidden_growth != 0.0;
                let amount = rollup.growth(before.filter(|_| is_first_step_in));
                let inner = Step { begin_ns: bucket.first_ns, end_ns: bucket.last_ns, amount };
                self.add_step(first, windows);
                self.add_to_counters(&inner, windows);
            }
            Kind::Gauge => {
                self.add_line(source, first, windows);
                for (window, _) in windows.over(bucket.first_ns, bucket.last_ns) {
                    if let Total::Gauge(total) = &mut self.totals[window] {
                        total.add_rollup(rollup, bucket.first_ns, bucket.last_ns);
                    }
                }
            }
        }
        let (t_ns, collection) = (bucket.last_ns, bucket.last);
        self.newest = Some(Newest { t_ns, value: Value::Float(rollup.last), collection });
    }

    /// The step of a counter from its newest reading to the one after it.
    fn add_step(&mut self, now: Newest, windows: &Windows) {
        let Some(newest) = self.newest else { return };
        let amount = match (newest.value, now.value) {
            (Value::Int(then), Value::Int(now)) => exact_growth(then.into(), now.into()),
            (then, now) => growth(then.as_f64(), now.as_f64()),
        };
        self.add_to_counters(&Step { begin_ns: newest.t_ns, end_ns: now.t_ns, amount }, windows);
    }

    fn add_to_counters(&mut self, step: &Step, windows: &Windows) {
        for (window, edges) in windows.over(step.begin_ns, step.end_ns) {
            if let Total::Counter(total) = &mut self.totals[window] {
                total.add_step(step, edges.begin_ns, edges.end_ns);
            }
        }
    }

    /// The line of a gauge from its newest reading to the one after it, unless a reading between them failed.
    fn add_line(&mut self, source: &Source, now: Newest, windows: &Windows) {
        let Some(newest) = self.newest.filter(|newest| !source.has_gap(newest.collection, now.collection))
        else {
            return;
        };
        let value = [newest.value.as_f64(), now.value.as_f64()];
        for (window, edges) in windows.over(newest.t_ns, now.t_ns) {
            if let Total::Gauge(total) = &mut self.totals[window] {
                total.add_line([newest.t_ns, now.t_ns], value, edges.begin_ns, edges.end_ns);
            }
        }
    }
}

/// Whether a roll-up is as good as its samples. `is_first`: nothing of the series lies before it. `follows`: what lies before it was added.
fn is_usable(rollup: &Rollup, readings: &ReadingBucket, kind: Kind, is_first: bool, follows: bool) -> bool {
    // Otherwise samples are missing, or are no numbers, and nothing is known of the times of the others.
    let is_whole = rollup.count == readings.count;
    match kind {
        Kind::Gauge => is_whole && !readings.has_gap && readings.unevenness <= UNEVENNESS_MAX,
        Kind::Counter => {
            // A counter's first reading ends no step.
            let is_first_whole = is_first && rollup.count + 1 == readings.count;
            let is_exact = rollup.first.abs() < EXACT_MAX && rollup.last.abs() < EXACT_MAX;
            // What the step to the first reading hides has to be known apart from the rest.
            let is_known = match rollup.hidden_growth == 0.0 {
                true => true,
                false => rollup.hidden_growth.is_finite() && (is_first_whole || follows),
            };
            (is_whole || is_first_whole) && is_exact && is_known && readings.unevenness.is_finite()
        }
    }
}

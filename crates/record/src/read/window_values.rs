//! What series did over windows. What lies within a long window comes from roll-ups, what lies at its edges from samples.
//!
//! The times of a roll-up's readings are known from the collections. So the growth of a counter is exact, and so is the maximum of a gauge. The
//! mean of a gauge is that of readings at equal distances; where distances are uneven, samples are read.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, UInt32Type};
use whyso_series::{GaugeTotal, Increase, Rollup, Step, growth};

use super::collections::{ReadingBucket, Source};
use super::parts::SortedSegment;
use super::samples::exact_growth;
use super::{Recording, SERIES_AT_ONCE};
use crate::data::{Kind, SeriesId, Value};
use crate::error::{Error, Result};
use crate::layout;
use crate::run::Window;
use crate::sorted::RollupRow;
use crate::table::Sample;

/// The roll-ups that are used. Those of 10 seconds would save little: to decode an hour of them costs about as much as to decode its samples.
const LEVEL: usize = 1;
const BUCKET_NS: i64 = layout::ROLLUPS[LEVEL].1;
/// Shorter windows are read from samples alone.
const LONG_NS: i64 = 8 * BUCKET_NS;
/// A roll-up whose readings are at more uneven distances is read from samples. Its mean is off by at most half of this part of the
/// difference between its highest and its lowest reading.
const UNEVENNESS_MAX: f64 = 0.1;
/// Every smaller whole number is an `f64`.
const EXACT_MAX: f64 = (1_u64 << 53) as f64;
/// Series whose roll-ups are read together: about as many as a row group holds.
const ROLLED_UP_AT_ONCE: usize = 1200;
/// Totals of series and windows that are added up together.
const TOTALS_MAX: usize = 200_000;

/// What a series did over a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowValue {
    Counter(Increase),
    /// The mean is weighted by time.
    Gauge {
        mean: f64,
        max: f64,
    },
}

impl Recording {
    /// Calls `each` with every series, in ascending order, and what it did over each of the windows; `None` where nothing is known. The values are those of
    /// `whyso_series::increase`, `mean_over` and `max_over` for all samples of the series: over windows shorter than 16 minutes to the last bit, over
    /// longer ones but for rounding. The mean of a gauge over these can be off by 5 % of its range within 2 minutes, where its readings came at
    /// uneven times.
    ///
    /// # Errors
    /// The recording has no such series, or its files can't be read.
    pub fn window_values(
        &self,
        ids: &[SeriesId],
        windows: &[Window],
        mut each: impl FnMut(SeriesId, &[Option<WindowValue>]),
    ) -> Result<()> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let windows = Windows::new(windows);
        let units = self.units();
        let mut values = vec![None; windows.sorted.len()];
        for ids in ids.chunks((TOTALS_MAX / windows.sorted.len().max(1)).max(1)) {
            let mut reader = Reader::new(self, &units, &windows, ids)?;
            for unit in 0..units.len() {
                reader.read_unit(unit)?;
            }
            for series in &reader.series {
                for ((_, place), total) in windows.sorted.iter().zip(&series.totals) {
                    values[*place] = total.value();
                }
                each(series.id, &values);
            }
        }
        Ok(())
    }

    fn units(&self) -> Vec<Unit<'_>> {
        let mut units: Vec<Unit<'_>> = Vec::new();
        for samples in &self.samples {
            let covers =
                |part: &SortedSegment<RollupRow>| part.first <= samples.first && samples.last <= part.last;
            let rollups = self.rollups[LEVEL].iter().find(|part| covers(part)).map(AsRef::as_ref);
            let same = |unit: &&mut Unit<'_>| {
                unit.rollups.zip(rollups).is_some_and(|(one, other)| std::ptr::eq(one, other))
            };
            match units.last_mut().filter(same) {
                Some(unit) => unit.samples.push(samples),
                None => units.push(Unit { rollups, samples: vec![samples] }),
            }
        }
        units
    }
}

/// Files that hold the same stretch of time.
struct Unit<'r> {
    rollups: Option<&'r SortedSegment<RollupRow>>,
    samples: Vec<&'r SortedSegment<Sample>>,
}

/// Windows in order of their begin.
struct Windows {
    /// Each with its place in the order given.
    sorted: Vec<(Window, usize)>,
    /// The latest end of each window and those before it.
    reach_ns: Vec<i64>,
}

impl Windows {
    fn new(windows: &[Window]) -> Windows {
        let mut sorted: Vec<(Window, usize)> = windows.iter().copied().zip(0..).collect();
        sorted.sort_by_key(|(window, _)| window.begin_ns);
        let mut reach_ns = Vec::with_capacity(sorted.len());
        for (window, _) in &sorted {
            reach_ns.push(reach_ns.last().map_or(window.end_ns, |reach: &i64| window.end_ns.max(*reach)));
        }
        Windows { sorted, reach_ns }
    }

    /// Those that have a moment of `begin_ns..=end_ns`, with their place in order of begin.
    fn over(&self, begin_ns: i64, end_ns: i64) -> impl Iterator<Item = (usize, &Window)> {
        let first = self.reach_ns.partition_point(|reach_ns| *reach_ns < begin_ns);
        let end = self.sorted.partition_point(|(window, _)| window.begin_ns <= end_ns).max(first);
        let near = self.sorted[first..end].iter().enumerate();
        let here = near.map(move |(offset, (window, _))| (first + offset, window));
        here.filter(move |(_, window)| window.end_ns >= begin_ns)
    }

    fn any_over(&self, begin_ns: i64, end_ns: i64) -> bool {
        self.over(begin_ns, end_ns).next().is_some()
    }
}

fn is_long(window: &Window) -> bool {
    window.end_ns.saturating_sub(window.begin_ns) >= LONG_NS
}

#[derive(Clone, Copy)]
enum Total {
    Counter(Increase),
    Gauge(GaugeTotal),
}

impl Total {
    fn value(&self) -> Option<WindowValue> {
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
struct Series<'r> {
    id: SeriesId,
    kind: Kind,
    /// Where it lies, in order of time.
    entries: Vec<Entry<'r>>,
    newest: Option<Newest>,
    /// The entry that was last read to its end.
    read_to: Option<usize>,
    /// By window, in order of begin.
    totals: Vec<Total>,
}

/// What a unit has of a series.
struct Entry<'r> {
    unit: usize,
    source: &'r Source,
    /// Readings of its source from the series' first to its last one.
    readings: Rc<[ReadingBucket]>,
    /// Whether the series has a sample of each of them.
    complete: bool,
}

impl Entry<'_> {
    fn first_ns(&self) -> i64 {
        self.readings[0].first_ns
    }

    fn last_ns(&self) -> i64 {
        self.readings[self.readings.len() - 1].last_ns
    }
}

/// Where the readings of a bucket come from.
#[derive(Clone, Copy)]
enum Piece {
    Rollup { bucket: usize, rollup: Rollup },
    Samples { bucket: usize },
}

struct Reader<'r> {
    units: &'r [Unit<'r>],
    windows: &'r Windows,
    series: Vec<Series<'r>>,
}

impl<'r> Reader<'r> {
    fn new(
        recording: &'r Recording,
        units: &'r [Unit<'r>],
        windows: &'r Windows,
        ids: &[SeriesId],
    ) -> Result<Reader<'r>> {
        let mut known: HashMap<(i64, i64), Rc<[ReadingBucket]>> = HashMap::new();
        let mut series = Vec::with_capacity(ids.len());
        for id in ids {
            let kind = recording.info(*id).ok_or(Error::NoSuchSeries(id.0))?.key.kind;
            let none = match kind {
                Kind::Counter => Total::Counter(Increase::NONE),
                Kind::Gauge => Total::Gauge(GaugeTotal::NONE),
            };
            let mut entries = Vec::new();
            for (unit, files) in units.iter().enumerate() {
                let places = files.samples.iter().filter_map(|part| part.index().find(id.0));
                let Some((first, last, rows)) = places.fold(None, |all, place| match all {
                    None => Some((place.first, place.last, place.rows.len())),
                    Some((first, last, rows)) => {
                        Some((place.first.min(first), place.last.max(last), rows + place.rows.len()))
                    }
                }) else {
                    continue;
                };
                let Some(source) = recording.collections.source_of(first) else { continue };
                let buckets = || source.buckets(first, last, BUCKET_NS).into();
                let readings = Rc::clone(known.entry((first, last)).or_insert_with(buckets));
                let Some(newest) = readings.last() else { continue };
                let complete = newest.count_before + newest.count as usize == rows;
                entries.push(Entry { unit, source, readings, complete });
            }
            let totals = vec![none; windows.sorted.len()];
            series.push(Series { id: *id, kind, entries, newest: None, read_to: None, totals });
        }
        Ok(Reader { units, windows, series })
    }

    fn read_unit(&mut self, unit: usize) -> Result<()> {
        // Which series are needed of this unit, with the number of their entry.
        let mut needed: Vec<(usize, usize)> = Vec::new();
        for (at, series) in self.series.iter().enumerate() {
            let Ok(entry) = series.entries.binary_search_by_key(&unit, |entry| entry.unit) else { continue };
            let (before_ns, after_ns) = series.beside(entry);
            if self.windows.any_over(before_ns, after_ns) {
                needed.push((at, entry));
            }
        }
        let files = &self.units[unit];
        for members in needed.chunks(ROLLED_UP_AT_ONCE) {
            let rollups = match files.rollups {
                Some(rollups) => self.read_rollups(rollups, members)?,
                None => HashMap::new(),
            };
            for members in members.chunks(SERIES_AT_ONCE) {
                self.read_members(files, members, &rollups)?;
            }
        }
        Ok(())
    }

    /// Roll-ups by series, of those of which a long window has some.
    fn read_rollups(
        &self,
        part: &SortedSegment<RollupRow>,
        members: &[(usize, usize)],
    ) -> Result<HashMap<usize, Vec<Rollup>>> {
        let mut found = HashMap::new();
        let over_long = |(at, entry): &&(usize, usize)| {
            let entry = &self.series[*at].entries[*entry];
            self.windows.over(entry.first_ns(), entry.last_ns()).any(|(_, window)| is_long(window))
        };
        for kind in [Kind::Counter, Kind::Gauge] {
            let of_kind = members.iter().filter(|(at, _)| self.series[*at].kind == kind).filter(over_long);
            let places: Vec<(usize, Range<usize>)> = of_kind
                .filter_map(|(at, _)| Some((*at, part.index().find(self.series[*at].id.0)?.rows)))
                .collect();
            let ranges: Vec<Range<usize>> = places.iter().map(|(_, rows)| rows.clone()).collect();
            let columns = match kind {
                Kind::Counter => ["t_ns", "count", "first", "last", "hidden_growth"].as_slice(),
                Kind::Gauge => ["t_ns", "count", "first", "last", "sum", "max"].as_slice(),
            };
            for batch in part.columns(&ranges, columns)? {
                // Recordings of older versions lack a column.
                let Some(mut rollups) = rollups_of(&batch, kind).map(Vec::into_iter) else { continue };
                for (at, rows) in &places {
                    found.insert(*at, rollups.by_ref().take(rows.len()).collect());
                }
            }
        }
        Ok(found)
    }

    fn read_members(
        &mut self,
        files: &Unit<'_>,
        members: &[(usize, usize)],
        rollups: &HashMap<usize, Vec<Rollup>>,
    ) -> Result<()> {
        let mut plans = Vec::with_capacity(members.len());
        for (at, entry) in members {
            let rollups = rollups.get(at).map_or(&[][..], Vec::as_slice);
            plans.push(self.series[*at].plan(*entry, rollups, self.windows));
        }
        let samples = self.read_samples(files, members, &plans)?;
        for (((at, entry), plan), samples) in members.iter().zip(plans).zip(samples) {
            self.series[*at].add(*entry, &plan, &samples, self.windows);
        }
        Ok(())
    }

    /// The samples that plans ask for, and others where it is not known which rows these are.
    fn read_samples(
        &self,
        files: &Unit<'_>,
        members: &[(usize, usize)],
        plans: &[Vec<Piece>],
    ) -> Result<Vec<Vec<(i64, Value)>>> {
        let mut found: Vec<Vec<(i64, Value)>> = vec![Vec::new(); members.len()];
        for part in &files.samples {
            let (mut exact, mut exact_rows) = (Vec::new(), Vec::new());
            let (mut whole, mut whole_rows) = (Vec::new(), Vec::new());
            for (member, (at, entry)) in members.iter().enumerate() {
                let series = &self.series[*at];
                let entry = &series.entries[*entry];
                let buckets = plans[member].iter().filter_map(|piece| match piece {
                    Piece::Samples { bucket } => Some(&entry.readings[*bucket]),
                    Piece::Rollup { .. } => None,
                });
                let mut buckets = buckets.peekable();
                let Some(place) = part
                    .index()
                    .find(series.id.0)
                    .filter(|place| buckets.peek().is_some() && !place.rows.is_empty())
                else {
                    continue;
                };
                if files.samples.len() > 1 || !entry.complete {
                    whole.push((member, place.rows.len()));
                    whole_rows.push(place.rows);
                    continue;
                }
                for bucket in buckets {
                    let begin = place.rows.start + bucket.count_before;
                    let rows = begin..begin + bucket.count as usize;
                    exact.push((member, *bucket));
                    exact_rows.push(rows);
                }
            }
            let mut owners = whole.into_iter();
            let mut current = owners.next();
            part.values(&whole_rows, |collection, value| {
                let Some((member, left)) = &mut current else { return };
                found[*member].push((collection, value));
                *left -= 1;
                if *left == 0 {
                    current = owners.next();
                }
            })?;
            match part.sealed_values(&exact_rows)? {
                Some(values) => {
                    let mut values = values.into_iter();
                    for (member, bucket) in exact {
                        let (at, entry) = members[member];
                        let good = self.series[at].entries[entry].source.good(bucket.first, bucket.last);
                        found[member].extend(good.map(|(collection, _)| collection).zip(values.by_ref()));
                    }
                }
                None => {
                    let mut owners = exact
                        .iter()
                        .flat_map(|(member, bucket)| std::iter::repeat_n(*member, bucket.count as usize));
                    part.values(&exact_rows, |collection, value| {
                        if let Some(member) = owners.next() {
                            found[member].push((collection, value));
                        }
                    })?;
                }
            }
        }
        Ok(found)
    }
}

impl Series<'_> {
    /// The newest reading before an entry's first, and the first after its last.
    fn beside(&self, entry: usize) -> (i64, i64) {
        let before = entry.checked_sub(1).and_then(|before| self.entries.get(before));
        let after = self.entries.get(entry + 1);
        (before.map_or(i64::MIN, Entry::last_ns), after.map_or(i64::MAX, Entry::first_ns))
    }

    /// Whether no reading lies between an entry and the one before it.
    fn adjoins(&self, entry: usize) -> bool {
        let (before, entry) = (&self.entries[entry - 1].readings, &self.entries[entry].readings);
        before[before.len() - 1].last.checked_add(1) == Some(entry[0].first)
    }

    /// What has to be added of an entry. Buckets that no window has a part of are left out, those next to a window excepted.
    fn plan(&mut self, at: usize, rollups: &[Rollup], windows: &Windows) -> Vec<Piece> {
        let (before_ns, after_ns) = self.beside(at);
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
    fn add(&mut self, at: usize, plan: &[Piece], samples: &[(i64, Value)], windows: &Windows) {
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

/// Whether a roll-up is as good as its samples. `is_first`: nothing of the series lies before it. `follows`: what lies before it was read.
fn is_usable(rollup: &Rollup, readings: &ReadingBucket, kind: Kind, is_first: bool, follows: bool) -> bool {
    // Otherwise samples are missing, or are no numbers, and nothing is known of the times of the others.
    let is_whole = rollup.count == readings.count;
    match kind {
        Kind::Gauge => is_whole && !readings.has_gap && readings.unevenness <= UNEVENNESS_MAX,
        Kind::Counter => {
            // A counter's first reading ends no step.
            let is_first_whole = is_first && rollup.count + 1 == readings.count;
            let is_exact = rollup.first.abs() < EXACT_MAX && rollup.last.abs() < EXACT_MAX;
            // What the step to the first reading hides has to be told from the rest.
            let is_known = match rollup.hidden_growth == 0.0 {
                true => true,
                false => rollup.hidden_growth.is_finite() && (is_first_whole || follows),
            };
            (is_whole || is_first_whole) && is_exact && is_known && readings.unevenness.is_finite()
        }
    }
}

/// `None` where a column is missing.
fn rollups_of(batch: &RecordBatch, kind: Kind) -> Option<Vec<Rollup>> {
    let t_ns = batch.column_by_name("t_ns")?.as_primitive_opt::<Int64Type>()?.values();
    let count = batch.column_by_name("count")?.as_primitive_opt::<UInt32Type>()?.values();
    let float = |name| batch.column_by_name(name)?.as_primitive_opt::<Float64Type>();
    let (first, last) = (float("first")?.values(), float("last")?.values());
    let none = |row| Rollup {
        t_ns: t_ns[row],
        min: f64::NAN,
        max: f64::NAN,
        sum: f64::NAN,
        count: count[row],
        first: first[row],
        last: last[row],
        hidden_growth: 0.0,
    };
    let rows = 0..batch.num_rows();
    Some(match kind {
        Kind::Counter => {
            let hidden_growth = float("hidden_growth")?.values();
            rows.map(|row| Rollup { hidden_growth: hidden_growth[row], ..none(row) }).collect()
        }
        Kind::Gauge => {
            let (sum, max) = (float("sum")?.values(), float("max")?.values());
            rows.map(|row| Rollup { sum: sum[row], max: max[row], ..none(row) }).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Reading, SeriesKey, Status};
    use crate::{Options, Recorder};

    const S: i64 = 1_000_000_000;

    /// Two hours of a counter that is reset, and of a gauge.
    fn recording(dir: &std::path::Path) -> Recording {
        let options = Options { reserve_bytes: 0, own_cost: false, ..Options::default() };
        let recorder = Recorder::create(dir, options).unwrap();
        let series = [("n", Kind::Counter), ("g", Kind::Gauge)].map(|(metric, kind)| {
            let [host, source, metric, unit] = ["server", "a", metric, "1"].map(str::to_string);
            recorder.series(&SeriesKey { host, source, metric, instance: String::new(), kind, unit })
        });
        for second in 0..7200 {
            let value = Value::Int(second % 1000);
            recorder.reading(Reading {
                source: "a".to_string(),
                begin_ns: second * S,
                end_ns: second * S + 1,
                status: Status::Ok,
                values: series.iter().map(|series| (*series, value)).collect(),
            });
            if second == 3599 {
                recorder.seal().unwrap();
            }
        }
        recorder.finish().unwrap();
        Recording::open(dir).unwrap()
    }

    /// By series, how many buckets come from roll-ups, and how many from samples.
    fn pieces(recording: &Recording, window: Window) -> Vec<(usize, usize)> {
        let windows = Windows::new(&[window]);
        let units = recording.units();
        let ids: Vec<SeriesId> = recording.series().iter().map(|info| info.id).collect();
        let mut reader = Reader::new(recording, &units, &windows, &ids).unwrap();
        let mut pieces = vec![(0, 0); ids.len()];
        for (unit, files) in units.iter().enumerate() {
            let members: Vec<(usize, usize)> = (0..ids.len()).map(|at| (at, unit)).collect();
            let rollups = reader.read_rollups(files.rollups.unwrap(), &members).unwrap();
            for (at, entry) in members {
                let rollups = rollups.get(&at).map_or(&[][..], Vec::as_slice);
                for piece in reader.series[at].plan(entry, rollups, &windows) {
                    match piece {
                        Piece::Rollup { .. } => pieces[at].0 += 1,
                        Piece::Samples { .. } => pieces[at].1 += 1,
                    }
                }
            }
        }
        pieces
    }

    #[test]
    fn only_the_edges_of_a_long_window_come_from_samples() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recording(&folder.path().join("run"));
        let over = |begin_s, end_s| pieces(&recording, Window { begin_ns: begin_s * S, end_ns: end_s * S });
        assert_eq!(over(0, 7200), [(60, 0); 2]);
        assert_eq!(over(150, 7150), [(57, 2); 2]);
        // Edges between the last reading of a bucket and the first of the next one cut none.
        assert_eq!(over(1200, 6000), [(42, 0); 2]);
        // A short window comes from samples only.
        assert_eq!(over(150, 1100), [(0, 9); 2]);
    }
}

//! What series did over windows. What lies within a long window comes from roll-ups. What lies at its edges comes from samples.
//!
//! The times of a roll-up's readings are known from the collections. So the growth of a counter is exact, and so is the maximum of a gauge.
//! The mean of a gauge is that of readings at equal distances. Where distances are uneven, samples are read.

mod series;
mod windows;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type, UInt32Type};
use whyso_series::{Increase, Rollup};

use super::collections::ReadingBucket;
use super::parts::SortedSegment;
use super::{Recording, SERIES_AT_ONCE};
use crate::data::{Kind, SeriesId, Value};
use crate::error::{Error, Result};
use crate::layout;
use crate::run::Window;
use crate::sorted::RollupRow;
use crate::table::Sample;
use series::{Entry, Piece, Series};
use windows::{Windows, is_long};

/// The roll-ups that are read. Those of 10 seconds would save little: an hour of them costs about as much to decode as its samples.
const LEVEL: usize = 1;
const BUCKET_NS: i64 = layout::ROLLUPS[LEVEL].1;
/// Shorter windows come from samples only.
const LONG_NS: i64 = 8 * BUCKET_NS;
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
    /// Calls `each` with every series, in ascending order, and with what it did over each of the windows. `None`: nothing is known.
    ///
    /// The values are those that `whyso_series::increase`, `mean_over` and `max_over` give for all samples of the series, apart from rounding.
    /// Over windows of 16 minutes or more, the mean of a gauge takes its readings as equally far apart within 2 minutes. Where they are not, it
    /// can be off by 5 % of the gauge's range within these 2 minutes.
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

/// Adds up what series did, unit by unit.
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
            series.push(Series::new(*id, kind, entries, windows));
        }
        Ok(Reader { units, windows, series })
    }

    fn read_unit(&mut self, unit: usize) -> Result<()> {
        // Which series are needed of this unit, with the number of their entry.
        let mut needed: Vec<(usize, usize)> = Vec::new();
        for (at, series) in self.series.iter().enumerate() {
            let Ok(entry) = series.entries.binary_search_by_key(&unit, |entry| entry.unit) else { continue };
            let (before_ns, after_ns) = series.neighbours_ns(entry);
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

    /// Returns roll-ups by series. Those that only short windows have a part of are left out.
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

    /// Returns at least the samples that the plans need. Where it is not known which rows these are, all of the series in the unit.
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

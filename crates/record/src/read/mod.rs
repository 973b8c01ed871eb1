//! A recording, opened for reading.

mod at_work;
mod collections;
mod open;
mod parts;
mod states;
mod threads;
pub(crate) mod version;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use whyso_series::{
    Envelope, Points, Rollup, envelope, envelope_of_rollups, merge_rollups, rates, roll_up, roll_up_rates,
};

use crate::command_table;
use crate::data::{
    ClientCommand, Event, Kind, LoadInterval, SeriesId, SeriesKey, StackFrame, StackSample, StackWait,
    TextRows, Value,
};
use crate::error::{Error, Result};
use crate::index::Place;
use crate::layout;
use crate::notes::notes;
use crate::run::{RunInfo, Window};
use crate::sorted::RollupRow;
use crate::stack_table;
use crate::table::{self, Sample};
use collections::{Collections, Source};
use parts::{Plain, Sorted};

pub use states::StateLooks;

/// Series whose samples are read together: as many as a row group holds, more would hold more memory for nothing.
const SERIES_AT_ONCE: usize = 120;
/// Roll-ups serve an envelope when at least so many fall into a bucket: what lies at an edge is then at most an eighth of a bucket off.
const ROLLUPS_A_BUCKET_MIN: i64 = 8;
/// Every whole number up to it is an `f64`.
const EXACT_MAX: u64 = 1 << 53;
const EVERYTHING: Window = Window { begin_ns: i64::MIN, end_ns: i64::MAX };

/// A series of a recording, and how much there is of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesInfo {
    pub id: SeriesId,
    pub key: SeriesKey,
    pub samples: u64,
    /// When its first reading was taken; 0 where there is none.
    pub first_ns: i64,
    /// When its last reading was taken; 0 where there is none.
    pub last_ns: i64,
}

/// Readings of one series in order of time: vectors of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// When taking each reading began.
    pub t_begin_ns: Vec<i64>,
    /// When it ended: the time at which it counts.
    pub t_end_ns: Vec<i64>,
    pub value: Vec<f64>,
    /// What each value lacks of the whole number that was recorded: those beyond 2⁵³ fit no `f64`. Empty where none does.
    low: Vec<f64>,
    /// When the series' source was to be read and was not.
    pub gaps: Vec<Window>,
}

impl Samples {
    pub fn len(&self) -> usize {
        self.value.len()
    }

    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    fn reserve(&mut self, more: usize) {
        self.t_begin_ns.reserve(more);
        self.t_end_ns.reserve(more);
        self.value.reserve(more);
    }

    fn push(&mut self, value: Value) {
        let rounded = value.as_f64();
        let low = match value {
            Value::Int(whole) if whole.unsigned_abs() > EXACT_MAX => {
                (i128::from(whole) - rounded as i128) as f64
            }
            Value::Int(_) | Value::Float(_) => 0.0,
        };
        if low != 0.0 {
            self.low.resize(self.value.len(), 0.0);
        }
        if low != 0.0 || !self.low.is_empty() {
            self.low.push(low);
        }
        self.value.push(rounded);
    }

    /// The number of reading `at` to its last digit, where that is beyond what every `f64` holds.
    pub fn whole(&self, at: usize) -> Option<i64> {
        let value = *self.value.get(at).filter(|value| value.abs() >= EXACT_MAX as f64)?;
        let low = self.low.get(at).copied().unwrap_or(0.0);
        i64::try_from(value as i128 + low as i128).ok()
    }

    /// The readings of a counter, like [`Samples::points`], where numbers beyond 2⁵³ are told by what they grew by since the first reading: exactly.
    pub fn counter_points(&self) -> Points {
        if self.low.is_empty() {
            return self.points();
        }
        let exact = |at: usize| self.value[at] as i128 + self.low.get(at).map_or(0, |low| *low as i128);
        let mut grown = 0.0;
        let mut value = Vec::with_capacity(self.value.len());
        for at in 0..self.value.len() {
            if at > 0 {
                let (then, now) = (exact(at - 1), exact(at));
                // A counter that fell was reset: all that it counts is new.
                grown += if now < then { now.max(0) } else { now - then } as f64;
            }
            value.push(grown);
        }
        Samples { value, low: Vec::new(), ..self.clone() }.points()
    }

    /// The readings at the time at which they count, with `NaN` at the end of each gap.
    pub fn points(&self) -> Points {
        let count = self.value.len() + self.gaps.len();
        let mut points = Points { t_ns: Vec::with_capacity(count), value: Vec::with_capacity(count) };
        let mut gaps = self.gaps.iter().peekable();
        for (t_ns, value) in self.t_end_ns.iter().zip(&self.value) {
            while let Some(gap) = gaps.next_if(|gap| gap.end_ns < *t_ns) {
                points.t_ns.push(gap.end_ns);
                points.value.push(f64::NAN);
            }
            points.t_ns.push(*t_ns);
            points.value.push(*value);
        }
        for gap in gaps {
            points.t_ns.push(gap.end_ns);
            points.value.push(f64::NAN);
        }
        points
    }
}

/// A recording as it was when it was opened. It is never written to; one that is still being recorded can be opened too.
pub struct Recording {
    dir: PathBuf,
    run: RunInfo,
    live: bool,
    problems: Vec<String>,
    series: Vec<SeriesInfo>,
    collections: Collections,
    samples: Vec<Sorted<Sample>>,
    /// In the order of `layout::ROLLUPS`.
    rollups: [Vec<Sorted<RollupRow>>; 2],
    plain: HashMap<String, Vec<Plain>>,
}

impl Recording {
    /// Opens the recording in `dir`. What can't be read of it is told by [`Recording::problems`]; only a folder
    /// that is no recording, or can't be read at all, is an error.
    pub fn open(dir: &Path) -> Result<Recording> {
        open::open(dir)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What is wrong with it, in sentences; empty for a recording that was finished.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether a recorder was at work on it when it was opened.
    pub fn live(&self) -> bool {
        self.live
    }

    pub fn run(&self) -> &RunInfo {
        &self.run
    }

    /// Every series, in order of number.
    pub fn series(&self) -> &[SeriesInfo] {
        &self.series
    }

    pub fn info(&self, id: SeriesId) -> Option<&SeriesInfo> {
        let at = self.series.binary_search_by_key(&id, |info| info.id).ok()?;
        self.series.get(at)
    }

    /// Series of a source and a metric, of one instance or of all, in order of number.
    pub fn find(&self, source: &str, metric: &str, instance: Option<&str>) -> Vec<SeriesId> {
        let fits = |key: &SeriesKey| {
            key.source == source
                && key.metric == metric
                && instance.is_none_or(|instance| key.instance == instance)
        };
        self.series.iter().filter(|info| fits(&info.key)).map(|info| info.id).collect()
    }

    /// From the first reading of any series to the last; `None` where there is none.
    pub fn window(&self) -> Option<Window> {
        let read = || self.series.iter().filter(|info| info.samples > 0);
        let begin_ns = read().map(|info| info.first_ns).min()?;
        let end_ns = read().map(|info| info.last_ns).max()?;
        Some(Window { begin_ns, end_ns })
    }

    /// Readings of one series whose end lies in the window, both edges included; all of them for `None`.
    pub fn samples(&self, id: SeriesId, window: Option<Window>) -> Result<Samples> {
        let mut read = self.samples_many(&[id], window)?;
        Ok(read.pop().unwrap_or_default())
    }

    /// The same for several series, in the order given. For very many, [`Recording::samples_each`] holds less in memory.
    pub fn samples_many(&self, ids: &[SeriesId], window: Option<Window>) -> Result<Vec<Samples>> {
        let mut at: HashMap<SeriesId, Vec<usize>> = HashMap::new();
        for (index, id) in ids.iter().enumerate() {
            at.entry(*id).or_default().push(index);
        }
        let mut all = vec![Samples::default(); ids.len()];
        self.samples_each(ids, window, |id, samples| {
            let Some((last, others)) = at.get(&id).and_then(|places| places.split_last()) else { return };
            for other in others {
                all[*other] = samples.clone();
            }
            all[*last] = samples;
        })?;
        Ok(all)
    }

    /// Reads series, a part of them at a time, and hands each over: in ascending order of number, each once.
    pub fn samples_each(
        &self,
        ids: &[SeriesId],
        window: Option<Window>,
        mut each: impl FnMut(SeriesId, Samples),
    ) -> Result<()> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        for part in ids.chunks(SERIES_AT_ONCE) {
            for (id, samples) in
                part.iter().zip(self.read_samples(part, window.unwrap_or(EVERYTHING), false)?)
            {
                each(*id, samples);
            }
        }
        Ok(())
    }

    /// `ids` ascending. With `lead`, a reading before the window comes too, where there is one in the same segment.
    fn read_samples(&self, ids: &[SeriesId], window: Window, lead: bool) -> Result<Vec<Samples>> {
        if let Some(unknown) = ids.iter().find(|id| self.info(**id).is_none()) {
            return Err(Error::NoSuchSeries(unknown.0));
        }
        let mut all = vec![Samples::default(); ids.len()];
        let mut sources = vec![None; ids.len()];
        for part in &self.samples {
            let mut ranges = Vec::new();
            let mut owners = Vec::new();
            for (owner, id) in ids.iter().enumerate() {
                let Some(place) = part.index().find(id.0) else { continue };
                sources[owner] = Some(place.first);
                let Some(source) = self.collections.source_of(place.first) else { continue };
                if let Some(rows) = rows_in(source, &place, window, lead) {
                    owners.push((owner, rows.len(), source));
                    ranges.push(rows);
                }
            }
            for (owner, rows, _) in &owners {
                all[*owner].reserve(*rows);
            }
            let mut owners = owners.into_iter();
            let mut current = owners.next();
            part.values(&ranges, |collection, value| {
                let Some((owner, left, source)) = &mut current else { return };
                let (owner, source) = (*owner, *source);
                *left -= 1;
                if *left == 0 {
                    current = owners.next();
                }
                let Some(taken) = source.window(collection) else { return };
                let before = taken.end_ns < window.begin_ns && !lead;
                if before || taken.end_ns > window.end_ns {
                    return;
                }
                let samples = &mut all[owner];
                samples.t_begin_ns.push(taken.begin_ns);
                samples.t_end_ns.push(taken.end_ns);
                samples.push(value);
            })?;
        }
        for (samples, source) in all.iter_mut().zip(sources) {
            let source = source.and_then(|collection| self.collections.source_of(collection));
            samples.gaps = source.map(|source| source.gaps(window)).unwrap_or_default();
        }
        Ok(all)
    }

    /// Envelope of a gauge's readings, or of a counter's rates a second, over `[begin_ns, end_ns)` of the window. Where buckets are long enough it
    /// comes from roll-ups: the extremes are then right to 0.1 % and to a roll-up's length in time, the quartiles are those of the
    /// roll-ups' means.
    pub fn envelope(&self, id: SeriesId, window: Window, buckets: usize) -> Result<Envelope> {
        let info = self.info(id).ok_or(Error::NoSuchSeries(id.0))?;
        let counter = info.key.kind == Kind::Counter;
        let bucket_ns = window.end_ns.saturating_sub(window.begin_ns) / buckets.max(1) as i64;
        for (level, (_, rollup_ns)) in layout::ROLLUPS.iter().enumerate().rev() {
            if bucket_ns >= rollup_ns * ROLLUPS_A_BUCKET_MIN {
                let rollups = self.read_rollups(id, window, level, *rollup_ns, counter)?;
                return Ok(envelope_of_rollups(&rollups, window.begin_ns, window.end_ns, buckets));
            }
        }
        let mut read = self.read_samples(&[id], window, counter)?;
        let points = read.pop().unwrap_or_default().points();
        let points = if counter { rates(&points.t_ns, &points.value) } else { points };
        Ok(envelope(&points.t_ns, &points.value, window.begin_ns, window.end_ns, buckets))
    }

    /// Envelope of a series' values as they were recorded, a counter's too. Where buckets are long enough it comes from roll-ups: a counter's is then
    /// of the first and the last reading of each.
    ///
    /// # Errors
    /// The recording has no such series, or its files can't be read.
    pub fn envelope_of_values(&self, id: SeriesId, window: Window, buckets: usize) -> Result<Envelope> {
        let info = self.info(id).ok_or(Error::NoSuchSeries(id.0))?;
        if info.key.kind == Kind::Gauge {
            return self.envelope(id, window, buckets);
        }
        let bucket_ns = window.end_ns.saturating_sub(window.begin_ns) / buckets.max(1) as i64;
        let (mut t_ns, mut value) = (Vec::new(), Vec::new());
        match layout::ROLLUPS.iter().rposition(|(_, rollup_ns)| bucket_ns >= rollup_ns * ROLLUPS_A_BUCKET_MIN)
        {
            Some(level) => {
                for rollup in self.read_rollups(id, window, level, layout::ROLLUPS[level].1, true)? {
                    t_ns.extend([rollup.t_ns, rollup.t_ns]);
                    value.extend([rollup.first, rollup.last]);
                }
            }
            None => {
                let points = self.samples(id, Some(window))?.points();
                (t_ns, value) = (points.t_ns, points.value);
            }
        }
        Ok(envelope(&t_ns, &value, window.begin_ns, window.end_ns, buckets))
    }

    /// Mean of a gauge, or of a counter's rates a second, in each of some equal cells of a window; `None` where the cells are too short for
    /// roll-ups. A cell without a reading is `NaN`.
    ///
    /// # Errors
    /// The recording has no such series, or its files can't be read.
    pub fn means(&self, id: SeriesId, window: Window, cells: usize) -> Result<Option<Vec<f64>>> {
        let info = self.info(id).ok_or(Error::NoSuchSeries(id.0))?;
        let counter = info.key.kind == Kind::Counter;
        let cell_ns = window.end_ns.saturating_sub(window.begin_ns) / cells.max(1) as i64;
        let fits = |(_, rollup_ns): &(&str, i64)| cell_ns >= rollup_ns * ROLLUPS_A_BUCKET_MIN;
        let Some(level) = layout::ROLLUPS.iter().rposition(fits) else { return Ok(None) };
        let (mut total, mut count) = (vec![0.0; cells], vec![0u64; cells]);
        for rollup in self.read_rollups(id, window, level, layout::ROLLUPS[level].1, counter)? {
            let cell = rollup.t_ns.saturating_sub(window.begin_ns).div_euclid(cell_ns);
            let Some(cell) = usize::try_from(cell).ok().filter(|cell| *cell < cells) else { continue };
            total[cell] += rollup.sum;
            count[cell] += u64::from(rollup.count);
        }
        let mean = |(total, count): (&f64, &u64)| if *count == 0 { f64::NAN } else { total / *count as f64 };
        Ok(Some(total.iter().zip(&count).map(mean).collect()))
    }

    fn read_rollups(
        &self,
        id: SeriesId,
        window: Window,
        level: usize,
        rollup_ns: i64,
        counter: bool,
    ) -> Result<Vec<Rollup>> {
        let mut rollups = Vec::new();
        for part in &self.rollups[level] {
            let Some(place) = part.index().find(id.0) else { continue };
            if place.last >= window.begin_ns && place.first < window.end_ns {
                rollups.extend(part.rollups(place.rows)?.into_iter().map(|row| row.rollup));
            }
        }
        // Segments that were not sealed have samples only.
        for part in &self.samples {
            let covered =
                self.rollups[level].iter().any(|other| other.first <= part.first && part.last <= other.last);
            let (false, Some(place)) = (covered, part.index().find(id.0)) else { continue };
            let (mut t_ns, mut value) = (Vec::new(), Vec::new());
            part.values(&[place.rows], |collection, sample| {
                if let Some(taken) = self.collections.window(collection) {
                    t_ns.push(taken.end_ns);
                    value.push(sample.as_f64());
                }
            })?;
            rollups.extend(if counter {
                roll_up_rates(&t_ns, &value, None, rollup_ns)
            } else {
                roll_up(&t_ns, &value, rollup_ns)
            });
        }
        rollups.sort_by_key(|rollup| rollup.t_ns);
        Ok(merge_rollups(&rollups, rollup_ns))
    }

    /// Everything that happened, and the user's notes, in order of time.
    pub fn events(&self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for batch in self.batches(layout::EVENTS)? {
            events.extend(table::events_of(&batch).unwrap_or_default());
        }
        events.extend(notes(&self.dir));
        events.sort_by_key(|event| event.t_ns);
        Ok(events)
    }

    /// What the load did, in order of time; the intervals that overlap the window, all for `None`.
    pub fn load(&self, window: Option<Window>) -> Result<Vec<LoadInterval>> {
        let window = window.unwrap_or(EVERYTHING);
        let mut load = Vec::new();
        for batch in self.batches(layout::LOAD)? {
            load.extend(table::load_of(&batch).unwrap_or_default());
        }
        load.retain(|one| one.begin_ns < window.end_ns && one.end_ns > window.begin_ns);
        load.sort_by_key(|one| (one.begin_ns, one.end_ns));
        Ok(load)
    }

    /// Threads that were found on CPUs within a window, its end excluded; all for `None`.
    pub fn stacks(&self, window: Option<Window>) -> Result<Vec<StackSample>> {
        let window = window.unwrap_or(EVERYTHING);
        let mut stacks = Vec::new();
        for batch in self.batches(layout::STACKS)? {
            stacks.extend(stack_table::samples_of(&batch).unwrap_or_default());
        }
        stacks.retain(|one| one.t_ns >= window.begin_ns && one.t_ns < window.end_ns);
        stacks.sort_by_key(|one| one.t_ns);
        Ok(stacks)
    }

    /// Waits that were chosen and ended within a window, its end excluded; all for `None`.
    pub fn waits(&self, window: Option<Window>) -> Result<Vec<StackWait>> {
        let window = window.unwrap_or(EVERYTHING);
        let mut waits = Vec::new();
        for batch in self.batches(layout::WAITS)? {
            waits.extend(stack_table::waits_of(&batch).unwrap_or_default());
        }
        waits.retain(|one| one.t_ns >= window.begin_ns && one.t_ns < window.end_ns);
        waits.sort_by_key(|one| one.t_ns);
        Ok(waits)
    }

    /// The functions of every stack, by stack and depth.
    pub fn frames(&self) -> Result<Vec<StackFrame>> {
        let mut frames = Vec::new();
        for batch in self.batches(layout::FRAMES)? {
            frames.extend(stack_table::frames_of(&batch).unwrap_or_default());
        }
        frames.sort_by_key(|one| (one.stack, one.depth));
        Ok(frames)
    }

    /// Commands of clients that the server began to work on within a window, its end excluded, in that order; all for `None`.
    pub fn commands(&self, window: Option<Window>) -> Result<Vec<ClientCommand>> {
        let window = window.unwrap_or(EVERYTHING);
        let mut commands = Vec::new();
        for batch in self.batches(layout::COMMANDS)? {
            commands.extend(command_table::commands_of(&batch, window).unwrap_or_default());
        }
        commands.sort_by_key(|one| one.t_ns);
        Ok(commands)
    }

    /// The statements of the commands, by number.
    pub fn statements(&self) -> Result<HashMap<u32, String>> {
        let mut statements = HashMap::new();
        for batch in self.batches(layout::STATEMENTS)? {
            let found = command_table::statements_of(&batch).unwrap_or_default();
            statements.extend(found.into_iter().map(|one| (one.statement, one.text)));
        }
        Ok(statements)
    }

    /// The text tables of a source in order of time, those that had no rows too. A column that only other tables of the source have is there,
    /// without text.
    pub fn rows(&self, source: &str) -> Result<Vec<TextRows>> {
        let stream = layout::rows_stream(source);
        let mut tables = Vec::new();
        for batch in self.batches(&stream)? {
            tables.extend(table::rows_of(&batch, source).unwrap_or_default());
        }
        if let Some(readings) = self.collections.named(&stream) {
            let mut seen: Vec<i64> = tables.iter().map(|table| table.t_ns).collect();
            seen.sort_unstable();
            let empty =
                |t_ns| TextRows { source: source.to_string(), t_ns, columns: Vec::new(), rows: Vec::new() };
            tables.extend(readings.read_at_ns().filter(|t_ns| seen.binary_search(t_ns).is_err()).map(empty));
        }
        tables.sort_by_key(|table| table.t_ns);
        Ok(tables)
    }

    /// Sources that have text tables.
    pub fn row_sources(&self) -> Vec<String> {
        let mut sources: Vec<String> =
            self.plain.keys().filter_map(|stream| layout::rows_source(stream)).collect();
        sources.sort();
        sources
    }

    /// Rows of a stream as Arrow batches, in the order in which they were written; see [`crate::Recorder::batch`].
    pub fn batches(&self, stream: &str) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        for part in self.plain.get(stream).map_or(&[][..], Vec::as_slice) {
            batches.extend(part.batches()?);
        }
        Ok(batches)
    }
}

/// The rows of a series that may lie in the window: exactly those where it has a row for every reading of its source.
fn rows_in(source: &Source, place: &Place, window: Window, lead: bool) -> Option<Range<usize>> {
    let (first, last) = source.ending_in(place.first, place.last, window, lead)?;
    let complete = place.rows.len() as i64 == place.last - place.first + 1;
    if !complete {
        return Some(place.rows.clone());
    }
    let begin = place.rows.start + (first - place.first) as usize;
    Some(begin..begin + (last - first + 1) as usize)
}

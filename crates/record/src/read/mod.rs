//! A recording, opened for reading.

mod at_work;
mod collections;
mod old_format;
mod open;
mod parts;
mod pieces;
mod profile;
mod programs;
mod rolled;
mod rollups;
mod samples;
mod states;
mod thread_sums;
mod threads;
pub(crate) mod version;
mod window_values;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::command_table;
use crate::data::{
    ClientCommand, Event, LoadCount, LoadInterval, SeriesId, SeriesKey, StackFrame, StackSample, StackWait,
    TextRows,
};
use crate::error::{Error, Result};
use crate::index::Place;
use crate::layout;
use crate::note_file::notes;
use crate::run::{RunInfo, Window};
use crate::sorted::RollupRow;
use crate::stack_table;
use crate::table::{self, Sample};
use collections::{Collections, Source};
use parts::{Between, Plain, SortedSegment};

pub use at_work::{LastWork, is_whole_list};
pub use profile::{StackSpread, StackTotal, spread};
pub use programs::{ProgramTotal, ProgramWaitTotal};
pub use samples::Samples;
pub use states::{StateTimes, ThreadTimes};
pub use window_values::WindowValue;

/// Series whose samples are read together: as many as a row group holds, more would hold more memory for nothing.
const SERIES_AT_ONCE: usize = 120;
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

/// A recording as it was when it was opened. It is never written to; one that is still being recorded can be opened too.
pub struct Recording {
    dir: PathBuf,
    run: RunInfo,
    live: bool,
    problems: Vec<String>,
    series: Vec<SeriesInfo>,
    collections: Collections,
    /// What each file was read as, by its path: for whom the recording is opened again.
    files: HashMap<PathBuf, open::FilePart>,
    samples: Vec<Arc<SortedSegment<Sample>>>,
    /// In the order of `layout::ROLLUPS`.
    rollups: [Vec<Arc<SortedSegment<RollupRow>>>; 2],
    plain: HashMap<String, Vec<Arc<Plain>>>,
}

impl Recording {
    /// Opens the recording in `dir`. [`Recording::problems`] has what can't be read of it. Only a folder that is no
    /// recording, or can't be read at all, is an error.
    pub fn open(dir: &Path) -> Result<Recording> {
        open::open(dir, None)
    }

    /// The recording as it is now. What was read of its files before is not read again, so that one that is still written is followed at little cost.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn reopen(&self) -> Result<Recording> {
        open::open(&self.dir, Some(self))
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

    /// By series the number of the last part of it that ends before the window.
    fn last_before(&self, ids: &[SeriesId], window: Window) -> Vec<Option<usize>> {
        let of = |id: &SeriesId| {
            self.samples.iter().rposition(|part| {
                let place = part.index().find(id.0);
                place.is_some_and(|place| {
                    let source = self.collections.source_of(place.first);
                    source.is_some_and(|source| is_before(source, &place, window))
                })
            })
        };
        ids.iter().map(of).collect()
    }

    /// `ids` ascending. With `lead`, the last reading before the window comes too, where there is one.
    fn read_samples(&self, ids: &[SeriesId], window: Window, lead: bool) -> Result<Vec<Samples>> {
        if let Some(unknown) = ids.iter().find(|id| self.info(**id).is_none()) {
            return Err(Error::NoSuchSeries(unknown.0));
        }
        let mut all = vec![Samples::default(); ids.len()];
        let mut sources = vec![None; ids.len()];
        let leads = if lead { self.last_before(ids, window) } else { vec![None; ids.len()] };
        for (number, part) in self.samples.iter().enumerate() {
            let mut ranges = Vec::new();
            let mut owners = Vec::new();
            for (owner, id) in ids.iter().enumerate() {
                let Some(place) = part.index().find(id.0) else { continue };
                sources[owner] = Some(place.first);
                let Some(source) = self.collections.source_of(place.first) else { continue };
                if is_before(source, &place, window) && leads[owner] != Some(number) {
                    continue;
                }
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
                let Some(reading) = source.window(collection) else { return };
                let before = reading.end_ns < window.begin_ns && !lead;
                if before || reading.end_ns > window.end_ns {
                    return;
                }
                let samples = &mut all[owner];
                samples.t_begin_ns.push(reading.begin_ns);
                samples.t_end_ns.push(reading.end_ns);
                samples.push(value);
            })?;
        }
        for (samples, source) in all.iter_mut().zip(sources) {
            let source = source.and_then(|collection| self.collections.source_of(collection));
            samples.gaps = source.map(|source| source.gaps(window)).unwrap_or_default();
        }
        Ok(all)
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
        let mut load = Vec::new();
        self.each_load(window.unwrap_or(EVERYTHING), |interval| load.push(interval))?;
        load.sort_by_key(|interval| (interval.begin_ns, interval.end_ns));
        Ok(load)
    }

    /// Hands over what the load did, a part of it at a time; the intervals that overlap the window.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn each_load(&self, window: Window, mut take: impl FnMut(LoadInterval)) -> Result<()> {
        self.each_batch(layout::LOAD, Some(load_between(window)), |batch| {
            let found = table::load_of(batch).unwrap_or_default().into_iter();
            found.filter(|interval| overlaps(window, interval.begin_ns, interval.end_ns)).for_each(&mut take);
        })
    }

    /// How much of each kind the load did, without histograms; the intervals that overlap the window.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn load_counts(&self, window: Window) -> Result<Vec<LoadCount>> {
        let mut counts = Vec::new();
        for part in self.plain.get(layout::LOAD).into_iter().flatten() {
            part.each(Some(load_between(window)), Some(&table::LOAD_COUNTS), |batch| {
                let found = table::load_counts_of(batch).unwrap_or_default().into_iter();
                counts.extend(found.filter(|count| overlaps(window, count.begin_ns, count.end_ns)));
                Ok(())
            })?;
        }
        Ok(counts)
    }

    /// When the load began; `None` where it was not recorded.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn load_begin_ns(&self) -> Result<Option<i64>> {
        let mut first = None;
        for part in self.plain.get(layout::LOAD).into_iter().flatten() {
            let begin_ns = part.bounds(table::LOAD_COUNTS[0])?.map(|(begin_ns, _)| begin_ns);
            first = [first, begin_ns].into_iter().flatten().min();
        }
        Ok(first)
    }

    /// Threads that were found on CPUs within a window, its end excluded; all for `None`.
    pub fn stacks(&self, window: Option<Window>) -> Result<Vec<StackSample>> {
        let mut stacks = Vec::new();
        self.each_stack(window.unwrap_or(EVERYTHING), |stack| stacks.push(stack))?;
        stacks.sort_by_key(|stack| stack.t_ns);
        Ok(stacks)
    }

    /// Hands over threads that were found on CPUs, a part of them at a time.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn each_stack(&self, window: Window, mut take: impl FnMut(StackSample)) -> Result<()> {
        self.each_batch(layout::STACKS, Some(Between::at(table::TIME, window)), |batch| {
            stack_table::samples_of(batch, window).unwrap_or_default().into_iter().for_each(&mut take);
        })
    }

    /// Waits that were chosen and ended within a window, its end excluded; all for `None`.
    pub fn waits(&self, window: Option<Window>) -> Result<Vec<StackWait>> {
        let mut waits = Vec::new();
        self.each_wait(window.unwrap_or(EVERYTHING), |wait| waits.push(wait))?;
        waits.sort_by_key(|wait| wait.t_ns);
        Ok(waits)
    }

    /// Hands over waits that were chosen, a part of them at a time.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn each_wait(&self, window: Window, mut take: impl FnMut(StackWait)) -> Result<()> {
        self.each_batch(layout::WAITS, Some(Between::at(table::TIME, window)), |batch| {
            stack_table::waits_of(batch, window).unwrap_or_default().into_iter().for_each(&mut take);
        })
    }

    /// The functions of every stack, by stack and depth.
    pub fn frames(&self) -> Result<Vec<StackFrame>> {
        let mut frames = Vec::new();
        for batch in self.batches(layout::FRAMES)? {
            frames.extend(stack_table::frames_of(&batch).unwrap_or_default());
        }
        frames.sort_by_key(|frame| (frame.stack, frame.depth));
        Ok(frames)
    }

    /// Commands of clients that the server began to work on within a window, its end excluded, in that order; all for `None`.
    pub fn commands(&self, window: Option<Window>) -> Result<Vec<ClientCommand>> {
        let window = window.unwrap_or(EVERYTHING);
        let mut commands = Vec::new();
        self.each_batch(layout::COMMANDS, Some(Between::at(table::TIME, window)), |batch| {
            commands.extend(command_table::commands_of(batch, window).unwrap_or_default());
        })?;
        commands.sort_by_key(|command| command.t_ns);
        Ok(commands)
    }

    /// The statements of the commands, by number.
    pub fn statements(&self) -> Result<HashMap<u32, String>> {
        let mut statements = HashMap::new();
        for batch in self.batches(layout::STATEMENTS)? {
            let found = command_table::statements_of(&batch).unwrap_or_default();
            statements.extend(found.into_iter().map(|found| (found.statement, found.text)));
        }
        Ok(statements)
    }

    /// The text tables of a source that were read within a window, both ends included, in order of time; all for `None`. Those that had no
    /// rows are there too. A column that only other tables of the source have is there, without text.
    pub fn rows(&self, source: &str, window: Option<Window>) -> Result<Vec<TextRows>> {
        let mut tables = Vec::new();
        self.each_table(source, window, |table| tables.push(table))?;
        tables.sort_by_key(|table| table.t_ns);
        Ok(tables)
    }

    /// Hands over the tables of a source one after the other, so that never all of them are in memory as text. Then those that were read
    /// and had no row.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn each_table(
        &self,
        source: &str,
        window: Option<Window>,
        mut take: impl FnMut(TextRows),
    ) -> Result<()> {
        let stream = layout::rows_stream(source);
        let window = window.unwrap_or(EVERYTHING);
        let is_within = |t_ns: i64| window.begin_ns <= t_ns && t_ns <= window.end_ns;
        let reach = Window { end_ns: window.end_ns.saturating_add(1), ..window };
        let mut times: HashSet<i64> = HashSet::new();
        self.each_batch(&stream, Some(Between::at(table::TIME, reach)), |batch| {
            for table in table::rows_of(batch, source).unwrap_or_default() {
                if is_within(table.t_ns) {
                    times.insert(table.t_ns);
                    take(table);
                }
            }
        })?;
        for t_ns in self.table_times(source).filter(|t_ns| is_within(*t_ns) && !times.contains(t_ns)) {
            take(TextRows { source: source.to_string(), t_ns, columns: Vec::new(), rows: Vec::new() });
        }
        Ok(())
    }

    /// When the tables of a source were read, ascending.
    pub fn table_times(&self, source: &str) -> impl Iterator<Item = i64> {
        let readings = self.collections.named(&layout::rows_stream(source));
        readings.into_iter().flat_map(Source::read_at_ns)
    }

    /// The table of a source that was read nearest to a time; `None` where none was.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn table_near(&self, source: &str, t_ns: i64) -> Result<Option<TextRows>> {
        let Some(nearest) = self.table_times(source).min_by_key(|read_ns| read_ns.abs_diff(t_ns)) else {
            return Ok(None);
        };
        let mut tables = self.rows(source, Some(Window { begin_ns: nearest, end_ns: nearest }))?;
        Ok(tables.pop())
    }

    /// Hands over the batches of a stream that may hold rows of a window.
    fn each_batch(
        &self,
        stream: &str,
        rows: Option<Between<'_>>,
        mut take: impl FnMut(&RecordBatch),
    ) -> Result<()> {
        self.plain.get(stream).into_iter().flatten().try_for_each(|part| {
            part.each(rows, None, |batch| {
                take(batch);
                Ok(())
            })
        })
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

fn load_between(window: Window) -> Between<'static> {
    Between { begin: table::LOAD_COUNTS[0], end: table::LOAD_COUNTS[1], window }
}

fn overlaps(window: Window, begin_ns: i64, end_ns: i64) -> bool {
    begin_ns < window.end_ns && end_ns > window.begin_ns
}

/// Whether all of a series' rows in a file are of before the window.
fn is_before(source: &Source, place: &Place, window: Window) -> bool {
    source.window(place.last).is_some_and(|reading| reading.end_ns < window.begin_ns)
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

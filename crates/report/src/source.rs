//! Where a report's numbers come from.

use std::collections::BTreeMap;
use std::sync::Arc;

use whyso_model::FileWait;
use whyso_profile::ObserverStacks;
use whyso_record::data::{Event, LoadInterval, SeriesId, SeriesKey, StackFrame, StackSample, StackWait};
use whyso_record::run::{RunInfo, Window};
use whyso_record::{Recording, StackSpread, StateTimes};
use whyso_series::{Spans, ThreadTable, Timeline, merged_edges};

use crate::{Error, threads};

/// The samples of one series, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// When each reading ended, monotonic ns, ascending.
    pub t_ns: Vec<i64>,
    /// As recorded (counters cumulative); NaN where a reading failed.
    pub value: Vec<f64>,
}

/// Stacks of the server's threads; no frames where none were recorded. The observer's own are apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stacks {
    /// Threads that were found on CPUs.
    pub samples: Vec<StackSample>,
    /// Waits that were chosen.
    pub waits: Vec<StackWait>,
    /// The functions of every stack, by stack and depth.
    pub frames: Vec<StackFrame>,
    /// Which connection each thread worked for, and which statement it executed, as far as it is known.
    pub connections: Spans<u64>,
    pub statements: Spans<Arc<str>>,
    /// Samples and waits of the observer's own probes, and of what the server did for the observer's connections.
    pub observer_samples: Vec<StackSample>,
    pub observer_waits: Vec<StackWait>,
    /// How much of the time was read, 0 to 1; 0 stands for 1. The weights are scaled up to all of it.
    pub part: f64,
}

/// So many samples and waits are read.
const STACKS_MAX: u64 = 300_000;

impl Stacks {
    /// Returns the stacks of one window, without whom the threads worked for.
    ///
    /// # Errors
    /// The recording's files can't be read.
    pub fn over(recording: &Recording, window: Window) -> Result<Stacks, Error> {
        let StackSpread { samples, waits, part } = recording.stacks_spread(Some(window), STACKS_MAX)?;
        let stacks = Stacks { samples, waits, part, frames: recording.frames()?, ..Stacks::default() };
        Ok(stacks.with_observer_apart())
    }

    /// Whether parts of the time were read, and not all of it.
    pub(crate) fn is_part(&self) -> bool {
        self.part > 0.0 && self.part < 1.0
    }

    /// What the reader must know where not all of the time was read.
    pub(crate) fn note(&self) -> Option<String> {
        self.is_part().then(|| {
            format!(
                "Samples and waits of the threads' stacks are those of {} of the time, in 64 parts spread evenly, scaled up to all of it. What happened only between these parts is missing. \
                 Functions over time are left out.",
                whyso_words::percent(self.part)
            )
        })
    }

    pub(crate) fn with_observer_apart(mut self) -> Stacks {
        let named =
            self.frames.iter().map(|frame| (frame.stack, frame.function.as_str(), frame.module.as_str()));
        let observer = ObserverStacks::new(named);
        (self.observer_samples, self.samples) =
            self.samples.into_iter().partition(|sample| observer.holds(&sample.role, sample.stack));
        (self.observer_waits, self.waits) =
            self.waits.into_iter().partition(|wait| observer.holds(&wait.role, wait.stack));
        self
    }

    /// Returns the observer's share of the time that all samples and waits stand for, 0 to 1.
    pub fn observer_share(&self) -> f64 {
        let time_ns = |samples: &[StackSample], waits: &[StackWait]| -> f64 {
            let samples = samples.iter().map(|sample| sample.weight_ns as f64);
            samples.chain(waits.iter().map(|wait| wait.weight_ns as f64)).sum()
        };
        let observer_ns = time_ns(&self.observer_samples, &self.observer_waits);
        let all_ns = observer_ns + time_ns(&self.samples, &self.waits);
        if all_ns > 0.0 { observer_ns / all_ns } else { 0.0 }
    }
}

/// What a report is drawn from: a [`whyso_record::Recording`], or synthetic data for tests and benches.
pub trait Source {
    fn run(&self) -> &RunInfo;
    /// Every recorded series; its position is its number in [`Source::columns`].
    fn keys(&self) -> Vec<SeriesKey>;
    /// How many samples all series have together; decides whether every one of them is inlined.
    fn sample_count(&self) -> u64;
    /// The samples of these series, in the order asked for.
    fn columns(&self, series: &[usize]) -> Result<Vec<Column>, Error>;
    fn events(&self) -> Result<Vec<Event>, Error>;
    /// Hands over what the load did from a time on, interval by interval.
    fn each_load(&self, from_ns: i64, take: &mut dyn FnMut(LoadInterval)) -> Result<(), Error>;
    /// When the load began; `None` where it was not recorded.
    fn load_begin_ns(&self) -> Result<Option<i64>, Error>;
    /// The server's threads at some times, those next to `wanted_ns` among them; empty where they were not traced. It has about as many cells
    /// as a page takes.
    fn threads(&self, wanted_ns: &[i64]) -> Result<ThreadTable, Error>;
    /// The names of the server's threads, by their numbers.
    fn thread_names(&self) -> Result<BTreeMap<u32, String>, Error>;
    /// When the states of the server's threads were read; empty where they were not traced.
    fn state_times(&self) -> Result<StateTimes, Error>;
    /// The server's threads between these edges, in monotonic nanoseconds.
    fn timeline(&self, edges_ns: &[i64]) -> Result<Timeline, Error>;
    fn stacks(&self) -> Result<Stacks, Error>;
    /// What was lost or could not be read.
    fn problems(&self) -> Vec<String>;
}

impl Source for Recording {
    fn run(&self) -> &RunInfo {
        Recording::run(self)
    }

    fn keys(&self) -> Vec<SeriesKey> {
        self.series().iter().map(|info| info.key.clone()).collect()
    }

    fn sample_count(&self) -> u64 {
        self.series().iter().map(|info| info.samples).sum()
    }

    fn columns(&self, series: &[usize]) -> Result<Vec<Column>, Error> {
        let ids: Vec<SeriesId> =
            series.iter().filter_map(|number| self.series().get(*number)).map(|info| info.id).collect();
        let mut columns = Vec::with_capacity(ids.len());
        for samples in self.samples_many(&ids, None)? {
            let points = samples.points();
            columns.push(Column { t_ns: points.t_ns, value: points.value });
        }
        Ok(columns)
    }

    fn events(&self) -> Result<Vec<Event>, Error> {
        Ok(Recording::events(self)?)
    }

    fn each_load(&self, from_ns: i64, take: &mut dyn FnMut(LoadInterval)) -> Result<(), Error> {
        Ok(Recording::each_load(self, Window { begin_ns: from_ns, end_ns: i64::MAX }, take)?)
    }

    fn load_begin_ns(&self) -> Result<Option<i64>, Error> {
        Ok(Recording::load_begin_ns(self)?)
    }

    fn threads(&self, wanted_ns: &[i64]) -> Result<ThreadTable, Error> {
        if !self.has_thread_stretches() {
            return Ok(Recording::threads(self)?);
        }
        let mut times: Vec<i64> = self.table_times(FileWait::SOURCE).collect();
        let known = Recording::state_times(self)?;
        if times.len() < 2 {
            times = known.t_ns;
        }
        let snapshots_max = threads::CELLS_MAX / known.threads.clamp(1, threads::THREADS_MAX);
        Ok(self.thread_table(&merged_edges(&times, wanted_ns, snapshots_max))?)
    }

    fn thread_names(&self) -> Result<BTreeMap<u32, String>, Error> {
        Ok(Recording::thread_names(self)?.into_iter().collect())
    }

    fn state_times(&self) -> Result<StateTimes, Error> {
        Ok(Recording::state_times(self)?)
    }

    fn timeline(&self, edges_ns: &[i64]) -> Result<Timeline, Error> {
        Ok(Recording::timeline(self, edges_ns)?)
    }

    fn stacks(&self) -> Result<Stacks, Error> {
        let frames = self.frames()?;
        if frames.is_empty() {
            return Ok(Stacks::default());
        }
        let StackSpread { samples, waits, part } = self.stacks_spread(None, STACKS_MAX)?;
        let mut stacks = Stacks { samples, waits, part, frames, ..Stacks::default() };
        // Of a part of the time it would not be known whom the threads worked for.
        if part == 1.0 {
            stacks.connections = self.connections_at_work(None)?;
            stacks.statements = self.statements_at_work(None)?.unwrap_or_default();
        }
        Ok(stacks.with_observer_apart())
    }

    fn problems(&self) -> Vec<String> {
        Recording::problems(self).to_vec()
    }
}

//! Where a report's numbers come from.

use std::sync::Arc;

use whyso_profile::ObserverStacks;
use whyso_record::data::{Event, LoadInterval, SeriesId, SeriesKey, StackFrame, StackSample, StackWait};
use whyso_record::run::{RunInfo, Window};
use whyso_record::{Recording, StateTimes};
use whyso_series::{Spans, ThreadTable, Timeline};

use crate::Error;

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
}

impl Stacks {
    /// Returns the stacks of one window, without whom the threads worked for.
    ///
    /// # Errors
    /// The recording's files can't be read.
    pub fn over(recording: &Recording, window: Window) -> Result<Stacks, Error> {
        let stacks = Stacks {
            samples: recording.stacks(Some(window))?,
            waits: recording.waits(Some(window))?,
            frames: recording.frames()?,
            ..Stacks::default()
        };
        Ok(stacks.with_observer_apart())
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
    /// What the load did, interval by interval.
    fn load(&self) -> Result<Vec<LoadInterval>, Error>;
    /// Every snapshot of the server's threads; empty where they were not traced.
    fn threads(&self) -> Result<ThreadTable, Error>;
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

    fn load(&self) -> Result<Vec<LoadInterval>, Error> {
        Ok(Recording::load(self, None)?)
    }

    fn threads(&self) -> Result<ThreadTable, Error> {
        Ok(Recording::threads(self)?)
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
        let stacks = Stacks {
            samples: Recording::stacks(self, None)?,
            waits: self.waits(None)?,
            frames,
            connections: self.connections_at_work(None)?,
            statements: self.statements_at_work(None)?.unwrap_or_default(),
            ..Stacks::default()
        };
        Ok(stacks.with_observer_apart())
    }

    fn problems(&self) -> Vec<String> {
        Recording::problems(self).to_vec()
    }
}

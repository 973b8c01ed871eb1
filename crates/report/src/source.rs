//! Where a report's numbers come from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use whyso_explain::profile::{FunctionName, is_observers};
use whyso_record::data::{Event, LoadInterval, SeriesId, SeriesKey, StackFrame, StackSample, StackWait};
use whyso_record::run::{RunInfo, Window};
use whyso_record::{Recording, StateLooks};
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

/// Stacks of the server's threads; no frames where none were taken.
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
    /// Of the time of samples and waits, the share that the observer took, which is left out; 0 to 1.
    pub hidden_share: f64,
}

/// The role of threads that work for the observer's own connections.
const OBSERVER: &str = "observer";

impl Stacks {
    /// Those of one window, without whom the threads worked for.
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
        Ok(stacks.without_observer())
    }

    /// Leaves out the stacks of the observer's own probes, and what the server did for the observer's connections.
    fn without_observer(mut self) -> Stacks {
        let mut functions: BTreeMap<u32, Vec<FunctionName>> = BTreeMap::new();
        for frame in &self.frames {
            let function = FunctionName { name: frame.function.clone(), module: frame.module.clone() };
            functions.entry(frame.stack).or_default().push(function);
        }
        let probes: BTreeSet<u32> =
            functions.into_iter().filter(|(_, stack)| is_observers(stack)).map(|(stack, _)| stack).collect();
        let is_kept = |role: &str, stack: u32| role != OBSERVER && !probes.contains(&stack);
        let all_ns = self.time_ns();
        self.samples.retain(|one| is_kept(&one.role, one.stack));
        self.waits.retain(|one| is_kept(&one.role, one.stack));
        self.hidden_share = if all_ns > 0.0 { 1.0 - self.time_ns() / all_ns } else { 0.0 };
        self
    }

    /// Nanoseconds that all samples and waits stand for.
    fn time_ns(&self) -> f64 {
        let samples = self.samples.iter().map(|one| one.weight_ns as f64);
        samples.chain(self.waits.iter().map(|one| one.weight_ns as f64)).sum()
    }
}

/// What a report is made of. A [`whyso_record::Recording`] is one; made data for tests and benches are another.
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
    /// Every look at the server's threads; empty where they were not traced.
    fn threads(&self) -> Result<ThreadTable, Error>;
    /// When the states of the server's threads were read; empty where they were not traced.
    fn state_looks(&self) -> Result<StateLooks, Error>;
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

    fn state_looks(&self) -> Result<StateLooks, Error> {
        Ok(Recording::state_looks(self)?)
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
            hidden_share: 0.0,
        };
        Ok(stacks.without_observer())
    }

    fn problems(&self) -> Vec<String> {
        Recording::problems(self).to_vec()
    }
}

//! Where a report's numbers come from.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use whyso_model::{FileWait, State};
use whyso_profile::ObserverStacks;
use whyso_record::data::{Event, LoadInterval, SeriesId, SeriesKey, StackFrame, StackSample, StackWait};
use whyso_record::run::{RunInfo, Window};
use whyso_record::{Recording, StackTotal, StateTimes};
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
    /// How much of the time these samples and waits are of, 0 to 1; 0 stands for 1. The weights are scaled up to all of it.
    pub part: f64,
    /// In place of samples and waits, where they are too many to read one by one.
    pub buckets: Option<StackBuckets>,
}

/// Samples and waits added up over buckets of time. It is not known of which threads they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackBuckets {
    pub totals: Vec<StackTotal>,
    pub observer: Vec<StackTotal>,
    /// Whole seconds. Buckets begin at multiples of it, and where windows of levels begin and end.
    pub bucket_ns: i64,
    /// Threads that were found on CPUs, over shorter buckets. Of the stacks that begin with one function, the first stands for all.
    pub on_cpus: Vec<StackTotal>,
    pub short_bucket_ns: i64,
    /// From the first sample or wait to after the last.
    pub window: Window,
}

/// So many samples and waits are read one by one.
const STACKS_MAX: u64 = 300_000;
/// So many of those that a timeline shows one by one.
const SINGLES_MAX: u64 = 200_000;
/// So many sums of stacks are read at most, bucket by bucket.
const TOTALS_MAX: usize = 400_000;
/// Short buckets of a window, and others.
const SHORT_BUCKETS_MAX: usize = 240;
const BUCKETS_MIN: usize = 12;
const NS_PER_S: i64 = 1_000_000_000;
pub(crate) const EVERYTHING: Window = Window { begin_ns: i64::MIN, end_ns: i64::MAX };
/// The shortest roll-ups of stacks.
const ROLLUP_NS: i64 = 120 * NS_PER_S;

impl Stacks {
    /// Returns the stacks of one window, without whom the threads worked for.
    ///
    /// # Errors
    /// The recording's files can't be read.
    pub fn over(recording: &Recording, window: Window) -> Result<Stacks, Error> {
        let stacks = Stacks { frames: recording.frames()?, ..Stacks::default() };
        Ok(stacks.read(recording, window, &[])?.with_observer_apart())
    }

    /// Samples and waits of a window as a timeline shows them, one by one.
    pub(crate) fn singles_in(recording: &Recording, window: Window) -> Result<Stacks, Error> {
        let stacks = Stacks { frames: recording.frames()?, ..Stacks::default() };
        Ok(stacks.with_singles(recording, window, SINGLES_MAX)?.with_observer_apart())
    }

    /// With the samples and waits of a window; added up where they are too many. Buckets never hold what lies to both sides of an edge.
    fn read(self, recording: &Recording, window: Window, edges_ns: &[i64]) -> Result<Stacks, Error> {
        let sums = recording.stack_sums(window)?;
        if sums.iter().map(|total| total.sum.count).sum::<u64>() <= STACKS_MAX {
            return self.with_singles(recording, window, STACKS_MAX);
        }
        let known = recording.stacks_window()?;
        let window =
            Window { begin_ns: window.begin_ns.max(known.begin_ns), end_ns: window.end_ns.min(known.end_ns) };
        let most = (TOTALS_MAX / sums.len().max(1)).clamp(BUCKETS_MIN, SHORT_BUCKETS_MAX);
        let bucket_ns = bucket_of(window, most);
        let within = |edge_ns: &&i64| **edge_ns > window.begin_ns && **edge_ns < window.end_ns;
        let mut edges_ns: Vec<i64> = edges_ns.iter().filter(within).copied().collect();
        edges_ns.extend([window.begin_ns, window.end_ns]);
        edges_ns.sort_unstable();
        edges_ns.dedup();
        let mut totals = Vec::new();
        for edges_ns in edges_ns.windows(2) {
            let between = Window { begin_ns: edges_ns[0], end_ns: edges_ns[1] };
            totals.extend(recording.stack_buckets(between, bucket_ns, |_, stack| Some(stack))?);
        }
        let short_bucket_ns = bucket_of(window, SHORT_BUCKETS_MAX);
        let first_of = self.first_of_function();
        let on_cpus = recording.stack_buckets(window, short_bucket_ns, |state, stack| {
            (state == State::Cpu.name()).then(|| first_of.get(&stack).copied()).flatten()
        })?;
        let observer = Vec::new();
        let buckets = StackBuckets { totals, observer, bucket_ns, on_cpus, short_bucket_ns, window };
        Ok(Stacks { buckets: Some(buckets), ..self })
    }

    /// With samples and waits one by one; of more than `most`, those of parts of the time.
    fn with_singles(mut self, recording: &Recording, window: Window, most: u64) -> Result<Stacks, Error> {
        let spread = recording.stacks_spread(Some(window), most)?;
        (self.samples, self.waits, self.part) = (spread.samples, spread.waits, spread.part);
        Ok(self)
    }

    /// By stack, the first of those with the same innermost function. The observer's are left out.
    fn first_of_function(&self) -> HashMap<u32, u32> {
        let observer = self.observer();
        let mut first: HashMap<(&str, &str), u32> = HashMap::new();
        let innermost = self.frames.iter().filter(|frame| frame.depth == 0);
        let shown = innermost.filter(|frame| !observer.holds("", frame.stack));
        shown
            .map(|frame| {
                let of = first.entry((frame.function.as_str(), frame.module.as_str()));
                (frame.stack, *of.or_insert(frame.stack))
            })
            .collect()
    }

    fn observer(&self) -> ObserverStacks {
        let named =
            self.frames.iter().map(|frame| (frame.stack, frame.function.as_str(), frame.module.as_str()));
        ObserverStacks::new(named)
    }

    /// How long the buckets are over which samples and waits are added up; 0 where they are one by one.
    pub(crate) fn bucket_ns(&self) -> i64 {
        self.buckets.as_ref().map_or(0, |buckets| buckets.bucket_ns)
    }

    /// What the reader must know where not all of the time was read.
    pub(crate) fn note(&self) -> Option<String> {
        (self.part > 0.0 && self.part < 1.0).then(|| {
            format!(
                "Single waits and samples are those of {} of the time, in 64 parts spread evenly. Their weights are scaled up to all of it. What happened only between these parts is missing.",
                whyso_words::percent(self.part)
            )
        })
    }

    pub(crate) fn with_observer_apart(mut self) -> Stacks {
        let observer = self.observer();
        (self.observer_samples, self.samples) =
            self.samples.into_iter().partition(|sample| observer.holds(&sample.role, sample.stack));
        (self.observer_waits, self.waits) =
            self.waits.into_iter().partition(|wait| observer.holds(&wait.role, wait.stack));
        if let Some(buckets) = &mut self.buckets {
            let totals = std::mem::take(&mut buckets.totals);
            (buckets.observer, buckets.totals) =
                totals.into_iter().partition(|total| observer.holds(&total.role, total.stack));
            buckets.on_cpus.retain(|total| !observer.holds(&total.role, total.stack));
        }
        self
    }

    /// Returns the observer's share of the time that all samples and waits stand for, 0 to 1.
    pub fn observer_share(&self) -> f64 {
        let time_ns = |samples: &[StackSample], waits: &[StackWait]| -> f64 {
            let samples = samples.iter().map(|sample| sample.weight_ns as f64);
            samples.chain(waits.iter().map(|wait| wait.weight_ns as f64)).sum()
        };
        let sum_ns =
            |totals: &[StackTotal]| -> f64 { totals.iter().map(|total| total.sum.weight_ns as f64).sum() };
        let (observer_ns, shown_ns) = match &self.buckets {
            Some(buckets) => (sum_ns(&buckets.observer), sum_ns(&buckets.totals)),
            None => {
                let observer_ns = time_ns(&self.observer_samples, &self.observer_waits);
                (observer_ns, time_ns(&self.samples, &self.waits))
            }
        };
        let all_ns = observer_ns + shown_ns;
        if all_ns > 0.0 { observer_ns / all_ns } else { 0.0 }
    }
}

/// How long buckets are of which a window has some `most`: from two minutes on, a whole number of the shortest roll-ups.
fn bucket_of(window: Window, most: usize) -> i64 {
    let least_ns = window.end_ns.saturating_sub(window.begin_ns) / most.max(1) as i64 + 1;
    let unit_ns = if least_ns > ROLLUP_NS / 2 { ROLLUP_NS } else { NS_PER_S };
    (least_ns / unit_ns + 1) * unit_ns
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
    /// The server's threads between these edges, in monotonic nanoseconds; of more, the `most` that worked and waited for the longest.
    fn timeline(&self, edges_ns: &[i64], most: usize) -> Result<Timeline, Error>;
    /// All samples and waits; added up where they are too many.
    fn stacks(&self) -> Result<Stacks, Error>;
    /// Samples and waits one by one; of very many, those of parts of the time.
    fn single_stacks(&self) -> Result<Stacks, Error>;
    /// What was lost or could not be read.
    fn problems(&self) -> Vec<String>;
    /// What the reader must know about all of it, in plain words.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Where measured windows begin and end.
pub(crate) fn level_edges(run: &RunInfo) -> Vec<i64> {
    run.levels.iter().flat_map(|level| [level.window.begin_ns, level.window.end_ns]).collect()
}

/// The threads of a window, or of all of a recording, at about as many times as a page takes.
pub(crate) fn threads_at(
    recording: &Recording,
    window: Option<Window>,
    wanted_ns: &[i64],
) -> Result<ThreadTable, Error> {
    let window = window.unwrap_or(EVERYTHING);
    let is_within = |t_ns: &i64| (window.begin_ns..=window.end_ns).contains(t_ns);
    if !recording.has_thread_stretches() {
        // Older recordings are read as a whole.
        return Ok(recording.threads()?);
    }
    let mut times: Vec<i64> = recording.table_times(FileWait::SOURCE).filter(is_within).collect();
    let known = recording.state_times()?;
    if times.len() < 2 {
        times = known.t_ns.into_iter().filter(is_within).collect();
    }
    let snapshots_max = threads::CELLS_MAX / known.threads.clamp(1, threads::THREADS_MAX);
    Ok(recording.thread_table(&merged_edges(&times, wanted_ns, snapshots_max))?)
}

/// The stacks of a window, or of all of a recording, with whom the threads worked for.
pub(crate) fn stacks_of(
    recording: &Recording,
    window: Option<Window>,
    edges_ns: &[i64],
) -> Result<Stacks, Error> {
    let frames = recording.frames()?;
    if frames.is_empty() {
        return Ok(Stacks::default());
    }
    let stacks = Stacks { frames, ..Stacks::default() };
    let mut stacks = stacks.read(recording, window.unwrap_or(EVERYTHING), edges_ns)?;
    // Of sums it is not known whom the threads worked for.
    if stacks.buckets.is_none() {
        stacks.connections = recording.connections_at_work(window)?;
        stacks.statements = recording.statements_at_work(window)?.unwrap_or_default();
    }
    Ok(stacks.with_observer_apart())
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
        threads_at(self, None, wanted_ns)
    }

    fn thread_names(&self) -> Result<BTreeMap<u32, String>, Error> {
        Ok(Recording::thread_names(self)?.into_iter().collect())
    }

    fn state_times(&self) -> Result<StateTimes, Error> {
        Ok(Recording::state_times(self)?)
    }

    fn timeline(&self, edges_ns: &[i64], most: usize) -> Result<Timeline, Error> {
        Ok(self.timeline_of_busiest(edges_ns, most)?)
    }

    fn stacks(&self) -> Result<Stacks, Error> {
        stacks_of(self, None, &level_edges(Recording::run(self)))
    }

    fn single_stacks(&self) -> Result<Stacks, Error> {
        Stacks::singles_in(self, EVERYTHING)
    }

    fn problems(&self) -> Vec<String> {
        Recording::problems(self).to_vec()
    }
}

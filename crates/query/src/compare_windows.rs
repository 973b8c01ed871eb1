//! Windows of recordings for comparison: of one recording, or of several.

use whyso_clock::Anchor;
use whyso_explain::comparison::{
    self, At, Comparison, LevelValue, Metric, MetricValue, Of, Parts, Run, Values, metrics_that_differ,
};
use whyso_explain::model::LevelInput;
use whyso_record::Recording;
use whyso_record::data::LoadInterval;
use whyso_record::run::{RunInfo, Window};

use crate::Error;
use crate::compare::{CompareBy, check_matters, facts, is_the_servers, values};
use crate::level_series::add_chosen;

/// Readings from which the correlation of neighbouring ones is estimated.
const READINGS_MAX: usize = 600;
pub(crate) const TRANSACTION: &str = "transaction";

/// A window of a recording.
#[derive(Clone, Copy)]
pub struct Stretch<'r> {
    pub recording: &'r Recording,
    pub window: Window,
}

/// What the load did in a window, by its own count.
#[derive(Clone, Debug, Default, PartialEq)]
struct LoadCounts {
    transactions: f64,
    queries: f64,
    response_sum_ns: f64,
    response: Vec<(u64, u64)>,
}

/// Compares the second side's windows with the first's. Where a side has one window alone, all are cut into parts, and these are the values.
///
/// # Errors
/// A side has none, nothing was recorded in one of them, two windows overlap, the workloads differ, or a recording can't be read.
pub fn compare_windows(
    first: &[Stretch<'_>],
    second: &[Stretch<'_>],
    by: CompareBy,
) -> Result<Comparison, Error> {
    check_matters(by.matters_percent)?;
    if first.is_empty() || second.is_empty() {
        return Err(Error::WrongUse("each side needs a window".to_string()));
    }
    let first = first.iter().map(clipped).collect::<Result<Vec<_>, _>>()?;
    let second = second.iter().map(clipped).collect::<Result<Vec<_>, _>>()?;
    check_apart(first.iter().chain(&second))?;
    let of = if first.len().min(second.len()) > 1 { Of::Windows } else { Of::Parts };
    let readings = |side: &[Stretch<'_>]| {
        let of_window = |stretch: &Stretch<'_>| Ok((readings(stretch, by.metric)?, parts(stretch)));
        side.iter().map(of_window).collect::<Result<Vec<(Vec<f64>, usize)>, Error>>()
    };
    let worth = match of {
        Of::Parts => comparison::judge_parts(&readings(&first)?, &readings(&second)?),
        _ => Parts::TooShort,
    };
    let is_cut = matches!(worth, Parts::Widened(_));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for (side, units) in [(&first, &mut ours), (&second, &mut theirs)] {
        for stretch in side {
            units.extend(units_of(stretch, if is_cut { parts(stretch) } else { 1 }, by.metric)?);
        }
    }
    // What can be counted per transaction on only one side is counted per second on both.
    if ours.iter().chain(&theirs).any(|unit| unit.counted.transactions < 1.0) {
        ours.iter_mut().chain(&mut theirs).for_each(|unit| unit.counted = LoadCounts::default());
    }
    let runs = |units: &[Unit]| units.iter().map(|unit| unit.run.clone()).collect::<Vec<Run>>();
    if let Some(why) = comparison::incomparable(&runs(&ours), &runs(&theirs)).filter(|_| !by.anyway) {
        return Err(Error::WrongUse(why));
    }
    let mut compared =
        comparison::compare_windows(&runs(&ours), &runs(&theirs), of, worth, by.metric, by.matters_percent);
    let pairs = comparison::pairs_in_time(&runs(&ours), &runs(&theirs));
    let values = match worth {
        Parts::Widened(widening) => Values::Parts(widening),
        _ => Values::of_pairs(pairs.as_deref()),
    };
    let metrics = |units: Vec<Unit>| units.into_iter().map(Unit::metrics).collect::<Vec<_>>();
    let differ = metrics_that_differ(At::default(), &metrics(ours), &metrics(theirs), values);
    compared.metrics = Some(differ);
    Ok(compared)
}

/// Transactions that ended in a window, by the load's own count; of an interval that an edge cuts, its part.
///
/// # Errors
/// The recording's files can't be read.
pub fn transactions_in(recording: &Recording, window: Window) -> Result<u64, Error> {
    Ok(counted(&recording.load(Some(window))?, window).transactions.round() as u64)
}

/// "RUN@10.5-20", in seconds of the run's axes.
pub fn stretch_name(recording: &Recording, window: Window) -> Result<String, Error> {
    let origin_ns = whyso_report::origin_ns(recording.run(), recording.load_begin_ns()?);
    let seconds = |ns: i64| ((ns - origin_ns) as f64 / 1e8).round() / 10.0;
    Ok(format!("{}@{}-{}", recording.run().id, seconds(window.begin_ns), seconds(window.end_ns)))
}

/// One value of a side: a window, or a part of one.
struct Unit {
    run: Run,
    counted: LoadCounts,
    input: LevelInput,
}

impl Unit {
    fn metrics(self) -> Vec<MetricValue> {
        let Unit { counted, mut input, .. } = self;
        input.transactions = counted.transactions.round() as u64;
        values(input)
    }
}

/// What of the window the recording has.
fn clipped<'r>(stretch: &Stretch<'r>) -> Result<Stretch<'r>, Error> {
    let Stretch { recording, window } = *stretch;
    let there = recording.window().unwrap_or_default();
    let begin_ns = window.begin_ns.max(there.begin_ns);
    let end_ns = window.end_ns.min(there.end_ns);
    if begin_ns >= end_ns {
        let name = stretch_name(recording, window)?;
        return Err(Error::WrongUse(format!(
            "nothing was recorded in {name}: give a window of the run, in its seconds"
        )));
    }
    Ok(Stretch { recording, window: Window { begin_ns, end_ns } })
}

fn check_apart<'s, 'r: 's>(stretches: impl Iterator<Item = &'s Stretch<'r>>) -> Result<(), Error> {
    let mut all: Vec<&Stretch<'_>> = stretches.collect();
    all.sort_by_key(|stretch| (stretch.recording.run().id.clone(), stretch.window.begin_ns));
    for pair in all.windows(2) {
        let is_same = pair[0].recording.run().id == pair[1].recording.run().id;
        if is_same && pair[1].window.begin_ns < pair[0].window.end_ns {
            let name = |stretch: &Stretch<'_>| stretch_name(stretch.recording, stretch.window);
            return Err(Error::WrongUse(format!(
                "the windows {} and {} overlap: what is in both can't differ; give two apart from each other",
                name(pair[0])?,
                name(pair[1])?
            )));
        }
    }
    Ok(())
}

/// The metric in each interval of the load that lies in the window, in order of time. Of a long window, several intervals count as one.
/// What nothing was measured in is left out.
fn readings(stretch: &Stretch<'_>, metric: Metric) -> Result<Vec<f64>, Error> {
    let Stretch { recording, window } = *stretch;
    let mut load = recording.load(Some(window))?;
    load.retain(|interval| interval.begin_ns >= window.begin_ns && interval.end_ns <= window.end_ns);
    load.sort_by_key(|interval| interval.begin_ns);
    let intervals: Vec<&[LoadInterval]> =
        load.chunk_by(|one, other| one.begin_ns == other.begin_ns).collect();
    let at_a_time = intervals.len().div_ceil(READINGS_MAX).max(1);
    let reading = |several: &[&[LoadInterval]]| {
        let (begin_ns, end_ns) = (several.first()?.first()?.begin_ns, several.last()?.last()?.end_ns);
        let length = Window { begin_ns, end_ns };
        let value = counted(&several.concat(), length).value(metric, length.seconds());
        (value > 0.0).then_some(value)
    };
    Ok(intervals.chunks_exact(at_a_time).filter_map(reading).collect())
}

/// Into how many parts a window is cut; 1 where it is too short.
fn parts(stretch: &Stretch<'_>) -> usize {
    let interval_s = stretch.recording.run().spec.interval_ms.map_or(1.0, |ms| ms as f64 / 1e3);
    comparison::parts_of_window(stretch.window.seconds(), interval_s)
}

fn units_of(stretch: &Stretch<'_>, parts: usize, metric: Metric) -> Result<Vec<Unit>, Error> {
    let Stretch { recording, window } = *stretch;
    let run = recording.run();
    let length_ns = window.end_ns - window.begin_ns;
    let edge = |part: usize| window.begin_ns + (i128::from(length_ns) * part as i128 / parts as i128) as i64;
    let windows: Vec<Window> =
        (0..parts).map(|part| Window { begin_ns: edge(part), end_ns: edge(part + 1) }).collect();
    let name = stretch_name(recording, window)?;
    let load = recording.load(Some(window))?;
    let facts = facts(run);
    let mut inputs: Vec<LevelInput> = windows
        .iter()
        .map(|part| LevelInput { begin_ns: part.begin_ns, end_ns: part.end_ns, ..LevelInput::default() })
        .collect();
    add_chosen(recording, &mut inputs, is_the_servers)?;
    let units = windows.iter().zip(inputs).map(|(part, input)| {
        let counted = counted(&load, *part);
        let value = counted.value(metric, part.seconds());
        let run = Run {
            id: name.clone(),
            begin_ns: wall_ns(run, part.begin_ns),
            end_ns: wall_ns(run, part.end_ns),
            facts: facts.clone(),
            levels: vec![LevelValue { at: At::default(), value, invalid_why: String::new() }],
        };
        Unit { run, counted, input }
    });
    Ok(units.collect())
}

fn counted(load: &[LoadInterval], window: Window) -> LoadCounts {
    let mut all = LoadCounts::default();
    for interval in load {
        let inside_ns = interval.end_ns.min(window.end_ns) - interval.begin_ns.max(window.begin_ns);
        let length_ns = interval.end_ns - interval.begin_ns;
        if inside_ns <= 0 || length_ns <= 0 {
            continue;
        }
        let share = inside_ns as f64 / length_ns as f64;
        let count = interval.count as f64 * share;
        if interval.statement != TRANSACTION {
            all.queries += count;
            continue;
        }
        all.transactions += count;
        all.response_sum_ns += interval.response_sum_ns as f64 * share;
        // A histogram can't be cut: one that lies more within the window than outside counts.
        if share >= 0.5 {
            all.response.extend(&interval.response);
        }
    }
    all.response.sort_unstable();
    all
}

impl LoadCounts {
    /// 0 where it was not measured.
    fn value(&self, metric: Metric, seconds: f64) -> f64 {
        let quantile_ms = |share| {
            whyso_series::quantile_of_buckets(&self.response, share).map_or(0.0, |ns| ns as f64 / 1e6)
        };
        match metric {
            _ if self.transactions <= 0.0 || seconds <= 0.0 => 0.0,
            Metric::TransactionsPerS => self.transactions / seconds,
            Metric::QueriesPerS => self.queries / seconds,
            Metric::LatencyMeanMs => self.response_sum_ns / self.transactions / 1e6,
            Metric::LatencyP95Ms => quantile_ms(0.95),
            Metric::LatencyP99Ms => quantile_ms(0.99),
        }
    }
}

/// 0 where no moment of the run is anchored to wall time.
fn wall_ns(run: &RunInfo, monotonic_ns: i64) -> i64 {
    let before = |anchor: &&Anchor| anchor.monotonic_ns <= monotonic_ns;
    let nearest = run.anchors.iter().rev().find(before).or(run.anchors.first());
    nearest.map_or(0, |anchor| anchor.wall_ns + (monotonic_ns - anchor.monotonic_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn interval(begin_s: i64, statement: &str, count: u64) -> LoadInterval {
        LoadInterval {
            begin_ns: begin_s * S,
            end_ns: (begin_s + 1) * S,
            statement: statement.to_string(),
            count,
            level: 0,
            measured: true,
            rows: 0,
            errors: Vec::new(),
            response_sum_ns: count * 2_000_000,
            service_sum_ns: 0,
            response_max_ns: 2_000_000,
            response: vec![(2_000_000, count)],
            service: Vec::new(),
        }
    }

    #[test]
    fn an_interval_that_an_edge_cuts_counts_by_its_part() {
        let load = [interval(0, TRANSACTION, 100), interval(0, "SELECT", 500), interval(1, TRANSACTION, 200)];
        let window = Window { begin_ns: S / 2, end_ns: 2 * S };
        let counted = counted(&load, window);
        assert_eq!((counted.transactions, counted.queries), (250.0, 250.0));
        let value = |metric| counted.value(metric, window.seconds());
        assert_eq!(value(Metric::LatencyMeanMs), 2.0);
        assert_eq!(value(Metric::LatencyP99Ms), 2.0);
        assert!((value(Metric::TransactionsPerS) - 250.0 / 1.5).abs() < 1e-9);
    }

    #[test]
    fn a_moment_has_the_wall_time_of_the_anchor_before_it() {
        let anchor = |monotonic_ns, wall_ns| Anchor { monotonic_ns, wall_ns, boot_id: String::new() };
        let run = RunInfo { anchors: vec![anchor(10, 1000), anchor(20, 1011)], ..RunInfo::default() };
        assert_eq!([5, 12, 25].map(|at| wall_ns(&run, at)), [995, 1002, 1016]);
        assert_eq!(wall_ns(&RunInfo::default(), 5), 0);
    }
}

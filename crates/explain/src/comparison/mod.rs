//! Recordings of different starts, against each other: two sides of them ([`compare`]), or many in order of time ([`history`]).
//!
//! Each recording is one fresh start of a server. What must be equal for two of them to be comparable is a fact of kind [`FactOf::Work`].

mod facts;
mod history;
mod metrics;
mod windows;

use serde::{Deserialize, Serialize};

use crate::level;
use whyso_inference::{Contrast, Method, Sides, Spread, blocks_in_time, contrast, judge, spread};

pub use facts::{FactDifference, FactOf, Facts, differing, incomparable};
pub use history::{FactChange, Group, History, Point, Step, history};
pub use metrics::{Differences, MetricLine, MetricValue, Values, metrics_that_differ};
pub use windows::{Parts, compare_windows, judge_parts, parts_of_window};

/// What a level's result is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    #[default]
    TransactionsPerS,
    QueriesPerS,
    LatencyMeanMs,
    #[serde(rename = "latency_p95_ms")]
    LatencyP95Ms,
    #[serde(rename = "latency_p99_ms")]
    LatencyP99Ms,
}

impl Metric {
    pub const ALL: [Metric; 5] = [
        Metric::TransactionsPerS,
        Metric::QueriesPerS,
        Metric::LatencyMeanMs,
        Metric::LatencyP95Ms,
        Metric::LatencyP99Ms,
    ];

    /// As it is named on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Metric::TransactionsPerS => "transactions_per_s",
            Metric::QueriesPerS => "queries_per_s",
            Metric::LatencyMeanMs => "latency_mean_ms",
            Metric::LatencyP95Ms => "latency_p95_ms",
            Metric::LatencyP99Ms => "latency_p99_ms",
        }
    }

    /// As a table's head.
    pub fn words(self) -> &'static str {
        match self {
            Metric::TransactionsPerS => "transactions/s",
            Metric::QueriesPerS => "queries/s",
            Metric::LatencyMeanMs => "mean ms",
            Metric::LatencyP95Ms => "p95 ms",
            Metric::LatencyP99Ms => "p99 ms",
        }
    }

    /// False for times, of which less is faster.
    pub fn more_is_faster(self) -> bool {
        matches!(self, Metric::TransactionsPerS | Metric::QueriesPerS)
    }
}

/// A text that names no [`Metric`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no metric {0}: it is one of {names}", names = Metric::ALL.map(Metric::name).join(", "))]
pub struct UnknownMetric(String);

impl std::str::FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(text: &str) -> Result<Metric, UnknownMetric> {
        let found = Metric::ALL.into_iter().find(|metric| metric.name() == text);
        found.ok_or_else(|| UnknownMetric(text.to_string()))
    }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What each value of a side stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// A fresh start of the server.
    #[default]
    Starts,
    /// A window of a recording.
    Windows,
    /// A part of a window, all of a window as long as each other.
    Parts,
}

/// A recording, as far as comparing it goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    pub id: String,
    /// Wall time; 0 where it was not recorded.
    pub begin_ns: i64,
    pub end_ns: i64,
    pub facts: Facts,
    /// In the order in which they ran; without repeats.
    pub levels: Vec<LevelValue>,
}

/// One level of a recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelValue {
    pub at: At,
    /// Of the metric that is asked for; not above 0 where it was not measured.
    pub value: f64,
    /// Why the number shows nothing about the server; empty where it does.
    pub invalid_why: String,
}

/// What levels of different recordings must share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct At {
    pub users: u32,
    /// Transactions due per second, in an open loop.
    pub rate_per_s: Option<f64>,
}

impl At {
    /// "8 users" or "1,000/s".
    pub fn words(self) -> String {
        level::name(self.users, self.rate_per_s)
    }

    fn order(self, other: At) -> std::cmp::Ordering {
        let rate = |at: At| at.rate_per_s.unwrap_or(0.0);
        rate(self).total_cmp(&rate(other)).then(self.users.cmp(&other.users))
    }
}

impl Run {
    /// Geometric mean of its levels there: they are of one start. `None` where nothing was measured.
    fn at(&self, at: At) -> Option<f64> {
        let there = self.levels.iter().filter(|level| level.at == at).map(|level| level.value);
        spread(&there.collect::<Vec<f64>>()).map(|spread| spread.mean)
    }
}

/// Both sides at one number of users, or at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    #[serde(flatten)]
    pub at: At,
    pub first: Spread,
    pub second: Spread,
    #[serde(flatten)]
    pub contrast: Contrast,
    /// The first side's own starts differ so much that the comparison means little.
    pub first_unstable: bool,
    /// Run and reason of each level that shows nothing about its server.
    pub invalid: Vec<String>,
}

/// What two sides say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub metric: Metric,
    #[serde(default)]
    pub of: Of,
    pub matters_percent: f64,
    /// Ids of the runs, in order of time.
    pub first: Vec<String>,
    pub second: Vec<String>,
    /// Of most rows; a row that lacks a side of a block has its own.
    pub method: Method,
    /// Why this method, in a sentence.
    pub why: String,
    /// By users or rates; those that both sides have. Of windows: one, or none where the metric was not measured.
    pub rows: Vec<Row>,
    /// Settings and surroundings in which the runs differ.
    pub differing: Vec<FactDifference>,
    /// What a reader must know, in sentences.
    pub notes: Vec<String>,
    /// At the level with the highest throughput, or of the windows.
    pub metrics: Option<Differences>,
}

/// Compares the second side with the first; `matters_percent`: the smallest difference that is worth knowing. Both have runs.
pub fn compare(first: &[Run], second: &[Run], metric: Metric, matters_percent: f64) -> Comparison {
    compare_widened(first, second, metric, matters_percent, None)
}

/// `widening`: of neighbours in time that resemble each other, see [`Sides::Correlated`].
fn compare_widened(
    first: &[Run],
    second: &[Run],
    metric: Metric,
    matters_percent: f64,
    widening: Option<[f64; 2]>,
) -> Comparison {
    let (first, second) = (in_time(first), in_time(second));
    let begins = |side: &[&Run]| side.iter().map(|run| run.begin_ns).collect::<Vec<i64>>();
    let blocks = blocks_in_time(&begins(&first), &begins(&second));
    let mut rows: Vec<Row> = shared(&first, &second)
        .into_iter()
        .filter_map(|at| row(&first, &second, blocks.as_deref(), widening, at))
        .collect();
    let mut contrasts: Vec<Contrast> = rows.iter().map(|row| row.contrast).collect();
    judge(&mut contrasts, 1.0 + matters_percent / 100.0, metric.more_is_faster());
    for (row, judged) in rows.iter_mut().zip(contrasts) {
        row.contrast = judged;
    }
    let method = match (&blocks, first.len().min(second.len())) {
        (_, 0 | 1) => Method::Untested,
        (Some(_), _) => Method::Paired,
        (None, _) => Method::Welch,
    };
    let ids = |side: &[&Run]| side.iter().map(|run| run.id.clone()).collect();
    Comparison {
        metric,
        of: Of::Starts,
        matters_percent,
        first: ids(&first),
        second: ids(&second),
        method,
        why: why(method, first.len(), second.len()),
        rows,
        differing: differing(&first, &second),
        notes: notes(&first, &second),
        metrics: None,
    }
}

/// Pairs of runs that are neighbours in time, as places in both sides; `None` where these don't alternate.
pub fn pairs_in_time(first: &[Run], second: &[Run]) -> Option<Vec<(usize, usize)>> {
    let begins = |side: &[Run]| side.iter().map(|run| run.begin_ns).collect::<Vec<i64>>();
    blocks_in_time(&begins(first), &begins(second))
}

/// Of the levels that all runs share, the one with the highest values.
pub fn best_level(first: &[Run], second: &[Run]) -> Option<At> {
    let all: Vec<&Run> = first.iter().chain(second).collect();
    let (first, second): (Vec<&Run>, Vec<&Run>) = (first.iter().collect(), second.iter().collect());
    let in_all = shared(&first, &second).into_iter().filter_map(|at| {
        let values: Option<Vec<f64>> = all.iter().map(|run| run.at(at)).collect();
        Some((at, spread(&values?)?.mean))
    });
    in_all.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(at, _)| at)
}

fn in_time(side: &[Run]) -> Vec<&Run> {
    let mut side: Vec<&Run> = side.iter().collect();
    side.sort_by_key(|run| run.begin_ns);
    side
}

/// Levels that at least one run of either side has, in order.
fn shared(first: &[&Run], second: &[&Run]) -> Vec<At> {
    let has = |side: &[&Run], at: At| side.iter().any(|run| run.at(at).is_some());
    let mut found: Vec<At> = Vec::new();
    for level in first.iter().flat_map(|run| &run.levels) {
        if !found.contains(&level.at) && has(first, level.at) && has(second, level.at) {
            found.push(level.at);
        }
    }
    found.sort_by(|one, other| one.order(*other));
    found
}

fn row(
    first: &[&Run],
    second: &[&Run],
    blocks: Option<&[(usize, usize)]>,
    widening: Option<[f64; 2]>,
    at: At,
) -> Option<Row> {
    let values = |side: &[&Run]| side.iter().filter_map(|run| run.at(at)).collect::<Vec<f64>>();
    let apart = Sides::Apart { first: values(first), second: values(second) };
    let of_block = |(one, other): &(usize, usize)| Some((first[*one].at(at)?, second[*other].at(at)?));
    let pairs: Vec<(f64, f64)> = blocks.unwrap_or_default().iter().filter_map(of_block).collect();
    let sides = match widening {
        _ if pairs.len() >= 2 => Sides::Paired(pairs),
        Some(widening) => Sides::Correlated { first: values(first), second: values(second), widening },
        None => apart,
    };
    let first_spread = spread(&values(first))?;
    let of_run = |run: &&Run| {
        let invalid = run.levels.iter().find(|level| level.at == at && !level.invalid_why.is_empty());
        invalid.map(|level| format!("{}: {}", run.id, level.invalid_why))
    };
    Some(Row {
        at,
        first_unstable: first_spread.unstable,
        first: first_spread,
        second: spread(&values(second))?,
        contrast: contrast(&sides)?,
        invalid: first.iter().chain(second).filter_map(of_run).collect(),
    })
}

fn why(method: Method, first: usize, second: usize) -> String {
    match method {
        Method::Paired => format!(
            "The runs of both sides alternate in time, so each was paired with its neighbour ({first} blocks) and what drifts met both: Student's t \
             test of the logarithms of the blocks' ratios."
        ),
        Method::Welch => "The runs of both sides do not alternate in time, one of each in turn, so they were not paired: Welch's t test of the \
                          logarithms. What drifted from the one side's runs to the other's counts as a difference; runs in turn (A B B A …) would \
                          separate the two."
            .to_string(),
        Method::Untested if (first, second) == (1, 1) => {
            "One start each says nothing of how starts differ: no interval across starts is possible, and a ratio may be mere chance. Two or more \
             runs a side, in turn, can be tested."
                .to_string()
        }
        Method::Untested => "One start on a side says nothing of how its starts differ: no interval across starts is possible, and a ratio may be \
                             mere chance. Two or more runs a side, in turn, can be tested."
            .to_string(),
    }
}

fn notes(first: &[&Run], second: &[&Run]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut all: Vec<&&Run> = first.iter().chain(second).collect();
    all.sort_by_key(|run| run.begin_ns);
    let same_host =
        |one: &Run, other: &Run| one.facts.get(&facts::hostname()) == other.facts.get(&facts::hostname());
    for pair in all.windows(2) {
        if pair[1].begin_ns < pair[0].end_ns && same_host(pair[0], pair[1]) {
            notes.push(format!(
                "{} began before {} had ended, on the same machine: they took from each other, and are no two starts of their own.",
                pair[1].id, pair[0].id
            ));
        }
    }
    let mut left: Vec<String> = Vec::new();
    let shared = shared(first, second);
    for level in first.iter().chain(second).flat_map(|run| &run.levels) {
        if level.value > 0.0 && !shared.contains(&level.at) && !left.contains(&level.at.words()) {
            left.push(level.at.words());
        }
    }
    if !left.is_empty() {
        notes.push(format!("Only one side has a level of {}: left out.", whyso_words::list(&left)));
    }
    notes
}

#[cfg(test)]
mod tests;

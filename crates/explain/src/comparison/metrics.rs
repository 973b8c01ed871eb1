//! Which of what was counted differs most between two sides.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::At;
use crate::model::SeriesName;
use whyso_inference::{Sides, contrast, spread};

/// Most metrics that are shown.
const SHOWN_MAX: usize = 10;
/// A counter that moved less on both sides shows little: by chance such counts differ by a tenth or more.
const COUNT_MIN: f64 = 100.0;

/// A ratio closer to 1 is an error of rounding.
const ROUNDING: f64 = 1e-9;

/// One series of one run at one level.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetricValue {
    pub series: SeriesName,
    pub unit: String,
    /// Of a counter: its growth by transaction, or by second. Of a gauge: its mean.
    pub value: f64,
    /// Growth of a counter over the level; `None` of a gauge.
    pub count: Option<f64>,
    /// A counter's growth is by second: no transactions were counted.
    pub per_second: bool,
}

/// A metric that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricLine {
    pub series: SeriesName,
    pub unit: String,
    /// Geometric means; by transaction where `per_transaction`, by second where `per_second`.
    pub first: f64,
    pub second: f64,
    pub per_transaction: bool,
    #[serde(default)]
    pub per_second: bool,
    /// Second ÷ first.
    pub ratio: f64,
    /// `None` with one start on a side, and of parts of windows.
    pub ci95: Option<[f64; 2]>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Differences {
    #[serde(flatten)]
    pub at: At,
    /// Metrics that all runs have, above 0.
    pub compared: usize,
    /// Those whose interval leaves 1 out; with one start on a side, all.
    pub differ: usize,
    /// The first of them: by the end of the interval that is nearer to 1, or by the ratio where there is none.
    pub lines: Vec<MetricLine>,
}

/// What the values of two sides are.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    Apart,
    /// Places of runs that are paired.
    Paired(&'a [(usize, usize)]),
    /// Parts of windows, see [`Sides::Correlated`]. It is known how alike neighbouring parts are in the metric that is compared,
    /// and not in these. They are chosen by its widening, and have no interval.
    Parts([f64; 2]),
}

impl<'a> Values<'a> {
    pub fn of_pairs(pairs: Option<&'a [(usize, usize)]>) -> Values<'a> {
        pairs.map_or(Values::Apart, Values::Paired)
    }
}

/// Which metrics differ between two sides; of each side, what every run has.
pub fn metrics_that_differ(
    at: At,
    first: &[Vec<MetricValue>],
    second: &[Vec<MetricValue>],
    of: Values<'_>,
) -> Differences {
    let (first_by_name, second_by_name) = (by_name(first), by_name(second));
    let mut lines = Vec::new();
    let mut compared = 0;
    for (name, ours) in &first_by_name {
        let Some(theirs) = second_by_name.get(name) else { continue };
        if ours.len() < first.len() || theirs.len() < second.len() || is_rare(ours, theirs) {
            continue;
        }
        let values = |side: &[&MetricValue]| side.iter().map(|value| value.value).collect::<Vec<f64>>();
        let (ours_values, theirs_values) = (values(ours), values(theirs));
        if ours_values.iter().chain(&theirs_values).any(|value| !(*value > 0.0 && value.is_finite())) {
            continue;
        }
        let (ours_too, theirs_too) = (ours_values.clone(), theirs_values.clone());
        let sides = match of {
            Values::Paired(pairs) => Sides::Paired(
                pairs.iter().map(|(one, other)| (ours_values[*one], theirs_values[*other])).collect(),
            ),
            Values::Apart => Sides::Apart { first: ours_too, second: theirs_too },
            Values::Parts(widening) => Sides::Correlated { first: ours_too, second: theirs_too, widening },
        };
        let (Some(found), Some(one), Some(other)) =
            (contrast(&sides), spread(&ours_values), spread(&theirs_values))
        else {
            continue;
        };
        compared += 1;
        let [low, high] = found.ci95.unwrap_or([found.ratio; 2]);
        if low > 1.0 + ROUNDING || high < 1.0 - ROUNDING {
            lines.push(MetricLine {
                series: (*name).clone(),
                unit: ours[0].unit.clone(),
                first: one.mean,
                second: other.mean,
                per_transaction: ours[0].count.is_some() && !ours[0].per_second,
                per_second: ours[0].per_second,
                ratio: found.ratio,
                ci95: found.ci95.filter(|_| !matches!(of, Values::Parts(_))),
            });
        }
    }
    let differ = lines.len();
    lines.sort_by(|one, other| by_how_much(other).total_cmp(&by_how_much(one)));
    lines.truncate(SHOWN_MAX);
    Differences { at, compared, differ, lines }
}

/// Each series over the runs of a side.
fn by_name(side: &[Vec<MetricValue>]) -> BTreeMap<&SeriesName, Vec<&MetricValue>> {
    let mut found: BTreeMap<&SeriesName, Vec<&MetricValue>> = BTreeMap::new();
    for value in side.iter().flatten() {
        found.entry(&value.series).or_default().push(value);
    }
    found
}

fn is_rare(ours: &[&MetricValue], theirs: &[&MetricValue]) -> bool {
    let most = ours.iter().chain(theirs).filter_map(|value| value.count).reduce(f64::max);
    most.is_some_and(|most| most < COUNT_MIN)
}

fn by_how_much(line: &MetricLine) -> f64 {
    match line.ci95 {
        Some([low, high]) => low.ln().abs().min(high.ln().abs()),
        None => line.ratio.ln().abs(),
    }
}

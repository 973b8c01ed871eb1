//! The axes of a plot: what they span, where their marks are, and the text at these.

use whyso_words::{clock, short};

use super::{PlotLine, PlotRow};

/// Neighbours that are this many times as far apart as most are not joined.
const GAP_STEPS: f64 = 3.5;
/// Steps of a time axis, in seconds.
const CLOCK_STEPS: [f64; 20] = [
    0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0,
    14_400.0, 21_600.0, 43_200.0, 86_400.0,
];

/// Least and greatest value that is seen. Readings outside a window, which let lines continue to its edges, count only at the edges.
pub(super) fn extent(row: &PlotRow) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for panel in &row.panels {
        for line in &panel.lines {
            for value in [panel.from_s, panel.to_s].into_iter().filter_map(|edge_s| at_edge(line, edge_s)) {
                (low, high) = (low.min(value), high.max(value));
            }
            for (at, t_s) in line.t_s.iter().enumerate() {
                if !(panel.from_s..=panel.to_s).contains(t_s) {
                    continue;
                }
                let of = [line.value.get(at), line.low.get(at), line.high.get(at)];
                for value in of.into_iter().flatten().filter(|value| value.is_finite()) {
                    (low, high) = (low.min(*value), high.max(*value));
                }
            }
        }
    }
    if low > high {
        return (0.0, 1.0);
    }
    if row.from_zero || low == high {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    if low == high {
        return (0.0, 1.0);
    }
    let room = (high - low) * 0.05;
    let below = if low < 0.0 { low - room } else { (low - room).max(0.0) };
    (if low < 0.0 || !row.from_zero { below } else { low }, high + room)
}

/// Where a line passes an edge.
fn at_edge(line: &PlotLine, edge_s: f64) -> Option<f64> {
    let after = line.t_s.partition_point(|t_s| *t_s <= edge_s);
    let before = after.checked_sub(1)?;
    let (t0, t1) = (*line.t_s.get(before)?, *line.t_s.get(after)?);
    let (v0, v1) = (*line.value.get(before)?, *line.value.get(after)?);
    let is_joined = t1 - t0 <= gap_length(&line.t_s);
    Some(v0 + (v1 - v0) * (edge_s - t0) / (t1 - t0)).filter(|value| is_joined && value.is_finite())
}

/// Round steps within the scale.
pub(super) fn value_ticks(low: f64, high: f64, count: usize) -> Vec<f64> {
    let rough = (high - low) / count.max(1) as f64;
    if !rough.is_finite() || rough <= 0.0 {
        return vec![low];
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0].into_iter().map(|times| times * power).find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|at| at as f64 * step).collect()
}

/// Returns the text at each tick: as short as [`whyso_words::short`] writes it, with more digits where two ticks would read the same.
pub(super) fn tick_texts(ticks: &[f64]) -> Vec<String> {
    let texts: Vec<String> = ticks.iter().map(|tick| short(*tick)).collect();
    let differ = texts.windows(2).all(|pair| pair[0] != pair[1]);
    if differ { texts } else { ticks.iter().map(|tick| precise(*tick, ticks)).collect() }
}

/// Returns a tick with as many digits as the step between ticks has.
fn precise(tick: f64, ticks: &[f64]) -> String {
    const DIGITS_MAX: usize = 12;
    let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).next().unwrap_or(tick.abs());
    let most = ticks.iter().fold(0.0f64, |most, tick| most.max(tick.abs()));
    let (factor, letter) = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")]
        .into_iter()
        .find(|(factor, _)| most >= *factor)
        .unwrap_or((1.0, ""));
    let step = step / factor;
    let digits = (0..DIGITS_MAX)
        .find(|digits| {
            let scaled = step * 10f64.powi(*digits as i32);
            (scaled - scaled.round()).abs() < 1e-6 && scaled.round() > 0.0
        })
        .unwrap_or(DIGITS_MAX);
    let sign = if tick < 0.0 { "−" } else { "" };
    format!("{sign}{:.digits$}{letter}", tick.abs() / factor)
}

/// Readings further apart than this, in seconds, are not joined.
pub(super) fn gap_length(t_s: &[f64]) -> f64 {
    let mut steps: Vec<f64> = t_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if steps.is_empty() {
        return f64::INFINITY;
    }
    let middle = steps.len() / 2;
    *steps.select_nth_unstable_by(middle, f64::total_cmp).1 * GAP_STEPS
}

/// About `count` round times within the window, in seconds of the run.
pub(super) fn time_ticks(from_s: f64, to_s: f64, count: f64) -> Vec<f64> {
    let rough = (to_s - from_s) / count.max(1.0);
    let step =
        CLOCK_STEPS.into_iter().find(|step| *step >= rough).unwrap_or(86_400.0 * (rough / 86_400.0).ceil());
    let first = (from_s / step).ceil();
    let count = ((to_s / step).floor() - first).max(-1.0) as i64 + 1;
    (0..count).map(|at| (first + at as f64) * step).collect()
}

/// Returns times of the run as minutes and seconds, with decimals only where one of the times has some.
pub(super) fn clocks(times_s: &[f64]) -> Vec<String> {
    let is_whole = times_s.iter().all(|s| s.fract() == 0.0);
    times_s.iter().map(|s| clock(*s, if is_whole { 1.0 } else { 0.1 })).collect()
}

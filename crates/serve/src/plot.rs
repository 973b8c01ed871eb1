//! The same charts without a browser: a picture of some series over some windows.

use std::path::Path;

use whyso_record::data::{Kind, SeriesKey};
use whyso_report::{PlotLine, PlotPanel};

use crate::error::{Error, Refused};
use crate::open::Opened;
use crate::series::{self, Line, Lines, Mode, Wanted};

/// Pixels of a window: a bucket each where readings are denser.
const PIXELS: usize = 460;
const WINDOWS_MAX: usize = 12;
const INSTANCES_MAX: usize = 380;

/// What is drawn.
#[derive(Clone, Debug)]
pub struct PlotPlan {
    /// Each METRIC, SOURCE/METRIC or SOURCE/METRIC/INSTANCE.
    pub metrics: Vec<String>,
    /// In seconds of the run; none: all of it.
    pub windows: Vec<(f64, f64)>,
    pub mode: Mode,
    /// Of a metric with more instances, those with the most to say.
    pub top: usize,
    /// One line a metric, of the sum of its instances.
    pub sum: bool,
}

/// An SVG picture of the recording in `dir`.
///
/// # Errors
/// A metric is not recorded, a window makes no sense, or the recording can't be read.
pub fn plot(dir: &Path, plan: &PlotPlan) -> Result<String, Error> {
    let told = |refused: Refused| Error::Plot(refused.why().to_string());
    let opened = Opened::open(dir).map_err(told)?;
    if plan.windows.len() > WINDOWS_MAX {
        return Err(Error::Plot(format!("at most {WINDOWS_MAX} windows fit beside each other")));
    }
    let whole = (0.0, opened.seconds(opened.end_ns).max(1.0));
    let windows = if plan.windows.is_empty() { vec![whole] } else { plan.windows.clone() };
    let series = opened.series();
    let mut groups = Vec::new();
    for metric in &plan.metrics {
        let found: Vec<_> = series.iter().filter(|one| is_meant(&one.key, metric)).collect();
        let Some(first) = found.first() else {
            return Err(Error::Plot(format!(
                "{metric} is not recorded in this run{}",
                suggestion(metric, series.iter().map(|one| &one.key))
            )));
        };
        let numbers: Vec<u32> = found.iter().take(INSTANCES_MAX).map(|one| one.number).collect();
        groups.push((first.key.clone(), numbers));
    }
    // One of each: it is chosen over all windows together, so that the same instances are drawn in each.
    let (from_s, to_s) = windows
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), one| (from.min(one.0), to.max(one.1)));
    let wanted = |numbers: &[u32], (from_s, to_s): (f64, f64), top| -> Result<Wanted, Error> {
        let window = opened.window(from_s, to_s).map_err(told)?;
        Ok(Wanted {
            numbers: numbers.to_vec(),
            window,
            pixels: PIXELS,
            mode: plan.mode,
            top,
            is_sum: plan.sum && numbers.len() > 1,
        })
    };
    for (_, numbers) in groups.iter_mut().filter(|(_, numbers)| !plan.sum && numbers.len() > plan.top) {
        let chosen = series::lines(&opened, &wanted(numbers, (from_s, to_s), plan.top)?).map_err(told)?;
        *numbers = chosen.lines.iter().filter_map(|line| line.number).collect();
    }
    let mut panels = Vec::new();
    for window in &windows {
        let mut panel = PlotPanel { from_s: window.0, to_s: window.1, lines: Vec::new() };
        for (key, numbers) in &groups {
            let Lines { lines, .. } = series::lines(&opened, &wanted(numbers, *window, 0)?).map_err(told)?;
            for line in lines {
                let named = line.number.and_then(|number| series.iter().find(|one| one.number == number));
                let instance = named.map_or("sum", |one| one.key.instance.as_str());
                let name = if instance.is_empty() {
                    key.metric.clone()
                } else {
                    format!("{} {instance}", key.metric)
                };
                panel.lines.push(drawn(&opened, line, name, factor(key, plan.mode)));
            }
        }
        panels.push(panel);
    }
    let units: Vec<String> = groups.iter().map(|(key, _)| unit(key, plan.mode)).collect();
    let mut told_units: Vec<&str> = units.iter().map(String::as_str).collect();
    told_units.dedup();
    let title = format!("{} · {}", plan.metrics.join(", "), opened.recording.run().id);
    Ok(whyso_report::plot(&title, &told_units.join(", "), &panels))
}

fn is_meant(key: &SeriesKey, asked: &str) -> bool {
    let mut parts = asked.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(metric), None, _) => key.metric == metric,
        (Some(source), Some(metric), None) => key.source == source && key.metric == metric,
        (Some(source), Some(metric), Some(instance)) => {
            key.source == source && key.metric == metric && key.instance == instance
        }
        _ => false,
    }
}

/// Metrics that have the asked one's letters in them.
fn suggestion<'k>(asked: &str, keys: impl Iterator<Item = &'k SeriesKey>) -> String {
    const MAX: usize = 4;
    let wanted = asked.rsplit('/').next().unwrap_or(asked).to_lowercase();
    let mut alike: Vec<&str> = keys
        .map(|key| key.metric.as_str())
        .filter(|metric| metric.to_lowercase().contains(&wanted))
        .collect();
    alike.dedup();
    alike.truncate(MAX);
    if alike.is_empty() { String::new() } else { format!("; it has {}", alike.join(", ")) }
}

fn drawn(opened: &Opened, line: Line, name: String, factor: f64) -> PlotLine {
    let times = |values: Vec<f64>| values.into_iter().map(|value| value * factor).collect();
    let band = line.band.unwrap_or_default();
    PlotLine {
        name,
        t_s: line.t_ns.iter().map(|t_ns| opened.seconds(*t_ns)).collect(),
        value: times(line.value),
        low: times(band.min),
        high: times(band.max),
    }
}

fn factor(key: &SeriesKey, mode: Mode) -> f64 {
    match (key.unit.as_str(), key.kind, mode) {
        ("ns", Kind::Counter, Mode::PerTransaction) => 1e-3,
        ("ns", Kind::Counter, _) => 1e-9,
        ("ns", Kind::Gauge, _) => 1e-6,
        _ => 1.0,
    }
}

fn unit(key: &SeriesKey, mode: Mode) -> String {
    let counted = if key.unit == "1" { "" } else { key.unit.as_str() };
    match (key.kind, mode, counted) {
        (Kind::Counter, Mode::Rate, "ns") => "s/s".to_string(),
        (Kind::Counter, Mode::Rate, counted) => format!("{counted}/s"),
        (Kind::Counter, Mode::PerTransaction, "ns") => "µs/transaction".to_string(),
        (Kind::Counter, Mode::PerTransaction, counted) => format!("{counted}/transaction"),
        (Kind::Counter, Mode::Raw, "ns") => "s".to_string(),
        (Kind::Gauge, _, "ns") => "ms".to_string(),
        (_, _, counted) => counted.to_string(),
    }
}

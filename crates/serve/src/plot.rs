//! The same charts without a browser: an SVG picture of series over windows.

use std::path::Path;

use whyso_record::data::{Kind, SeriesKey};
use whyso_report::payload::ServedSeries;
use whyso_report::{PlotLine, PlotPanel, PlotRow};
use whyso_words::seconds;

use crate::error::Error;
use crate::recordings::OpenRecording;
use crate::series::{self, Line, Lines, LinesRequest, Mode};

const WINDOWS_MAX: usize = 12;
const INSTANCES_MAX: usize = 380;

/// Which series are drawn, and over which windows.
#[derive(Clone, Debug)]
pub struct PlotPlan {
    /// Names of metrics: METRIC, SOURCE/METRIC or SOURCE/METRIC/INSTANCE.
    pub metrics: Vec<String>,
    /// Windows in seconds of the run. None: the whole run.
    pub windows: Vec<(f64, f64)>,
    /// What counters are drawn as.
    pub mode: Mode,
    /// Instances that are drawn, if a metric has more.
    pub top: usize,
    /// One line per metric, of the sum of its instances.
    pub sum: bool,
}

/// The series of one metric of one source.
struct Group<'s> {
    key: &'s SeriesKey,
    numbers: Vec<u32>,
}

/// Draws the recording in `dir` as SVG: a row of panels per unit, the windows next to each other on one scale.
///
/// # Errors
/// A metric is not recorded, a window makes no sense or lies outside of the run, or the recording can't be read.
pub fn plot(dir: &Path, plan: &PlotPlan) -> Result<String, Error> {
    let opened = OpenRecording::open(dir)?;
    let windows = windows(&opened, &plan.windows)?;
    let series = opened.series();
    let mut groups = groups(&series, &plan.metrics)?;
    let pixels = whyso_report::plot_panel_width(windows.len()) as usize;
    let request = |numbers: &[u32], (from_s, to_s): (f64, f64), top| -> Result<LinesRequest, Error> {
        let (window, mode) = (opened.window(from_s, to_s)?, plan.mode);
        Ok(LinesRequest {
            numbers: numbers.to_vec(),
            window,
            pixels,
            mode,
            top,
            is_sum: plan.sum && numbers.len() > 1,
        })
    };
    // Chosen over all windows together, so that the same instances are drawn in each.
    let around = windows.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), window| {
        (window.0.min(from), window.1.max(to))
    });
    for group in groups.iter_mut().filter(|group| !plan.sum && group.numbers.len() > plan.top) {
        let chosen = series::lines(&opened, &request(&group.numbers, around, plan.top)?)?;
        group.numbers = chosen.lines.iter().filter_map(|line| line.number).collect();
    }
    let mut units: Vec<String> = Vec::new();
    for unit in groups.iter().map(|group| unit(group.key, plan.mode)) {
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    let mut rows = Vec::new();
    for unit_of_row in units {
        let of_row: Vec<&Group<'_>> =
            groups.iter().filter(|group| unit(group.key, plan.mode) == unit_of_row).collect();
        let mut panels = Vec::new();
        for window in &windows {
            let mut panel = PlotPanel { from_s: window.0, to_s: window.1, lines: Vec::new() };
            for group in &of_row {
                let Lines { lines, .. } = series::lines(&opened, &request(&group.numbers, *window, 0)?)?;
                let factor = factor(group.key, plan.mode);
                let drawn = lines.into_iter().map(|line| {
                    let name = name(&line, group, &groups, &series);
                    plot_line(&opened, line, name, factor)
                });
                panel.lines.extend(drawn);
            }
            panels.push(panel);
        }
        let grows = |group: &&Group<'_>| group.key.kind == Kind::Counter && plan.mode == Mode::Raw;
        rows.push(PlotRow { unit: unit_of_row, from_zero: !of_row.iter().all(grows), panels });
    }
    Ok(whyso_report::plot(&plan.metrics.join(", "), &opened.recording.run().id, &rows))
}

/// Returns the windows to draw: the whole run if none is named.
fn windows(opened: &OpenRecording, requested: &[(f64, f64)]) -> Result<Vec<(f64, f64)>, Error> {
    let end_s = opened.seconds(opened.end_ns).max(1.0);
    if requested.is_empty() {
        return Ok(vec![(0.0, end_s)]);
    }
    if requested.len() > WINDOWS_MAX {
        return Err(Error::Plot(format!("at most {WINDOWS_MAX} windows fit next to each other")));
    }
    let outside = requested.iter().find(|(from_s, _)| *from_s >= end_s);
    match outside {
        None => Ok(requested.to_vec()),
        Some((from_s, to_s)) => Err(Error::Plot(format!(
            "the window from {} to {} begins after the end of the run, which lasts {}: windows are in time of the run, \
             such as 1:10-1:25",
            seconds(*from_s),
            seconds(*to_s),
            seconds(end_s)
        ))),
    }
}

/// Groups the named series by source and metric: another source's metric may have another unit.
fn groups<'s>(series: &'s [ServedSeries], metrics: &[String]) -> Result<Vec<Group<'s>>, Error> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for metric in metrics {
        let mut found = series.iter().filter(|served| is_meant(&served.key, metric)).peekable();
        if found.peek().is_none() {
            return Err(Error::Plot(format!(
                "{metric} is not recorded in this run{}",
                suggestion(metric, series.iter().map(|served| &served.key))
            )));
        }
        for served in found {
            match groups.iter_mut().find(|group| is_of_one_metric(group.key, &served.key)) {
                Some(group)
                    if group.numbers.contains(&served.number) || group.numbers.len() >= INSTANCES_MAX => {}
                Some(group) => group.numbers.push(served.number),
                None => groups.push(Group { key: &served.key, numbers: vec![served.number] }),
            }
        }
    }
    Ok(groups)
}

fn is_of_one_metric(first: &SeriesKey, second: &SeriesKey) -> bool {
    let metric = |key: &SeriesKey| (key.host.clone(), key.source.clone(), key.metric.clone());
    metric(first) == metric(second)
}

/// Returns the shortest name that differs from the other names of the picture.
fn name(line: &Line, group: &Group<'_>, groups: &[Group<'_>], series: &[ServedSeries]) -> String {
    let SeriesKey { host, source, metric, .. } = group.key;
    let is_alone = groups.iter().filter(|other| other.key.metric == *metric).count() == 1;
    let of_one_host = groups.iter().all(|other| other.key.host == *host);
    let named = match (is_alone, of_one_host) {
        (true, _) => metric.clone(),
        (false, true) => format!("{source}/{metric}"),
        (false, false) => format!("{host} {source}/{metric}"),
    };
    let found = line.number.and_then(|number| series.iter().find(|served| served.number == number));
    match found.map(|served| served.key.instance.as_str()) {
        None => format!("{named}, sum"),
        Some("") => named,
        // The title has the metric.
        Some(instance) if groups.len() == 1 => instance.to_string(),
        Some(instance) => format!("{named} {instance}"),
    }
}

fn is_meant(key: &SeriesKey, requested: &str) -> bool {
    let mut parts = requested.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(metric), None, _) => key.metric == metric,
        (Some(source), Some(metric), None) => key.source == source && key.metric == metric,
        (Some(source), Some(metric), Some(instance)) => {
            key.source == source && key.metric == metric && key.instance == instance
        }
        _ => false,
    }
}

/// Returns recorded metrics whose names contain the requested one.
fn suggestion<'k>(requested: &str, keys: impl Iterator<Item = &'k SeriesKey>) -> String {
    const MAX: usize = 4;
    let wanted = requested.rsplit('/').next().unwrap_or(requested).to_lowercase();
    let mut alike: Vec<&str> = keys
        .map(|key| key.metric.as_str())
        .filter(|metric| metric.to_lowercase().contains(&wanted))
        .collect();
    alike.dedup();
    alike.truncate(MAX);
    if alike.is_empty() { String::new() } else { format!("; it has {}", alike.join(", ")) }
}

fn plot_line(opened: &OpenRecording, line: Line, name: String, factor: f64) -> PlotLine {
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

/// Returns the label of an axis.
fn unit(key: &SeriesKey, mode: Mode) -> String {
    let counted = if key.unit == "1" { "" } else { key.unit.as_str() };
    match (key.kind, mode, counted) {
        (Kind::Counter, Mode::Rate, "") => "per second".to_string(),
        (Kind::Counter, Mode::Rate, "ns") => "seconds per second".to_string(),
        (Kind::Counter, Mode::Rate, counted) => format!("{counted} per second"),
        (Kind::Counter, Mode::PerTransaction, "") => "per transaction".to_string(),
        (Kind::Counter, Mode::PerTransaction, "ns") => "µs per transaction".to_string(),
        (Kind::Counter, Mode::PerTransaction, counted) => format!("{counted} per transaction"),
        (Kind::Counter, Mode::Raw, "ns") => "seconds".to_string(),
        (Kind::Gauge, _, "ns") => "ms".to_string(),
        (Kind::Gauge, _, "1/s") => "per second".to_string(),
        (_, _, "") => "number".to_string(),
        (_, _, counted) => counted.to_string(),
    }
}

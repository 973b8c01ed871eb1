//! Series and tables that the page needs computed: what the load did as series, CPU use by level.

use std::collections::BTreeMap;

use serde::Serialize;
use ts_rs::TS;
use whyso_explain::model::{CpuUse, Explanation};
use whyso_record::data::{Kind, LoadInterval, SeriesKey};
use whyso_record::run::Level;

use crate::Error;
use crate::source::{Column, Source};

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
const BINS: &str = "transactions_per_s_100ms";
const BIN_NS: i64 = 100_000_000;

/// CPU of the machine and of the two processes during one level's measured window, as the explanation has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
pub(crate) struct LevelCpu {
    pub(crate) level: u32,
    /// Fractions of the machine's CPU time; `None` where it was not recorded.
    pub(crate) machine: Option<CpuUse>,
    /// CPUs kept busy (CPU seconds per second) by the server's process.
    pub(crate) server_cpus: Option<f64>,
    /// CPUs kept busy by the load generator's threads.
    pub(crate) client_cpus: f64,
}

pub(crate) fn cpu_by_level(explanation: &Explanation) -> Vec<LevelCpu> {
    let mut by_level = Vec::new();
    for verdict in &explanation.levels {
        by_level.push(LevelCpu {
            level: verdict.index,
            machine: verdict.cpu,
            server_cpus: verdict.server_cpus,
            client_cpus: verdict.client_cpus,
        });
    }
    by_level
}

/// Throughput and latency as series, one per statement kind, from the load's own intervals; and throughput in the
/// levels' bins of 100 ms. `before`: the same of the run as it was, to which what came since is added.
///
/// # Errors
/// The source can't be read.
pub(crate) fn load_series(
    source: &dyn Source,
    before: &[(SeriesKey, Column)],
) -> Result<Vec<(SeriesKey, Column)>, Error> {
    let mut by_statement: BTreeMap<String, Vec<(i64, [f64; LOAD_METRICS.len()])>> = BTreeMap::new();
    let of_load = before.iter().filter(|(key, _)| key.metric != BINS);
    let from_ns = of_load.filter_map(|(_, column)| column.t_ns.last()).min().copied().unwrap_or(i64::MIN);
    source.each_load(from_ns, &mut |interval| {
        let values = LOAD_METRICS.map(|(_, _, value)| value(&interval));
        by_statement.entry(interval.statement).or_default().push((interval.end_ns, values));
    })?;

    let mut series = Vec::new();
    let bins = bins(&source.run().levels);
    if !bins.t_ns.is_empty() {
        series.push((key(BINS, "transaction", "1/s"), bins));
    }
    for (statement, mut intervals) in by_statement {
        intervals.sort_by_key(|(end_ns, _)| *end_ns);
        let t_ns: Vec<i64> = intervals.iter().map(|(end_ns, _)| *end_ns).collect();
        for (place, (metric, unit, _)) in LOAD_METRICS.iter().enumerate() {
            let key = key(metric, &statement, unit);
            let known = before.iter().find(|(known, _)| *known == key);
            let mut column = known.map(|(_, column)| column.clone()).unwrap_or_default();
            let last_ns = column.t_ns.last().copied().unwrap_or(i64::MIN);
            for (t_ns, (_, values)) in t_ns.iter().zip(&intervals).filter(|(t_ns, _)| **t_ns > last_ns) {
                column.t_ns.push(*t_ns);
                column.value.push(values[place]);
            }
            series.push((key, column));
        }
    }
    let is_there = |key: &SeriesKey| series.iter().any(|(other, _)| other == key);
    let rest: Vec<_> =
        before.iter().filter(|(key, _)| key.metric != BINS && !is_there(key)).cloned().collect();
    series.extend(rest);
    Ok(series)
}

/// A metric of the load, its unit, and its value in an interval.
type LoadMetric = (&'static str, &'static str, fn(&LoadInterval) -> f64);

const LOAD_METRICS: [LoadMetric; 6] = [
    ("per_s", "1/s", per_s),
    ("errors_per_s", "1/s", errors_per_s),
    ("latency_mean_ms", "ms", mean_ms),
    ("latency_p95_ms", "ms", |interval| quantile_ms(interval, 0.95)),
    ("latency_p99_ms", "ms", |interval| quantile_ms(interval, 0.99)),
    ("latency_max_ms", "ms", |interval| if_any(interval, interval.response_max_ns as f64 / NS_PER_MS)),
];

fn key(metric: &str, instance: &str, unit: &str) -> SeriesKey {
    SeriesKey {
        host: "client".to_string(),
        source: "load".to_string(),
        metric: metric.to_string(),
        instance: instance.to_string(),
        kind: Kind::Gauge,
        unit: unit.to_string(),
    }
}

fn bins(levels: &[Level]) -> Column {
    let mut column = Column::default();
    for level in levels {
        for (index, count) in level.result.bins_100ms.iter().enumerate() {
            let end_ns = level.window.begin_ns + (index as i64 + 1) * BIN_NS;
            if column.t_ns.last().is_some_and(|last_ns| *last_ns >= end_ns) {
                continue;
            }
            column.t_ns.push(end_ns);
            column.value.push(f64::from(*count) * 10.0);
        }
    }
    column
}

fn per_s(interval: &LoadInterval) -> f64 {
    four_digits(interval.count as f64 / seconds(interval))
}

fn errors_per_s(interval: &LoadInterval) -> f64 {
    let errors: u64 = interval.errors.iter().map(|(_, count)| count).sum();
    four_digits(errors as f64 / seconds(interval))
}

fn seconds(interval: &LoadInterval) -> f64 {
    ((interval.end_ns - interval.begin_ns) as f64 / NS_PER_S).max(1e-9)
}

fn mean_ms(interval: &LoadInterval) -> f64 {
    if_any(interval, interval.response_sum_ns as f64 / interval.count.max(1) as f64 / NS_PER_MS)
}

/// The upper bound of the bucket in which the quantile lies, never beyond the largest value.
fn quantile_ms(interval: &LoadInterval, quantile: f64) -> f64 {
    match whyso_series::quantile_of_buckets(&interval.response, quantile) {
        Some(upper_ns) => if_any(interval, upper_ns.min(interval.response_max_ns) as f64 / NS_PER_MS),
        None => f64::NAN,
    }
}

/// An interval in which nothing ended has no latency: a gap, not a zero.
fn if_any(interval: &LoadInterval, value: f64) -> f64 {
    if interval.count == 0 { f64::NAN } else { four_digits(value) }
}

/// Four digits after the point: 0.1 µs of a millisecond, finer than any histogram bucket, and cheap to store.
fn four_digits(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

//! From what the load gives to what the recording holds.

use std::collections::BTreeMap;

use whyso_load::{Histogram, Interval, IntervalRow, LevelOutcome};
use whyso_record::Recorder;
use whyso_record::data::LoadInterval;
use whyso_record::run::{Client, Latency, LevelResult, StatementResult};

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;

/// The result of one level, of its measured window alone.
pub(crate) fn level_result(outcome: &LevelOutcome) -> LevelResult {
    let seconds = (outcome.window_end_ns - outcome.window_begin_ns) as f64 / NS_PER_S;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let mut errors_by_code = BTreeMap::new();
    for (code, count) in &outcome.errors_by_code {
        errors_by_code.insert(code.to_string(), *count);
    }
    let mut by_statement = Vec::new();
    for kind in &outcome.kinds {
        by_statement.push(StatementResult {
            kind: kind.kind.clone(),
            count: kind.count,
            errors: kind.errors,
            rows: kind.rows,
            latency_ms: latency_ms(&kind.latency),
        });
    }
    let cpu_s = outcome.client.threads_cpu_ns as f64 / NS_PER_S;
    let saturated_why = outcome.client.saturated_why().unwrap_or_default();
    LevelResult {
        seconds,
        transactions: outcome.transactions,
        queries: outcome.queries,
        errors: outcome.errors_by_code.values().sum(),
        errors_by_code,
        retries: outcome.retries,
        transactions_per_s: per_second(outcome.transactions),
        queries_per_s: per_second(outcome.queries),
        latency_ms: latency_ms(&outcome.response),
        service_ms: latency_ms(&outcome.service),
        by_statement,
        client: Client {
            cpu_s,
            cpu_us_per_query: if outcome.queries > 0 { cpu_s * 1e6 / outcome.queries as f64 } else { 0.0 },
            max_rss_kb: outcome.client.max_rss_kb,
            saturated: !saturated_why.is_empty(),
            saturated_why,
        },
        bins_100ms: outcome.bins_100ms.clone(),
    }
}

fn latency_ms(histogram: &Histogram) -> Latency {
    let quantile = |quantile: f64| histogram.quantile_ns(quantile) as f64 / NS_PER_MS;
    Latency {
        mean: histogram.mean_ns() / NS_PER_MS,
        p50: quantile(0.5),
        p95: quantile(0.95),
        p99: quantile(0.99),
        p999: quantile(0.999),
        max: histogram.max_ns() as f64 / NS_PER_MS,
    }
}

/// Writes what the load did in an interval, a row a statement kind.
pub(crate) fn record_interval(recorder: &Recorder, level: u32, interval: &Interval) {
    for row in &interval.rows {
        recorder.load(load_interval(level, interval, row));
    }
}

fn load_interval(level: u32, interval: &Interval, row: &IntervalRow) -> LoadInterval {
    let mut errors = Vec::new();
    for (code, count) in &row.errors {
        errors.push((code.to_string(), *count));
    }
    LoadInterval {
        begin_ns: interval.begin_ns,
        end_ns: interval.end_ns,
        level,
        measured: interval.measured,
        statement: row.statement.clone(),
        count: row.count,
        rows: row.rows,
        errors,
        response_sum_ns: row.response_sum_ns,
        service_sum_ns: row.service_sum_ns,
        response_max_ns: row.response_max_ns,
        response: row.response.clone(),
        service: row.service.clone(),
    }
}

//! What the load did in the made run.

use std::collections::BTreeMap;

use whyso_record::data::LoadInterval;
use whyso_record::run::{Client, Latency, Level, LevelResult, StatementResult, Window};

use super::{Noise, S, throughput};

/// Statement kind, how many a transaction, and its share of a transaction's time.
const STATEMENTS: [(&str, u64, f64); 11] = [
    ("begin", 1, 0.02),
    ("point_select", 10, 0.34),
    ("simple_range", 1, 0.06),
    ("sum_range", 1, 0.06),
    ("order_range", 1, 0.09),
    ("distinct_range", 1, 0.10),
    ("index_update", 1, 0.07),
    ("non_index_update", 1, 0.05),
    ("delete", 1, 0.05),
    ("insert", 1, 0.06),
    ("commit", 1, 0.10),
];
const QUERIES: u64 = 20;

fn latency(mean_ms: f64, users: u32) -> Latency {
    let spread = 1.2 + f64::from(users).ln() * 0.12;
    Latency {
        mean: mean_ms,
        p50: mean_ms * 0.9,
        p95: mean_ms * 1.5 * spread,
        p99: mean_ms * 2.1 * spread,
        p999: mean_ms * 3.4 * spread,
        max: mean_ms * 6.0 * spread,
        lower_bounds_above: None,
    }
}

pub(super) fn result(index: u32, users: u32, window: Window) -> LevelResult {
    let mut noise = Noise::new(u64::from(index) + 17);
    let expected = throughput(users) / 10.0;
    let mut drifting = 0.0;
    let bins: Vec<u32> = (0..(window.seconds() * 10.0) as usize)
        .map(|_| {
            drifting = 0.6 * drifting + 0.03 * noise.normal();
            (expected * (1.0 + drifting)).max(0.0).round() as u32
        })
        .collect();
    let transactions: u64 = bins.iter().map(|count| u64::from(*count)).sum();
    let per_s = transactions as f64 / window.seconds();
    let mean_ms = f64::from(users) / per_s * 1e3;
    let errors = u64::from(users / 16);
    let by_statement = STATEMENTS
        .iter()
        .map(|(kind, count, share)| StatementResult {
            kind: kind.to_string(),
            count: transactions * count,
            errors: if *kind == "index_update" { errors } else { 0 },
            rows: transactions * if kind.ends_with("range") { 100 } else { *count },
            latency_ms: latency(
                mean_ms * share / *count as f64
                    * if *kind == "commit" { 1.0 + f64::from(users) / 40.0 } else { 1.0 },
                users,
            ),
            ..StatementResult::default()
        })
        .collect();
    let queries = transactions * QUERIES;
    let cpu_us_per_query = 11.0 + f64::from(users).sqrt() * 0.7;
    LevelResult {
        seconds: window.seconds(),
        transactions,
        queries,
        errors,
        errors_by_code: if errors > 0 {
            BTreeMap::from([("1213 (40001)".to_string(), errors)])
        } else {
            BTreeMap::new()
        },
        retries: errors,
        transactions_per_s: per_s,
        queries_per_s: per_s * QUERIES as f64,
        latency_ms: latency(mean_ms, users),
        service_ms: latency(mean_ms * 0.99, users),
        by_statement,
        client: Client {
            cpu_s: queries as f64 * cpu_us_per_query / 1e6,
            cpu_us_per_query,
            max_rss_kb: 18_000 + u64::from(users) * 90,
            saturated: false,
            saturated_why: String::new(),
            ..Client::default()
        },
        bins_100ms: bins,
        ..LevelResult::default()
    }
}

pub(super) fn intervals(levels: &[Level]) -> Vec<LoadInterval> {
    let mut intervals = Vec::new();
    for level in levels {
        let mut noise = Noise::new(u64::from(level.index) * 31 + 5);
        let seconds = (level.window.end_ns - level.warmup.begin_ns) / S;
        for second in 0..seconds {
            let begin_ns = level.warmup.begin_ns + second * S;
            let warm = (second as f64 / 2.0).min(1.0) * 0.4 + 0.6;
            let transactions = throughput(level.users) * warm * (1.0 + 0.03 * noise.normal());
            let mean_ns = f64::from(level.users) / transactions * 1e9;
            let measured = begin_ns >= level.window.begin_ns;
            intervals.push(interval(
                level.index,
                measured,
                begin_ns,
                "transaction",
                transactions,
                mean_ns,
                &mut noise,
            ));
            for (kind, count, share) in STATEMENTS {
                let count = count as f64;
                intervals.push(interval(
                    level.index,
                    measured,
                    begin_ns,
                    kind,
                    transactions * count,
                    mean_ns * share / count,
                    &mut noise,
                ));
            }
        }
    }
    intervals
}

fn interval(
    level: u32,
    measured: bool,
    begin_ns: i64,
    statement: &str,
    count: f64,
    mean_ns: f64,
    noise: &mut Noise,
) -> LoadInterval {
    let count = count.max(0.0) as u64;
    let stall = if noise.next() < 0.04 { 8.0 } else { 1.0 };
    let response: Vec<(u64, u64)> = [(0.7, 0.5), (1.2, 0.35), (2.2, 0.11), (3.5, 0.03), (6.0 * stall, 0.01)]
        .iter()
        .map(|(times, share)| ((mean_ns * times) as u64, ((count as f64 * share) as u64).max(1)))
        .collect();
    LoadInterval {
        begin_ns,
        end_ns: begin_ns + S,
        level,
        measured,
        statement: statement.to_string(),
        count,
        rows: count,
        errors: Vec::new(),
        response_sum_ns: (mean_ns * count as f64) as u64,
        service_sum_ns: (mean_ns * count as f64) as u64,
        response_max_ns: (mean_ns * 7.0 * stall) as u64,
        service: response.clone(),
        response,
    }
}

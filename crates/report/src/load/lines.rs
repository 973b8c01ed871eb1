//! A line every few seconds while a level runs.

use std::fmt::Write;

use whyso_record::data::LoadInterval;
use whyso_words::{NOTHING, count, nanoseconds, number, whole};

/// Returns what was done over some intervals of whole transactions, in one line. Times count from `origin_ns`.
///
/// ```
/// use whyso_record::data::LoadInterval;
///
/// let second = LoadInterval {
///     begin_ns: 0,
///     end_ns: 1_000_000_000,
///     level: 0,
///     measured: true,
///     statement: "transaction".to_string(),
///     count: 2,
///     rows: 0,
///     errors: Vec::new(),
///     response_sum_ns: 3_000_000,
///     service_sum_ns: 3_000_000,
///     response_max_ns: 2_000_000,
///     response: vec![(1_000_000, 1), (2_000_000, 1)],
///     service: Vec::new(),
/// };
/// let line = whyso_report::load::interval_line(&[second], "4 users", None, 0, &[95.0]);
/// assert_eq!(line, "[     1 s] 4 users            2 TPS  mean 1.5 ms  p95 2 ms  max 2 ms  0 errors");
/// ```
pub fn interval_line(
    intervals: &[LoadInterval],
    level: &str,
    backlog: Option<u64>,
    origin_ns: i64,
    percentiles: &[f64],
) -> String {
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else { return String::new() };
    let seconds = ((last.end_ns - first.begin_ns) as f64 / 1e9).max(1e-9);
    let transactions: u64 = intervals.iter().map(|interval| interval.count).sum();
    let errors: u64 = intervals.iter().flat_map(|interval| &interval.errors).map(|(_, count)| count).sum();
    let max_ns = intervals.iter().map(|interval| interval.response_max_ns).max().unwrap_or(0);
    let sum_ns: u64 = intervals.iter().map(|interval| interval.response_sum_ns).sum();
    let buckets = intervals
        .iter()
        .fold(Vec::new(), |all, interval| whyso_series::merge_buckets(&all, &interval.response));
    let ms = |ns: f64| if transactions > 0 { nanoseconds(ns) } else { NOTHING.to_string() };
    let at_s = (last.end_ns - origin_ns) as f64 / 1e9;
    let mut line = format!(
        "[{:>6} s] {level}  {:>11} TPS  mean {}",
        number(at_s.round()),
        number(transactions as f64 / seconds),
        ms(sum_ns as f64 / transactions.max(1) as f64)
    );
    for percentile in percentiles {
        let upper_ns = whyso_series::quantile_of_buckets(&buckets, percentile / 100.0).unwrap_or(0);
        let _ = write!(line, "  p{percentile} {}", ms(upper_ns.min(max_ns) as f64));
    }
    let _ = write!(line, "  max {}  {}", ms(max_ns as f64), count(errors, "error"));
    if let Some(backlog) = backlog {
        let _ = write!(line, "  backlog {}", whole(backlog));
    }
    if !last.measured {
        line.push_str("  (warm-up)");
    }
    line
}

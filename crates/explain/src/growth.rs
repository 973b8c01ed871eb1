//! What grows per transaction from the best level to the last: counters that go with the change.
//!
//! Just a ratio accuses the wrong ones: a counter that went from 1 to 3 in a million transactions tripled. So the lower end of the
//! ratio's 95 % interval counts, where counts vary by Poisson's law. It is weighed:
//!
//! - by what the counter means,
//! - by how much of it there is,
//! - for waiting time, by the part of the response time's growth that it covers.

use std::collections::BTreeMap;

use crate::level::Level;
use crate::meanings::{Kind, Meaning, meaning_of};
use crate::model::{Growth, SeriesName};
use crate::regime::Shape;

/// Two windows of the same load differ by this much (standard deviation of the logarithm) beyond
/// Poisson's law.
const WINDOW_NOISE: f64 = 0.02;

/// Growth beyond this counts no more.
const RATIO_MAX: f64 = 100.0;

/// Events per transaction that have half of the weight.
const MATTERS_COUNT: f64 = 0.01;
const MATTERS_BYTES: f64 = 200.0;

/// A waiting time has all its weight from this share of the response time on.
const MATTERS_SHARE_OF_RESPONSE: f64 = 0.1;

/// A counter that grows no faster per second than before is the background's, not the load's.
const BACKGROUND_RATIO_MAX: f64 = 1.1;

/// Values whose difference is at most this share of the larger are the same count, read at another place at another moment.
const SAME: f64 = 0.03;

/// The two levels that growth is measured between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a, 'b> {
    pub(crate) best: &'b Level<'a>,
    pub(crate) last: &'b Level<'a>,
}

/// One counter between the two levels.
#[derive(Clone, Debug)]
pub(crate) struct CounterGrowth {
    pub(crate) growth: Growth,
    pub(crate) meaning: &'static Meaning,
    /// Lower end of the 95 % interval of last ÷ best; the upper one where it shrank. 1 where it
    /// can't be distinguished from unchanged.
    pub(crate) ratio_sure: f64,
    pub(crate) suspicion: f64,
    /// How much of it there is, 0 to 1.
    pub(crate) matters: f64,
}

/// From the best level to the valid one with the most users. Where the best one is the last itself: from the first level of the peak.
/// `None` where there is no second level.
pub(crate) fn span<'a, 'b>(levels: &'b [Level<'a>], shape: &Shape) -> Option<Span<'a, 'b>> {
    let last =
        levels.iter().filter(|level| !level.repeat && level.verdict.valid).max_by_key(|level| level.users)?;
    for point in [shape.best_point(), &shape.points[shape.same.0]] {
        let best = &levels[*point.positions.first()?];
        if best.users < last.users {
            return Some(Span { best, last });
        }
    }
    None
}

/// Every counter of the two levels, the most suspicious first.
pub(crate) fn counters(levels: &[Level], span: Span) -> Vec<CounterGrowth> {
    let sweep: Vec<(&Level, BTreeMap<&SeriesName, f64>)> =
        levels.iter().filter(|level| !level.repeat).map(|level| (level, increases(level))).collect();
    let best = increases(span.best);
    let last = increases(span.last);
    let mut units: BTreeMap<&SeriesName, &str> = BTreeMap::new();
    for level in [span.best, span.last] {
        for counter in level.counters {
            units.insert(&counter.series, &counter.unit);
        }
    }

    let mut counters = Vec::new();
    for (series, recorded_unit) in units {
        let meaning = meaning_of(series);
        let best_increase = best.get(series).copied().unwrap_or(0.0);
        let last_increase = last.get(series).copied().unwrap_or(0.0);
        if meaning.kind == Kind::Excluded || (best_increase == 0.0 && last_increase == 0.0) {
            continue;
        }
        let unit = if meaning.unit.is_empty() { recorded_unit } else { meaning.unit };
        let best_per_transaction = per_transaction(best_increase, span.best);
        let last_per_transaction = per_transaction(last_increase, span.last);
        let ratio = last_per_transaction / best_per_transaction;
        let growth = Growth {
            series: series.clone(),
            unit: unit.to_string(),
            best_users: span.best.users,
            last_users: span.last.users,
            best_per_transaction,
            last_per_transaction,
            ratio: (best_per_transaction > 0.0 && ratio.is_finite()).then_some(ratio),
            by_level: sweep
                .iter()
                .map(|(level, increases)| {
                    per_transaction(increases.get(series).copied().unwrap_or(0.0), level)
                })
                .collect(),
            meaning: meaning.text.to_string(),
            same_as: None,
        };
        counters.push(judge(growth, meaning, [best_increase, last_increase], span));
    }
    counters.sort_by(|a, b| {
        b.suspicion
            .total_cmp(&a.suspicion)
            .then_with(|| b.meaning.kind.weight().total_cmp(&a.meaning.kind.weight()))
            .then_with(|| a.growth.series.cmp(&b.growth.series))
    });
    link_same(&mut counters);
    counters
}

/// Links counters of one meaning and one unit with the same values, such as those of `SHOW STATUS` and of InnoDB's own table.
fn link_same(counters: &mut [CounterGrowth]) {
    for at in 1..counters.len() {
        let (before, rest) = counters.split_at_mut(at);
        let growth = &mut rest[0].growth;
        growth.same_as = before
            .iter()
            .position(|other| other.growth.same_as.is_none() && counts_the_same(&other.growth, growth));
    }
}

fn counts_the_same(a: &Growth, b: &Growth) -> bool {
    let is_near = |a: f64, b: f64| (a - b).abs() <= SAME * a.abs().max(b.abs());
    !a.meaning.is_empty()
        && a.meaning == b.meaning
        && a.unit == b.unit
        && is_near(a.best_per_transaction, b.best_per_transaction)
        && is_near(a.last_per_transaction, b.last_per_transaction)
}

fn judge(growth: Growth, meaning: &'static Meaning, increases: [f64; 2], span: Span) -> CounterGrowth {
    let log_ratio_sure = log_ratio_sure(increases, &growth.unit, span);
    let matters = matters(&growth, span);
    let strength = log_ratio_sure.clamp(-RATIO_MAX.ln(), RATIO_MAX.ln());
    let mut suspicion = meaning.kind.weight() * source_weight(&growth.series) * matters * strength;
    if meaning.kind == Kind::WaitTime {
        suspicion *= 1.0 + 4.0 * share_of_response_growth(&growth, span);
    }
    let per_second_ratio = (increases[1] / span.last.seconds) / (increases[0] / span.best.seconds);
    let is_background =
        matches!(meaning.kind, Kind::Unknown | Kind::Work | Kind::Io | Kind::Resource | Kind::Network);
    if is_background && per_second_ratio <= BACKGROUND_RATIO_MAX {
        suspicion *= 0.2;
    }
    if meaning.kind == Kind::Bookkeeping {
        suspicion = suspicion.min(0.0);
    }
    CounterGrowth { growth, meaning, ratio_sure: strength.exp(), suspicion, matters }
}

/// The end of the 95 % interval of ln(last ÷ best) that is nearer to 0; 0 where the interval holds 0.
fn log_ratio_sure([best_increase, last_increase]: [f64; 2], unit: &str, span: Span) -> f64 {
    let quantum = quantum(unit);
    let best_events = best_increase / quantum + 0.5;
    let last_events = last_increase / quantum + 0.5;
    let log_ratio = (last_events / span.last.transactions as f64).ln()
        - (best_events / span.best.transactions as f64).ln();
    let deviation = (1.0 / best_events + 1.0 / last_events + 2.0 * WINDOW_NOISE * WINDOW_NOISE).sqrt();
    let sure = (log_ratio.abs() - 1.96 * deviation).max(0.0) * log_ratio.signum();
    if sure.is_finite() { sure } else { 0.0 }
}

/// What one event adds to a counter of this unit, roughly: the size of its noise.
fn quantum(unit: &str) -> f64 {
    match unit {
        "ns" => 1e6,
        "us" => 1e3,
        "bytes" => 4096.0,
        _ => 1.0,
    }
}

/// 0 to 1: how much of the quantity there is at the last level.
fn matters(growth: &Growth, span: Span) -> f64 {
    let value = growth.last_per_transaction.max(growth.best_per_transaction);
    if let Some(ms) = as_ms(value, &growth.unit) {
        let Some(response_ms) = span.last.latency_mean_ms else {
            return 1.0;
        };
        return (ms / response_ms / MATTERS_SHARE_OF_RESPONSE).clamp(0.0, 1.0);
    }
    let half = if growth.unit == "bytes" { MATTERS_BYTES } else { MATTERS_COUNT };
    let matters = 1.0 / (1.0 + half / value);
    if matters.is_finite() { matters } else { 0.0 }
}

/// The part of the response time's growth that a waiting time covers, 0 to 1.
fn share_of_response_growth(growth: &Growth, span: Span) -> f64 {
    let (Some(best_ms), Some(last_ms)) = (span.best.latency_mean_ms, span.last.latency_mean_ms) else {
        return 0.0;
    };
    let grown = growth.last_per_transaction - growth.best_per_transaction;
    let Some(grown_ms) = as_ms(grown, &growth.unit) else {
        return 0.0;
    };
    if last_ms <= best_ms {
        return 0.0;
    }
    (grown_ms / (last_ms - best_ms)).clamp(0.0, 1.0)
}

pub(crate) fn as_ms(value: f64, unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(value / 1e6),
        "us" => Some(value / 1e3),
        "ms" => Some(value),
        "s" => Some(value * 1e3),
        _ => None,
    }
}

/// One CPU or one thread shows less than all of them together.
fn source_weight(series: &SeriesName) -> f64 {
    let is_total = matches!(series.instance.as_str(), "" | "all" | "server" | "generator");
    let has_parts = series.source == "cpu" || series.source.ends_with("_process");
    if has_parts && !is_total { 0.1 } else { 1.0 }
}

/// Of every counter that makes sense; the last of two with the same name.
fn increases<'a>(level: &Level<'a>) -> BTreeMap<&'a SeriesName, f64> {
    let mut increases = BTreeMap::new();
    for counter in level.counters {
        if (0.0..1e24).contains(&counter.increase) {
            increases.insert(&counter.series, counter.increase);
        }
    }
    increases
}

fn per_transaction(increase: f64, level: &Level) -> f64 {
    if level.transactions == 0 {
        return 0.0;
    }
    increase / level.transactions as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Counter, LevelInput, Machine};

    fn level_input(
        users: u32,
        transactions: u64,
        latency_mean_ms: f64,
        counters: &[(&str, &str, f64)],
    ) -> LevelInput {
        LevelInput {
            users,
            end_ns: 10_000_000_000,
            transactions,
            latency_mean_ms,
            bins_100ms: vec![(transactions / 100) as u32; 100],
            counters: counters
                .iter()
                .map(|&(source, metric, increase)| Counter {
                    series: SeriesName {
                        host: "server".to_string(),
                        source: source.to_string(),
                        metric: metric.to_string(),
                        instance: String::new(),
                    },
                    unit: "1".to_string(),
                    increase,
                })
                .collect(),
            ..LevelInput::default()
        }
    }

    fn ranked(best: &[(&str, &str, f64)], last: &[(&str, &str, f64)]) -> Vec<CounterGrowth> {
        let inputs = [level_input(8, 12_000, 6.6, best), level_input(64, 11_000, 58.0, last)];
        let levels: Vec<Level> =
            inputs.iter().map(|input| crate::verdict::judge(input, &Machine::default())).collect();
        counters(&levels, Span { best: &levels[0], last: &levels[1] })
    }

    #[test]
    fn a_large_ratio_of_next_to_nothing_is_no_suspect() {
        let counters = ranked(
            &[
                ("status", "Innodb_row_lock_time", 600.0),
                ("status", "Innodb_log_waits", 0.0),
                ("status", "Odd", 1.0),
            ],
            &[
                ("status", "Innodb_row_lock_time", 400_000.0),
                ("status", "Innodb_log_waits", 4.0),
                ("status", "Odd", 30.0),
            ],
        );
        assert_eq!(counters[0].growth.series.metric, "Innodb_row_lock_time");
        assert_eq!(counters[0].growth.unit, "ms");
        assert!(counters[0].suspicion > 50.0 * counters[1].suspicion, "{counters:#?}");
    }

    #[test]
    fn counters_that_say_the_same_are_linked_to_the_first_of_them() {
        let of = |status: f64, own_table: f64| {
            [
                ("status", "Innodb_row_lock_waits", status),
                ("innodb_metrics", "lock_row_lock_waits", own_table),
                ("status", "Innodb_log_waits", status),
            ]
        };
        let links = |best: f64, last: f64| {
            let counters = ranked(&of(1_000.0, 1_000.0 * best), &of(9_000.0, 9_000.0 * last));
            let metric = |at: usize| counters[at].growth.series.metric.clone();
            let linked =
                (0..counters.len()).filter_map(|at| Some((metric(at), metric(counters[at].growth.same_as?))));
            linked.collect::<Vec<_>>()
        };
        let pair = |one: &str, other: &str| (one.to_string(), other.to_string());
        // The one with the same values and another meaning stays on its own.
        let expected = pair("Innodb_row_lock_waits", "lock_row_lock_waits");
        let found = links(1.0, 0.98);
        assert!(found == [expected.clone()] || found == [(expected.1, expected.0)], "{found:?}");
        assert!(links(0.9, 1.0).is_empty());
        assert!(links(1.0, 1.05).is_empty());
    }

    #[test]
    fn poisson_noise_is_no_growth() {
        let counters =
            ranked(&[("status", "Innodb_log_waits", 100.0)], &[("status", "Innodb_log_waits", 115.0)]);
        assert_eq!(counters[0].suspicion, 0.0);
        assert_eq!(counters[0].ratio_sure, 1.0);
    }

    #[test]
    fn bookkeeping_of_the_readings_stays_below() {
        let counters = ranked(
            &[("status", "Com_show_status", 10.0), ("cpu", "context_switches", 50_000.0)],
            &[("status", "Com_show_status", 1_000.0), ("cpu", "context_switches", 130_000.0)],
        );
        assert_eq!(counters[0].growth.series.metric, "context_switches");
    }

    #[test]
    fn uptime_and_our_own_cost_are_left_out() {
        let counters = [("status", "Uptime", 10.0), ("watch", "cpu_ns", 1e7)];
        assert!(ranked(&counters, &counters).is_empty());
    }

    #[test]
    fn what_shrinks_comes_last() {
        let counters = ranked(
            &[("status", "Innodb_os_log_fsyncs", 12_000.0), ("status", "Rows_sent", 1_000.0)],
            &[("status", "Innodb_os_log_fsyncs", 1_000.0), ("status", "Rows_sent", 1_000.0)],
        );
        assert_eq!(counters[1].growth.series.metric, "Innodb_os_log_fsyncs");
        assert!(counters[1].suspicion < 0.0);
    }
}

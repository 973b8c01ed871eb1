//! What stands under the table of levels: service levels, errors and what they cost, endpoints, the search, the
//! comparison, and what makes a number doubtful.

use std::fmt::Write;

use whyso_explain::capacity::Answer;
use whyso_explain::model::LevelVerdict;
use whyso_explain::versus::Comparison;
use whyso_record::run::Level;
use whyso_words::{count, milliseconds, number, ratio, seconds, times, whole};

use super::{LoadResult, invalid_why};
use crate::text::engine::engines;
use crate::text::layout::{aligned_with_words, wrapped};
use crate::text::level::due_name;
use crate::text::requirements::{kinds_of_transactions, service_levels};
use crate::text::shortened;

/// Longest name of a side of a comparison, in characters.
const SIDE_MAX: usize = 20;

/// Returns the text under the table, for a terminal of `width` characters; empty where there is nothing to report.
pub fn summary(result: &LoadResult, width: usize) -> String {
    let mut out = String::new();
    let judged = result.levels.iter().map(|(level, _)| level).filter(|level| is_end_of_search(result, level));
    let judged: Vec<&Level> = judged.collect();
    out.push_str(&kinds_of_transactions(judged.iter().copied()));
    out.push_str(&service_levels(judged.into_iter()));
    endpoints(&mut out, &result.levels);
    if let Some(answer) = &result.capacity {
        capacity(&mut out, answer, width);
    }
    if let Some(comparison) = &result.comparison {
        versus(&mut out, comparison, width);
    }
    let notes = notes(result);
    if !notes.is_empty() {
        out.push('\n');
    }
    for note in notes {
        out.push_str(&wrapped(&note, "  ", width));
    }
    out
}

/// Returns whether a level is reported in full. Of a search, only those at the ends of the answer are: every probe has its row in the table.
fn is_end_of_search(result: &LoadResult, level: &Level) -> bool {
    let Some(answer) = &result.capacity else { return true };
    let ends = [answer.bounds.holds_per_s, answer.bounds.fails_per_s];
    answer.probes.iter().any(|probe| probe.level == level.index && ends.contains(&Some(probe.rate_per_s)))
}

fn endpoints(out: &mut String, levels: &[(Level, LevelVerdict)]) {
    if levels.iter().all(|(level, _)| level.result.endpoints.len() < 2) {
        return;
    }
    let head = ["level", "endpoint", "TPS", "mean ms", "p95", "p99", "max", "errors", "outages"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for (level, _) in levels {
        for endpoint in &level.result.endpoints {
            let outages: Vec<String> = endpoint
                .outages
                .iter()
                .map(|outage| match outage.seconds {
                    Some(s) => seconds(s),
                    None => "not recovered".to_string(),
                })
                .collect();
            let ms = &endpoint.latency_ms;
            rows.push(vec![
                due_name(level),
                endpoint.address.clone(),
                number(endpoint.transactions_per_s),
                number(ms.mean),
                number(ms.p95),
                number(ms.p99),
                number(ms.max),
                whole(endpoint.errors),
                if outages.is_empty() { "none".to_string() } else { outages.join(", ") },
            ]);
        }
    }
    out.push('\n');
    out.push_str(&aligned_with_words(&rows, &[0, 1]));
}

fn capacity(out: &mut String, answer: &Answer, width: usize) {
    out.push('\n');
    out.push_str(&wrapped(&answer.sentence(), "  ", width));
    if !answer.bounded_by.is_empty() {
        out.push_str(&wrapped(&format!("What bounds it: {}.", answer.bounded_by), "  ", width));
    }
}

fn versus(out: &mut String, comparison: &Comparison, width: usize) {
    let mut rows = vec![vec![
        String::new(),
        format!("a: {}", shortened(&comparison.a, SIDE_MAX)),
        format!("b: {}", shortened(&comparison.b, SIDE_MAX)),
        "b ÷ a".to_string(),
        "95 % interval".to_string(),
    ]];
    for quantity in &comparison.quantities {
        let name = match quantity.name.as_str() {
            "transactions_per_s" => "TPS",
            "mean_ms" => "mean ms",
            "p95_ms" => "p95 ms",
            "p99_ms" => "p99 ms",
            other => other,
        };
        let interval = quantity.ratio.and_then(|ratio| ratio.ci95);
        rows.push(vec![
            name.to_string(),
            number(quantity.a),
            number(quantity.b),
            quantity.ratio.map_or("–".to_string(), |of_b| ratio(of_b.ratio)),
            interval.map_or("–".to_string(), |[low, high]| format!("{} – {}", ratio(low), ratio(high))),
        ]);
    }
    out.push('\n');
    out.push_str(&aligned_with_words(&rows, &[0]));
    out.push('\n');
    out.push_str(&wrapped(&comparison.sentence(), "  ", width));
}

/// What makes a number doubtful, and what driving the load took.
fn notes(result: &LoadResult) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(why) = &result.cut_short {
        notes.push(format!("Cut short: {why}."));
    }
    for (level, verdict) in &result.levels {
        let of = &level.result;
        let name = due_name(level);
        let invalid_why = invalid_why(level, verdict);
        if !invalid_why.is_empty() {
            notes.push(format!("INVALID at {name}: {invalid_why}."));
        }
        if !verdict.stuck.is_empty() {
            notes.push(format!("At {name} {}", verdict.stuck));
        }
        // A search has many levels that are behind; the answer says what bounds it.
        if let Some(arrivals) = of.arrivals.filter(|arrivals| !arrivals.held && result.capacity.is_none()) {
            let oldest_ms = of.in_flight.map_or(0.0, |in_flight| in_flight.oldest_ms);
            let oldest = match oldest_ms > 0.0 {
                true => {
                    format!(" The oldest that was due and unanswered had waited {}.", milliseconds(oldest_ms))
                }
                false => String::new(),
            };
            notes.push(format!(
                "At {name} the rate could not be held: the backlog grew from {} to {}.{oldest}",
                whole(arrivals.backlog_begin),
                count(arrivals.backlog_end, "transaction")
            ));
        }
        if of.errors > 0 {
            notes.push(format!("Errors at {name}: {}.", errors(level)));
        }
        if of.intervals_lost > 0 {
            notes.push(format!("At {name}, lost: {}.", count(of.intervals_lost, "interval")));
        }
    }
    notes.extend(engines(result.levels.iter().map(|(level, _)| level)));
    notes
}

/// "1213 (40001) 12 times, 34.5 ms lost; 12 retries".
fn errors(level: &Level) -> String {
    let result = &level.result;
    let mut parts = Vec::new();
    for (code, errors) in &result.errors_by_code {
        let mut part = format!("{code} {}", times(*errors));
        if let Some(lost_ms) = result.lost_ms_by_code.get(code).filter(|lost_ms| **lost_ms > 0.0) {
            let _ = write!(part, ", {} lost", milliseconds(*lost_ms));
        }
        parts.push(part);
    }
    if result.retries > 0 {
        parts.push(count(result.retries, "retry"));
    }
    if result.reconnects > 0 {
        parts.push(count(result.reconnects, "reconnect"));
    }
    parts.join("; ")
}

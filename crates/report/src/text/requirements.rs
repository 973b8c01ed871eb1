//! Tables of what is required of a load and of its kinds of transactions, as plain text.

use whyso_record::run::{Level, RunInfo, SloResult};
use whyso_words::milliseconds;

use super::layout::aligned_with_words;
use super::level::due_name;
use super::transactions::{self, is_of_transaction, requirement};

/// Returns the pages of a load over HTTP that was recorded, and what is required of them; empty where none was.
pub fn pages(run: &RunInfo) -> String {
    if !run.spec.recorded || run.levels.iter().all(|level| level.result.by_transaction.is_empty()) {
        return String::new();
    }
    format!("{}{}", kinds_of_transactions(run.levels.iter()), service_levels(run.levels.iter()))
}

/// As Faban prints it: average, maximum, 90th, what is required, and the verdict.
pub(crate) fn service_levels<'l>(levels: impl Iterator<Item = &'l Level>) -> String {
    let head = ["level", "kind", "average", "max", "90th", "required", "measured", "verdict"];
    let mut rows = vec![head.map(str::to_string).to_vec()];
    for level in levels {
        // Those of one kind of transaction stand in that kind's line.
        for slo in level.result.slo.iter().filter(|slo| !is_of_transaction(level, slo)) {
            rows.push(slo_row(level, slo));
        }
    }
    if rows.len() == 1 { String::new() } else { format!("\n{}", aligned_with_words(&rows, &[0, 1])) }
}

/// The kinds of transactions, where there are several: how often, how long, and what is required of each.
pub(crate) fn kinds_of_transactions<'l>(levels: impl Iterator<Item = &'l Level>) -> String {
    let lines = transactions::lines(levels);
    if lines.is_empty() {
        return String::new();
    }
    let head = transactions::head(&lines);
    let mut rows = vec![std::iter::once("level").chain(head.iter().copied()).map(str::to_string).collect()];
    for line in &lines {
        rows.push(std::iter::once(due_name(line.level)).chain(line.cells(&head)).collect());
    }
    format!("\n{}", aligned_with_words(&rows, &[0, 1]))
}

fn slo_row(level: &Level, slo: &SloResult) -> Vec<String> {
    let ms = |value: f64| if slo.measured_ms.is_some() { milliseconds(value) } else { "–".to_string() };
    let times = [ms(slo.mean_ms), ms(slo.max_ms), ms(slo.p90_ms)];
    [due_name(level), slo.kind.clone()].into_iter().chain(times).chain(requirement(slo)).collect()
}

//! The kinds of transactions of each level, as Faban prints them: how often, average, maximum, 90th, what is required, and
//! the verdict.

use whyso_explain::slo::{is_kind_of_transaction, required_time};
use whyso_record::run::{Level, SloResult, TransactionResult};
use whyso_words::{at_least, milliseconds, number, percent};

/// One line of the table: a kind of transaction at a level, once for each of its requirements, or once without any.
pub(crate) struct Line<'l> {
    pub(crate) level: &'l Level,
    transaction: &'l TransactionResult,
    required: Option<&'l SloResult>,
}

/// Returns whether a requirement is of one kind of transaction, and so part of that kind's line.
pub(crate) fn is_of_transaction(level: &Level, slo: &SloResult) -> bool {
    level.result.by_transaction.iter().any(|transaction| is_kind_of_transaction(&slo.kind, &transaction.kind))
}

/// The lines of these levels; none where their workload has one kind of transaction.
pub(crate) fn lines<'l>(levels: impl Iterator<Item = &'l Level>) -> Vec<Line<'l>> {
    let mut lines = Vec::new();
    for level in levels {
        for transaction in &level.result.by_transaction {
            let mut required =
                level.result.slo.iter().filter(|slo| is_kind_of_transaction(&slo.kind, &transaction.kind));
            lines.push(Line { level, transaction, required: required.next() });
            lines.extend(required.map(|slo| Line { level, transaction, required: Some(slo) }));
        }
    }
    lines
}

/// The names of the cells, after the level's. Requirements have columns where there are any.
pub(crate) fn head(lines: &[Line<'_>]) -> Vec<&'static str> {
    let mut head = vec!["transaction", "TPS", "mix", "average", "max", "90th"];
    if lines.iter().any(|line| line.required.is_some()) {
        head.extend(["required", "measured", "verdict"]);
    }
    head
}

impl Line<'_> {
    /// The cells, after the level's, as [`head`] names them.
    pub(crate) fn cells(&self, head: &[&str]) -> Vec<String> {
        let result = self.transaction;
        // Where none ended, ages of those in flight are known, and no mean.
        let any = result.transactions > 0 || result.latency_ms.lower_bounds_above.is_some();
        let ms = |value: f64| if any && value > 0.0 { milliseconds(value) } else { "–".to_string() };
        // Not all transactions of the level: next to pages these are the statements of a server behind them.
        let all: u64 = self.level.result.by_transaction.iter().map(|kind| kind.transactions).sum();
        let mix = if all > 0 { result.transactions as f64 / all as f64 } else { 0.0 };
        let mut cells = vec![
            result.kind.clone(),
            number(result.transactions_per_s),
            percent(mix),
            ms(result.latency_ms.mean),
            at_least(ms(result.latency_ms.max), result.latency_ms.is_lower_bound(100.0)),
            at_least(ms(result.p90_ms), result.latency_ms.is_lower_bound(90.0)),
        ];
        if head.contains(&"required") {
            cells.extend(match self.required {
                Some(slo) => requirement(slo),
                None => ["–"; 3].map(str::to_string),
            });
        }
        cells
    }
}

/// What is required, what was measured, and the verdict.
pub(crate) fn requirement(slo: &SloResult) -> [String; 3] {
    [
        format!("{} ≤ {}", slo.measure, required_time(slo.required_ms)),
        slo.measured_ms
            .map_or("nothing".to_string(), |measured| at_least(milliseconds(measured), slo.is_lower_bound)),
        match slo.measured_ms {
            _ if slo.held => "PASS",
            Some(measured) if measured <= slo.required_ms && !slo.is_lower_bound => "FAIL: errors",
            _ => "FAIL",
        }
        .to_string(),
    ]
}

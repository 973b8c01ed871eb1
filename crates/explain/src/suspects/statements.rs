//! Which statements the server's work is for.

use super::case::Case;
use super::untraced;
use crate::level::{CONNECT, Level};

/// A kind of statement with a smaller share of the statements' time does not stand out.
const SHARE_MIN: f64 = 0.25;

/// Returns the statement that most of the statements' time was of, as a part of a sentence. The time is the Performance Schema's where it
/// was on, else the load generator's. Empty where none stands out.
pub(super) fn busiest(case: &Case) -> String {
    untraced::main_statement(case).or_else(|| by_load(case)).map_or(String::new(), |text| format!("; {text}"))
}

/// What the executions of one kind of statement took, as the load generator measured it.
pub(super) struct KindTime<'b> {
    pub(super) kind: &'b str,
    pub(super) per_transaction: f64,
    pub(super) mean_ms: f64,
}

impl KindTime<'_> {
    /// Returns the time in a transaction.
    pub(super) fn total_ms(&self) -> f64 {
        self.per_transaction * self.mean_ms
    }
}

/// Returns the times of all kinds at the level with the fewest users; empty where nobody measured them.
pub(super) fn times<'b>(case: &Case<'_, 'b>) -> Vec<KindTime<'b>> {
    let level = unqueued(case);
    let statements =
        level.statements.iter().filter(|statement| statement.kind != CONNECT && statement.mean_ms > 0.0);
    let per_transaction = |count: u64| count as f64 / level.transactions.max(1) as f64;
    statements
        .map(|statement| KindTime {
            kind: &statement.kind,
            per_transaction: per_transaction(statement.count),
            mean_ms: statement.mean_ms,
        })
        .collect()
}

fn by_load(case: &Case) -> Option<String> {
    let (kind, share) = by_time(case).filter(|_| case.level.statements.len() > 1)?;
    (share >= SHARE_MIN).then(|| {
        let level = unqueued(case).name();
        format!("at {level} {} of the statements' time is that of {kind}", whyso_words::percent(share))
    })
}

/// Returns the level with the fewest users: where many queue for a CPU, a short statement waits as long as a long one.
fn unqueued<'a, 'b>(case: &Case<'a, 'b>) -> &'b Level<'a> {
    case.fewest().filter(|level| !level.statements.is_empty()).unwrap_or(case.level)
}

fn by_time<'b>(case: &Case<'_, 'b>) -> Option<(&'b str, f64)> {
    let times = times(case);
    let most = times.iter().max_by(|a, b| a.total_ms().total_cmp(&b.total_ms()))?;
    let share = most.total_ms() / times.iter().map(KindTime::total_ms).sum::<f64>();
    share.is_finite().then_some((most.kind, share))
}

//! Which statements the server's work is for.

use super::case::Case;
use super::untraced;
use crate::level::{CONNECT, Level};
use crate::numbers;

/// A kind of statement with a smaller share of the statements' time does not stand out.
const SHARE_MIN: f64 = 0.25;

/// One with this share decides what a transaction's counters are mostly about.
const DOMINANT_SHARE: f64 = 0.5;

/// Returns the statement that most of the statements' time was of, as a part of a sentence: by the Performance Schema where it was on, or else as the
/// load generator measured it. Empty where none stands out.
pub(super) fn busiest(case: &Case) -> String {
    untraced::main_statement(case).or_else(|| by_load(case)).map_or(String::new(), |text| format!("; {text}"))
}

/// Returns the kind of statement that the load generator spent most of the statements' time on, with its share of that time; `None` where nobody measured
/// it, or none has half of it.
pub(super) fn dominant<'b>(case: &Case<'_, 'b>) -> Option<(&'b str, f64)> {
    by_time(case).filter(|(_, share)| *share >= DOMINANT_SHARE)
}

fn by_load(case: &Case) -> Option<String> {
    let (kind, share) = by_time(case).filter(|_| case.level.statements.len() > 1)?;
    (share >= SHARE_MIN).then(|| {
        let level = unqueued(case).name();
        format!("at {level} {} of the statements' time is that of {kind}", numbers::percent(share))
    })
}

/// Returns the level with the fewest users: where many queue for a CPU, a short statement waits as long as a long one.
fn unqueued<'a, 'b>(case: &Case<'a, 'b>) -> &'b Level<'a> {
    case.fewest().filter(|level| !level.statements.is_empty()).unwrap_or(case.level)
}

fn by_time<'b>(case: &Case<'_, 'b>) -> Option<(&'b str, f64)> {
    let statements = unqueued(case).statements.iter().filter(|one| one.kind != CONNECT);
    let times = || statements.clone().map(|one| (one.kind.as_str(), one.count as f64 * one.mean_ms.max(0.0)));
    let (kind, most_ms) = times().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = most_ms / times().map(|(_, ms)| ms).sum::<f64>();
    share.is_finite().then_some((kind, share))
}

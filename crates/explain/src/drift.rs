//! Did the server change during the run? The best level, once more at the end.

use crate::level::{Level, levels_evidence};
use crate::model::{Drift, Finding};

/// Below this a difference is no drift to anyone, however narrow the intervals.
const DRIFT_MIN: f64 = 0.03;

/// From this on a result is not usable: the level would differ as much from itself as levels differ from each other.
const DRIFT_UNUSABLE: f64 = 0.10;

/// What two levels without intervals may differ by through chance, as for two levels of 10 % noise each.
const UNKNOWN_NOISE: f64 = 0.15;

/// The last repeated level against the first of as many users in the sweep.
fn pair<'a, 'b>(levels: &'b [Level<'a>]) -> Option<(&'b Level<'a>, &'b Level<'a>)> {
    let repeat = levels.iter().rfind(|level| level.repeat && level.verdict.valid && !level.is_unstable())?;
    let first = levels.iter().find(|level| level.counts() && level.users == repeat.users)?;
    Some((first, repeat))
}

pub(crate) fn drift(levels: &[Level]) -> Option<Drift> {
    let (first, repeat) = pair(levels)?;
    let ratio = repeat.per_s() / first.per_s();
    if !ratio.is_finite() {
        return None;
    }
    let significant = match (first.verdict.transactions_per_s_ci95, repeat.verdict.transactions_per_s_ci95) {
        (Some([first_low, first_high]), Some([repeat_low, repeat_high])) => {
            repeat_high < first_low || repeat_low > first_high
        }
        // Too short for an interval.
        _ => (ratio - 1.0).abs() > UNKNOWN_NOISE,
    };
    Some(Drift {
        users: repeat.users,
        first_per_s: first.per_s(),
        repeat_per_s: repeat.per_s(),
        ratio,
        significant,
    })
}

/// Whether the server changed so much that the levels can't be compared with each other.
pub(crate) fn is_large(drift: &Drift) -> bool {
    drift.significant && (drift.ratio - 1.0).abs() >= DRIFT_UNUSABLE
}

/// "throughput drifted: 4 users did 1,200/s and at the end 550/s (−54 %)".
pub(crate) fn in_short(drift: &Drift) -> String {
    let change = drift.ratio - 1.0;
    format!(
        "throughput drifted: {} did {}/s and at the end {}/s ({}{})",
        whyso_words::users(drift.users),
        whyso_words::number(drift.first_per_s),
        whyso_words::number(drift.repeat_per_s),
        if change < 0.0 { "−" } else { "+" },
        whyso_words::percent(change.abs()),
    )
}

pub(crate) fn finding(drift: &Drift, levels: &[Level]) -> Option<Finding> {
    let (first, repeat) = pair(levels)?;
    let change = drift.ratio - 1.0;
    let numbers = format!(
        "{} then {} transactions/s",
        whyso_words::number(drift.first_per_s),
        whyso_words::number(drift.repeat_per_s)
    );
    let users = whyso_words::users(drift.users);
    let text = if drift.significant && change.abs() >= DRIFT_MIN {
        let direction = if change < 0.0 { "slower" } else { "faster" };
        format!(
            "Throughput drifted: the level of {users}, repeated at the end, was {} {direction} ({numbers}). \
             Differences between levels of about that size may be drift rather than an effect of the users.",
            whyso_words::percent(change.abs()),
        )
    } else if change.abs() >= DRIFT_MIN {
        format!(
            "The level of {users}, repeated at the end, gave {numbers} ({}{}); within the noise of the two, so drift can't be distinguished from chance.",
            if change < 0.0 { "−" } else { "+" },
            whyso_words::percent(change.abs()),
        )
    } else {
        format!(
            "No drift to speak of: the level of {users}, repeated at the end, gave {numbers} ({}{}).",
            if change < 0.0 { "−" } else { "+" },
            whyso_words::percent(change.abs()),
        )
    };
    Some(Finding {
        id: "drift".to_string(),
        text,
        evidence: vec![levels_evidence("transactions_per_s", &[first, repeat])],
    })
}

//! A sweep over rates: which of them the server kept up with.

use crate::level::{Level, levels_evidence, names};
use crate::model::Finding;

/// "The server kept up with 500/s and 1,000/s, and not with 2,000/s", without a full stop.
pub(crate) fn in_short(levels: &[Level]) -> String {
    let mut judged: Vec<&Level> =
        levels.iter().filter(|level| level.verdict.valid && !level.repeat).collect();
    judged.sort_by(|a, b| a.rate_per_s.unwrap_or(0.0).total_cmp(&b.rate_per_s.unwrap_or(0.0)));
    let missed = judged.iter().find(|level| !level.rate_held);
    let least_missed = missed.and_then(|level| level.rate_per_s).unwrap_or(f64::INFINITY);
    let held = judged.iter().rfind(|level| level.rate_per_s.is_some_and(|rate| rate < least_missed));
    match (held, missed) {
        (Some(held), Some(missed)) => {
            format!("The server kept up with {}, and not with {}", held.name(), missed.name())
        }
        (Some(held), None) => format!("The server kept up with {}", held.name()),
        (None, Some(_)) => format!("No rate was kept up with: {}", names(&judged)),
        (None, None) => String::new(),
    }
}

/// Up to which rate the server kept up, and what it did of the others.
pub(crate) fn finding(levels: &[Level]) -> Finding {
    let mut judged: Vec<&Level> =
        levels.iter().filter(|level| level.verdict.valid && !level.repeat).collect();
    judged.sort_by(|a, b| a.rate_per_s.unwrap_or(0.0).total_cmp(&b.rate_per_s.unwrap_or(0.0)));
    let (held, missed): (Vec<&Level>, Vec<&Level>) = judged.iter().partition(|level| level.rate_held);
    let mut sentences = Vec::new();
    if judged.is_empty() {
        sentences.push("No level can be judged, so nothing is known of the rates.".to_string());
    }
    if !held.is_empty() {
        let times = match (
            held.first().and_then(|level| level.latency_mean_ms),
            held.last().and_then(|level| level.latency_mean_ms),
        ) {
            (Some(first), Some(last)) if held.len() > 1 => format!(
                "; the mean response time was {} at the lowest of them and {} at the highest",
                whyso_words::amount(first, "ms"),
                whyso_words::amount(last, "ms")
            ),
            (Some(only), _) => format!("; the mean response time was {}", whyso_words::amount(only, "ms")),
            _ => String::new(),
        };
        sentences.push(format!("The server kept up with {}{times}.", names(&held)));
    }
    for level in missed {
        sentences.push(format!(
            "With {} due it did not keep up: it did {}/s, with at most {} at a time, and the backlog grew.",
            level.name(),
            whyso_words::number(level.per_s()),
            whyso_words::whole(u64::from(level.users)),
        ));
    }
    Finding {
        id: "rates".to_string(),
        text: sentences.join(" "),
        evidence: vec![levels_evidence("transactions_per_s", &judged)],
    }
}

#[cfg(test)]
mod tests {
    use crate::explain;
    use crate::model::{Input, LevelInput};

    fn level(index: u32, rate_per_s: f64, did_per_s: u32, rate_held: bool) -> LevelInput {
        LevelInput {
            index,
            users: 128,
            rate_per_s: Some(rate_per_s),
            rate_held,
            end_ns: 10_000_000_000,
            transactions: u64::from(did_per_s) * 10,
            latency_mean_ms: 2.0 + f64::from(index),
            bins_100ms: (0..100).map(|bin| did_per_s / 10 + bin % 3).collect(),
            ..LevelInput::default()
        }
    }

    #[test]
    fn a_sweep_over_rates_shows_which_were_kept_up_with_and_no_peak() {
        let levels =
            vec![level(0, 500.0, 500, true), level(1, 1000.0, 1000, true), level(2, 2000.0, 1500, false)];
        let explained = explain(&Input { levels, ..Input::default() });
        let text = &explained.findings[0].text;
        assert_eq!(
            text,
            "The server kept up with 500/s and 1,000/s; the mean response time was 2 ms at the lowest of them and 3 ms at the \
             highest. With 2,000/s due it did not keep up: it did 1,500/s, with at most 128 at a time, and the backlog grew."
        );
        assert_eq!((explained.peak, explained.usl), (None, None));
    }
}

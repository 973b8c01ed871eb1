//! The answer of `whyso ab`: one sentence, what it is based on, and what else differs.

use serde_json::{Value, json};
use whyso_explain::ab::{AbAnswer, AbMetric, AbOutcome, AbRatio, AbVerdict};
use whyso_words::terminal::escape;
use whyso_words::{count, number, seconds};

/// Columns of the labels.
const LABEL: usize = 10;

/// The answer as text for a terminal.
pub fn ab_text(outcome: &AbOutcome, answer: &AbAnswer) -> String {
    let mut text = format!("{}\n", sentence(outcome, answer));
    let mut line = |label: &str, words: String| text.push_str(&format!("  {label:LABEL$}{words}\n"));
    for metric in &answer.metrics {
        let (label, unit) = label_of(metric);
        line(
            label,
            format!(
                "{:>9} → {:<9} {unit:<6} ×{} ({} to {})",
                number(metric.baseline),
                number(metric.variant),
                factor(metric.ratio.value),
                factor(metric.ratio.low),
                factor(metric.ratio.high)
            ),
        );
    }
    line("design", design(outcome, answer));
    line("holds for", extent(outcome, answer));
    if let Some(next) = next(outcome, answer) {
        line("next", next);
    }
    text
}

/// The answer and all pairs as one JSON object.
pub fn ab_json(outcome: &AbOutcome, answer: &AbAnswer) -> Value {
    json!({
        "sentence": sentence(outcome, answer),
        "baseline": outcome.baseline,
        "variant": outcome.variant,
        "ratio": answer.ratio,
        "verdict": answer.verdict,
        "smallest_detectable": answer.smallest_detectable,
        "design": outcome.design,
        "matters": outcome.matters,
        "users": outcome.users,
        "starts": outcome.starts,
        "contains_starts": answer.contains_starts,
        "window_s": outcome.window_s,
        "cut_s": outcome.cut_s,
        "seconds": outcome.seconds,
        "ended_early": outcome.ended_early,
        "interrupted": outcome.interrupted,
        "carry_over": answer.carry_over,
        "metrics": answer.metrics,
        "pairs": outcome.pairs,
    })
}

/// "B is 1.83 times as fast as A (1.79 to 1.87)."
fn sentence(outcome: &AbOutcome, answer: &AbAnswer) -> String {
    let (baseline, variant) = (escape(&outcome.baseline), escape(&outcome.variant));
    let AbRatio { value, low, high } = answer.ratio;
    let interval = format!("{} to {}", factor(low), factor(high));
    match answer.verdict {
        AbVerdict::Faster => {
            format!("{variant} is {} times as fast as {baseline} ({interval}).", factor(value))
        }
        AbVerdict::Slower => {
            let turned = format!("{} to {}", factor(1.0 / high), factor(1.0 / low));
            format!("{baseline} is {} times as fast as {variant} ({turned}).", factor(1.0 / value))
        }
        AbVerdict::Equivalent => format!(
            "{variant} and {baseline} differ by no more than {} ({interval}).",
            whyso_words::percent(outcome.matters - 1.0)
        ),
        AbVerdict::Undecided if answer.carry_over.is_some() => format!(
            "{variant} and {baseline} can't be compared by windows of {}: each still shows the one before it.",
            seconds(outcome.window_s)
        ),
        AbVerdict::Undecided => format!(
            "It is not sure which of {variant} and {baseline} is faster: ×{} ({interval}).",
            factor(value)
        ),
    }
}

/// A ratio near 1 with three decimals, any other with three digits.
fn factor(value: f64) -> String {
    if (0.9..1.1).contains(&value) { format!("{value:.3}") } else { number(value) }
}

fn label_of(metric: &AbMetric) -> (&'static str, &'static str) {
    match metric.name.as_str() {
        "transactions_per_s" => ("rate", "tps"),
        "p50_ms" => ("median", "ms"),
        "p95_ms" => ("p95", "ms"),
        "p99_ms" => ("p99", "ms"),
        _ => ("cpu", "ms/tx"),
    }
}

fn design(outcome: &AbOutcome, answer: &AbAnswer) -> String {
    let early = if outcome.ended_early { ", ended when it was sure" } else { "" };
    let smallest = match answer.smallest_detectable {
        Some(ratio) => format!("; this many see {} in four of five cases", whyso_words::percent(ratio - 1.0)),
        None => String::new(),
    };
    format!(
        "{}, {}: {} of windows of {} in random order, {} cut off after each switch{early}{smallest}",
        outcome.design.name(),
        users(outcome.users),
        count(answer.pairs as u64, "pair"),
        seconds(outcome.window_s),
        seconds(outcome.cut_s)
    )
}

fn users([baseline, variant]: [u32; 2]) -> String {
    match baseline == variant {
        true => whyso_words::users(baseline),
        false => format!("{baseline} and {}", whyso_words::users(variant)),
    }
}

/// What the interval contains.
fn extent(outcome: &AbOutcome, answer: &AbAnswer) -> String {
    match (answer.contains_starts, outcome.starts) {
        (true, starts) => format!(
            "{}: the interval contains what differs from start to start",
            count(u64::from(starts), "start")
        ),
        (false, 1) => "this start: what differs from start to start is not in the interval".to_string(),
        (false, starts) => format!("these {starts} starts alone: too few for an interval over starts"),
    }
}

fn next(outcome: &AbOutcome, answer: &AbAnswer) -> Option<String> {
    if answer.carry_over.is_some() {
        return Some(format!("longer windows: --window {}", outcome.window_s * 4.0));
    }
    if answer.verdict != AbVerdict::Undecided {
        return None;
    }
    // Widths shrink with the root of the time.
    let half_width = (answer.ratio.high / answer.ratio.low).ln() / 2.0;
    let wanted = answer.ratio.value.ln().abs().max(outcome.matters.ln()) / 2.0;
    let longer = (outcome.seconds * (half_width / wanted).powi(2)).max(outcome.seconds * 2.0);
    let minutes = (longer / 60.0).ceil();
    Some(format!("--seconds {minutes}m would probably decide it"))
}

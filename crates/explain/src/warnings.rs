//! What a reader must know before trusting the numbers: levels that were unstable, stalled, too
//! short or cut short, errors, and what was not measured.

use crate::level::{Level, levels_evidence, levels_of};
use crate::model::{Evidence, Finding, Input, LoopKind, Steadiness};
use whyso_inference::bins::BINS_PER_S;
use whyso_inference::steady;

/// Levels that can't be judged at all, where none can.
pub(crate) fn no_result(levels: &[Level]) -> Finding {
    let text = match levels.iter().any(|level| !level.repeat) {
        false => "Nothing can be explained: no level was measured.".to_string(),
        true => format!("It is unknown where throughput peaks, because {}.", why_no_result(levels)),
    };
    let shown: Vec<&Level> = levels.iter().collect();
    Finding {
        id: "no-result".to_string(),
        text,
        evidence: vec![levels_evidence("transactions_per_s", &shown)],
    }
}

/// "no level can be judged: at 4 users no transaction ended within the window".
pub(crate) fn why_no_result(levels: &[Level]) -> String {
    let mut parts = Vec::new();
    for level in levels.iter().filter(|level| !level.repeat) {
        let why = match level.verdict.invalid_why.as_str() {
            "" => how_unstable(level),
            why => why.to_string(),
        };
        parts.push(format!("at {} {why}", level.name()));
    }
    match parts.is_empty() {
        true => "no level was measured".to_string(),
        false => format!("no level can be judged: {}", parts.join("; ")),
    }
}

pub(crate) fn unstable(levels: &[Level]) -> Option<Finding> {
    let shown: Vec<&Level> = levels.iter().filter(|level| level.is_unstable()).collect();
    let parts: Vec<String> =
        shown.iter().map(|level| format!("{} {}", name(level), how_unstable(level))).collect();
    let has_part = |level: &&Level| level.change.is_some();
    let result = if shown.iter().all(has_part) {
        "the part before counts as the result"
    } else if shown.iter().any(has_part) {
        "the part before a change counts as the result, and elsewhere the mean of the window"
    } else {
        "the result is the mean of the window, and has no interval"
    };
    let left_out = if shown.len() == 1 { "This level is" } else { "These levels are" };
    let text = format!("{}. {left_out} left out of peak and fit; {result}.", sentence(&parts));
    finding("unstable", &shown, "bins_100ms", text)
}

/// "throughput climbed from 10,376/s to 42,072/s".
pub(crate) fn how_unstable(level: &Level) -> String {
    let per_s = whyso_words::number;
    match level.verdict.steadiness {
        Steadiness::UnstableFrom { s } => {
            let (before, after) =
                level.change.map_or((0.0, 0.0), |change| (change.before_per_s, change.after_per_s));
            let s = whyso_words::number(s);
            format!("unstable from {s} s: {}/s before, {}/s after", per_s(before), per_s(after))
        }
        Steadiness::Trend { from_per_s, to_per_s } => {
            let verb = if to_per_s > from_per_s { "climbed" } else { "fell" };
            format!("throughput {verb} from {}/s to {}/s", per_s(from_per_s), per_s(to_per_s))
        }
        Steadiness::StillWarming => {
            "the warm-up ended before throughput was steady, and the window is too short to show that it became so"
                .to_string()
        }
        Steadiness::Steady | Steadiness::TooShort => String::new(),
    }
}

pub(crate) fn stalls(levels: &[Level]) -> Option<Finding> {
    let mut shown = Vec::new();
    let mut parts = Vec::new();
    for level in levels.iter().filter(|level| level.change.is_none()) {
        let Some((begin, length)) = steady::longest_stall(&level.bins) else {
            continue;
        };
        parts.push(format!(
            "{} almost nothing was done for {} s, from {} s on",
            name(level),
            whyso_words::number(length as f64 / BINS_PER_S),
            whyso_words::number(begin as f64 / BINS_PER_S),
        ));
        shown.push(level);
    }
    let text = format!(
        "{} (less than a fifth of the usual throughput). It counts in the average.",
        sentence(&parts)
    );
    finding("stall", &shown, "bins_100ms", text)
}

pub(crate) fn too_short(levels: &[Level]) -> Option<Finding> {
    let shown: Vec<&Level> = levels
        .iter()
        .filter(|level| level.verdict.valid && level.verdict.steadiness == Steadiness::TooShort)
        // What was recorded has no throughput from tenth to tenth of a second, however long it is.
        .filter(|level| level.pacing != LoopKind::Recorded)
        .collect();
    let text = format!(
        "Too short, or with too few transactions, to say whether throughput was steady and how sure its mean is: {}. \
         Measure longer (--seconds).",
        levels_of(&shown),
    );
    finding("too-short", &shown, "bins_100ms", text)
}

pub(crate) fn errors(levels: &[Level]) -> Option<Finding> {
    let shown: Vec<&Level> = levels.iter().filter(|level| level.errors > 0).collect();
    let share = |level: &Level| level.errors as f64 / (level.errors as f64 + level.transactions as f64);
    let worst = shown.iter().copied().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let total: f64 = shown.iter().map(|level| level.errors as f64).sum();
    let text = format!(
        "{} met an error, most often at {}: {} {} for {} transactions that succeeded ({} of all attempts).{}",
        match total {
            1.0 => "One attempt".to_string(),
            _ => format!("{} attempts", whyso_words::number(total)),
        },
        worst.name(),
        whyso_words::whole(worst.errors),
        if worst.errors == 1 { "error" } else { "errors" },
        whyso_words::whole(worst.transactions),
        whyso_words::percent(share(worst)),
        if worst.transactions > 0 {
            " Deadlocks and lock wait timeouts are rolled back and tried again; their time counts in the response time."
        } else {
            ""
        },
    );
    finding("errors", &shown, "errors", text)
}

pub(crate) fn cut_short(levels: &[Level]) -> Option<Finding> {
    let shown: Vec<&Level> = levels.iter().filter(|level| !level.cut_short.is_empty()).collect();
    let parts: Vec<String> = shown
        .iter()
        .map(|level| {
            format!("{} after {} s: {}", name(level), whyso_words::number(level.seconds), level.cut_short)
        })
        .collect();
    finding("cut-short", &shown, "seconds", format!("Ended early: {}.", parts.join("; ")))
}

/// What was not measured, by the input and by the levels.
pub(crate) fn not_measured(input: &Input, levels: &[Level]) -> Option<Finding> {
    let mut parts: Vec<String> = input
        .not_measured
        .iter()
        .map(|line| line.to_string().trim().trim_end_matches('.').to_string())
        .filter(|line| !line.is_empty())
        .collect();
    let mentions_cpu = parts.iter().any(|part| part.to_lowercase().contains("cpu"));
    if !mentions_cpu && !levels.is_empty() && levels.iter().all(|level| level.cpu.is_none()) {
        parts.push("the CPU use of the machine".to_string());
    }
    if !levels.is_empty() && levels.iter().all(|level| level.counters.is_empty()) {
        parts.push(format!("any counter, so that nothing is known of what grows per {}", levels[0].unit()));
    }
    if parts.is_empty() {
        return None;
    }
    Some(Finding {
        id: "not-measured".to_string(),
        text: format!("Not measured: {}.", parts.join("; ")),
        evidence: vec![Evidence::Fact { path: "not_measured".to_string(), value: parts.join("; ") }],
    })
}

fn finding(id: &str, shown: &[&Level], quantity: &str, text: String) -> Option<Finding> {
    if shown.is_empty() {
        return None;
    }
    Some(Finding { id: id.to_string(), text, evidence: vec![levels_evidence(quantity, shown)] })
}

fn name(level: &Level) -> String {
    let again = if level.repeat { " (repeated)" } else { "" };
    format!("at {}{again}", level.name())
}

/// Joined by semicolons, the first letter a capital.
fn sentence(parts: &[String]) -> String {
    let joined = parts.join("; ");
    let mut letters = joined.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => joined,
    }
}

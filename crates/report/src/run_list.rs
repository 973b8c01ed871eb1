//! Recorded runs in a list: a line of each, and what distinguishes it.

use whyso_record::RunSummary;
use whyso_record::run::RunEnd;
use whyso_words::{amount, percent, seconds};

use crate::answer::Answer;
use crate::text::clean;
use crate::text::level::unit_name;

/// Returns one line about a recorded run: its id, what was run on what, its best level, how it ended.
pub fn run_line(summary: &RunSummary) -> String {
    let facts = &summary.facts;
    let best = match &facts.best {
        None => "no level ended".to_string(),
        Some(best) if facts.process.is_some() => seconds(best.seconds),
        Some(best) => {
            let unit = unit_name(facts.is_recorded);
            format!("best {}", amount(best.transactions_per_s, &format!("{unit}s/s")))
        }
    };
    let workload = facts.workload.as_deref().unwrap_or("?");
    let ended = match (&facts.ended, summary.live) {
        (_, true) => "going on".to_string(),
        (Some(RunEnd::Complete { .. }), _) => "complete".to_string(),
        (Some(RunEnd::CutShort { why, .. }), _) => format!("cut short: {}", why.lines().next().unwrap_or("")),
        (None, _) => summary.problem.clone().unwrap_or_else(|| "not finished".to_string()),
    };
    let ended = match &summary.problem {
        Some(problem) if *problem != ended => format!("{ended}; {}", clean(problem)),
        _ => ended,
    };
    let server = match &facts.process {
        Some(name) => name.clone(),
        None => format!("{} {}", facts.flavor, facts.server_version),
    };
    let schema = match &facts.performance_schema {
        Some(words) => format!("; Performance Schema {}", clean(words)),
        None => String::new(),
    };
    format!("{:<24} {workload:<22} {server:<34} {best:<28} {ended}{schema}", summary.id)
}

/// Returns what distinguishes a run, on one line: its name, its tags, what was set, its first cause. Empty where nothing does.
pub fn run_details(summary: &RunSummary, answer: Option<&Answer>) -> String {
    let mut parts = Vec::new();
    if !summary.labels.name.is_empty() {
        parts.push(format!("\u{201c}{}\u{201d}", clean(&summary.labels.name)));
    }
    parts.extend(summary.labels.tags.iter().map(|tag| format!("#{}", clean(tag))));
    if !summary.facts.set.is_empty() {
        parts.push(format!("set {}", clean(&summary.facts.set.join(" "))));
    }
    if let Some(cause) = answer.and_then(|answer| answer.causes.first()) {
        parts.push(format!("{} {}", clean(&cause.words), percent(cause.share)));
    }
    parts.join(" \u{b7} ")
}

/// Whether each of the words occurs in what a list shows of a run, in any case.
pub fn is_found(summary: &RunSummary, answer: Option<&Answer>, words: &str) -> bool {
    let cause = answer.and_then(|answer| answer.causes.first());
    let cause = cause.map_or(String::new(), |cause| format!("{} {}", cause.id.name(), cause.words));
    let text = format!("{} {} {cause}", run_line(summary), run_details(summary, None)).to_lowercase();
    words.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

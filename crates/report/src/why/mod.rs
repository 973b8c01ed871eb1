//! Why a server does not go faster, as `whyso why` prints it: the time budget, and what was found in it.

mod json;
mod table;

pub use json::why_json;

use std::fmt::Write as _;

use whyso_explain::model::{Cause, Evidence, Explanation, Finding, Gain, Possible, Suspect};
use whyso_remedy::track_record;
use whyso_words::{number, percent};

use crate::text::layout::{TEXT_WIDTH, wrapped};
use crate::text::nodes::nodes;
use crate::text::requests::requests;
use crate::text::tiers::tiers;

/// Returns the explanation for people, in as many columns as a terminal has. First comes the budget level by level, then as bars the
/// budget of the level whose cause is asked for, then the sentences.
pub fn why(explanation: &Explanation) -> String {
    if !explanation.processes.is_empty() {
        return crate::processes::processes(explanation);
    }
    let mut out = tiers(&explanation.tiers);
    if !out.is_empty() {
        out.push('\n');
    }
    let logs = requests(&explanation.access_logs);
    if !logs.is_empty() {
        let _ = writeln!(out, "{logs}");
    }
    if explanation.budgets.is_empty() {
        out.push_str("This run was not traced: where the time of a transaction went is not known.\n");
    } else {
        out.push_str(&table::levels(&explanation.budgets));
        if let Some(budget) = table::about(explanation) {
            out.push('\n');
            out.push_str(&table::bars(budget));
            if let Some(activities) = table::activities(budget) {
                out.push('\n');
                out.push_str(&activities);
            }
        }
    }
    out.push('\n');
    let is_told = |finding: &&Finding| {
        finding.id.starts_with("budget")
            || matches!(
                finding.id.as_str(),
                "tier-budget"
                    | "tier-note"
                    | "access-log"
                    | "worker-memory"
                    | "ephemeral-ports"
                    | "pauses"
                    | "watching"
            )
    };
    for finding in explanation.findings.iter().filter(is_told) {
        out.push_str(&wrapped(&finding.text, "  ", TEXT_WIDTH));
    }
    if let Some(limit) = &explanation.limit {
        let _ = write!(out, "\nLimit: {}\n{}", limit.id.name(), indented(&limit.text));
    }
    out.push_str(&suspects(&explanation.suspects));
    out.push_str(&possible(&explanation.possible));
    let nodes = nodes(&explanation.nodes);
    if !nodes.is_empty() {
        let _ = write!(out, "\n{nodes}");
    }
    let of_nodes = explanation.findings.iter().filter(|finding| finding.id == "replication-lag");
    of_nodes.for_each(|finding| out.push_str(&wrapped(&finding.text, "  ", TEXT_WIDTH)));
    out
}

/// Returns each suspect with its share, what would be gained without it, its text, and its evidence.
fn suspects(suspects: &[Suspect]) -> String {
    if suspects.is_empty() {
        return "Nobody is suspected: nothing was measured at that level.\n".to_string();
    }
    let mut out = String::from("\nSuspects\n");
    for (at, suspect) in suspects.iter().enumerate() {
        let name = suspect.id.name();
        let share = match suspect.share > 0.0 {
            true => format!("{} of the response time, {}", percent(suspect.share), suspect.class.name()),
            false => "what it holds was not measured".to_string(),
        };
        let tested = if suspect.predicted_gain.is_some() {
            format!(" ({})", tested(suspect.id))
        } else {
            String::new()
        };
        let then = match (suspect.predicted_gain, suspect.id) {
            (None, _) => String::new(),
            (Some(gain), Cause::Unsaturated) => format!("; {} with more users", estimate(gain)),
            (Some(gain), Cause::Cpu) => format!("; {} with more CPUs", estimate(gain)),
            (Some(gain), _) => format!("; {} without it", estimate(gain)),
        };
        let _ = writeln!(out, "{}. {name}: {share}{then}{tested}", at + 1);
        out.push_str(&indented(&suspect.text));
        let rests_on = evidence(&suspect.evidence);
        if !rests_on.is_empty() {
            out.push_str(&indented(&format!("Evidence: {rests_on}.")));
        }
    }
    out
}

/// "of 4 such estimates, experiments bore out 3"
fn tested(cause: Cause) -> String {
    match track_record(cause) {
        Some(record) => format!("of {} such estimates, experiments bore out {}", record.tests, record.held),
        None => "no experiment has tested such an estimate".to_string(),
    }
}

/// "an estimated 1.9 to 3.7 times the throughput"
fn estimate(gain: Gain) -> String {
    let (low, high) = (number(gain.low), number(gain.high));
    let bounds = if low == high { high } else { format!("{low} to {high}") };
    format!("an estimated {bounds} times the throughput")
}

/// What may be the cause, and was not measured.
fn possible(possible: &[Possible]) -> String {
    if possible.is_empty() {
        return String::new();
    }
    let mut out = String::from("\nPossible, not measured\n");
    for cause in possible {
        let _ = writeln!(out, "- {}", cause.id.name());
        out.push_str(&indented(&cause.text));
        let names = evidence(&cause.evidence);
        if !names.is_empty() {
            out.push_str(&indented(&format!("Evidence: {names}.")));
        }
    }
    out
}

fn indented(text: &str) -> String {
    wrapped(text, "   ", TEXT_WIDTH).replacen(" • ", "   ", 1)
}

/// Names of series, results and settings, each once.
fn evidence(evidence: &[Evidence]) -> String {
    let mut names: Vec<String> = Vec::new();
    for item in evidence {
        let name = match item {
            Evidence::Levels { quantity, .. } => quantity.clone(),
            Evidence::Fact { path, value } => {
                format!("{} = {value}", path.strip_prefix("server.variables.").unwrap_or(path))
            }
            Evidence::Series { series, .. } => {
                format!("{} {} {}", series.source, series.metric, series.instance).trim_end().to_string()
            }
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

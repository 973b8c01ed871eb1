//! Nodes as text.

use super::state::{Applier, Applying, NodeState, StateShare};
use crate::model::Part;

/// States of a thread that a sentence names.
const NAMED_MAX: usize = 3;
/// A smaller share of the time is not named.
const SHARE_MIN: f64 = 0.05;
/// From this share of the time on, one thread is as busy as it can be.
const FULL: f64 = 0.85;
/// Below this share, it did next to nothing.
const IDLE: f64 = 0.1;

/// "replication-2 (replica)"
pub(super) fn names(state: &NodeState) -> String {
    format!("{} ({})", state.name, state.role)
}

/// " Its busiest applier, slave_sql, had work for 91 % of the time: 61 % work on a CPU and 30 % waiting for syncs of files. …"
pub(super) fn applier_words(called: &str, applier: Option<&Applier>, advice: &str) -> String {
    let Some(applier) = applier else { return String::new() };
    let parts: Vec<String> = applier
        .states
        .iter()
        .filter(|state| state.share >= SHARE_MIN)
        .take(NAMED_MAX)
        .map(|StateShare { state, share }| format!("{} {}", whyso_words::percent(*share), state_words(state)))
        .collect();
    let spent = if parts.is_empty() { String::new() } else { format!(": {}", whyso_words::list(&parts)) };
    format!(
        " Its {called}, {}, had work for {} of the time{spent}.{advice}",
        applier.name,
        whyso_words::percent(applier.busy)
    )
}

/// What may be done about appliers that have so much to do, or what kept them from it.
pub(super) fn advice(state: &NodeState) -> String {
    let busy = state.applier.as_ref().map(|applier| applier.busy);
    if busy.is_some_and(|busy| busy >= FULL) {
        return " One thread does no more than that: let more threads apply at the same time.".to_string();
    }
    match &state.applying {
        Some(applying) if busy.is_some() => applying_words(applying),
        None if busy.is_some_and(|busy| busy < IDLE) => {
            " Its appliers slept: record this node by its DSN, and look at their states.".to_string()
        }
        _ => String::new(),
    }
}

/// " The server shows 80 % of its appliers with something to do (24 samples), of these 60 % in the state 'Commit' and 30 % in …."
fn applying_words(applying: &Applying) -> String {
    let samples = whyso_words::count(applying.samples as u64, "sample");
    let states: Vec<String> = applying
        .states
        .iter()
        .filter(|state| state.share >= SHARE_MIN)
        .take(NAMED_MAX)
        .map(|StateShare { state, share }| format!("{} in the state '{state}'", whyso_words::percent(*share)))
        .collect();
    if states.is_empty() {
        return format!(" The server shows its appliers with nothing to do ({samples}).");
    }
    format!(
        " The server shows {} of its appliers with something to do ({samples}), of these {}.",
        whyso_words::percent(applying.busy),
        whyso_words::list(&states)
    )
}

fn state_words(state: &str) -> &'static str {
    Part::ALL.into_iter().find(|part| part.name() == state).unwrap_or(Part::Other).words()
}

//! Nodes as text.

use super::state::{Applier, NodeState, StateShare};
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

/// What may be done about appliers that have so much to do.
pub(super) fn advice(applier: Option<&Applier>) -> &'static str {
    match applier.map(|applier| applier.busy) {
        Some(busy) if busy >= FULL => {
            " One thread does no more than that: let more threads apply at the same time."
        }
        Some(busy) if busy < IDLE => {
            " Its appliers slept: record this node by its DSN, and look at their states."
        }
        _ => "",
    }
}

fn state_words(state: &str) -> &'static str {
    Part::ALL.into_iter().find(|part| part.name() == state).unwrap_or(Part::Other).words()
}

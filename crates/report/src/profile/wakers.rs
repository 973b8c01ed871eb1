//! Who ended the waits, and what those threads do else.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use whyso_explain::profile::{FunctionName, Profile, WakerTime};

use super::{SampledIn, about, clean, in_seconds, percent, words};
use crate::terminal::aligned_with_words;

/// Shares of the states of each role's threads, the largest first.
pub type StatesByRole = BTreeMap<String, Vec<(String, f64)>>;

/// States of a role that are named, and from which share on.
const STATES_MAX: usize = 2;
const STATE_SHARE_MIN: f64 = 0.05;

/// A line for each place of waiting and each place that ended it, `limit` of them at most.
pub fn wakers(
    sampled: SampledIn<'_>,
    profile: &Profile,
    wakers: &[WakerTime],
    states: &StatesByRole,
    limit: usize,
) -> String {
    let total_ns = total(profile, wakers);
    let head = profile.metrics.iter().flat_map(|metric| [format!("{} s", words(metric)), "%".to_string()]);
    let names = ["waited for", "in", "ended by", "in"].map(str::to_string);
    let mut rows = vec![head.chain(names).collect::<Vec<String>>()];
    for one in wakers.iter().take(limit) {
        let times = one.ns.iter().zip(&total_ns);
        let cells = times.flat_map(|(ns, total)| [in_seconds(*ns), percent(*ns, *total)]);
        let role = if one.role.is_empty() { "no thread of the server" } else { &one.role };
        let names = [
            one.class.as_deref().map_or("<no class>".to_string(), words),
            function(one.waited_in.as_ref()),
            role.to_string(),
            function(one.ended_in.as_ref()),
        ];
        rows.push(cells.chain(names).collect());
    }
    let first_word = profile.metrics.len() * 2;
    let table = aligned_with_words(&rows, &(first_word..first_word + 4).collect::<Vec<_>>());
    let mut out = format!("{}\n{table}", about(sampled, profile, &total_ns));
    let left = wakers.len().saturating_sub(limit);
    if left > 0 {
        out.push_str(&format!("and {left} more: --limit N shows N\n"));
    }
    let mut told: Vec<&str> = Vec::new();
    for one in wakers.iter().take(limit) {
        if let Some(spent) = states.get(&one.role).map(|states| spent(states))
            && !told.contains(&one.role.as_str())
        {
            out.push_str(&format!("\n{} threads spent {spent} of that time", one.role));
            told.push(&one.role);
        }
    }
    if !told.is_empty() {
        out.push('\n');
    }
    out
}

/// What `whyso wakers --json` prints. Times are in nanoseconds.
pub fn wakers_json(
    sampled: SampledIn<'_>,
    profile: &Profile,
    wakers: &[WakerTime],
    states: &StatesByRole,
    limit: usize,
) -> Value {
    let name = |function: &Option<FunctionName>| function.as_ref().map(|function| function.name.clone());
    let row = |one: &WakerTime| {
        let ns: serde_json::Map<String, Value> =
            profile.metrics.iter().cloned().zip(one.ns.iter().map(|ns| json!(ns))).collect();
        json!({
            "class": one.class,
            "waited_in": name(&one.waited_in),
            "ended_by": if one.role.is_empty() { None } else { Some(&one.role) },
            "ended_in": name(&one.ended_in),
            "waits": one.waits,
            "ns": ns,
        })
    };
    let states: serde_json::Map<String, Value> = states
        .iter()
        .map(|(role, states)| (role.clone(), json!(states.iter().cloned().collect::<BTreeMap<_, _>>())))
        .collect();
    json!({
        "window": sampled.window,
        "seconds": sampled.seconds,
        "role": sampled.role,
        "whose": sampled.whose,
        "known_share": sampled.known_share,
        "metrics": profile.metrics,
        "wakers": wakers.iter().take(limit).map(row).collect::<Vec<_>>(),
        "state_shares": states,
    })
}

fn total(profile: &Profile, wakers: &[WakerTime]) -> Vec<f64> {
    (0..profile.metrics.len()).map(|place| wakers.iter().filter_map(|one| one.ns.get(place)).sum()).collect()
}

/// "94 % in file sync and 5 % in cpu"
fn spent(states: &[(String, f64)]) -> String {
    let named = states.iter().filter(|(_, share)| *share >= STATE_SHARE_MIN).take(STATES_MAX);
    let told: Vec<String> =
        named.map(|(state, share)| format!("{:.0} % in {}", share * 100.0, words(state))).collect();
    told.join(" and ")
}

fn function(function: Option<&FunctionName>) -> String {
    // Without its parameters, which make a line too long to read.
    let name = function.map_or("", |function| function.name.as_str());
    clean(name.split_once('(').filter(|(name, _)| !name.is_empty()).map_or(name, |(name, _)| name))
}

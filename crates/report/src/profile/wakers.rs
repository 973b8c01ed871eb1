//! Who ended the waits, and what those threads do else.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use whyso_profile::{Deed, FunctionName, Profile, WakerDeeds, WakerTime};
use whyso_words::{list, percent};

use super::json::with_head;
use super::{SampledIn, about, clean, in_seconds, share_number, words};
use crate::text::layout::aligned_with_words;

/// Shares of the states of each role's threads, the largest first.
pub type StatesByRole = BTreeMap<String, Vec<(String, f64)>>;

/// By role and state: the file that is waited for most, and its share of that state.
pub type FilesByRole = BTreeMap<(String, String), (String, f64)>;

/// What else is known of the threads of each role.
#[derive(Clone, Copy, Debug)]
pub struct OfRoles<'a> {
    pub states: &'a StatesByRole,
    pub files: &'a FilesByRole,
}

/// States of a role that are named, and from which share on.
const STATES_MAX: usize = 2;
const STATE_SHARE_MIN: f64 = 0.05;
/// Most lines about what was done while others waited, and the least share of the time that such a line has.
const MEANWHILE_MAX: usize = 6;
const MEANWHILE_SHARE_MIN: f64 = 0.05;
/// Deeds that are named.
const DEEDS_MAX: usize = 4;
/// A file is named for a state if this share of the state is its own.
const FILE_SHARE_MIN: f64 = 0.8;

/// Returns one line for each place of waiting and each place that ended it, `limit` of them at most.
pub fn wakers(
    sampled: SampledIn<'_>,
    profile: &Profile,
    wakers: &[WakerTime],
    of_roles: OfRoles<'_>,
    limit: usize,
) -> String {
    let total_ns = total(profile, wakers);
    let head = profile.metrics.iter().flat_map(|metric| [format!("{} s", words(metric)), "%".to_string()]);
    let names = ["waited for", "in", "ended by", "in"].map(str::to_string);
    let mut rows = vec![head.chain(names).collect::<Vec<String>>()];
    for waker in wakers.iter().take(limit) {
        let times = waker.ns.iter().zip(&total_ns);
        let cells = times.flat_map(|(ns, total)| [in_seconds(*ns), share_number(*ns, *total)]);
        let role = if waker.role.is_empty() { "no thread of the server" } else { &waker.role };
        let names = [
            waker.class.as_deref().map_or("<no class>".to_string(), words),
            function(waker.waited_in.as_ref()),
            role.to_string(),
            function(waker.ended_in.as_ref()),
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
    out.push_str(&meanwhile(wakers, limit, of_roles.files));
    let mut roles_shown: Vec<&str> = Vec::new();
    for waker in wakers.iter().take(limit) {
        if let Some(spent) = of_roles.states.get(&waker.role).map(|states| spent(states))
            && !roles_shown.contains(&waker.role.as_str())
        {
            out.push_str(&format!("\n{} threads spent {spent} of that time", waker.role));
            roles_shown.push(&waker.role);
        }
    }
    if !roles_shown.is_empty() {
        out.push('\n');
    }
    out
}

/// Returns what `whyso wakers --json` prints. Times are in nanoseconds.
pub fn wakers_json(
    sampled: SampledIn<'_>,
    profile: &Profile,
    wakers: &[WakerTime],
    states: &StatesByRole,
    limit: usize,
) -> Value {
    let name = |function: &Option<FunctionName>| function.as_ref().map(|function| function.name.clone());
    let row = |waker: &WakerTime| {
        let ns: serde_json::Map<String, Value> =
            profile.metrics.iter().cloned().zip(waker.ns.iter().map(|ns| json!(ns))).collect();
        json!({
            "class": waker.class,
            "waited_in": name(&waker.waited_in),
            "ended_by": if waker.role.is_empty() { None } else { Some(&waker.role) },
            "ended_in": name(&waker.ended_in),
            "waits": waker.waits,
            "ns": ns,
            "meanwhile": waker.meanwhile.as_ref().map(|meanwhile| deeds_json(&meanwhile.at_once)),
            "in_the_end": waker.meanwhile.as_ref().map(|meanwhile| deeds_json(&meanwhile.in_the_end)),
        })
    };
    let states: serde_json::Map<String, Value> = states
        .iter()
        .map(|(role, states)| (role.clone(), json!(states.iter().cloned().collect::<BTreeMap<_, _>>())))
        .collect();
    let view = json!({
        "wakers": wakers.iter().take(limit).map(row).collect::<Vec<_>>(),
        "state_shares": states,
    });
    with_head(sampled, profile, view)
}

/// What those that ended waits did while they lasted, for the lines with the most time.
fn meanwhile(wakers: &[WakerTime], limit: usize, files: &FilesByRole) -> String {
    let ns = |waker: &WakerTime| waker.ns.iter().sum::<f64>();
    let all: f64 = wakers.iter().map(ns).sum();
    let is_shown = |waker: &&WakerTime| waker.meanwhile.is_some() && ns(waker) >= MEANWHILE_SHARE_MIN * all;
    let mut out = String::new();
    for waker in wakers.iter().take(limit).filter(is_shown).take(MEANWHILE_MAX) {
        let Some(WakerDeeds { at_once, in_the_end }) = &waker.meanwhile else { continue };
        if out.is_empty() {
            out.push_str("\nwhat those that ended the waits did while these lasted\n");
        }
        let place = waker.class.as_deref().map_or_else(|| function(waker.waited_in.as_ref()), words);
        out.push_str(&format!(
            "  {place}, ended by {}: {}\n",
            clean(&waker.role),
            deeds(at_once, &waker.role, files)
        ));
        if in_the_end != at_once {
            let followed = deeds(in_the_end, &waker.role, files);
            out.push_str(&format!("    their own waits followed: {followed}\n"));
        }
    }
    out
}

/// "71 % file sync (ib_logfile0), 20 % cpu, 9 % lock (redo flush)"
fn deeds(shares: &[(Deed, f64)], of: &str, files: &FilesByRole) -> String {
    let named = shares.iter().filter(|(_, share)| *share >= 0.005).take(DEEDS_MAX);
    let mut left = 1.0;
    let mut parts = Vec::new();
    for (deed, share) in named {
        left -= share;
        let state =
            if deed.state.is_empty() { "not recorded so far back".to_string() } else { words(&deed.state) };
        let mut text = format!("{} {state}", percent(*share));
        let file = files.get(&(deed.role.clone(), deed.state.clone()));
        let file =
            file.filter(|(_, share)| *share >= FILE_SHARE_MIN).and_then(|(path, _)| path.rsplit('/').next());
        let notes: Vec<String> =
            deed.class.as_deref().map(words).into_iter().chain(file.map(clean)).collect();
        if !notes.is_empty() {
            text.push_str(&format!(" ({})", notes.join(", ")));
        }
        if deed.role != of {
            text.push_str(&format!(" by {}", if deed.role.is_empty() { "others" } else { &deed.role }));
        }
        parts.push(text);
    }
    if left >= 0.005 {
        parts.push(format!("{} other", percent(left)));
    }
    parts.join(", ")
}

fn deeds_json(shares: &[(Deed, f64)]) -> Value {
    let row = |(deed, share): &(Deed, f64)| {
        json!({
            "role": deed.role,
            "state": if deed.state.is_empty() { None } else { Some(&deed.state) },
            "class": deed.class,
            "share": share,
        })
    };
    shares.iter().map(row).collect()
}

fn total(profile: &Profile, wakers: &[WakerTime]) -> Vec<f64> {
    (0..profile.metrics.len())
        .map(|place| wakers.iter().filter_map(|waker| waker.ns.get(place)).sum())
        .collect()
}

/// "94 % in file sync and 5 % in cpu"
fn spent(states: &[(String, f64)]) -> String {
    let named = states.iter().filter(|(_, share)| *share >= STATE_SHARE_MIN).take(STATES_MAX);
    let parts: Vec<String> =
        named.map(|(state, share)| format!("{} in {}", percent(*share), words(state))).collect();
    list(&parts)
}

fn function(function: Option<&FunctionName>) -> String {
    // Without its parameters, which make a line too long to read.
    let name = function.map_or("", |function| function.name.as_str());
    clean(name.split_once('(').filter(|(name, _)| !name.is_empty()).map_or(name, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deed(role: &str, state: &str, class: Option<&str>) -> Deed {
        Deed { role: role.to_string(), state: state.to_string(), class: class.map(str::to_string) }
    }

    #[test]
    fn those_that_ended_waits_are_shown_with_what_they_did_meanwhile_and_with_the_file() {
        let function =
            |name: &str| Some(FunctionName { name: name.to_string(), module: "mysqld".to_string() });
        let meanwhile = WakerDeeds {
            at_once: vec![
                (deed("connection", "lock", Some("redo_flush")), 0.6),
                (deed("connection", "cpu", None), 0.3),
                (deed("connection", "", None), 0.1),
            ],
            in_the_end: vec![
                (deed("log writer", "file_sync", None), 0.55),
                (deed("connection", "cpu", None), 0.3),
                (deed("connection", "", None), 0.1),
                (deed("log writer", "cpu", None), 0.03),
                (deed("", "lock", None), 0.02),
            ],
        };
        let row = |role: &str, ns: f64, meanwhile| WakerTime {
            class: Some("redo_flush".to_string()),
            waited_in: function("log_write_up_to(unsigned long)"),
            role: role.to_string(),
            ended_in: function("flusher()"),
            waits: 7,
            ns: vec![ns],
            meanwhile,
        };
        let found = [row("connection", 9e9, Some(meanwhile)), row("", 1e9, None)];
        let profile = Profile { metrics: vec!["lock".to_string()], ..Profile::default() };
        let about = SampledIn {
            window: "the recording",
            seconds: 5.0,
            role: "connection",
            whose: "threads of role connection",
            known_share: None,
            known_by: None,
            hidden_share: 0.0,
            part: 1.0,
            samples: 0,
            waits: 14,
            rootless: 0,
            is_light: false,
        };
        let states = StatesByRole::from([(
            "connection".to_string(),
            vec![("lock".to_string(), 0.9), ("cpu".to_string(), 0.1)],
        )]);
        let file = |state: &str| ("log writer".to_string(), state.to_string());
        let files = FilesByRole::from([
            (file("file_sync"), ("/data/ib_logfile0".to_string(), 0.97)),
            (file("file_write"), ("/data/ibdata1".to_string(), 0.5)),
        ]);
        let text = wakers(about, &profile, &found, OfRoles { states: &states, files: &files }, 10);
        let (_, rest) = text.split_once("\n\n").unwrap();
        let (_, rest) = rest.split_once("\n\n").unwrap();
        assert_eq!(
            rest,
            "what those that ended the waits did while these lasted\n\
             \x20 redo flush, ended by connection: 60 % lock (redo flush), 30 % cpu, 10 % not recorded so far back\n\
             \x20   their own waits followed: 55 % file sync (ib_logfile0) by log writer, 30 % cpu, \
             10 % not recorded so far back, 3 % cpu by log writer, 2 % other\n\
             \nconnection threads spent 90 % in lock and 10 % in cpu of that time\n"
        );
    }
}

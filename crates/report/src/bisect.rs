//! Which setting makes the difference between two recordings, as text and as JSON.

use serde_json::{Value, json};
use whyso_remedy::{Bisection, MeasuredGain, SettingDifference};
use whyso_words::terminal::escape;
use whyso_words::{count, number, percent};

/// Settings that are listed.
const LISTED_MAX: usize = 8;

/// The answer, the way to it, and how sure it is.
pub fn bisect_text(found: &Bisection) -> String {
    let mut text = format!("{}\n", sentence(found));
    let mut line = |label: &str, words: String| text.push_str(&format!("  {label:10}{words}\n"));
    if let Some(whole) = found.whole {
        line(
            "all",
            format!(
                "{} of {} make {}",
                count(found.differences.len() as u64, "setting"),
                escape(&found.second),
                factor(whole)
            ),
        );
    }
    for step in &found.steps {
        line("tested", format!("{:>12}  {}", count(step.settings as u64, "setting"), factor(step.gain)));
    }
    if found.version_differs {
        line(
            "note",
            "the versions differ, too: what the build makes is not in this, compare builds with whyso ab --versus --server NAME".to_string(),
        );
    }
    text
}

/// The answer as one JSON object.
pub fn bisect_json(found: &Bisection) -> Value {
    let mut object = json!(found);
    object["sentence"] = Value::String(sentence(found));
    object
}

fn sentence(found: &Bisection) -> String {
    let (first, second) = (escape(&found.first), escape(&found.second));
    if found.differences.is_empty() {
        return format!(
            "{first} and {second} have the same settings: the difference is in the build, the load or the machine."
        );
    }
    match (&found.found[..], found.effect, found.whole) {
        ([], _, _) => format!(
            "The settings do not make the difference: all {} of {second} make {}.",
            found.differences.len(),
            found.whole.map_or("nothing that was measured".to_string(), factor)
        ),
        ([one], Some(effect), _) if found.is_answer => format!(
            "{} makes {} of the difference: {}.",
            change(one),
            found.share.map_or(String::new(), |share| percent(share.clamp(0.0, 1.0))),
            factor(effect)
        ),
        ([one], Some(effect), _) => {
            format!(
                "No setting is surely the one. {} is left, and makes {} alone.",
                change(one),
                factor(effect)
            )
        }
        (group, _, _) => {
            let named: Vec<String> = group.iter().take(LISTED_MAX).map(change).collect();
            let more = if group.len() > LISTED_MAX { ", …" } else { "" };
            format!(
                "{} share the difference: {}{more}.",
                count(group.len() as u64, "setting"),
                named.join(", ")
            )
        }
    }
}

fn change(difference: &SettingDifference) -> String {
    let SettingDifference { name, first, second } = difference;
    format!("{} {} → {}", escape(name), value_text(first), value_text(second))
}

fn value_text(value: &str) -> String {
    if value.is_empty() { "''".to_string() } else { escape(value) }
}

fn factor(gain: MeasuredGain) -> String {
    format!("×{} ({} to {})", number(gain.value), number(gain.low), number(gain.high))
}

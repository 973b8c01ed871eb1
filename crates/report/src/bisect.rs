//! What makes the difference between two recordings, as text and as JSON.

use serde_json::{Value, json};
use whyso_remedy::{Bisection, BuildSearch, Difference, DifferenceKind, MeasuredGain, NotTested};
use whyso_words::terminal::escape;
use whyso_words::{count, milliseconds, number, percent};

/// Settings that are listed.
const LISTED_MAX: usize = 8;
/// Of a setting's value.
const VALUE_LETTERS_MAX: usize = 48;

/// The answer, the way to it, and how sure it is.
pub fn bisect_text(found: &Bisection) -> String {
    let mut text = format!("{}\n", sentence(found));
    let mut line = |label: &str, words: String| text.push_str(&format!("  {label:10}{words}\n"));
    if let Some(whole) = found.whole {
        line(
            "all",
            format!(
                "{} of {} make {}",
                count(tested(found) as u64, "difference"),
                escape(&found.second),
                factor(whole)
            ),
        );
    }
    for NotTested { difference, .. } in &found.not_tested {
        line("left out", format!("{}: the first server does not take it", change(difference)));
    }
    for step in &found.steps {
        line("tested", format!("{:>12}  {}", count(step.settings as u64, "difference"), factor(step.gain)));
    }
    if let Some(builds) = &found.builds {
        for step in &builds.steps {
            line("tested", format!("{} → {}  {}", escape(&step.from), escape(&step.to), factor(step.gain)));
        }
    } else if found.version_differs && !found.is_answer {
        line(
            "note",
            "the versions differ, too: search the builds between them with --builds OLDEST,…,NEWEST"
                .to_string(),
        );
    }
    if let Some(moved) = found.moved {
        line(
            "moved",
            format!(
                "{}: {} of a transaction in {}, {} in {}",
                moved.part.words(),
                milliseconds(moved.first_ms),
                escape(&found.first),
                milliseconds(moved.second_ms),
                escape(&found.second)
            ),
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

/// How many differences were tested.
fn tested(found: &Bisection) -> usize {
    found.differences.len().saturating_sub(found.not_tested.len())
}

fn sentence(found: &Bisection) -> String {
    if let Some(builds) = &found.builds {
        return sentence_of_builds(builds);
    }
    let (first, second) = (escape(&found.first), escape(&found.second));
    if found.differences.is_empty() {
        return format!(
            "{first} and {second} have the same settings and load: the difference is in the build or the machine."
        );
    }
    if tested(found) == 0 {
        return format!(
            "Nothing could be tested: the server of {first} takes none of the {} of {second}.",
            count(found.differences.len() as u64, "value")
        );
    }
    match (&found.found[..], found.effect, found.whole) {
        ([], _, _) => format!(
            "Settings and load do not make the difference: all {} of {second} make {}.",
            tested(found),
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
                "None of them is surely the one. {} is left, and makes {} alone.",
                change(one),
                factor(effect)
            )
        }
        (group, _, _) => {
            let named: Vec<String> = group.iter().take(LISTED_MAX).map(change).collect();
            let more = if group.len() > LISTED_MAX { ", …" } else { "" };
            format!(
                "{} share the difference: {}{more}.",
                count(group.len() as u64, "difference"),
                named.join(", ")
            )
        }
    }
}

fn sentence_of_builds(search: &BuildSearch) -> String {
    match (&search.found, search.effect, search.whole) {
        (Some((from, to)), Some(effect), _) if search.is_answer => format!(
            "The step from {} to {} makes {} of the difference between the builds: {}.",
            escape(from),
            escape(to),
            search.share.map_or(String::new(), |share| percent(share.clamp(0.0, 1.0))),
            factor(effect)
        ),
        (Some((from, to)), _, _) => format!(
            "No single step is surely the one: between {} and {}, several share the difference.",
            escape(from),
            escape(to)
        ),
        (None, _, whole) => format!(
            "The builds do not make the difference: the last one makes {} of the first.",
            whole.map_or("nothing that was measured".to_string(), factor)
        ),
    }
}

fn change(difference: &Difference) -> String {
    let Difference { kind, name, first, second } = difference;
    if *kind == DifferenceKind::Option {
        let text = |value: &str| if value.is_empty() { "its default".to_string() } else { escape(value) };
        return format!("the load's {} {} → {}", escape(name), text(first), text(second));
    }
    format!("{} {} → {}", escape(name), value_text(first), value_text(second))
}

/// Lists of values may be long: JSON has them whole.
fn value_text(value: &str) -> String {
    match value.char_indices().nth(VALUE_LETTERS_MAX) {
        _ if value.is_empty() => "''".to_string(),
        Some((end, _)) => format!("{}…", escape(&value[..end])),
        None => escape(value),
    }
}

fn factor(gain: MeasuredGain) -> String {
    format!("×{} ({} to {})", number(gain.value), number(gain.low), number(gain.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(name: &str, second: &str) -> Difference {
        Difference {
            kind: DifferenceKind::Setting,
            name: name.to_string(),
            first: "0".to_string(),
            second: second.to_string(),
        }
    }

    #[test]
    fn what_the_first_server_does_not_take_is_listed_and_not_counted() {
        let refused = difference("old_mode", &"long,".repeat(50));
        let mut found = Bisection {
            first: "1".to_string(),
            second: "2".to_string(),
            differences: vec![difference("sync_binlog", "1"), refused.clone()],
            not_tested: vec![NotTested { difference: refused, why: "it is unknown".to_string() }],
            whole: Some(MeasuredGain { value: 1.01, low: 0.99, high: 1.03 }),
            ..Bisection::default()
        };
        let text = bisect_text(&found);
        assert!(text.contains("1 difference of 2 make") && text.contains("all 1 of 2 make"), "{text}");
        assert!(text.contains("left out  old_mode 0 → long,long,"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 120), "{text}");
        found.differences.remove(0);
        found.whole = None;
        assert!(bisect_text(&found).starts_with("Nothing could be tested"), "{}", bisect_text(&found));
        assert_eq!(bisect_json(&found)["not_tested"][0]["why"], "it is unknown");
    }
}

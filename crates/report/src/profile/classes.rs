//! Time by wait class.

use serde_json::{Map, Value, json};
use whyso_profile::{ClassTime, Profile};

use super::json::with_head;
use super::{SampledIn, about, in_seconds, share_number, table, words};

/// What stacks without a class are called; on a CPU that is work.
const UNKNOWN: &str = "<no class>";

/// Returns the classes under `<Total>`, each with its time and its share of each metric, and what has none.
pub fn classes(sampled: SampledIn<'_>, profile: &Profile, classes: &[ClassTime]) -> String {
    let total_ns = total(profile, classes);
    let head = profile.metrics.iter().flat_map(|metric| [format!("{} s", words(metric)), "%".to_string()]);
    let mut rows = vec![head.chain(["class".to_string()]).collect::<Vec<String>>()];
    let mut row = |ns: &[f64], class: &str| {
        let cells =
            ns.iter().zip(&total_ns).flat_map(|(ns, total)| [in_seconds(*ns), share_number(*ns, *total)]);
        rows.push(cells.chain([words(class)]).collect());
    };
    row(&total_ns, "<Total>");
    for time in classes {
        row(&time.ns, time.class.as_deref().unwrap_or(UNKNOWN));
    }
    format!("{}\n{}", about(sampled, profile, &total_ns), table(&rows))
}

/// Returns what `whyso classes --json` prints. Times are in nanoseconds.
pub fn classes_json(sampled: SampledIn<'_>, profile: &Profile, classes: &[ClassTime]) -> Value {
    let times = |ns: &[f64]| {
        profile.metrics.iter().cloned().zip(ns.iter().map(|ns| json!(ns))).collect::<Map<_, _>>()
    };
    let row = |time: &ClassTime| json!({"class": time.class, "ns": times(&time.ns)});
    let view = json!({
        "total_ns": times(&total(profile, classes)),
        "classes": classes.iter().map(row).collect::<Vec<_>>(),
    });
    with_head(sampled, profile, view)
}

fn total(profile: &Profile, classes: &[ClassTime]) -> Vec<f64> {
    let sum = |place: usize| classes.iter().filter_map(|time| time.ns.get(place)).sum();
    (0..profile.metrics.len()).map(sum).collect()
}

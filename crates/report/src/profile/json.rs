//! Functions as JSON objects. The names are fixed: other programs rely on them.

use serde_json::{Map, Value, json};
use whyso_profile::{AttributedTime, FunctionTime, Functions, Profile, Relatives};
use whyso_series::KnownBy;

use super::{Relation, SampledIn};

/// Returns what `whyso functions --json` prints. Times are in nanoseconds.
pub fn functions_json(
    sampled: SampledIn<'_>,
    profile: &Profile,
    functions: &Functions,
    limit: usize,
) -> Value {
    let half_ns = profile.half_intervals_ns();
    let half = profile.metrics.iter().zip(half_ns).map(|(metric, ns)| (metric.clone(), json!(ns)));
    let view = json!({
        "samples": sampled.samples,
        "waits": sampled.waits,
        "rootless": sampled.rootless,
        "is_light": sampled.is_light,
        "total": times(profile, &functions.total),
        "total_half_interval_ns": half.collect::<Map<_, _>>(),
        "functions": functions.functions.iter().take(limit).map(|time| function(profile, time)).collect::<Vec<_>>(),
    });
    with_head(sampled, profile, view)
}

/// Returns what `whyso callers --json` and `whyso callees --json` print. Times are in nanoseconds.
pub fn relatives_json(profile: &Profile, relatives: &Relatives, relation: Relation, limit: usize) -> Value {
    let (name, others) = match relation {
        Relation::Callers => ("callers", &relatives.callers),
        Relation::Callees => ("callees", &relatives.callees),
    };
    let other = |relative: &AttributedTime| {
        let mut object = function(profile, &relative.time);
        for (metric, ns) in profile.metrics.iter().zip(&relative.attributed_ns) {
            object[metric]["attributed_ns"] = json!(ns);
        }
        object
    };
    json!({
        "metrics": profile.metrics,
        "function": function(profile, &relatives.function),
        name: others.iter().take(limit).map(other).collect::<Vec<_>>(),
    })
}

/// Puts what every view of a profile begins with before the view's own fields: whose stacks they are, of when, and in which metrics.
pub(super) fn with_head(sampled: SampledIn<'_>, profile: &Profile, view: Value) -> Value {
    let mut head = json!({
        "window": sampled.window,
        "seconds": sampled.seconds,
        "role": sampled.role,
        "whose": sampled.whose,
        "known_share": sampled.known_share,
        "known_by": sampled.known_by.map(KnownBy::name),
        "hidden_share": sampled.hidden_share,
        "metrics": profile.metrics,
    });
    if let (Some(head), Value::Object(view)) = (head.as_object_mut(), view) {
        head.extend(view);
    }
    head
}

fn function(profile: &Profile, time: &FunctionTime) -> Value {
    let mut object = times(profile, time);
    object["name"] = json!(time.function.name);
    object["module"] = json!(time.function.module);
    object
}

fn times(profile: &Profile, time: &FunctionTime) -> Value {
    let pairs = time.exclusive_ns.iter().zip(&time.inclusive_ns);
    let metrics = profile.metrics.iter().zip(pairs);
    let times = metrics.map(|(metric, (exclusive_ns, inclusive_ns))| {
        (metric.clone(), json!({"exclusive_ns": exclusive_ns, "inclusive_ns": inclusive_ns}))
    });
    Value::Object(times.collect())
}

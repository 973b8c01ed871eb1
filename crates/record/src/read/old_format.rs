//! A `run.json` of an older format, rewritten as this version writes it.

use serde_json::{Value, json, to_value};
use whyso_model::{ArrivalRate, Arrivals, Missing, NotMeasured, Pacing, ThinkTime};

use crate::run::FORMAT;

/// The format in which a pacing is a text, and a workload may be an object with a name.
const WITH_PACING_IN_WORDS: u64 = 1;

/// Rewrites a `run.json` of an older format; one that does not name its format is of the first. What can't be converted is listed in
/// `left_out`, and removed.
pub(super) fn convert(run: &mut Value, left_out: &mut Vec<String>) {
    let format = run.get("format").map_or(Some(WITH_PACING_IN_WORDS), Value::as_u64);
    if format != Some(WITH_PACING_IN_WORDS) {
        return;
    }
    if let Some(spec) = run.get_mut("spec").filter(|spec| spec.is_object()) {
        if let Some(name) = spec["workload"].get("name").cloned() {
            spec["workload"] = name;
        }
        convert_pacing(spec, "spec.pacing", left_out);
    }
    let levels = run.get_mut("levels").and_then(Value::as_array_mut);
    for (place, level) in levels.into_iter().flatten().enumerate() {
        if let Some(result) = level.get_mut("result") {
            convert_pacing(result, &format!("levels[{place}].result.pacing"), left_out);
        }
    }
    let lines = run.get_mut("not_measured").and_then(Value::as_array_mut);
    for line in lines.into_iter().flatten() {
        if let Some(not_measured) = line.as_str().and_then(|line| to_value(not_measured_of(line)).ok()) {
            *line = not_measured;
        }
    }
    run["format"] = json!(FORMAT);
}

/// Beginnings of lines about what was not measured, with what they name.
const BEGINNINGS: [(&str, Missing); 19] = [
    ("the time of the server's threads", Missing::ServerThreads),
    ("where requests begin and end", Missing::Requests),
    ("the commands of the server's clients", Missing::Commands),
    ("the connections of ", Missing::ThreadConnections),
    ("which thread works for which", Missing::ConnectionThreads),
    ("where inside the server the time goes", Missing::Stacks),
    ("where inside the server threads wait", Missing::WaitStacks),
    ("the stacks of the server's threads", Missing::ThreadStacks),
    ("the Performance Schema's counts", Missing::PerformanceSchema),
    ("part of what the Performance Schema counts", Missing::PerformanceSchema),
    ("waits by instrument", Missing::InstrumentWaits),
    ("the time of waits by instrument", Missing::InstrumentWaits),
    ("who waits for whom", Missing::RowLockWaits),
    ("waits for metadata locks", Missing::MetadataLockWaits),
    ("which table a metadata lock", Missing::MetadataLockTables),
    ("InnoDB's own count of waits", Missing::InnodbMutexes),
    ("waits for InnoDB's locks", Missing::InnodbMutexes),
    ("the stage", Missing::SessionEvents),
    ("the wait of each session", Missing::SessionEvents),
];

fn not_measured_of(line: &str) -> NotMeasured {
    let named = BEGINNINGS.iter().find(|(beginning, _)| line.starts_with(beginning));
    let of_schema = || line.contains("Performance Schema") || line.contains("performance_schema");
    let source = match named {
        Some((_, source)) => *source,
        None if of_schema() => Missing::PerformanceSchema,
        None => Missing::Other,
    };
    NotMeasured::of_line(source, line)
}

fn convert_pacing(object: &mut Value, path: &str, left_out: &mut Vec<String>) {
    let Some(text) = object.get("pacing").and_then(Value::as_str) else { return };
    let pacing = pacing_of(text);
    if pacing.is_none() && !text.is_empty() {
        left_out.push(format!("{path} ({text:?} is no pacing)"));
    }
    match (pacing.and_then(|pacing| to_value(pacing).ok()), object.as_object_mut()) {
        (Some(pacing), Some(object)) => drop(object.insert("pacing".to_string(), pacing)),
        (None, Some(object)) => drop(object.remove("pacing")),
        (_, None) => {}
    }
}

/// Reads a pacing that is a text, such as "closed loop, think 10 ms on average" or "open loop, 1000/s, poisson".
fn pacing_of(text: &str) -> Option<Pacing> {
    if text == "as it came" {
        return Some(Pacing::Recorded);
    }
    if let Some(rest) = text.strip_prefix("open loop, ") {
        let (rate, arrivals) = rest.rsplit_once(", ")?;
        let arrivals = match arrivals {
            "poisson" => Arrivals::Poisson,
            "uniform" => Arrivals::Uniform,
            _ => return None,
        };
        let per_second = rate.strip_suffix("/s").and_then(|number| number.parse().ok());
        let rate = per_second.map_or_else(|| ArrivalRate::Stages(rate.to_string()), ArrivalRate::PerSecond);
        return Some(Pacing::Open { rate, arrivals });
    }
    let rest = text.strip_prefix("closed loop")?;
    let (think, rest) = match rest.strip_prefix(", think ") {
        Some(rest) => {
            let (mean_ms, rest) = rest.split_once(" ms")?;
            let (is_exponential, rest) = match rest.strip_prefix(" on average") {
                Some(rest) => (true, rest),
                None => (false, rest),
            };
            (Some(ThinkTime { mean_ms: mean_ms.parse().ok()?, is_exponential }), rest)
        }
        None => (None, rest),
    };
    match (rest, rest.strip_prefix(", ")) {
        ("", _) => Some(Pacing::Closed { think, stages: None }),
        (_, Some(stages)) => Some(Pacing::Closed { think, stages: Some(stages.to_string()) }),
        (_, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pacing_in_words_is_read_with_its_parts() {
        let think = |is_exponential| Some(ThinkTime { mean_ms: 2.5, is_exponential });
        let stages = |text: &str| Some(text.to_string());
        let open = |rate| Pacing::Open { rate, arrivals: Arrivals::Poisson };
        for (text, pacing) in [
            ("as it came", Pacing::Recorded),
            ("closed loop", Pacing::default()),
            ("closed loop, think 2.5 ms", Pacing::Closed { think: think(false), stages: None }),
            (
                "closed loop, think 2.5 ms on average, ramp 0..64 30s, hold 60s",
                Pacing::Closed { think: think(true), stages: stages("ramp 0..64 30s, hold 60s") },
            ),
            (
                "closed loop, ramp 0..64 30s, hold 60s",
                Pacing::Closed { think: None, stages: stages("ramp 0..64 30s, hold 60s") },
            ),
            ("open loop, 1000/s, poisson", open(ArrivalRate::PerSecond(1000.0))),
            (
                "open loop, ramp 0..500/s 30s, hold 60s, poisson",
                open(ArrivalRate::Stages("ramp 0..500/s 30s, hold 60s".to_string())),
            ),
        ] {
            assert_eq!(pacing_of(text), Some(pacing), "{text}");
        }
        for text in [
            "",
            "closed",
            "closed loops",
            "open loop, 5/s",
            "open loop, 5/s, now and then",
            "closed loop, think x ms",
        ] {
            assert_eq!(pacing_of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_pacing_is_left_out_and_named() {
        let mut run = json!({
            "spec": {"workload": {"name": "oltp"}, "pacing": "as fast as it goes"},
            "levels": [{"result": {"pacing": ""}}, {"result": {"pacing": "closed loop"}}],
        });
        let mut left_out = Vec::new();
        convert(&mut run, &mut left_out);
        assert_eq!(left_out, ["spec.pacing (\"as fast as it goes\" is no pacing)"]);
        let levels = json!([{"result": {}}, {"result": {"pacing": {"loop": "closed"}}}]);
        assert_eq!(run, json!({"spec": {"workload": "oltp"}, "levels": levels, "format": FORMAT}));
    }
}

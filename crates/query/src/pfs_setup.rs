//! How the Performance Schema was set in a run.

use whyso_explain::model::{Instruments, PfsSetup, Timer};
use whyso_model::{PerformanceSchema, RunSpec};

/// Text for a setup that nobody asked for and of which the recording has nothing else.
const AS_IT_WAS: &str = "as the server had it";

/// Returns how the Performance Schema was set; `None` if the recording has nothing of it.
pub(crate) fn of_run(spec: &RunSpec) -> Option<PfsSetup> {
    let recorded = spec.performance_schema.as_ref()?;
    if recorded.asked.is_none() && recorded.in_force.is_none() {
        return None;
    }
    let in_force = recorded.in_force.clone().unwrap_or_default();
    let timers = in_force.timers_there.iter().map(|timer| Timer {
        name: timer.name.clone(),
        frequency: timer.frequency.map(|number| number as f64),
        resolution: timer.resolution.map(|number| number as f64),
        overhead_cycles: timer.overhead_cycles.map(|number| number as f64),
    });
    let used = in_force.timers.iter().filter_map(|timer| timer.split_once(" by "));
    Some(PfsSetup {
        words: match (&recorded.asked, recorded.words.as_str()) {
            (Some(asked), _) => asked_words(recorded, asked),
            (None, "") => format!("The Performance Schema was {AS_IT_WAS}."),
            (None, words) => format!("The Performance Schema was {words}."),
        },
        asked: recorded.asked.is_some(),
        timers: timers.collect(),
        used: used.map(|(what, timer)| (what.to_string(), timer.to_string())).collect(),
        timed: in_force.timed_instruments.map(|timed| Instruments {
            beginnings: timed.beginnings,
            names: timed.names.into_iter().collect(),
        }),
    })
}

/// Returns what was asked for and what became of it, as the finding has it.
fn asked_words(recorded: &PerformanceSchema, asked: &str) -> String {
    let in_force = recorded.in_force.clone().unwrap_or_default();
    let mut words = format!("The Performance Schema was asked for {asked}");
    words += &match in_force.instruments {
        0 => "; nothing was counted.".to_string(),
        instruments => format!(
            ": {} of {instruments} instruments on, {} of them timed; consumers {}.",
            in_force.enabled,
            in_force.timed,
            if in_force.consumers.is_empty() { "none".to_string() } else { in_force.consumers.join(", ") }
        ),
    };
    let not_taken = recorded.not_taken.len();
    if not_taken > 0 {
        words += &format!(" {not_taken} of the changes were not taken in full by the server.");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_not_asked_for_is_a_setup_too_and_an_old_recording_has_none() {
        let spec = |performance_schema: serde_json::Value| -> RunSpec {
            serde_json::from_value(json!({"performance_schema": performance_schema})).unwrap()
        };
        let recorded = spec(json!({
            "state": "on",
            "words": "as the server had it: on",
            "in_force": {
                "timers": ["wait by CYCLE"],
                "timers_there": [{"name": "CYCLE", "frequency": 3_000_000_000_u64, "resolution": 1, "overhead_cycles": 36}],
                "timed_instruments": {"beginnings": ["wait/"], "names": ["idle"]},
            },
        }));
        let setup = of_run(&recorded).unwrap();
        assert_eq!(
            (setup.asked, setup.words.as_str()),
            (false, "The Performance Schema was as the server had it: on.")
        );
        let timed = setup.timed.unwrap();
        assert!(timed.contains("wait/io/file/a") && timed.contains("idle") && !timed.contains("stage/a"));
        assert_eq!((setup.timers[0].resolution, setup.used["wait"].as_str()), (Some(1.0), "CYCLE"));
        assert_eq!(of_run(&RunSpec::default()), None);
        assert_eq!(of_run(&spec(json!({"state": "unknown", "words": "?"}))), None);
    }
}

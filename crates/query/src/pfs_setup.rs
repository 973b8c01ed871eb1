//! How the Performance Schema was set in a run.

use serde_json::Value;
use whyso_explain::model::{Instruments, PfsSetup, Timer};

/// What is said of a setup that nobody asked for and of which the recording says nothing else.
const AS_IT_WAS: &str = "as the server had it";

/// Reads how the Performance Schema was set; `None` if the recording has nothing of it.
pub(crate) fn of_run(recorded: &Value) -> Option<PfsSetup> {
    let in_force = &recorded["in_force"];
    let asked = recorded["asked"].as_str();
    if asked.is_none() && in_force.is_null() {
        return None;
    }
    let timers = in_force["timers_there"].as_array().into_iter().flatten().map(|timer| Timer {
        name: timer["name"].as_str().unwrap_or_default().to_string(),
        frequency: timer["frequency"].as_f64(),
        resolution: timer["resolution"].as_f64(),
        overhead_cycles: timer["overhead_cycles"].as_f64(),
    });
    let used = list(&in_force["timers"]);
    let used = used.iter().filter_map(|words| words.split_once(" by "));
    let timed = &in_force["timed_instruments"];
    Some(PfsSetup {
        words: match asked {
            Some(asked) => asked_words(recorded, asked),
            None => {
                format!("The Performance Schema was {}.", recorded["words"].as_str().unwrap_or(AS_IT_WAS))
            }
        },
        asked: asked.is_some(),
        timers: timers.collect(),
        used: used.map(|(what, timer)| (what.to_string(), timer.to_string())).collect(),
        timed: timed.is_object().then(|| Instruments {
            beginnings: list(&timed["beginnings"]),
            names: list(&timed["names"]).into_iter().collect(),
        }),
    })
}

fn list(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_string).collect()
}

/// What was asked for and what became of it, as the finding tells it.
fn asked_words(recorded: &Value, asked: &str) -> String {
    let in_force = &recorded["in_force"];
    let number = |name: &str| in_force[name].as_u64().unwrap_or(0);
    let consumers = list(&in_force["consumers"]);
    let mut words = format!("The Performance Schema was asked for {asked}");
    words += &match number("instruments") {
        0 => "; nothing was counted.".to_string(),
        instruments => format!(
            ": {} of {instruments} instruments on, {} of them timed; consumers {}.",
            number("enabled"),
            number("timed"),
            if consumers.is_empty() { "none".to_string() } else { consumers.join(", ") }
        ),
    };
    let not_taken = list(&recorded["not_taken"]).len();
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
    fn what_was_not_asked_for_is_a_setup_too_and_an_old_recording_tells_of_none() {
        let recorded = json!({
            "state": "on",
            "words": "as the server had it: on",
            "in_force": {
                "timers": ["wait by CYCLE"],
                "timers_there": [{"name": "CYCLE", "frequency": 3_000_000_000_u64, "resolution": 1, "overhead_cycles": 36}],
                "timed_instruments": {"beginnings": ["wait/"], "names": ["idle"]},
            },
        });
        let setup = of_run(&recorded).unwrap();
        assert_eq!(
            (setup.asked, setup.words.as_str()),
            (false, "The Performance Schema was as the server had it: on.")
        );
        let timed = setup.timed.unwrap();
        assert!(timed.contains("wait/io/file/a") && timed.contains("idle") && !timed.contains("stage/a"));
        assert_eq!((setup.timers[0].resolution, setup.used["wait"].as_str()), (Some(1.0), "CYCLE"));
        assert_eq!(of_run(&Value::Null), None);
        assert_eq!(of_run(&json!({"state": "unknown", "words": "?"})), None);
    }
}

//! A `run.json` of any version: what this one understands of it, and a text on what it does not.

use serde::de::DeserializeOwned;
use serde_json::Value;
use whyso_model::RunSpec;

use super::old_format;
use crate::run::{FORMAT, Format, RunInfo};

/// This version of whyso.
const THIS: &str = env!("CARGO_PKG_VERSION");
/// Keys of a list that a text names. It only counts the others.
const NAMED_MAX: usize = 6;

/// What is understood of `json`, and what is wrong with it, one sentence each. `name`: of the file, for the sentences.
pub(crate) fn run_of(json: &[u8], name: &str) -> (RunInfo, Vec<String>) {
    let mut value = match serde_json::from_slice::<Value>(json) {
        Ok(value) if value.is_object() => value,
        Ok(_) => return (RunInfo::default(), vec![format!("{name} can't be read: it holds no object")]),
        Err(cause) => return (RunInfo::default(), vec![format!("{name} can't be read: {cause}")]),
    };
    let mut left_out = Vec::new();
    old_format::convert(&mut value, &mut left_out);
    let mut run = serde_json::from_value(value.clone()).unwrap_or_else(|_| understood(&value, &mut left_out));
    if let Some(format) = value.get("format").filter(|format| u32_of(format).is_none()) {
        run.format = Format(u32::MAX);
        left_out.retain(|line| !line.starts_with("format "));
        left_out.push(format!("format {format} is no number"));
    }
    let mut problems = Vec::new();
    problems.extend(newer_words(&run));
    if !left_out.is_empty() {
        problems.push(format!(
            "{name} holds what this version can't read and leaves out: {}",
            some_of(&left_out)
        ));
    }
    let mut unknown = Vec::new();
    if let Ok(understood) = serde_json::to_value(&run) {
        unknown_keys("", &value, &understood, &mut unknown);
        unknown.sort_unstable();
    }
    if !unknown.is_empty() {
        problems.push(format!(
            "{name} holds what this version does not know and does not show: {}",
            some_of(&unknown)
        ));
    }
    (run, problems)
}

/// Text for a recording whose format this version does not know.
pub(crate) fn newer_words(run: &RunInfo) -> Option<String> {
    let format = match run.format.0 {
        u32::MAX => "is none that this one knows".to_string(),
        format => format!("is {format}, and this one reads up to {FORMAT}"),
    };
    run.is_newer().then(|| {
        format!(
            "made by whyso {}, newer than this {THIS}: the recording's format {format}; what is shown is what this version knows of it, and \
             nothing is written to it",
            if run.tool_version.is_empty() { "of an unknown version" } else { &run.tool_version }
        )
    })
}

fn u32_of(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

/// Each part that can be read, the others as in a recording that has just begun.
fn understood(value: &Value, left_out: &mut Vec<String>) -> RunInfo {
    let mut run = RunInfo::default();
    let Ok(mut readable) = serde_json::to_value(&run) else { return run };
    for (key, part) in value.as_object().into_iter().flatten() {
        if readable.get(key).is_none() {
            continue;
        }
        let before = std::mem::replace(&mut readable[key], part.clone());
        match serde_json::from_value::<RunInfo>(readable.clone()) {
            Ok(with) => run = with,
            Err(cause) => {
                readable[key] = before;
                left_out.push(format!("{key} ({cause})"));
            }
        }
    }
    // Of a list, and of the plan, what can be read stays.
    run.spec = of_plan(value, run.spec, left_out);
    run.levels = of_list(value, "levels", run.levels, left_out);
    run.not_measured = of_list(value, "not_measured", run.not_measured, left_out);
    run.actions = of_list(value, "actions", run.actions, left_out);
    run.anchors = of_list(value, "anchors", run.anchors, left_out);
    run
}

fn of_plan(value: &Value, whole: RunSpec, left_out: &mut Vec<String>) -> RunSpec {
    let Some(keys) =
        value["spec"].as_object().filter(|_| left_out.iter().any(|line| line.starts_with("spec (")))
    else {
        return whole;
    };
    left_out.retain(|line| !line.starts_with("spec ("));
    let mut readable = serde_json::Map::new();
    for (key, part) in keys {
        let alone = Value::Object([(key.clone(), part.clone())].into_iter().collect());
        match serde_json::from_value::<RunSpec>(alone) {
            Ok(_) => drop(readable.insert(key.clone(), part.clone())),
            Err(cause) => left_out.push(format!("spec.{key} ({cause})")),
        }
    }
    serde_json::from_value(Value::Object(readable)).unwrap_or(whole)
}

fn of_list<T: DeserializeOwned>(
    value: &Value,
    key: &str,
    whole: Vec<T>,
    left_out: &mut Vec<String>,
) -> Vec<T> {
    let begin = format!("{key} (");
    let Some(list) = value[key].as_array().filter(|_| left_out.iter().any(|line| line.starts_with(&begin)))
    else {
        return whole;
    };
    left_out.retain(|line| !line.starts_with(&begin));
    let mut read = Vec::new();
    for (place, item) in list.iter().enumerate() {
        match serde_json::from_value(item.clone()) {
            Ok(item) => read.push(item),
            Err(cause) => left_out.push(format!("{key}[{place}] ({cause})")),
        }
    }
    read
}

/// Paths of keys that `value` has and `understood`, the same read and written again, has not.
fn unknown_keys(path: &str, value: &Value, understood: &Value, unknown: &mut Vec<String>) {
    match (value, understood) {
        (Value::Object(value), Value::Object(understood)) => {
            for (key, part) in value {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match understood.get(key) {
                    Some(other) => unknown_keys(&path, part, other, unknown),
                    None => unknown.push(path),
                }
            }
        }
        // Of a list that was read in part, nobody knows which is which.
        (Value::Array(value), Value::Array(understood)) if value.len() == understood.len() => {
            for (place, (part, other)) in value.iter().zip(understood).enumerate() {
                unknown_keys(&format!("{path}[{place}]"), part, other, unknown);
            }
        }
        _ => {}
    }
}

fn some_of(list: &[String]) -> String {
    let named: Vec<String> = list
        .iter()
        .take(NAMED_MAX)
        .map(|key| key.chars().filter(|letter| !letter.is_control()).collect())
        .collect();
    match list.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        more => format!("{}, and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whyso_model::performance_schema::PfsState;
    use whyso_model::{Missing, NotMeasured, Pacing};

    use super::*;
    use crate::run::{Level, LevelResult, Purpose, RunEnd, Window};

    fn written() -> Value {
        let level = Level {
            index: 0,
            users: 4,
            purpose: Purpose::Sweep,
            warmup: Window::default(),
            warmup_steady: true,
            window: Window { begin_ns: 1, end_ns: 2 },
            result: LevelResult::default(),
            ended: RunEnd::Complete { at_ns: 2 },
        };
        let run = RunInfo {
            id: "r".to_string(),
            tool_version: "0.1.0".to_string(),
            levels: vec![level.clone(), Level { index: 1, users: 8, ..level }],
            ended: Some(RunEnd::Complete { at_ns: 3 }),
            ..RunInfo::default()
        };
        serde_json::to_value(run).unwrap()
    }

    fn read(value: &Value) -> (RunInfo, Vec<String>) {
        run_of(value.to_string().as_bytes(), "run.json")
    }

    #[test]
    fn a_recording_of_this_version_and_one_without_a_format_are_read_without_a_word() {
        let mut value = written();
        assert_eq!(value["format"], json!(FORMAT));
        assert_eq!(read(&value).1, Vec::<String>::new());
        value.as_object_mut().unwrap().remove("format");
        let (run, problems) = read(&value);
        assert_eq!((run.format, problems), (Format(FORMAT), Vec::new()));
    }

    #[test]
    fn recordings_of_the_first_format_are_read_without_a_word() {
        let (run, problems) = run_of(include_bytes!("../../tests/data/format-1/run.json"), "run.json");
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(run.spec.pacing, Some(Pacing::default()));
        assert_eq!((run.spec.tables, run.spec.users.as_slice()), (Some(2), [1, 4].as_slice()));
        let setup = run.spec.performance_schema.as_ref().unwrap();
        assert_eq!((setup.state, setup.in_force.as_ref().unwrap().timed), (PfsState::On, 284));
        assert!(run.has_light_stacks());

        let missing: Vec<Missing> = run.not_measured.iter().map(|line| line.source).collect();
        assert_eq!(missing, [Missing::WaitStacks, Missing::SessionEvents, Missing::InstrumentWaits]);
        assert_eq!(run.not_measured[0], NotMeasured::wait_stacks());

        let process = include_bytes!("../../tests/data/format-1/record-process.json");
        let (run, problems) = run_of(process, "run.json");
        assert_eq!(problems, Vec::<String>::new());
        assert!(run.levels[0].result.is_recorded());
        assert_eq!(run.process(), Some("web-a6489"));
        assert_eq!(run.format, Format(FORMAT));
    }

    #[test]
    fn of_a_newer_one_is_read_what_can_be_and_reported_what_can_not() {
        let mut value = written();
        value["format"] = json!(FORMAT + 2);
        value["tool_version"] = json!("9.4.0");
        value["weather"] = json!({"wind": 3});
        value["levels"][1]["result"]["smell"] = json!("of roses");
        let (run, problems) = read(&value);
        assert_eq!((run.is_newer(), run.levels.len(), run.id.as_str()), (true, 2, "r"));
        assert!(
            problems[0].starts_with("made by whyso 9.4.0, newer than this ")
                && problems[0].contains(&format!("is {}, and this one reads up to {FORMAT}", FORMAT + 2)),
            "{problems:?}"
        );
        assert!(problems[1].ends_with("does not show: levels[1].result.smell, weather"), "{problems:?}");

        // What has another shape now costs itself alone.
        value["levels"][0]["purpose"] = json!("seance");
        value["host"] = json!("a name alone");
        value["ended"] = json!({"how": "evaporated"});
        value["spec"] = json!({"workload": "oltp", "tables": "many", "weather": 1});
        let (run, problems) = read(&value);
        assert_eq!((run.levels.len(), run.levels[0].users, run.ended), (1, 8, None));
        assert_eq!((run.spec.workload.as_deref(), run.spec.tables), (Some("oltp"), None));
        let left_out = &problems[1];
        for part in ["ended (", "host (", "levels[0] (", "spec.tables ("] {
            assert!(left_out.contains(part), "{left_out}");
        }
        assert!(!left_out.contains("levels[1] ("), "{left_out}");
    }

    #[test]
    fn a_format_that_is_no_number_is_newer_too_and_what_is_no_object_is_no_recording() {
        let mut value = written();
        value["format"] = json!("2b");
        let (run, problems) = read(&value);
        assert!(run.is_newer() && run.levels.len() == 2);
        assert!(problems[0].contains("is none that this one knows"), "{problems:?}");
        assert!(problems[1].contains("format \"2b\" is no number"), "{problems:?}");
        for text in ["[1]", "{", ""] {
            let (run, problems) = run_of(text.as_bytes(), "run.json");
            assert_eq!(run, RunInfo::default());
            assert!(problems[0].starts_with("run.json can't be read"), "{problems:?}");
        }
    }
}

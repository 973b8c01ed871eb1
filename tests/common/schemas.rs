//! Whether an object that was printed keeps to its schema.

use std::path::Path;

use serde_json::Value;

/// What is wrong with an object that names its schema; empty where it keeps to it.
pub(crate) fn problems(object: &Value) -> Vec<String> {
    let Some(name) = object["schema"].as_str() else { return vec!["it names no schema".to_string()] };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(format!("{name}.json"));
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let validator = jsonschema::validator_for(&serde_json::from_slice(&text).unwrap()).unwrap();
    let errors = validator.iter_errors(object);
    errors.map(|error| format!("{name}{}: {error}", error.instance_path())).collect()
}

pub(crate) fn assert_keeps(object: &Value) {
    let problems = problems(object);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

//! The published schemas. That what commands print keeps to them is checked wherever a test reads such an object.

mod common;

use common::schemas::problems;
use common::{Place, json_of, output, text};
use serde_json::{Value, json};

#[test]
fn every_schema_is_one_and_says_what_prints_it() {
    let place = Place::new();
    let listed = text(&output(&mut place.whyso(&["schema"])).stdout);
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 25, "{listed}");
    for name in names {
        let printed = output(&mut place.whyso(&["schema", name]));
        assert!(printed.status.success(), "{name}");
        let schema: Value = serde_json::from_slice(&printed.stdout).unwrap();
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(
            (&schema["title"], &schema["properties"]["schema"]["const"]),
            (&json!(name), &json!(name))
        );
        assert!(schema["description"].as_str().is_some_and(|words| words.contains("whyso ")), "{name}");
    }
    let wrong = output(&mut place.whyso(&["schema", "no-such"]));
    assert!(
        wrong.status.code() == Some(2) && text(&wrong.stderr).contains("lists them"),
        "{}",
        text(&wrong.stderr)
    );
}

#[test]
fn what_does_not_keep_to_a_schema_is_found() {
    let place = Place::new();
    std::fs::create_dir(place.runs()).unwrap();
    let runs = json_of(&output(&mut place.whyso(&["runs", "--json"])));
    assert_eq!(runs, json!({"schema": "runs", "runs": []}));
    assert_eq!(problems(&runs), [] as [String; 0]);
    for wrong in [
        json!({"schema": "runs"}),
        json!({"schema": "runs", "runs": 5}),
        json!({"schema": "runs", "runs": [], "more": 1}),
        json!({"schema": "runs", "runs": [{"run": 5}]}),
    ] {
        assert!(!problems(&wrong).is_empty(), "{wrong}");
    }
}

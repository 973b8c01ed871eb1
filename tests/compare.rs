//! `whyso compare` and `whyso history` on real recordings.

// Runs alone: it judges differences of throughput.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{Place, json_of, output, text};
use serde_json::Value;

/// Measures once on a fresh server, and gives the recording's folder and its throughput.
fn measure(place: &Place, more: &[&str]) -> (String, f64) {
    let servers = place.servers();
    let mut args = vec!["run", "oltp-update-non-index", "--tables", "1", "--users", "2", "--seconds", "1.5"];
    args.extend(["--warmup", "0", "--no-trace", "--no-repeat", "--json"]);
    args.extend(["--server-dir", servers.to_str().unwrap()]);
    args.extend(more);
    let run = json_of(&output(&mut place.whyso(&args)));
    (run["path"].as_str().unwrap().to_string(), run["levels"][0]["transactions_per_s"].as_f64().unwrap())
}

#[test]
#[ignore = "long: make test-hard"]
fn runs_in_turn_are_compared_and_what_can_not_be_compared_is_refused() {
    let place = Place::new();
    let small = ["--rows", "500"];
    let other = ["--rows", "500", "--set", "sync_binlog=7"];
    let (a1, one) = measure(&place, &small);
    let (b1, two) = measure(&place, &other);
    let (b2, three) = measure(&place, &other);
    let (a2, four) = measure(&place, &small);

    let compared = json_of(&output(&mut place.whyso(&["compare", &a2, &a1, "--with", &b1, &b2, "--json"])));
    assert_eq!(compared["method"], "paired", "{compared:#}");
    let row = &compared["rows"][0];
    assert_eq!((&row["users"], compared["rows"].as_array().unwrap().len()), (&2.into(), 1));
    let ratio = ((two / one).ln() / 2.0 + (three / four).ln() / 2.0).exp();
    assert!((row["ratio"].as_f64().unwrap() / ratio - 1.0).abs() < 1e-3, "{ratio}: {row}");
    let [low, high] = [0, 1].map(|end| row["ci95"][end].as_f64().unwrap());
    assert!(
        low <= ratio && ratio <= high && row["p_corrected"].is_number() && row["degrees"] == 1.0,
        "{row}"
    );
    let differing = compared["differing"].as_array().unwrap();
    let names: Vec<&str> = differing.iter().map(|fact| fact["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sync_binlog"], "of two starts nothing else differs: {differing:#?}");
    assert_eq!((&differing[0]["first"][0], &differing[0]["second"][0]), (&"0".into(), &"7".into()));
    assert!(compared["metrics"]["compared"].as_u64().unwrap() > 50, "{:#}", compared["metrics"]);
    for line in compared["metrics"]["lines"].as_array().unwrap() {
        let [low, high] = [0, 1].map(|end| line["ci95"][end].as_f64().unwrap());
        assert!(low > 1.0 || high < 1.0, "{line}");
    }

    let apart = output(&mut place.whyso(&["compare", &a1, &b1, "--with", &a2, &b2, "--markdown"]));
    let apart = text(&apart.stdout);
    assert!(apart.contains("Welch's t test") && apart.contains("several values"), "{apart}");
    let alone = text(&output(&mut place.whyso(&["compare", &a1, &b1, "--metric", "latency_p99_ms"])).stdout);
    assert!(
        alone.contains("p99 ms: second") && alone.contains("says nothing of how starts differ"),
        "{alone}"
    );
    assert!(alone.contains("sync_binlog") && alone.contains("What differs most at 2 users"), "{alone}");

    let (larger, _) = measure(&place, &["--rows", "900"]);
    let refused = |args: &[&str], words: &str| {
        let done = output(&mut place.whyso(args));
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        assert!(text(&done.stderr).contains(words), "{}", text(&done.stderr));
    };
    refused(&["compare", &a1, &larger], "differ in rows (500, 900)");
    refused(&["compare", &a1, &a1], "is named twice");
    refused(&["compare", &a1], "name two runs");
    refused(&["compare", &a1, &b1, "--metric", "tps"], "it is one of transactions_per_s");
    refused(&["compare", &a1, &b1, "--matters=-1"], "--matters");
    let anyway = output(&mut place.whyso(&["compare", &a1, &larger, "--anyway"]));
    assert!(anyway.status.success() && text(&anyway.stdout).contains("work  rows"), "{anyway:?}");

    let history = json_of(&output(&mut place.whyso(&["history", "--json"])));
    let sizes: Vec<usize> = history["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["points"].as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [4, 1], "the setting may change, the data set may not");
    assert_eq!(history["groups"][0]["too_few"], true);
    place.assert_nothing_left();
    assert_history_shows_what_changed(&place, &a1);
}

/// Of sixteen copies of a recording, the last six a fifth slower and by a newer server.
fn assert_history_shows_what_changed(place: &Place, recording: &str) {
    let recorded = fs::read_to_string(PathBuf::from(recording).join("run.json")).unwrap();
    let folder = place.path().join("many");
    for day in 0..16 {
        let mut run: Value = serde_json::from_str(&recorded).unwrap();
        let is_slower = day >= 10;
        run["id"] = format!("day-{day}").into();
        for anchor in run["anchors"].as_array_mut().unwrap() {
            anchor["wall_ns"] = (1_000_000_000_000_i64 * (day + 1)).into();
        }
        let jitter = [1.0, 1.004, 0.997, 1.002, 0.999][day as usize % 5];
        let per_s = 1000.0 * jitter * if is_slower { 0.8 } else { 1.0 };
        run["levels"][0]["result"]["transactions_per_s"] = per_s.into();
        if is_slower {
            run["server"]["version"] = "99.1".into();
        }
        // Named so that the folder's order is not that of time.
        let copy = folder.join(format!("{}", 90 - day));
        fs::create_dir_all(&copy).unwrap();
        fs::write(copy.join("run.json"), run.to_string()).unwrap();
    }
    let many = folder.to_str().unwrap();
    let history = json_of(&output(&mut place.whyso(&["history", many, "--users", "2", "--json"])));
    let steps = history["groups"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 1, "{history:#}");
    let step = &steps[0];
    assert_eq!((&step["last_before"], &step["first_after"]), (&"day-9".into(), &"day-10".into()));
    assert!((step["percent"].as_f64().unwrap() + 20.0).abs() < 0.5, "{step}");
    let changed = step["changed"].as_array().unwrap();
    assert_eq!(
        (changed.len(), &changed[0]["name"], &changed[0]["to"]),
        (1, &"version".into(), &"99.1".into())
    );
    let shown = text(&output(&mut place.whyso(&["history", many])).stdout);
    assert!(shown.contains("Between day-9 and day-10 it became slower"), "{shown}");
    let none = output(&mut place.whyso(&["history", many, "--users", "77"]));
    assert!(none.status.code() == Some(2) && text(&none.stderr).contains("at 77 users"), "{none:?}");
}

#[test]
#[ignore = "long: make test-hard"]
fn windows_of_a_run_are_compared_by_their_parts() {
    let place = Place::new();
    let (servers, knob) = (place.servers(), "max_connections=200");
    let run = json_of(&output(&mut place.whyso(&[
        "run",
        "oltp-point-select",
        "--tables",
        "1",
        "--rows",
        "500",
        "--users",
        "1,4",
        "--seconds",
        "13",
        "--warmup",
        "0",
        "--no-trace",
        "--no-repeat",
        "--json",
        "--set",
        knob,
        "--server-dir",
        servers.to_str().unwrap(),
    ])));
    let path = run["path"].as_str().unwrap();
    let levels = run["levels"].as_array().unwrap();
    let per_s = |level: usize| levels[level]["transactions_per_s"].as_f64().unwrap();
    let [one, four] = [format!("{path}@0s-13s"), format!("{path}@13.5s-26s")];
    let compared = json_of(&output(&mut place.whyso(&["compare", &one, &four, "--json"])));
    // Whether seconds of so short a level are too much alike for an interval is up to the machine; then the comparison reports it.
    let has_interval = compared["method"] == "welch";
    let why = compared["why"].as_str().unwrap();
    assert_eq!(compared["of"], "parts", "{compared:#}");
    assert_eq!(has_interval, compared["rows"][0]["ci95"].is_array(), "{compared:#}");
    assert!(has_interval || why.contains("no interval"), "{compared:#}");
    let row = &compared["rows"][0];
    let (first, second) = (row["first"]["mean"].as_f64().unwrap(), row["second"]["mean"].as_f64().unwrap());
    // The first window is the first level; the second lies within the other.
    assert!((first / per_s(0) - 1.0).abs() < 0.05, "{first} of {}", per_s(0));
    assert!((second / per_s(1) - 1.0).abs() < 0.25, "{second} of {}", per_s(1));
    assert!(compared["differing"].as_array().unwrap().is_empty(), "one run: {:#}", compared["differing"]);
    let metrics = &compared["metrics"];
    assert!(metrics["compared"].as_u64().unwrap() > 50, "{metrics:#}");
    let comparison = text(&output(&mut place.whyso(&["compare", &one, &four])).stdout);
    assert_eq!(comparison.contains("2 and 2 parts"), has_interval, "{comparison}");
    assert!(comparison.contains("What differs most between the windows"), "{comparison}");

    let refused = |first: &str, second: &str, words: &str| {
        let done = output(&mut place.whyso(&["compare", first, second]));
        assert_eq!(done.status.code(), Some(2), "{done:?}");
        assert!(text(&done.stderr).contains(words), "{}", text(&done.stderr));
    };
    refused(&one, &format!("{path}@5-15"), "overlap");
    refused(&one, &format!("{path}@2:00:00-2:00:05"), "nothing was recorded in");
}

//! `whyso run --url`: a load on a small site, recorded.

mod common;

use std::fs;

use common::site::Site;
use common::{Place, output, text};
use serde_json::Value;

const PAGES: &str = "[[page]]\nname = 'quick'\npath = '/'\ngoal_ms = 10000\nweight = 3\n\
                     [[page]]\nname = 'late'\npath = '/slow?ms=50'\ngoal_ms = 10\n";

/// A run of these pages, with ramps of a second.
fn run(place: &Place, site: &Site, more: &[&str]) -> (Option<i32>, Value) {
    fs::write(place.path().join("shop.toml"), PAGES).unwrap();
    let args =
        ["run", "shop.toml", "--url", &site.url, "--seconds", "2", "--warmup", "1", "--ramp-down", "1"];
    let out = output(&mut place.whyso(&[&args[..], &["--json"], more].concat()));
    let shown = serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&out.stdout), text(&out.stderr)));
    (out.status.code(), shown)
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no whole number"))
}

fn run_json(place: &Place) -> Value {
    serde_json::from_str(&fs::read_to_string(place.only_run().join("run.json")).unwrap()).unwrap()
}

#[test]
fn the_whole_load_is_recorded_and_the_steady_time_counts() {
    let (place, site) = (Place::new(), Site::start());
    let (status, shown) = run(&place, &site, &["--users", "4"]);
    // One of the two pages misses its goal.
    assert_eq!(status, Some(1), "{shown}");
    let recorded = run_json(&place);
    let title = format!("shop.toml at {}/", site.url);
    assert_eq!(recorded["spec"]["workload"], title.as_str());
    let level = &recorded["levels"][0];
    assert_eq!((whole(&level["users"]), level["result"]["workload"].as_str()), (4, Some(title.as_str())));
    let steady_s = level["result"]["seconds"].as_f64().unwrap();
    assert!((1.9..3.5).contains(&steady_s), "{steady_s}");
    let ramp_up_ns =
        level["warmup"]["end_ns"].as_i64().unwrap() - level["warmup"]["begin_ns"].as_i64().unwrap();
    assert!(ramp_up_ns >= 990_000_000, "{ramp_up_ns}");
    let pages = level["result"]["by_transaction"].as_array().unwrap();
    let counts: Vec<u64> = pages.iter().map(|page| whole(&page["transactions"])).collect();
    assert!(counts.len() == 2 && counts.iter().all(|count| *count > 3), "{pages:?}");
    // The ramps are no part of it: the site was asked for more.
    let asked = site.count(&place, "GET /slow") + site.count(&place, "GET /");
    assert!(asked > counts.iter().sum::<u64>(), "{asked} and {counts:?}");
    let held: Vec<bool> =
        level["result"]["slo"].as_array().unwrap().iter().map(|slo| slo["held"] == true).collect();
    assert_eq!(held, [true, false]);

    let path = place.only_run();
    let path = path.to_str().unwrap();
    let why = text(&output(&mut place.whyso(&["why", path])).stdout);
    for word in ["quick", "late", "PASS", "FAIL", "90th"] {
        assert!(why.contains(word), "{word}: {why}");
    }
    let why: Value =
        serde_json::from_slice(&output(&mut place.whyso(&["why", path, "--json"])).stdout).unwrap();
    assert_eq!(why["pages"][1]["page"], "late");
    assert_eq!(why["pages"][1]["holds"], false);
    assert_eq!(whole(&why["pages"][0]["count"]), counts[0]);
    let page = fs::read_to_string(place.only_run().join("report.html")).unwrap();
    assert!(page.contains("shop.toml at http"));
    let markdown = text(&output(&mut place.whyso(&["report", path, "--format", "md"])).stdout);
    assert!(markdown.contains("| late |"), "{markdown}");
    // Throughput and times per second, for charts.
    assert!(place.only_run().join("load-000001.parquet").exists());
}

#[test]
fn levels_of_users_follow_each_other_in_one_recording() {
    let (place, site) = (Place::new(), Site::start());
    let url = format!("{}/slow?ms=20", site.url);
    let args = ["run", "--url", &url, "--users", "1,4", "--seconds", "1", "--warmup", "0", "--json"];
    let out = output(&mut place.whyso(&args));
    assert!(out.status.success(), "{}", text(&out.stderr));
    let recorded = run_json(&place);
    let levels = recorded["levels"].as_array().unwrap();
    assert_eq!(levels.iter().map(|level| whole(&level["users"])).collect::<Vec<_>>(), [1, 4]);
    for level in levels {
        // Each waits 20 ms for a page.
        let most =
            whole(&level["users"]) as f64 * (level["result"]["seconds"].as_f64().unwrap() / 0.02 + 1.0);
        let count = whole(&level["result"]["transactions"]) as f64;
        assert!(count > 3.0 && count <= most, "{count} of {most}");
    }
    assert_eq!(recorded["spec"]["workload"], url.as_str());
}

#[test]
fn processes_that_are_named_are_recorded_with_the_load() {
    if !common::may_trace() {
        return;
    }
    let (place, site) = (Place::new(), Site::start());
    let (_, shown) = run(&place, &site, &["--users", "2", "--process", &site.pid().to_string()]);
    assert!(shown["process"].as_str().unwrap().contains("python3"), "{}", shown["process"]);
    let recorded = run_json(&place);
    assert_eq!(recorded["levels"][0]["result"]["by_transaction"].as_array().unwrap().len(), 2);
    // The site's own time was traced in the steady time.
    let path = place.only_run();
    let why = output(&mut place.whyso(&["why", path.to_str().unwrap(), "--json"]));
    let why: Value = serde_json::from_slice(&why.stdout).unwrap();
    assert!(!why["processes"].as_array().unwrap().is_empty(), "{why}");
}

#[test]
fn what_a_recorded_load_of_a_site_does_not_have_is_refused_in_a_sentence() {
    let (place, site) = (Place::new(), Site::start());
    let refused = |args: &[&str]| {
        let out = output(&mut place.whyso(args));
        assert!(!out.status.success(), "{args:?}");
        text(&out.stderr)
    };
    for (name, value) in [("--tables", "2"), ("--at", "1"), ("--set", "a=1"), ("--rand-type", "uniform")] {
        let more = if name == "--at" { vec![name, value, "restart"] } else { vec![name, value] };
        let text = refused(&[&["run", "--url", &site.url][..], &more].concat());
        assert!(text.contains(&format!("'{name}")) && text.contains("--url"), "{name}: {text}");
    }
    assert!(refused(&["run", "shop.toml"]).contains("--url"));
    assert!(refused(&["run", "--process", "1"]).contains("--url"));
    assert!(refused(&["run", "--url", "http://127.0.0.1:1/"]).contains("check that the server runs"));
    assert!(refused(&["run", "--url", &site.url, "--seconds", "0"]).contains("--seconds"));
    assert!(!place.runs().exists(), "nothing is recorded of a load that can't begin");
}

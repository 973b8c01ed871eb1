//! `whyso load --url` over time: a search for capacity, stages and cycles, against what their schedules allow.

mod common;

use std::fs;

use common::Place;
use common::site::Site;
use serde_json::Value;

/// Time of the page that these tests ask for.
const PAGE_S: f64 = 0.05;

fn transactions(out: &Value) -> f64 {
    assert_eq!(out["levels"][0]["errors"], 0, "{out}");
    out["levels"][0]["transactions"].as_f64().unwrap()
}

/// The level's window, in seconds: not shorter than was asked for.
fn seconds(out: &Value) -> f64 {
    out["levels"][0]["seconds"].as_f64().unwrap()
}

#[test]
#[ignore = "long: make test-hard"]
fn the_capacity_of_a_site_is_at_most_what_its_users_can_ask_for() {
    let (place, site) = (Place::new(), Site::start());
    let pages = "[[page]]\nname = 'slow'\npath = '/slow?ms=50'\ngoal_ms = 400\n";
    fs::write(place.path().join("slow.toml"), pages).unwrap();
    let users = 4.0;
    let args = ["slow.toml", "--find-capacity", "--users", "4", "--rate", "20", "--seconds", "2"];
    let out = site.load(&place, "/", &args);
    let capacity = &out["capacity"];
    let holds_per_s = capacity["holds_per_s"].as_f64().unwrap_or_else(|| panic!("{capacity}"));
    let fails_per_s = capacity["fails_per_s"].as_f64().unwrap_or_else(|| panic!("{capacity}"));
    // Four users that wait 50 ms for each page ask for 80 per second at most. A short probe may begin with none waiting.
    let most_per_s = users / PAGE_S;
    assert!(holds_per_s <= most_per_s * 1.25 && holds_per_s < fails_per_s, "{capacity}");
    // How much lower it is depends on this machine's other work: probes that the generator itself did not keep up with do not hold.
    assert!(holds_per_s > 0.0, "{capacity}");
    let probes = capacity["probes"].as_array().unwrap();
    assert!(probes.len() >= 2 && probes.iter().any(|probe| probe["held"] == false), "{capacity}");
    // Each probe asked for what was due in its window, and no more.
    for probe in probes {
        let level = &out["levels"][probe["level"].as_u64().unwrap() as usize];
        let due = level["arrivals"]["due"].as_f64().unwrap();
        let expected = probe["rate_per_s"].as_f64().unwrap() * level["seconds"].as_f64().unwrap();
        assert!((due - expected).abs() <= 6.0 * expected.sqrt() + 1.0, "{due} of {expected}: {probe}");
    }
}

#[test]
fn stages_of_users_ask_for_what_their_users_can_ask_for() {
    let (place, site) = (Place::new(), Site::start());
    let stages = ["--stages", "ramp 0..4 2s, hold 2s, ramp 0 2s", "--csv", "pages.csv", "--seconds"];
    // `--seconds` has no place next to `--stages`: the stages have their own.
    let out = site.run(&place, "/slow?ms=50", &stages[..4]);
    assert_eq!(out.status.code(), Some(2));
    let url = format!("{}/slow?ms=50", site.url);
    let args = [&["load", "--url", &url, "--json"][..], &stages[..4]].concat();
    let out = common::output(&mut place.whyso(&args));
    assert!(out.status.success(), "{}", common::text(&out.stderr));
    let out: Value = serde_json::from_slice(&out.stdout).unwrap();
    // Users at work times seconds: 5 in each ramp, as each user is at work from the begin of its step, and 8 between them. Each begins at
    // most one page more than fits.
    let most = 18.0 / PAGE_S + 4.0;
    let count = transactions(&out);
    assert!(count <= most && count >= most / 4.0, "{count} of {most}");
    assert!((6.0..9.0).contains(&seconds(&out)), "{}", seconds(&out));
    let asked = site.count(&place, "GET /slow") as f64;
    assert!((count..=count + 4.0).contains(&asked), "{count} counted, {asked} asked");
    // A line per second, and one more for each kind.
    let csv = fs::read_to_string(place.path().join("pages.csv")).unwrap();
    assert!(csv.lines().count() > 6, "{csv}");
}

#[test]
fn stages_of_rates_ask_when_pages_are_due() {
    let (place, site) = (Place::new(), Site::start());
    let url = format!("{}/", site.url);
    let args = ["load", "--url", &url, "--json", "--users", "8", "--arrivals", "uniform", "--stages"];
    let args = [&args[..], &["ramp 0/s..40/s 2s, hold 40/s 2s"]].concat();
    let out = common::output(&mut place.whyso(&args));
    assert_eq!(out.status.code(), Some(2), "a hold has no number");
    let stages = "ramp 0/s..40/s 2s, hold 2s";
    let args = [&args[..args.len() - 1], &[stages]].concat();
    let out = common::output(&mut place.whyso(&args));
    assert!(out.status.success(), "{}", common::text(&out.stderr));
    let out: Value = serde_json::from_slice(&out.stdout).unwrap();
    // 40 in the ramp and 80 after it; the last one may still be under way.
    let due = out["levels"][0]["arrivals"]["due"].as_f64().unwrap();
    let allowed = 120.0 + (seconds(&out) - 4.0) * 40.0;
    assert!((118.0..=allowed + 2.0).contains(&due), "{due} of {allowed}");
    assert!(transactions(&out) <= due, "{out}");
}

#[test]
fn a_cycle_is_the_least_time_between_two_pages_of_a_user() {
    let (place, site) = (Place::new(), Site::start());
    let (users, window_s) = (3.0, 2.0);
    // A page that is quicker than its cycle, and one that is slower.
    for (ms, cycle_s) in [(0.0, 0.2), (300.0, 0.2)] {
        let pages = format!("cycle = '200ms'\n[[page]]\nname = 'a'\npath = '/slow?ms={ms}'\n");
        fs::write(place.path().join("cycle.toml"), pages).unwrap();
        let out = site.load(&place, "/", &["cycle.toml", "--users", "3", "--seconds", "2"]);
        let each_s: f64 = (ms / 1e3_f64).max(cycle_s);
        let most = users * (seconds(&out) / each_s + 1.0);
        let count = transactions(&out);
        assert!(count <= most, "{count} of {most} with {ms} ms");
        assert!(count >= users * (window_s / each_s - 1.0) / 2.0, "{count} with {ms} ms");
    }
}

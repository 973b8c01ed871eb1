//! Threads that pause periodically, from a load that pauses to the sentence that says so.

// Runs alone: it judges periods of pauses.

mod common;

use std::fs;

use common::{Place, json_of, output, text};
use serde_json::Value;

/// One transaction of two statements, with a pause between them.
const PAUSING: &str = "SELECT 1;\n\\sleep 400 ms\nSELECT 2;\n";

#[test]
#[ignore = "long: make test-hard"]
fn a_load_that_pauses_within_its_transactions_is_found_and_its_threads_are_listed() {
    let place = Place::new();
    let servers = place.servers();
    fs::write(place.path().join("pausing.sql"), PAUSING).unwrap();
    let args = ["run", "pausing.sql", "--users", "4", "--seconds", "5", "--warmup", "1", "--json"];
    let out = json_of(&output(place.whyso(&args).args(["--server-dir", servers.to_str().unwrap()])));
    let findings = out["findings"].as_array().unwrap();
    let of = |id: &str| findings.iter().filter(|finding| finding["id"] == id).collect::<Vec<_>>();
    let not_measured =
        of("not-measured").iter().map(|finding| finding["text"].to_string()).collect::<String>();
    if not_measured.contains("where requests begin and end") || not_measured.contains("server's threads") {
        whyso_testing::tracer_not_tested(not_measured);
        return;
    }

    // Where much else runs, a thread may miss the pattern, and waits last longer.
    let found = *of("pauses").first().unwrap_or_else(|| panic!("no finding of pauses: {findings:?}"));
    let finding_text = found["text"].as_str().unwrap();
    let rest = finding_text.strip_prefix("At 4 users ").unwrap_or_else(|| panic!("{finding_text}"));
    let (pausing, rest) =
        rest.split_once(" of 4 connection threads wait 4").unwrap_or_else(|| panic!("{finding_text}"));
    let pausing: usize = pausing.parse().unwrap();
    assert!(pausing >= 2 && rest[2..].starts_with(" ms (± "), "{finding_text}");
    assert!(
        finding_text.contains("for their next command (in p") && finding_text.contains("poll)"),
        "{finding_text}"
    );
    assert!(
        finding_text.contains("the load generator had the answers and held the next command"),
        "{finding_text}"
    );
    let series = |evidence: &Value| evidence["series"]["metric"].as_str().map(str::to_string);
    let rests_on: Vec<_> = found["evidence"].as_array().unwrap().iter().filter_map(series).collect();
    assert_eq!(rests_on, ["net_receive_ns", "client_held_ns"]);

    let run = place.only_run();
    let run = run.to_str().unwrap();
    let why = json_of(&output(&mut place.whyso(&["why", run, "--json"])));
    assert_eq!(why["pauses"][0]["text"].as_str(), Some(finding_text));
    let shown = text(&output(&mut place.whyso(&["why", run])).stdout);
    assert!(shown.contains(" of 4 connection threads wait 4"), "{shown}");
    let markdown = text(&output(&mut place.whyso(&["report", run, "--format", "md"])).stdout);
    assert!(markdown.contains(" of 4 connection threads wait 4"), "{markdown}");

    let threads = text(&output(&mut place.whyso(&["threads", run])).stdout);
    let (_, pauses) = threads.split_once("\nPauses\n").expect("a section of pauses");
    assert!(pauses.matches("next command").count() >= pausing, "{pauses}");
    let nobody = text(&output(&mut place.whyso(&["threads", run, "--role", "other"])).stdout);
    assert!(!nobody.contains("next command"), "{nobody}");
    place.assert_nothing_left();
}

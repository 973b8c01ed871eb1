//! Notes on a recording: while it goes on, and when it has ended.

mod common;

use std::time::Duration;

use common::{OwnServer, Place, finish, output, spawn, text, wait_until};

const BOUND: Duration = Duration::from_secs(60);

#[test]
fn a_note_lands_on_the_run_that_goes_on_and_on_one_that_ended() {
    let place = Place::new();
    let nothing = output(&mut place.whyso(&["note", "too early"]));
    assert!(text(&nothing.stderr).contains("no run is being recorded"), "{nothing:?}");
    assert_eq!(nothing.status.code(), Some(2));

    let server = OwnServer::start();
    let dsn = server.dsn("root", "");
    let child = spawn(&mut place.whyso(&["record", "--dsn", &dsn, "--for", "5s", "--no-trace"]));
    let write_note = || output(&mut place.whyso(&["note", "switched the <RAID> cache off"]));
    assert!(wait_until(BOUND, || write_note().status.success()), "{:?}", write_note());
    let done = finish(child, BOUND);
    assert!(done.status.success(), "{done:?}");

    let run = place.only_run();
    let run = run.to_str().unwrap();
    let ended = output(&mut place.whyso(&["note", "now", run]));
    assert!(text(&ended.stderr).contains("say with --at"), "{ended:?}");
    let later = output(&mut place.whyso(&["note", "the batch began", run, "--at", "0:02"]));
    assert!(later.status.success(), "{later:?}");
    let wrong = output(&mut place.whyso(&["note", "x", run, "--at", "noon"]));
    assert!(text(&wrong.stderr).contains("such as 90s or 1:10"), "{wrong:?}");

    let notes = |more: &[&str]| {
        let done = output(&mut place.whyso(&[&["runs", "notes", run], more].concat()));
        (done.status.code(), text(&done.stdout) + &text(&done.stderr))
    };
    let (_, listed) = notes(&[]);
    assert!(listed.contains("  1  ") && listed.contains("the batch began"), "{listed}");
    let batch = if listed.find("the batch") < listed.find("switched") { "1" } else { "2" };
    let (code, changed) = notes(&["--edit", batch, "the batch began, with 4 workers"]);
    assert!(code == Some(0) && changed.contains("with 4 workers"), "{changed}");
    for (more, why) in [
        (&["--rm", "3"][..], "there is no note 3: the run has 2 notes"),
        (&["--edit", "x", "y"][..], "no number of a note"),
        (&["--edit", "1", " "][..], "the note needs a text"),
    ] {
        let (code, answer) = notes(more);
        assert!(code == Some(2) && answer.contains(why), "{answer}");
    }
    let added = output(&mut place.whyso(&["note", "a mistake", run, "--at", "0:03"]));
    assert!(added.status.success(), "{added:?}");
    let json: serde_json::Value = serde_json::from_str(&notes(&["--json"]).1).unwrap();
    let mistake = json["notes"].as_array().unwrap().iter().find(|note| note["text"] == "a mistake").unwrap();
    let (code, left) = notes(&["--rm", &mistake["number"].to_string()]);
    assert!(code == Some(0) && !left.contains("a mistake") && left.lines().count() == 2, "{left}");

    let report = place.path().join("report.html");
    let report_output = output(&mut place.whyso(&["report", run, "-o", report.to_str().unwrap()]));
    assert!(report_output.status.success(), "{report_output:?}");
    let page = std::fs::read_to_string(&report).unwrap();
    for note in ["switched the \\u003cRAID> cache off", "the batch began"] {
        assert!(page.contains(note), "the page has no {note:?}");
    }
}

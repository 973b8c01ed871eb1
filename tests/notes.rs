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

    let report = place.path().join("report.html");
    let report_output = output(&mut place.whyso(&["report", run, "-o", report.to_str().unwrap()]));
    assert!(report_output.status.success(), "{report_output:?}");
    let page = std::fs::read_to_string(&report).unwrap();
    for note in ["switched the \\u003cRAID> cache off", "the batch began"] {
        assert!(page.contains(note), "the page has no {note:?}");
    }
}

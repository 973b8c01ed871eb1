//! What whyso prints may go to a pipe that nobody reads, or to a full disk. That ends no run and is no panic.

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use common::served::record;
use common::{Place, text};

/// A pipe whose reader is gone.
fn nobody() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
#[ignore = "long: make test-hard"]
fn a_run_whose_standard_error_nobody_reads_ends_as_any_other() {
    let place = Place::new();
    let mut run = place.run(&["--users", "1", "--seconds", "1", "--no-repeat"]);
    let done = run.stdout(Stdio::piped()).stderr(nobody()).spawn().unwrap().wait_with_output().unwrap();
    assert!(done.status.success(), "{:?}", done.status);
    assert!(String::from_utf8_lossy(&done.stdout).contains("report.html"));

    // Only their owner reads recordings.
    let dir = place.only_run();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }

    // A report that is a link somewhere else is not written through.
    let (page, elsewhere) = (dir.join("report.html"), place.path().join("elsewhere"));
    fs::write(&elsewhere, "mine").unwrap();
    fs::remove_file(&page).unwrap();
    symlink(&elsewhere, &page).unwrap();
    let refused = place.whyso(&["report", dir.to_str().unwrap()]).output().unwrap();
    assert!(
        !refused.status.success() && text(&refused.stderr).contains("can't write"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
}

#[test]
fn output_that_can_not_be_written_is_an_error_and_a_pipe_that_nobody_reads_is_none() {
    let place = Place::new();
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    fs::create_dir_all(place.runs()).unwrap();
    record(&place.runs().join("one"), "one");
    let line = "::1 - - [28/Nov/2026:19:40:04 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl\"\n";
    fs::write(place.path().join("access.log"), line).unwrap();
    let listing: [&[&str]; 22] = [
        &["access-log", "access.log"],
        &["access-log", "access.log", "--json"],
        &["snapshots"],
        &["server", "stop"],
        &["server", "list"],
        &["server", "list", "--json"],
        &["runs"],
        &["runs", "--json"],
        &["doctor"],
        &["add-on", "list"],
        &["setup-tracing", "--dry-run", "--to", "/usr/local/bin/whyso-of-a-test"],
        &["why", "runs/one"],
        &["why", "runs/one", "--json"],
        &["history", "runs/one"],
        &["report", "runs/one"],
        &["export", "runs/one"],
        &["plot", "runs/one", "status/Threads_running"],
        &["note", "text", "runs/one", "--at", "1"],
        &["threads", "runs/one"],
        &["functions", "runs/one"],
        &["statements", "runs/one"],
        &["load", "oltp-point-select", "--describe"],
    ];
    for args in listing {
        let mut failed = place.whyso(args).stdout(full()).stderr(Stdio::piped()).spawn().unwrap();
        let mut messages = String::new();
        failed.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
        let status = failed.wait().unwrap();
        assert!(!messages.contains("panicked"), "{args:?}: {messages}");
        // Some are refused before anything is printed, as the recording holds nothing for them.
        assert!(matches!(status.code(), Some(1 | 2)), "{args:?}: {status:?} {messages}");
        assert!(
            messages.contains("can't be written") || !messages.contains("os error"),
            "{args:?}: {messages}"
        );

        let status = place.whyso(args).stdout(nobody()).stderr(nobody()).status().unwrap();
        assert_ne!(status.code(), Some(101), "{args:?}");
    }
}

#[test]
fn an_argument_need_not_be_utf_8() {
    let place = Place::new();
    let odd = std::ffi::OsStr::from_bytes(b"runs-\xff");
    let done =
        place.run(&["--users", "1", "--seconds", "1", "--no-repeat", "--out"]).arg(odd).output().unwrap();
    let messages = text(&done.stderr);
    assert!(done.status.success(), "{messages}");
    assert!(place.path().join(odd).is_dir());
}

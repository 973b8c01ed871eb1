//! Runs on their way out of the folder and into it: by the API of `whyso serve`, and by `whyso runs`.

mod common;

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use common::served::{BOUND, RunServer, with_runs};
use common::{output, text, wait_until};
use serde_json::{Value, json};
use whyso_record::run::RunInfo;
use whyso_record::{Options, Recorder};

#[test]
fn runs_are_pruned_backed_up_and_taken_in_by_the_api() {
    let place = with_runs(&["one", "two"]);
    let served = RunServer::start(&place, &[]);
    let bearer = served.bearer();
    let tar = "Content-Type: application/x-tar";
    let backup = |query: &str| served.ask("GET", &format!("/api/v1/runs/backup{query}"), &[&bearer], "");
    for (query, status) in [("?ids=", 400), ("?ids=none", 404), ("?ids=..", 404), ("?ids=one,none", 404)] {
        assert_eq!(backup(query).0, status, "{query}");
    }
    let (status, head, all) = backup("");
    assert!(status == 200 && head.contains("content-type: application/x-tar"), "{head}");
    assert!(
        head.contains("filename=\"whyso-2-runs.tar\"") && head.contains("transfer-encoding: chunked"),
        "{head}"
    );
    assert!(backup("?ids=one").1.contains("filename=\"one.tar\""));
    let all = unchunked(&all);

    let take =
        |kind: &str, sent: &[u8]| served.ask_bytes("POST", "/api/v1/runs/import", &[&bearer, kind], sent);
    assert_eq!(take("Content-Type: text/plain", &all).0, 415);
    assert_eq!(take(tar, b"no archive").0, 400);
    assert_eq!(take(tar, &all[..all.len() / 2]).0, 400);
    let imported = |(status, _, body): (u16, String, Vec<u8>)| -> Value {
        assert_eq!(status, 200);
        serde_json::from_slice(&body).unwrap()
    };
    assert_eq!(imported(take(tar, &all)), json!({ "imported": [], "there_already": ["one", "two"] }));
    assert_eq!(served.send("DELETE", "/runs/one", "").0, 200);
    assert_eq!(imported(take(tar, &all)), json!({ "imported": ["one"], "there_already": ["two"] }));
    assert_eq!(served.get("/runs/one").0, 200);
    assert_eq!(fs::read_dir(place.runs()).unwrap().count(), 2, "nothing else is left");
    let huge = "Content-Length: 99999999999999";
    assert_eq!(served.ask_raw("POST", "/api/v1/runs/import", &[&bearer, tar, huge], b"").0, 413);

    for (body, status) in [
        ("{\"size\":\"much\"}", 400),
        ("{\"size\":5}", 400),
        ("{}", 400),
        ("{\"size\":\"1KiB\",\"yes\":1}", 400),
        ("{\"size\":\"1KiB\"}", 200),
    ] {
        assert_eq!(served.send("POST", "/runs/two/prune", body).0, status, "{body}");
    }
    assert_eq!(served.send("POST", "/runs/none/prune", "{\"size\":\"1KiB\"}").0, 404);
    let (_, pruned) = served.send("POST", "/runs/two/prune", "{\"size\":\"1KiB\"}");
    assert!(pruned["freed_bytes"] == 0 && pruned["bytes"].as_u64().unwrap() > 0, "{pruned}");

    let going = Recorder::create(&place.runs().join("going"), Options::default()).unwrap();
    going.set_run(&RunInfo::default());
    assert!(wait_until(BOUND, || served.send("POST", "/runs/going/prune", "{\"size\":\"1KiB\"}").0 == 409));
    assert_eq!(backup("?ids=one,going").0, 409);
    assert_eq!(backup("").0, 200, "those that have ended");
    going.finish().unwrap();
}

/// Without the sizes that stand before the pieces of an answer.
fn unchunked(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = body.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&body[..end]).unwrap(), 16).unwrap();
        if size == 0 {
            return whole;
        }
        whole.extend_from_slice(&body[end + 2..end + 2 + size]);
        body = &body[end + 4 + size..];
    }
}

#[test]
fn an_import_that_breaks_off_leaves_nothing() {
    let place = with_runs(&["one"]);
    let served = RunServer::start(&place, &[]);
    let all = unchunked(&served.ask("GET", "/api/v1/runs/backup", &[&served.bearer()], "").2);
    let other = with_runs(&[]);
    let served = RunServer::start(&other, &[]);
    let mut socket = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
    let head = format!(
        "POST /api/v1/runs/import HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{}\r\nContent-Type: application/x-tar\r\nContent-Length: {}\r\n\r\n",
        served.port,
        served.bearer(),
        all.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    socket.write_all(&all[..all.len() / 2]).unwrap();
    let coming = || fs::read_dir(other.runs()).unwrap().count();
    assert!(wait_until(BOUND, || coming() == 1), "it is being imported");
    drop(socket);
    assert!(wait_until(BOUND, || coming() == 0), "what arrived is removed");
}

#[test]
fn runs_are_backed_up_taken_in_pruned_and_removed() {
    let place = with_runs(&["one", "two"]);
    let done = |args: &[&str]| {
        let done = output(&mut place.whyso(args));
        assert!(done.status.success(), "{args:?}: {done:?}");
        text(&done.stdout).to_string()
    };
    assert!(done(&["runs"]).contains("one") && done(&["runs", "list", "--json"]).contains("\"bytes\""));
    done(&["runs", "backup", "-o", "all.tar"]);
    let asked = output(&mut place.whyso(&["runs", "rm", "one"]));
    assert!(text(&asked.stderr).contains("add --yes"), "{asked:?}");
    done(&["runs", "rm", "one", "--yes"]);
    assert!(!place.runs().join("one").exists());
    let unknown = output(&mut place.whyso(&["runs", "rm", "one", "--yes"]));
    assert_eq!(unknown.status.code(), Some(2), "{unknown:?}");
    assert!(done(&["runs", "import", "all.tar"]).contains("took in 1 run, already there: 1 run"));
    assert!(place.runs().join("one").is_dir());
    done(&["runs", "prune", "--size", "1KiB"]);
    assert_eq!(whyso_record::Recording::open(&place.runs().join("one")).unwrap().run().id, "one");
}

//! Text of recordings and of servers steers no terminal.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use common::served::record;
use common::{Place, output, text};
use serde_json::Value;

const HARM: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\r\u{202e}\u{2066}";

fn assert_harmless(what: &[&str], printed: &str) {
    let is_harmful = |character: char| {
        (character.is_control() && !"\n\t".contains(character))
            || ('\u{202a}'..='\u{202e}').contains(&character)
            || character == '\u{2066}'
    };
    assert!(!printed.contains(is_harmful), "{what:?}: {printed:?}");
}

/// Puts harm into every text of a value.
fn harm(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(HARM),
        Value::Array(all) => all.iter_mut().for_each(harm),
        Value::Object(all) => all.values_mut().for_each(harm),
        _ => {}
    }
}

#[test]
fn a_recording_full_of_control_characters_steers_no_terminal() {
    let place = Place::new();
    fs::create_dir_all(place.runs()).unwrap();
    // The harm of `record` is among the series; here it is in everything that the run says of itself, in turn.
    let harmed = ["spec", "not_measured", "warnings", "facts", "tool_version", "levels", "notes"];
    record(&place.runs().join("one"), "one");
    record(&place.runs().join("two"), "two");
    for run in ["one", "two"] {
        let path = place.runs().join(run).join("run.json");
        let mut about: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for name in harmed {
            if let Some(part) = about.get_mut(name) {
                harm(part);
            }
        }
        for name in ["not_measured", "warnings"] {
            if about.get(name).is_some_and(|list| list.as_array().is_some_and(Vec::is_empty)) {
                about[name] = match name {
                    "not_measured" => serde_json::json!([{"source": "other", "what": HARM, "reason": HARM}]),
                    _ => serde_json::json!([HARM]),
                };
            }
        }
        fs::write(path, serde_json::to_vec(&about).unwrap()).unwrap();
    }
    let one = place.runs().join("one").display().to_string();
    let two = place.runs().join("two").display().to_string();
    let log = place.path().join("access.log").display().to_string();
    let line = |target: &str| {
        format!("::1 - - [28/Nov/2026:19:40:04 +0000] \"GET {target} HTTP/1.1\" 200 5 \"-\" \"{HARM}\"\n")
    };
    // A torn line, and kinds whose names have what was sent.
    fs::write(&log, format!("{HARM}\n{}{}", line("/"), line(&format!("/{}?a{HARM}", HARM.trim())))).unwrap();
    let commands: &[&[&str]] = &[
        &["access-log", &log, "--format", "combined"],
        &["access-log", &log, "--format", "combined", "--json"],
        &["access-log", &log, "--format", HARM],
        &["access-log", &log, "--run", &one],
        &["runs"],
        &["runs", "--json"],
        &["why", &one],
        &["why", &one, "--json"],
        &["compare", &one, &two],
        &["history", &one, &two],
        &["threads", &one],
        &["timeline", &one],
        &["locks", &one],
        &["pfs", &one],
        &["functions", &one],
        &["classes", &one],
        &["wakers", &one],
        &["callers", "main", &one],
        &["source", "main", &one],
        &["statements", &one],
        &["report", &one],
        &["note", HARM, &one, "--at", "1"],
        &["why", HARM],
    ];
    let mut spoken = 0;
    for args in commands {
        let done = output(&mut place.whyso(args));
        let printed = text(&done.stdout) + &text(&done.stderr);
        assert_harmless(args, &printed);
        assert!(!printed.contains("panicked"), "{args:?}: {printed}");
        spoken += usize::from(printed.contains("u001b"));
    }
    assert!(spoken >= 2, "the harm is shown, and harmless");
    // Data for programs stay as they are.
    let csv = output(&mut place.whyso(&["export", &one]));
    assert!(text(&csv.stdout).contains('\u{1b}'));
}

#[test]
fn a_server_s_error_message_steers_no_terminal() {
    let place = Place::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in server.incoming().flatten() {
            // An error packet in the place of a greeting: host is blocked.
            let message = format!("#HY000{HARM}go away");
            let mut packet = vec![(message.len() + 3) as u8, 0, 0, 0, 0xff, 0x69, 0x04];
            packet.extend_from_slice(message.as_bytes());
            let _ = client.write_all(&packet);
            let _ = client.read(&mut [0; 64]);
        }
    });
    let dsn = format!("mysql://u@{address}/x");
    let script = place.path().join("connect.lua");
    std::fs::write(
        &script,
        "function thread_init() sysbench.sql.driver():connect() end\nfunction event() end\n",
    )
    .unwrap();
    let port = format!("--mysql-port={}", address.port());
    let sysbench = ["sysbench", script.to_str().unwrap(), "--mysql-host=127.0.0.1", &port, "--time=1", "run"];
    for args in [
        &["load", "oltp-point-select", "--dsn", &dsn][..],
        &["locks", "--dsn", &dsn],
        &["record", "--dsn", &dsn],
    ] {
        let done = output(&mut place.whyso(args));
        let printed = text(&done.stdout) + &text(&done.stderr);
        assert_harmless(args, &printed);
        assert!(printed.contains("go away"), "{args:?}: {printed}");
    }
    // Programs that read sysbench's output get it as it is; only a terminal gets it escaped.
    let line = [&[env!("CARGO_BIN_EXE_whyso")], &sysbench[..]].concat().join(" ");
    let mut at_a_terminal = Command::new("script");
    at_a_terminal.args(["-qefc", &line, "/dev/null"]);
    for (name, value) in place.whyso(&[]).get_envs() {
        at_a_terminal.env(name, value.unwrap_or_default());
    }
    let printed = text(&output(&mut at_a_terminal).stdout).replace("\r\n", "\n");
    assert_harmless(&sysbench, &printed);
    assert!(printed.contains("go away"), "{printed}");
}

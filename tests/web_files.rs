//! Files that requests to the sample application queue for: a log that is written after the answers, and a folder of sessions, with the stacks of
//! who waits.

mod common;

use common::app::{App, can_be_app};
use common::{output, text};
use serde_json::Value;

/// A run that loads a page with eight users, as `whyso why` explains it.
fn loaded(app: &App, options: &[&str]) -> Value {
    let url = format!("http://127.0.0.1:{}/alive.php", app.port());
    let load = ["run", "--url", &url, "--users", "8", "--seconds", "3", "--warmup", "1"];
    let out = output(&mut app.whyso(&[&load[..], options].concat()));
    println!("{}\n{}", text(&out.stdout), text(&out.stderr));
    assert!(out.status.success());
    let why = output(&mut app.whyso(&["why", app.place.only_run().to_str().unwrap(), "--json"]));
    serde_json::from_str(&text(&why.stdout)).unwrap()
}

/// Apache writes a line after each answer, and each line is written through to the disk by one process at a time.
#[test]
fn a_log_that_is_written_after_the_answers_is_what_the_next_request_waits_for() {
    if !can_be_app() {
        return;
    }
    let app = App::start(&["--php", "mod", "--trouble", "log-file"]);
    let why = loaded(&app, &["--process", app.pid("httpd")]);
    let web = &why["tiers"][0];
    assert_eq!(web["cause"], "log-file", "{web}");
    let shown = text(&output(&mut app.whyso(&["why", app.place.only_run().to_str().unwrap()])).stdout);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("After its answers, ") && shown.contains("/log/access.log, "), "{shown}");
    // Without the log there is nothing to wait for.
    drop(app);
    let app = App::start(&["--php", "mod", "--access-log", "off"]);
    let why = loaded(&app, &["--process", app.pid("httpd")]);
    assert_eq!(why["tiers"][0]["cause"], Value::Null, "{}", why["tiers"][0]);
}

#[test]
fn waits_of_a_program_after_the_first_have_stacks() {
    if !can_be_app() {
        return;
    }
    let app = App::start(&["--trouble", "session-folder"]);
    let (web, php) = (app.pid("httpd"), app.pid("php-fpm"));
    let why = loaded(&app, &["--process", web, "--process", php, "--stacks"]);
    assert_eq!(why["tiers"][0]["cause"], "session-files", "{}", why["tiers"][0]);
    let run = app.place.only_run();
    let of = |options: &[&str]| -> Value {
        let asked = ["functions", run.to_str().unwrap(), "--program", "php-fpm", "--inclusive", "--json"];
        let out = output(&mut app.whyso(&[&asked[..], options].concat()));
        assert!(out.status.success(), "{}", text(&out.stderr));
        serde_json::from_str(&text(&out.stdout)).unwrap()
    };
    let waits = of(&["--by", "kernel_lock"]);
    assert!(waits["waits"].as_u64().unwrap() > 10 && waits["samples"] == 0, "{waits}");
    // PHP gives a session another id: it removes the old file and makes a new one.
    let listed = waits.to_string();
    assert!(listed.contains("unlink") || listed.contains("do_sys_open"), "{waits}");
    let work = of(&["--by", "cpu"]);
    assert!(work["samples"].as_u64().unwrap() > 10, "{work}");
    let wakers = output(&mut app.whyso(&["wakers", run.to_str().unwrap(), "--program", "php-fpm"]));
    assert!(!wakers.status.success() && text(&wakers.stderr).contains("leave out --program"));
}

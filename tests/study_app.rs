//! `whyso study` of the sample application: each start has its own, which is loaded over HTTP and stopped, whatever happens.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use common::{Place, finish, json_of, kill, output, spawn, text, wait_until};
use serde_json::Value;

/// A start of the application takes some seconds, and longer next to other tests.
const BOUND: Duration = Duration::from_secs(180);

const STUDY: &str = r#"
title = "KeepAlive"
question = "Do open connections hold workers?"
app = "calendar"
set = { php = "mod" }
workload = "pages.toml"
users = [3]
seconds = 2
warmup = 0
repeats = 1
pair = false
trace = false
baseline = "off"
metric = "latency_mean_ms"
show = ["latency_p90_ms:tag", "web_workers_kept", "connections_held", "time_wait_ports", "errors_percent"]

[[variant]]
name = "off"
set = { keep_alive = false }

[[variant]]
name = "on"
set = { keep_alive = 30 }
"#;

const PAGES: &str = r#"
think = "50ms"
[[page]]
name = "tag"
path = "/tag.php?tag=music5"
[[page]]
name = "person"
path = "/person.php?id=1"
"#;

/// Whether this machine has what the sample application needs.
fn can_test() -> bool {
    let needed = [
        "/usr/sbin/apache2",
        "/usr/lib/apache2/modules/libphp8.2.so",
        "/usr/sbin/php-fpm8.2",
        "/usr/bin/memcached",
    ];
    let missing = needed.into_iter().find(|path| !Path::new(path).exists());
    if let Some(missing) = missing {
        whyso_testing::not_tested(format!("there is no {missing}: no study of the sample application"));
    }
    missing.is_none()
}

struct Folder(Place);

impl Folder {
    fn new(study: &str) -> Folder {
        let place = Place::new();
        // Root's programs run as nobody, who has to enter.
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o711)).unwrap();
        fs::write(place.path().join("web.toml"), study).unwrap();
        fs::write(place.path().join("pages.toml"), PAGES).unwrap();
        Folder(place)
    }

    fn whyso(&self, args: &[&str]) -> Command {
        let mut command = self.0.whyso(args);
        command.env("WHYSO_APP_PARENT", self.0.path());
        command
    }

    fn apps(&self) -> String {
        text(&output(&mut self.whyso(&["server", "app", "list"])).stdout)
    }

    fn starts(&self) -> usize {
        let path = self.0.path().join("study/starts.jsonl");
        fs::read_to_string(path).unwrap_or_default().lines().count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        for line in self.apps().lines() {
            if let Some(folder) = line.trim().strip_prefix("folder") {
                let _ = self.whyso(&["server", "app", "stop", folder.trim()]).output();
            }
        }
    }
}

fn line<'a>(answer: &'a Value, variant: &str) -> &'a Value {
    let lines = answer["lines"].as_array().unwrap();
    lines.iter().find(|line| line["variant"] == variant).unwrap_or_else(|| panic!("no {variant}: {answer:#}"))
}

fn other(answer: &Value, variant: &str, measure: &str) -> f64 {
    let value = line(answer, variant)["beside"][measure].as_f64();
    value.unwrap_or_else(|| panic!("no {measure} of {variant}: {answer:#}"))
}

#[test]
fn open_connections_hold_workers_and_closed_ones_hold_ports() {
    if !can_test() {
        return;
    }
    let folder = Folder::new(STUDY);
    let plan = text(&output(&mut folder.whyso(&["study", "run", "web.toml", "--dry-run"])).stdout);
    assert!(plan.contains("2 cells, 2 starts") && plan.contains("block 1"), "{plan}");
    let mut run = folder.whyso(&["study", "run", "web.toml", "--out", "study", "--json"]);
    let answer = json_of(&finish(spawn(&mut run), BOUND));
    assert_eq!((&answer["starts_done"], folder.starts()), (&Value::from(2), 2), "{answer:#}");
    for variant in ["off", "on"] {
        assert!(line(&answer, variant)["spread"].is_object(), "{answer:#}");
        assert!(other(&answer, variant, "latency_p90_ms:tag") > 0.0);
        assert_eq!(other(&answer, variant, "errors_percent"), 0.0, "{answer:#}");
    }
    assert_eq!(other(&answer, "off", "web_workers_kept"), 0.0, "{answer:#}");
    assert!(other(&answer, "on", "web_workers_kept") > 0.5, "{answer:#}");
    assert!(other(&answer, "off", "time_wait_ports") > 20.0, "{answer:#}");
    let held = ["off", "on"].map(|variant| other(&answer, variant, "connections_held"));
    assert!(held[1] > held[0], "{answer:#}");
    assert_eq!(folder.apps(), "", "the applications were stopped");
    let shown = text(&output(&mut folder.whyso(&["study", "show", "study"])).stdout);
    assert!(shown.contains("tag: p90 response, ms") && shown.contains("ports in TIME_WAIT"), "{shown}");
}

#[test]
fn what_a_start_left_behind_is_stopped_and_ctrl_c_stops_it_at_once() {
    if !can_test() {
        return;
    }
    let folder = Folder::new(&STUDY.replace("seconds = 2", "seconds = 60"));
    let is_up = || folder.0.path().join("study/app-folder").exists();
    let killed = spawn(&mut folder.whyso(&["study", "run", "web.toml", "--out", "study"]));
    assert!(wait_until(BOUND, is_up), "no application was started");
    kill(killed.id() as i32, libc::SIGKILL);
    finish(killed, BOUND);
    let left = folder.apps();
    assert!(left.contains("url") || left.contains("http://"), "{left}");
    let left = fs::read_to_string(folder.0.path().join("study/app-folder")).unwrap();
    let again = spawn(&mut folder.whyso(&["study", "resume", "study"]));
    let is_new = || {
        fs::read_to_string(folder.0.path().join("study/app-folder"))
            .is_ok_and(|now| !now.is_empty() && now != left)
    };
    assert!(wait_until(BOUND, is_new), "no application was started again");
    assert!(!Path::new(&left).exists(), "{left}");
    kill(again.id() as i32, libc::SIGINT);
    let done = finish(again, BOUND);
    assert!(!done.status.success() && text(&done.stderr).contains("study resume"), "{done:?}");
    assert_eq!((folder.apps(), folder.starts()), (String::new(), 0));
}

#[test]
fn options_that_the_application_does_not_have_are_refused_before_it_is_started() {
    let folder = Folder::new(STUDY);
    for (from, to, word) in [
        ("php = \"mod\"", "php = \"mod\", wrkers = 2", "no option \"wrkers\""),
        ("keep_alive = 30", "keep_alive = \"often\"", "on: keep_alive = \"often\" can't be"),
        ("php = \"mod\"", "php = \"mod\", workers = 2", "workers are those of PHP-FPM"),
        ("\"pages.toml\"", "\"none.toml\"", "none.toml"),
        ("users = [3]", "users = [3]\nrows = 10", "rows is of database servers"),
    ] {
        assert!(STUDY.contains(from), "{from}");
        fs::write(folder.0.path().join("web.toml"), STUDY.replace(from, to)).unwrap();
        let done = output(&mut folder.whyso(&["study", "run", "web.toml"]));
        let why = text(&done.stderr);
        assert!(!done.status.success() && why.contains(word) && why.trim().lines().count() == 1, "{why}");
    }
    fs::write(folder.0.path().join("web.toml"), STUDY).unwrap();
    let done = output(&mut folder.whyso(&[
        "study",
        "run",
        "web.toml",
        "--dsn",
        "mysql://x@localhost/",
        "--allow-experiments",
    ]));
    assert!(text(&done.stderr).contains("leave out --dsn"), "{done:?}");
    assert!(!folder.0.path().join("studies-run").exists());
}

/// The study that ships, in a still shorter form than its own.
fn shipped(name: &str, changes: &[(&str, &str)]) -> (Folder, Value) {
    let studies = format!("{}/../../studies", env!("CARGO_MANIFEST_DIR"));
    let mut study = fs::read_to_string(format!("{studies}/{name}.toml")).unwrap();
    for (from, to) in changes {
        assert!(study.contains(from), "{name} has no {from:?}");
        study = study.replace(from, to);
    }
    let folder = Folder::new(&study);
    fs::create_dir_all(folder.0.path().join("http")).unwrap();
    fs::copy(format!("{studies}/http/calendar.toml"), folder.0.path().join("http/calendar.toml")).unwrap();
    let mut run = folder.whyso(&["study", "run", "web.toml", "--quick", "--out", "study", "--json"]);
    let answer = json_of(&finish(spawn(&mut run), BOUND * 4));
    (folder, answer)
}

#[test]
#[ignore = "long: make test-hard"]
fn requests_wait_for_the_lock_of_one_folder_of_sessions() {
    if !can_test() {
        return;
    }
    let (folder, answer) = shipped(
        "session-files",
        &[("seconds = 5\nwarmup = 1\nrepeats = 2", "seconds = 3\nwarmup = 0\nrepeats = 1")],
    );
    assert_eq!(folder.starts(), 3);
    let locks = |variant: &str| other(&answer, variant, "kernel_lock_ms");
    assert!(locks("one folder") > 5.0 * locks("memcached").max(0.1), "{answer:#}");
    let notes = answer["notes"].to_string();
    assert!(notes.contains("sessions/"), "{notes}");
    assert_eq!(folder.apps(), "");
}

#[test]
#[ignore = "long: make test-hard"]
fn threads_wait_for_a_log_after_their_answers_where_its_lines_are_written_through() {
    if !can_test() {
        return;
    }
    let (folder, answer) = shipped(
        "access-log",
        &[("seconds = 5\nwarmup = 1\nrepeats = 2", "seconds = 3\nwarmup = 0\nrepeats = 1")],
    );
    assert_eq!(folder.starts(), 3);
    let after = |variant: &str| other(&answer, variant, "after_answer_ms");
    assert!(after("written through") > 5.0 * after("cached").max(0.01), "{answer:#}");
    assert!(after("none") < 0.05 * after("written through"), "{answer:#}");
    let notes = answer["notes"].to_string();
    assert!(notes.contains("waited for log/access.log"), "{notes}");
}

#[test]
#[ignore = "long: make test-hard"]
fn few_processes_and_long_connections_keep_users_waiting() {
    if !can_test() {
        return;
    }
    let (folder, answer) = shipped(
        "keepalive-workers",
        &[("seconds = 6\nwarmup = 2\nrepeats = 2", "seconds = 3\nwarmup = 1\nrepeats = 1")],
    );
    assert_eq!(folder.starts(), 8);
    let lines = answer["lines"].as_array().unwrap();
    let few = |variant: &str, measure: &str| {
        let is_it = |line: &&Value| line["condition"] == "16 processes" && line["variant"] == variant;
        lines.iter().find(is_it).unwrap()["beside"][measure].as_f64().unwrap()
    };
    assert_eq!(lines.len(), 8, "{answer:#}");
    // 40 users want 16 processes, each of which an open connection holds.
    assert!(
        few("60 s", "connections_held") > 12.0 && few("60 s", "connections_waiting") > 12.0,
        "{answer:#}"
    );
    assert!(few("off", "transactions_per_s") > 1.5 * few("60 s", "transactions_per_s"), "{answer:#}");
    assert_eq!(folder.apps(), "");
}

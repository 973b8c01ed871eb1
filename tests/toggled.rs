//! `whyso record --toggle`: windows that begin and end when the user says so.

mod common;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{OwnServer, Place, SOON, finish, json_of, kill, output, spawn, text, wait_until};
use serde_json::Value;

/// How far a window's length may be from what was asked for, in seconds: two looks of the program and a busy machine.
const LATE_MAX: f64 = 0.4;

/// A load in the background, for as long as this lives.
struct Load(Child);

impl Load {
    fn start(place: &Place, server: &OwnServer) -> Load {
        // A recording waits for the disk, and for what builds before have left to be written to it.
        // SAFETY: it takes nothing and always succeeds.
        unsafe { libc::sync() };
        let dsn = server.dsn("root", "");
        let mut load = place.whyso(&["load", "oltp-point-select", "--dsn", &dsn, "--users", "2"]);
        load.args(["--seconds", "60", "--tables", "1", "--rows", "1000"]);
        let load = Load(load.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        assert!(wait_until(SOON, || common::drives_a_level(load.0.id())), "the load did not begin");
        load
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program listens to signals once its recording has begun.
fn wait_until_it_listens(place: &Place, pid: u32) {
    let bit = 1_u64 << (libc::SIGUSR1 - 1);
    let caught = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        caught.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).is_some_and(|set| set & bit != 0)
    };
    assert!(wait_until(SOON, || place.runs().exists() && caught()), "no recording began");
}

fn windows(run: &Path) -> Vec<f64> {
    let run: Value = serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
    let seconds = |level: &Value| {
        let [begin, end] = ["begin_ns", "end_ns"].map(|edge| level["window"][edge].as_i64().unwrap());
        (end - begin) as f64 / 1e9
    };
    run["levels"].as_array().unwrap().iter().map(seconds).collect()
}

fn assert_lengths(found: &[f64], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len(), "{found:?} seconds, wanted {wanted:?}");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() < LATE_MAX, "{found:?} seconds, wanted {wanted:?}");
    }
}

#[test]
#[ignore = "the first toggle is now and then seen a second late on two busy CPUs, why is not known yet"]
fn a_signal_begins_and_ends_windows_after_the_warm_up_and_ctrl_c_ends_the_last() {
    let (server, place) = (OwnServer::start(), Place::new());
    let _load = Load::start(&place, &server);
    // Without a terminal: its input is /dev/null, which ends at once.
    let child = spawn(&mut place.whyso(&["record", "--dsn", &server.dsn("root", ""), "--toggle", "--json"]));
    let pid = child.id();
    wait_until_it_listens(&place, pid);
    sleep(Duration::from_millis(1_000));
    let mut wanted = Vec::new();
    for (on, off) in [(1_500, 700), (800, 300)] {
        let begun = Instant::now();
        kill(pid as i32, libc::SIGUSR1);
        sleep(Duration::from_millis(on));
        kill(pid as i32, libc::SIGUSR1);
        wanted.push(begun.elapsed().as_secs_f64());
        sleep(Duration::from_millis(off));
    }
    let begun = Instant::now();
    kill(pid as i32, libc::SIGUSR1);
    sleep(Duration::from_millis(1_000));
    kill(pid as i32, libc::SIGINT);
    wanted.push(begun.elapsed().as_secs_f64());
    let out = json_of(&finish(child, SOON));
    assert_lengths(&windows(Path::new(out["path"].as_str().unwrap())), &wanted);
    for level in out["levels"].as_array().unwrap() {
        let [found, seconds, rate] =
            ["transactions", "seconds", "transactions_per_s"].map(|name| level[name].as_f64().unwrap());
        assert!(found > 10.0 && (found / seconds / rate - 1.0).abs() < 0.01, "{level}");
    }
}

#[test]
#[ignore = "the first toggle is now and then seen a second late on two busy CPUs, why is not known yet"]
fn enter_at_a_terminal_does_the_same() {
    let (server, place) = (OwnServer::start(), Place::new());
    let _load = Load::start(&place, &server);
    let record = place.whyso(&["record", "--dsn", &server.dsn("root", ""), "--toggle"]);
    let words: Vec<String> = std::iter::once(record.get_program())
        .chain(record.get_args())
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    // script(1) gives the program a terminal, and passes what it is sent on as keys.
    let mut terminal = Command::new("script");
    terminal.args(["--quiet", "--return", "--command", &words.join(" "), "/dev/null"]);
    terminal.current_dir(place.path()).env("HOME", place.path());
    terminal.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = terminal.spawn().expect("script is needed: apt-get install bsdutils");
    let mut keys = child.stdin.take().unwrap();
    assert!(wait_until(SOON, || place.runs().exists()), "no recording began");
    sleep(Duration::from_millis(1_500));
    let mut press = |key: &[u8]| {
        keys.write_all(key).unwrap();
        keys.flush().unwrap();
    };
    let begun = Instant::now();
    press(b"\r");
    sleep(Duration::from_millis(1_200));
    press(b"\r");
    let wanted = begun.elapsed().as_secs_f64();
    sleep(Duration::from_millis(500));
    press(b"\x03");
    let ended = finish(child, SOON);
    assert!(ended.status.success(), "{}", text(&ended.stdout));
    assert_lengths(&windows(&place.only_run()), &[wanted]);
}

#[test]
fn a_recording_in_which_no_window_began_says_so() {
    let (server, place) = (OwnServer::start(), Place::new());
    let child = spawn(&mut place.whyso(&["record", "--dsn", &server.dsn("root", ""), "--toggle"]));
    let pid = child.id();
    wait_until_it_listens(&place, pid);
    kill(pid as i32, libc::SIGINT);
    let ended = finish(child, SOON);
    assert!(!ended.status.success());
    assert!(!text(&ended.stderr).contains("panicked"), "{}", text(&ended.stderr));
    // Together with a command it is refused.
    let refused = output(&mut place.whyso(&["record", "--dsn", "mysql://a/", "--toggle", "--", "true"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("the command's own time is the window"));
}

//! `whyso record --toggle`: windows that begin and end when the user says so.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::ptr;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use common::{OwnServer, Place, SOON, finish, json_of, kill, output, spawn, text, wait_until};
use serde_json::Value;
use whyso_clock::monotonic_ns;

/// A load in the background, for as long as this lives.
struct Load(Child);

impl Load {
    fn start(place: &Place, server: &OwnServer) -> Load {
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

/// What the program has printed so far, at a terminal or on standard error.
#[derive(Clone, Default)]
struct PrintedText(Arc<Mutex<String>>);

impl PrintedText {
    /// Collects what comes, until nobody can write any more.
    fn listen(mut from: impl Read + Send + 'static) -> PrintedText {
        let printed = PrintedText::default();
        let all = printed.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                all.0.lock().unwrap().push_str(&text(&bytes[..count]));
            }
        });
        printed
    }

    fn all(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// Waits until the program prints this after `after` bytes. Returns when that was found, in monotonic nanoseconds.
    fn wait_for(&self, words: &str, after: usize) -> i64 {
        assert!(wait_until(SOON, || self.all()[after..].contains(words)), "no {words:?} in {}", self.all());
        monotonic_ns()
    }
}

const LISTENS: &str = "to begin and to end a window";

/// Has a window of about `ms` milliseconds recorded. Returns what each of its edges lies between: when it was asked for,
/// and when the program printed that it is taken. `end` ends it, and `end_words` is what the program prints then.
fn window(
    printed: &PrintedText,
    ms: u64,
    begin: impl FnOnce(),
    end: impl FnOnce(),
    end_words: &str,
) -> [[i64; 2]; 2] {
    let (after, asked_ns) = (printed.all().len(), monotonic_ns());
    begin();
    let begun = [asked_ns, printed.wait_for("a window begins", after)];
    sleep(Duration::from_millis(ms));
    let (after, asked_ns) = (printed.all().len(), monotonic_ns());
    end();
    [begun, [asked_ns, printed.wait_for(end_words, after)]]
}

fn assert_windows(run: &Path, wanted: &[[[i64; 2]; 2]]) {
    let run: Value = serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
    let found = run["levels"].as_array().unwrap();
    assert_eq!(found.len(), wanted.len(), "{found:?}");
    for (found, edges) in found.iter().zip(wanted) {
        for (name, [asked_ns, seen_ns]) in ["begin_ns", "end_ns"].iter().zip(edges) {
            let at_ns = found["window"][name].as_i64().unwrap();
            assert!((asked_ns..=seen_ns).contains(&&at_ns), "{name} {at_ns}, not {asked_ns} to {seen_ns}");
        }
    }
}

#[test]
fn a_signal_begins_and_ends_windows_after_the_warm_up_and_ctrl_c_ends_the_last() {
    let (server, place) = (OwnServer::start(), Place::new());
    let _load = Load::start(&place, &server);
    // Without a terminal: its input is /dev/null, which ends at once.
    let mut child =
        spawn(&mut place.whyso(&["record", "--dsn", &server.dsn("root", ""), "--toggle", "--json"]));
    let printed = PrintedText::listen(child.stderr.take().unwrap());
    printed.wait_for(LISTENS, 0);
    let pid = child.id() as i32;
    let toggle = || kill(pid, libc::SIGUSR1);
    let mut wanted = Vec::new();
    for ms in [1_500, 300] {
        wanted.push(window(&printed, ms, toggle, toggle, "the window ends"));
        sleep(Duration::from_millis(300));
    }
    wanted.push(window(&printed, 600, toggle, || kill(pid, libc::SIGINT), "the window ends"));
    let out = json_of(&finish(child, SOON));
    assert_windows(Path::new(out["path"].as_str().unwrap()), &wanted);
    for level in out["levels"].as_array().unwrap() {
        let [found, seconds, rate] =
            ["transactions", "seconds", "transactions_per_s"].map(|name| level[name].as_f64().unwrap());
        assert!(found > 10.0 && (found / seconds / rate - 1.0).abs() < 0.01, "{level}");
    }
}

/// Runs it at a terminal of its own; gives the terminal's other end.
fn spawn_at_a_terminal(command: &mut Command) -> (Child, fs::File) {
    let (mut ours, mut its) = (-1, -1);
    let (none, no_mode, no_size) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: the two descriptors are ours to be written to, and the rest may be left out.
    assert_eq!(unsafe { libc::openpty(&mut ours, &mut its, none, no_mode, no_size) }, 0);
    // SAFETY: both were opened just now, and belong to nobody else.
    let (ours, its) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(its)) };
    let end = || Stdio::from(its.try_clone().unwrap());
    command.stdin(end()).stdout(end()).stderr(end());
    // SAFETY: both calls are async-signal-safe: a session of its own, whose terminal is standard input.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    (command.spawn().unwrap(), ours.into())
}

#[test]
fn enter_at_a_terminal_does_the_same() {
    let (server, place) = (OwnServer::start(), Place::new());
    let _load = Load::start(&place, &server);
    let mut record = place.whyso(&["record", "--dsn", &server.dsn("root", ""), "--toggle"]);
    let (mut child, terminal) = spawn_at_a_terminal(&mut record);
    let keys = terminal.try_clone().unwrap();
    let printed = PrintedText::listen(terminal);
    printed.wait_for(LISTENS, 0);
    let press = |mut keys: &fs::File, key: &[u8]| keys.write_all(key).unwrap();
    let enter = || press(&keys, b"\r");
    let wanted = [window(&printed, 1_200, enter, enter, "the window ends")];
    press(&keys, b"\x03");
    assert!(wait_until(SOON, || child.try_wait().unwrap().is_some()), "it did not end: {}", printed.all());
    assert!(child.wait().unwrap().success(), "{}", printed.all());
    assert_windows(&place.only_run(), &wanted);
}

#[test]
fn a_recording_in_which_no_window_began_is_reported() {
    let (server, place) = (OwnServer::start(), Place::new());
    let mut child = spawn(&mut place.whyso(&["record", "--dsn", &server.dsn("root", ""), "--toggle"]));
    let printed = PrintedText::listen(child.stderr.take().unwrap());
    printed.wait_for(LISTENS, 0);
    kill(child.id() as i32, libc::SIGINT);
    let ended = finish(child, SOON);
    assert!(!ended.status.success());
    printed.wait_for("interrupted before anything was measured", 0);
    assert!(!printed.all().contains("panicked"), "{}", printed.all());
    // Together with a command it is refused.
    let refused = output(&mut place.whyso(&["record", "--dsn", "mysql://a/", "--toggle", "--", "true"]));
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("the command's own time is the window"));
}

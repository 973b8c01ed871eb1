//! A recording of an hour of 1,000 connections and 3,000 series with stacks: every view of it stays within a bound of memory.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::Place;
use common::served::RunServer;
use serde_json::Value;

/// What a view of a large recording may take, in KiB.
const MEMORY_KIB_MAX: u64 = 400 << 10;

/// The program that makes recordings for benches is built with the tests.
fn maker() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let maker = program.parent().unwrap().parent().unwrap().join("examples/make_large");
    assert!(maker.is_file(), "{} is missing: `cargo test --workspace --no-run` builds it", maker.display());
    maker
}

fn large() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.runs()).unwrap();
    let made =
        Command::new(maker()).arg(place.runs().join("large")).args(["1", "1000", "3000"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    place
}

/// The most memory that a process had, as the kernel has it now.
fn memory_kib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Waits for a command, and gives what it printed and the most memory that it had.
fn watched(mut child: Child) -> (String, u64) {
    let mut most_kib = 0;
    let pid = child.id();
    let output = std::thread::scope(|scope| {
        let reader = child.stdout.take().unwrap();
        let printed = scope.spawn(move || std::io::read_to_string(reader).unwrap());
        while child.try_wait().unwrap().is_none() {
            most_kib = most_kib.max(memory_kib(pid).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(5));
        }
        printed.join().unwrap()
    });
    assert!(child.wait().unwrap().success(), "{output}");
    assert!(most_kib > 0);
    (output, most_kib)
}

#[test]
#[ignore = "long: make test-hard"]
fn views_of_a_large_recording_keep_to_a_bound_of_memory() {
    let place = large();
    let views: [(&[&str], &str); 9] = [
        (&["why", "large"], "Nobody is suspected"),
        (&["threads", "large", "--json"], "\"tid\""),
        (&["threads", "large", "--window", "600s-1200s", "--json"], "\"tid\""),
        (&["functions", "large", "--json"], "made_function_"),
        (&["wakers", "large", "--json"], "made_function_"),
        (&["timeline", "large"], "connection × 1,000"),
        (&["report", "large", "--format", "md"], "large"),
        (
            &["report", "large", "--format", "md", "--window", "600s-1200s"],
            "> This is a part of the run, from 10:00 to 20:00.",
        ),
        (&["report", "large", "--window", "10:00-20:00", "--output", "/dev/stdout"], "from 10:00 to 20:00"),
    ];
    for (view, expected) in views {
        let child = place.whyso(view).stdout(Stdio::piped()).spawn().unwrap();
        let (printed, most_kib) = watched(child);
        assert!(printed.contains(expected), "{view:?}: {}", &printed[..printed.len().min(2_000)]);
        assert!(most_kib <= MEMORY_KIB_MAX, "{view:?} took {most_kib} KiB");
    }

    let served = RunServer::start(&place, &[]);
    let bearer = served.bearer();
    let ask = |path: &str| {
        let (status, _, body) = served.ask("GET", &format!("/api/v1/runs/{path}"), &[&bearer], "");
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        body
    };
    let part = |path: &str| -> Value { serde_json::from_slice(&ask(path)).unwrap() };
    assert!(part("large/explained")["explanation"].is_object());
    let of_threads = part("large/profile/threads");
    assert_eq!(of_threads["threads"]["list"].as_array().unwrap().len(), 1_000);
    let timeline = part("large/profile/timeline");
    assert_eq!(timeline["timeline"]["list"].as_array().unwrap().len(), 1_000);
    // 225 samples and waits in each of 3,600 seconds: too many to read one by one.
    let note = timeline["timeline"]["singles"]["note"].as_str().unwrap();
    assert!(note.starts_with("Single waits and samples are those of 25 % of the time"), "{note}");
    let stacks = part("large/profile/stacks");
    let samples = &stacks["flame"]["levels"][0]["columns"][0]["samples"];
    assert_eq!(samples.as_u64(), Some(360_000), "every sample on a CPU is in the tree");
    let functions = stacks["series"].as_array().unwrap();
    assert_eq!(functions.len(), 9, "eight functions and all others");
    let block = timeline["timeline"]["block"].as_u64().unwrap();
    assert!(!ask(&format!("large/blocks/{block}")).is_empty());
    let series = functions[0]["slot"].as_u64().unwrap();
    assert!(!ask(&format!("large/series?numbers={series}&from_s=0&to_s=3600&px=800")).is_empty());
    ask("large/series?numbers=0,1,2,500&from_s=0&to_s=3600&px=800");
    ask("large/tables?from_s=0&to_s=3600");
    let most_kib = memory_kib(served.pid()).unwrap();
    assert!(most_kib <= MEMORY_KIB_MAX, "serve took {most_kib} KiB");
}

//! What is left when the recorder is killed, or its disk is full.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use whyso_record::data::{Event, Kind, Reading, SeriesKey, Status, Value};
use whyso_record::{Options, Recorder, Recording};

const CHILD_DIR: &str = "WHYSO_RECORD_TEST_CHILD";

fn key(metric: &str) -> SeriesKey {
    let [host, source, metric, unit] = ["client", "test", metric, "1"].map(str::to_string);
    SeriesKey { host, source, metric, instance: String::new(), kind: Kind::Counter, unit }
}

#[test]
fn kill_9_loses_at_most_the_last_second() {
    if let Ok(dir) = std::env::var(CHILD_DIR) {
        return record_until_killed(Path::new(&dir));
    }
    // Each kill meets another moment of writing, sealing and removing.
    for round in 0..4u32 {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill_9_loses_at_most_the_last_second", "--exact", "--nocapture"])
            .env(CHILD_DIR, &dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut last_recorded_ns = 0;
        let lines_wanted = 80 + 17 * round;
        let mut lines_read = 0;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            if let Some(t_ns) = line.strip_prefix("recorded ") {
                last_recorded_ns = t_ns.parse().unwrap();
                lines_read += 1;
                if lines_read >= lines_wanted {
                    break;
                }
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(lines_read, lines_wanted);
        let recording = Recording::open(&dir).unwrap();
        assert!(!recording.live());
        assert!(
            recording.problems().iter().any(|problem| problem.contains("ended without finishing")),
            "{:?}",
            recording.problems()
        );
        let series = recording.find("test", "n", None)[0];
        let read = recording.samples(series, None).unwrap();
        let expected: Vec<f64> = (0..read.len()).map(|n| n as f64).collect();
        assert_eq!(read.value, expected, "round {round}: a reading is missing or there twice");
        let lost_ns = last_recorded_ns - read.t_end_ns.last().unwrap();
        assert!(lost_ns < 1_000_000_000, "round {round}: {lost_ns} ns lost");
    }
}

/// One reading about each 2 ms, a line for each tenth, sealed every 200.
fn record_until_killed(dir: &Path) {
    let recorder = Recorder::create(dir, Options { reserve_bytes: 0, ..Options::default() }).unwrap();
    let series = recorder.series(&key("n"));
    let began = Instant::now();
    let mut n = 0;
    while began.elapsed() < Duration::from_secs(60) {
        let begin_ns = whyso_clock::monotonic_ns();
        let end_ns = whyso_clock::monotonic_ns();
        recorder.reading(Reading {
            source: "test".into(),
            begin_ns,
            end_ns,
            status: Status::Ok,
            values: vec![(series, Value::Int(n))],
        });
        n += 1;
        if n % 10 == 0 {
            println!("recorded {end_ns}");
        }
        if n % 200 == 0 {
            recorder.seal().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A small file system of its own, which goes with it.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, mib: u32) -> SmallDisk {
        std::fs::create_dir(at).unwrap();
        let size = format!("size={mib}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(at).status().unwrap();
        assert!(mounted.success(), "root can't mount a tmpfs here");
        SmallDisk(at.to_path_buf())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The recorder's thread may still close its last file.
        let unmount = || Command::new("umount").arg(&self.0).status().is_ok_and(|status| status.success());
        let unmounted = (0..100).any(|_| {
            unmount() || {
                std::thread::sleep(std::time::Duration::from_millis(50));
                false
            }
        });
        assert!(std::thread::panicking() || unmounted);
    }
}

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        whyso_testing::not_tested("a full disk needs root to mount a small file system");
    }
    root
}

#[test]
fn a_full_disk_ends_the_recording_properly() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(&folder.path().join("disk"), 12);
    let dir = disk.0.join("run");
    let recorder = Recorder::create(
        &dir,
        Options { reserve_bytes: 8 << 20, own_cost: false, flush_ms: 20, ..Options::default() },
    )
    .unwrap();
    let series: Vec<_> = (0..500).map(|n| recorder.series(&key(&format!("n{n}")))).collect();
    let mut readings: u64 = 0;
    while recorder.failed().is_none() {
        assert!(readings < 10_000, "the disk does not fill");
        let values = series.iter().map(|id| (*id, Value::Int(readings as i64))).collect();
        let end_ns = readings as i64 * 1_000_000;
        recorder.reading(Reading {
            source: "test".into(),
            begin_ns: end_ns,
            end_ns,
            status: Status::Ok,
            values,
        });
        readings += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    let why = recorder.failed().unwrap();
    assert!(why.starts_with("the disk that holds ") && why.contains("free some space"), "{why}");
    assert!(recorder.seal().is_err());
    recorder.reading(Reading {
        source: "test".into(),
        begin_ns: 0,
        end_ns: 0,
        status: Status::Ok,
        values: Vec::new(),
    });
    recorder.event(Event { t_ns: 1, host: "client".into(), kind: "error".into(), text: why });
    let summary = recorder.finish().unwrap();
    assert!(summary.lost >= 1);
    let recording = Recording::open(&dir).unwrap();
    let read = recording.samples(series[499], None).unwrap();
    let expected: Vec<f64> = (0..read.len()).map(|n| n as f64).collect();
    assert_eq!(read.value, expected);
    assert_eq!(read.len() as u64 + summary.lost, readings + 1);
    assert!(read.len() > 50, "{} of {readings}", read.len());
    let events = recording.events().unwrap();
    assert!(events.iter().any(|event| event.kind == "error"));
    assert!(events.iter().any(|event| event.kind == "lost" && event.text.contains("is full")));
}

#[test]
fn a_disk_without_room_for_the_reserve_is_refused() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = SmallDisk::mount(&folder.path().join("disk"), 4);
    let dir = disk.0.join("run");
    let error = Recorder::create(&dir, Options::default()).err().unwrap().to_string();
    assert!(error.contains("has less than 64 MiB free"), "{error}");
    assert!(!dir.exists(), "no folder is left");
}

//! A recording whose file system fails at any call: what was sealed stays, what is lost is counted, and nothing stays behind for ever.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use whyso_record::data::{Event, Kind, Reading, SeriesKey, Status, Value};
use whyso_record::run::{RunEnd, RunInfo};
use whyso_record::{Options, Recorder, Recording, check_run};
use whyso_testing::faults::{Fault, Faults, spread};

const CHILD_DIR: &str = "WHYSO_RECORD_FAULTS_CHILD";
const LEVELS: i64 = 3;
const READINGS_OF_LEVEL: i64 = 8;
/// The size from which the faults count a removed file as room on the disk.
const RESERVE_BYTES: u64 = 1 << 20;

fn key(metric: &str) -> SeriesKey {
    let [host, source, metric, unit] = ["client", "test", metric, "1"].map(str::to_string);
    SeriesKey { host, source, metric, instance: String::new(), kind: Kind::Gauge, unit }
}

/// Prints what it was promised, so that the test can hold the recording against it.
fn record(dir: &Path) -> Result<(), whyso_record::Error> {
    let options =
        Options { reserve_bytes: RESERVE_BYTES, own_cost: false, flush_ms: 2, ..Options::default() };
    let recorder = Recorder::create(dir, options)?;
    println!("created");
    let mut readings = 0;
    for level in 0..LEVELS {
        for _ in 0..READINGS_OF_LEVEL {
            readings += 1;
            recorder.reading(Reading {
                source: "test".into(),
                begin_ns: readings * 1_000_000,
                end_ns: readings * 1_000_000,
                status: Status::Ok,
                values: vec![(recorder.series(&key("n")), Value::Int(readings))],
            });
        }
        let text = format!("level {level}");
        recorder.event(Event {
            t_ns: readings * 1_000_000,
            host: "client".into(),
            kind: "level".into(),
            text,
        });
        match recorder.seal() {
            Ok(()) => println!("sealed {readings}"),
            Err(error) => println!("not sealed: {error}"),
        }
    }
    recorder.set_run(&RunInfo {
        id: "run".into(),
        ended: Some(RunEnd::Complete { at_ns: 25_000_000 }),
        ..RunInfo::default()
    });
    let finished = recorder.finish();
    println!("failed: {:?}", recorder.failed());
    println!("finished {readings} lost {}", finished?.lost);
    Ok(())
}

#[test]
fn the_child_records() {
    let Ok(dir) = std::env::var(CHILD_DIR) else { return };
    if let Err(error) = record(Path::new(&dir)) {
        println!("error: {error}");
        std::process::exit(1);
    }
    std::process::exit(0);
}

fn run_child(faults: &Faults, runs: &Path, fault: Option<(Fault, usize)>) -> Output {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["the_child_records", "--exact", "--nocapture"]).env(CHILD_DIR, runs.join("run"));
    faults.inject(&mut child, runs, fault);
    child.stdin(Stdio::null()).output().unwrap()
}

fn number_after(text: &str, word: &str) -> Option<i64> {
    let mut numbers =
        text.lines().filter_map(|line| line.split_once(word)?.1.split(' ').next()?.parse().ok());
    numbers.next_back()
}

/// Compares what is left with what the recorder printed.
fn check(runs: &Path, output: &Output, what: &str) {
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let what = format!("{what}\n{printed}");
    assert!(!printed.contains("panicked") && output.status.code() != Some(101), "{what}");
    let dir = runs.join("run");
    let was_created = printed.contains("created");
    let finished = number_after(&printed, "finished ");
    let lost = number_after(&printed, "lost ");
    let is_silent = printed.contains("failed: None") && lost == Some(0) && output.status.success();
    match Recording::open(&dir) {
        Err(error) => assert!(!was_created, "{what}\n{error}"),
        Ok(recording) => {
            assert!(!recording.live(), "{what}");
            let found = recording.find("test", "n", None);
            let values: Vec<i64> = match found.first() {
                Some(series) => {
                    let read = recording.samples(*series, None).unwrap();
                    read.value.iter().map(|value| *value as i64).collect()
                }
                None => Vec::new(),
            };
            let once: BTreeSet<i64> = values.iter().copied().collect();
            assert_eq!(once.len(), values.len(), "a reading is there twice: {values:?}\n{what}");
            let sealed =
                number_after(&printed, "\nsealed ").or(number_after(&printed, "sealed ")).unwrap_or(0);
            let missing: Vec<i64> = (1..=sealed).filter(|value| !once.contains(value)).collect();
            assert!(missing.is_empty(), "sealed and gone: {missing:?}\n{what}");
            if let (Some(readings), Some(lost)) = (finished, lost) {
                assert!(
                    once.len() as i64 + lost >= readings,
                    "{} of {readings}, {lost} lost\n{what}",
                    once.len()
                );
                // Each event and each reading counts as one piece.
                let events = recording.events().unwrap().iter().filter(|event| event.kind == "level").count();
                assert!(!is_silent || events as i64 == LEVELS, "{events} events\n{what}");
            }
            if is_silent {
                assert_eq!(finished, Some(once.len() as i64), "{what}");
                assert!(recording.problems().is_empty(), "{:?}\n{what}", recording.problems());
            } else if output.status.success() {
                assert!(printed.contains("failed: Some"), "lost without a word: {what}");
            }
            let checked = check_run(&dir).unwrap();
            let folder = dir.display().to_string();
            assert!(checked.problems.iter().all(|problem| problem.contains(&folder)), "{checked:?}\n{what}");
            assert!(!is_silent || checked.problems.is_empty(), "{checked:?}\n{what}");
        }
    }
    // The next recording in the same folder works, and sweeps what was left.
    let next =
        Recorder::create(&runs.join("next"), Options { reserve_bytes: 0, ..Options::default() }).unwrap();
    next.finish().unwrap();
    for folder in fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().path()) {
        let files: Vec<String> = fs::read_dir(&folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(files.iter().all(|file| !file.starts_with('.')), "{}: {files:?}\n{what}", folder.display());
        assert!(files.is_empty() || files.iter().any(|file| file == "run.json"), "{files:?}\n{what}");
    }
}

fn fail_everywhere(faults_at_most: usize) {
    let Some(faults) = Faults::compile() else { return };
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let runs = |name: String| {
        let runs = place.path().join(name);
        fs::create_dir(&runs).unwrap();
        runs
    };
    let counted = runs("counted".to_string());
    let output = run_child(&faults, &counted, None);
    let calls = faults.calls();
    check(&counted, &output, "without a fault");
    assert!(output.status.success() && calls.len() > 50, "{} calls", calls.len());
    let (mut cases, mut failures) = (0, Vec::new());
    for fault in Fault::ALL {
        for at in spread(calls.len(), faults_at_most) {
            let call = &calls[at - 1];
            if !fault.matters_at(call) {
                continue;
            }
            let runs = runs(format!("{fault:?}-{at}"));
            let output = run_child(&faults, &runs, Some((fault, at)));
            let what = format!("{fault:?} at call {at}, {call:?}");
            cases += 1;
            let checked = std::panic::catch_unwind(|| check(&runs, &output, &what));
            failures.extend(checked.err().map(|_| what));
        }
    }
    println!("{cases} cases of {} calls", calls.len());
    assert!(failures.is_empty(), "{} of {cases} cases:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn a_recording_survives_a_fault_at_any_of_many_calls() {
    fail_everywhere(50);
}

#[test]
#[ignore = "long: make test-hard"]
fn a_recording_survives_a_fault_at_every_call() {
    fail_everywhere(usize::MAX);
}

//! What is done to recordings as a whole, with a file system that fails at any call. A command that is run again
//! finishes what was begun.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use common::{Place, output, text};
use whyso_record::data::{Event, Kind, Reading, SeriesKey, Status, Value};
use whyso_record::run::{RunEnd, RunInfo};
use whyso_record::{Options, Recorder, Recording};
use whyso_testing::faults::{Fault, Faults, spread};

/// A recording of several sealed segments that were never compacted.
fn record(dir: &Path) {
    let options = Options { reserve_bytes: 0, own_cost: false, ..Options::default() };
    let recorder = Recorder::create(dir, options).unwrap();
    let [host, source, metric, unit] = ["client", "test", "n", "1"].map(str::to_string);
    let key = SeriesKey { host, source, metric, instance: String::new(), kind: Kind::Gauge, unit };
    let series = recorder.series(&key);
    recorder.set_run(&RunInfo {
        id: "run".into(),
        ended: Some(RunEnd::Complete { at_ns: 9 }),
        ..RunInfo::default()
    });
    for n in 1..4 {
        let values = vec![(series, Value::Int(n))];
        recorder.reading(Reading {
            source: "test".into(),
            begin_ns: n,
            end_ns: n,
            status: Status::Ok,
            values,
        });
        recorder.event(Event { t_ns: n, host: "client".into(), kind: "level".into(), text: n.to_string() });
        recorder.seal().unwrap();
    }
    drop(recorder);
    let ended = common::wait_until(common::SOON, || !Recording::open(dir).unwrap().live());
    assert!(ended, "the recorder does not end");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

struct Bench {
    place: Place,
    faults: Faults,
    /// What each case begins with: `runs/run` with a note, and a backup of it.
    base: PathBuf,
    /// Calls of one command at which it fails.
    at_most: usize,
}

impl Bench {
    fn new(at_most: usize) -> Option<Bench> {
        let (place, faults) = (Place::new(), Faults::compile()?);
        let base = place.path().join("base");
        fs::create_dir_all(base.join("runs")).unwrap();
        record(&base.join("runs/run"));
        whyso_record::add_note(&base.join("runs/run"), 2, "the first").unwrap();
        whyso_record::backup_runs(&[base.join("runs/run")], &base.join("backup.tar")).unwrap();
        Some(Bench { place, faults, base, at_most })
    }

    fn whyso(&self, folder: &Path, args: &[&str], fault: Option<Option<(Fault, usize)>>) -> Output {
        let mut command = self.place.whyso(args);
        command.current_dir(folder);
        if let Some(fault) = fault {
            self.faults.inject(&mut command, folder, fault);
        }
        let output = output(&mut command);
        let messages = text(&output.stdout) + &text(&output.stderr);
        assert!(
            !messages.contains("panicked") && output.status.code() != Some(101),
            "{args:?} {fault:?}: {messages}"
        );
        output
    }

    /// Runs a command once for each fault and call; `check` gets the folder, and whether the command reported success.
    fn fail_everywhere(&self, args: &[&str], prepare: impl Fn(&Path), check: impl Fn(&Path, bool)) -> usize {
        let folder_of = |name: &str| {
            let folder = self.place.path().join(name);
            copy(&self.base, &folder);
            prepare(&folder);
            folder
        };
        let counted = folder_of("counted");
        let counting = self.whyso(&counted, args, Some(None));
        assert!(counting.status.success(), "{args:?}: {}", text(&counting.stderr));
        let calls = self.faults.calls();
        assert!(!calls.is_empty(), "{args:?} changes no file");
        check(&counted, true);
        fs::remove_dir_all(&counted).unwrap();
        let mut cases = 0;
        for fault in Fault::ALL {
            for at in
                spread(calls.len(), self.at_most).into_iter().filter(|at| fault.matters_at(&calls[at - 1]))
            {
                let folder = folder_of("case");
                let output = self.whyso(&folder, args, Some(Some((fault, at))));
                let messages = text(&output.stdout) + &text(&output.stderr);
                println!(
                    "{args:?}: {fault:?} at call {at}, {:?}: {} {messages}",
                    calls[at - 1],
                    output.status
                );
                check(&folder, output.status.success());
                let left: Vec<_> =
                    fs::read_dir(folder.join("runs")).unwrap().map(|run| run.unwrap()).collect();
                let left: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
                assert!(left.iter().all(|run| run == "run"), "{left:?} is left");
                fs::remove_dir_all(&folder).unwrap();
                cases += 1;
            }
        }
        cases
    }

    fn must(&self, folder: &Path, args: &[&str]) {
        let output = self.whyso(folder, args, None);
        assert!(output.status.success(), "{args:?}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

fn notes(folder: &Path) -> Vec<String> {
    let events = Recording::open(&folder.join("runs/run")).unwrap().events().unwrap();
    events.into_iter().filter(|event| event.kind == "note").map(|note| note.text).collect()
}

#[test]
fn a_command_on_recordings_that_fails_can_be_run_again() {
    fail_everywhere(4);
}

#[test]
#[ignore = "long: make test-hard"]
fn a_command_on_recordings_that_fails_at_any_call_can_be_run_again() {
    fail_everywhere(usize::MAX);
}

fn fail_everywhere(at_most: usize) {
    let Some(bench) = Bench::new(at_most) else { return };
    let mut cases = 0;

    let args = ["note", "the second", "run", "--at", "0s"];
    cases += bench.fail_everywhere(
        &args,
        |_| {},
        |folder, is_done| {
            let there = notes(folder);
            let is_there = there.contains(&"the second".to_string());
            assert!(there.contains(&"the first".to_string()) && (!is_done || is_there), "{there:?}");
            bench.must(folder, &["note", "the third", "run", "--at", "0s"]);
            let then = notes(folder);
            assert!(there.iter().all(|note| then.contains(note)), "{there:?}, then {then:?}");
            assert!(then.contains(&"the third".to_string()), "{then:?}");
        },
    );

    let rm = ["runs", "rm", "run", "--yes"];
    cases += bench.fail_everywhere(
        &rm,
        |_| {},
        |folder, is_done| {
            assert!(!is_done || !folder.join("runs/run").exists());
            // What is left is removed by the next that writes here.
            if folder.join("runs/run").exists() {
                bench.must(folder, &rm);
            }
            bench.must(folder, &["runs", "import", "backup.tar"]);
            bench.must(folder, &["runs", "check"]);
            bench.must(folder, &rm);
        },
    );

    let prune = ["runs", "prune", "--size", "1KiB", "run"];
    cases += bench.fail_everywhere(
        &prune,
        |_| {},
        |folder, is_done| {
            bench.must(folder, &prune);
            let recording = Recording::open(&folder.join("runs/run")).unwrap();
            let values = recording.samples(recording.find("test", "n", None)[0], None).unwrap().value;
            assert_eq!(values, [3.0], "pruned to the newest segment");
            assert_eq!(recording.events().unwrap().iter().filter(|event| event.kind == "level").count(), 3);
            let checked = whyso_record::check_run(&folder.join("runs/run")).unwrap();
            assert!(checked.problems.is_empty() || !is_done, "{checked:?}");
            let names_files = checked.problems.iter().all(|problem| problem.contains("runs/run/"));
            assert!(names_files, "{checked:?}");
        },
    );

    let backup = ["runs", "backup", "--output", "second.tar"];
    cases += bench.fail_everywhere(
        &backup,
        |_| {},
        |folder, is_done| {
            let second = folder.join("second.tar");
            bench.must(folder, &rm);
            if second.exists() {
                let imported = bench.whyso(folder, &["runs", "import", "second.tar"], None).status.success();
                assert!(imported || !is_done, "a backup that succeeded can't be imported");
            }
            if !folder.join("runs/run").exists() {
                bench.must(folder, &["runs", "import", "backup.tar"]);
            }
            bench.must(folder, &["runs", "check"]);
        },
    );

    let import = ["runs", "import", "backup.tar"];
    let without_the_run = |folder: &Path| fs::remove_dir_all(folder.join("runs/run")).unwrap();
    cases += bench.fail_everywhere(&import, without_the_run, |folder, is_done| {
        assert!(!is_done || folder.join("runs/run").exists());
        bench.must(folder, &import);
        bench.must(folder, &["runs", "check"]);
        assert_eq!(notes(folder), ["the first"]);
    });
    println!("{cases} cases");
}

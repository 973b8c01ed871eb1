//! The server's threads over time, as a recorder received them and as older recordings have them.

use whyso_record::data::{StatesInterval, TextRows, ThreadStates};
use whyso_record::run::RunInfo;
use whyso_record::{Options, Recorder, Recording, list_runs};

const S: i64 = 1_000_000_000;

fn options() -> Options {
    Options { reserve_bytes: 1 << 20, own_cost: false, ..Options::default() }
}

#[test]
fn thread_states_come_back_from_a_finished_and_from_an_abandoned_recording() {
    let interval = |begin_ns, t_ns, cpu_ms, lock_ms| StatesInterval {
        begin_ns,
        t_ns,
        states: vec!["cpu".to_string(), "lock".to_string()],
        threads: (7..9)
            .map(|tid| ThreadStates {
                tid,
                born_ns: 5,
                name: format!("name {tid}"),
                role: "connection".to_string(),
                states_ms: vec![cpu_ms, lock_ms],
                requests: 3,
            })
            .collect(),
    };
    let runs = tempfile::tempdir().unwrap();
    for finished in [true, false] {
        let dir = runs.path().join(format!("finished-{finished}"));
        let recorder = Recorder::create(&dir, options()).unwrap();
        recorder.set_run(&RunInfo::default());
        recorder.states(&interval(S, 2 * S, 900, 100));
        recorder.seal().unwrap();
        recorder.states(&interval(2 * S, 3 * S, 0, 1000));
        recorder.states(&StatesInterval::default());
        if finished {
            recorder.finish().unwrap();
        } else {
            drop(recorder);
            let waited = std::time::Instant::now();
            while list_runs(runs.path()).unwrap().iter().any(|run| run.path == dir && run.live) {
                assert!(waited.elapsed().as_secs() < 20, "the recorder does not end");
                std::thread::yield_now();
            }
        }
        let recording = Recording::open(&dir).unwrap();
        let times = recording.state_times().unwrap();
        assert_eq!((times.t_ns, times.threads), (vec![S, 2 * S, 3 * S], 2));
        let timeline = recording.timeline(&[S, 2 * S, 3 * S]).unwrap();
        assert_eq!(timeline.states, ["cpu", "lock"]);
        let named: Vec<(u32, &str)> =
            timeline.threads.iter().map(|thread| (thread.tid, thread.name.as_str())).collect();
        assert_eq!(named, [(7, "name 7"), (8, "name 8")]);
        for thread in 0..2 {
            assert_eq!(timeline.cell(thread, 0).unwrap(), [900.0, 100.0]);
            assert_eq!(timeline.cell(thread, 1).unwrap(), [0.0, 1000.0]);
        }
        let half = recording.timeline(&[5 * S / 2, 3 * S]).unwrap();
        assert_eq!(half.cell(0, 0).unwrap(), [0.0, 500.0]);
    }
}

#[test]
fn a_recording_without_thread_states_has_a_timeline_of_its_snapshots_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let recorder = Recorder::create(&dir, options()).unwrap();
    let columns = ["tid", "born_ns", "name", "role", "cpu_ns", "lock_ns"].map(str::to_string).to_vec();
    let row = |tid: u32, cpu_ms: i64, lock_ms: i64| {
        [tid.to_string(), "5".to_string(), "one".to_string(), "purge".to_string()]
            .into_iter()
            .chain([cpu_ms, lock_ms].map(|ms| (ms * 1_000_000).to_string()))
            .map(Some)
            .collect::<Vec<_>>()
    };
    for (second, rows) in [
        (10, vec![row(1, 7_000, 0)]),
        (20, vec![row(1, 11_000, 6_000), row(2, 3_000, 0)]),
        (30, vec![row(2, 3_000, 10_000)]),
    ] {
        let (source, columns) = ("threads".to_string(), columns.clone());
        recorder.rows(TextRows { source, t_ns: second * S, columns, rows });
    }
    recorder.finish().unwrap();
    let recording = Recording::open(&dir).unwrap();
    assert_eq!(recording.state_times().unwrap().t_ns, [10 * S, 20 * S, 30 * S]);
    let timeline = recording.timeline(&[10 * S, 20 * S, 30 * S]).unwrap();
    assert_eq!(timeline.cell(0, 0).unwrap(), [4_000.0, 6_000.0]);
    assert_eq!(timeline.cell(0, 1), None);
    assert_eq!(timeline.cell(1, 0).unwrap(), [3_000.0, 0.0]);
    assert_eq!(timeline.cell(1, 1).unwrap(), [0.0, 10_000.0]);
}

//! Stacks of the server's threads and of other programs: what a recorder receives is what a recording gives back.

mod common;

use common::{abandon, options};
use whyso_record::data::{ProgramSample, ProgramWait, StackFrame, StackSample, StackWait};
use whyso_record::run::{RunInfo, Window};
use whyso_record::{Recorder, Recording};

#[test]
fn stacks_come_back_from_a_finished_and_from_an_abandoned_recording() {
    let sample = |t_ns, stack| StackSample {
        t_ns,
        tid: 7,
        role: "connection".to_string(),
        stack,
        weight_ns: 10_101_010,
    };
    let wait = |t_ns, waker_stack| StackWait {
        t_ns,
        wait: t_ns as u64,
        tid: 7,
        role: "connection".to_string(),
        state: "lock".to_string(),
        length_ns: 5,
        weight_ns: 500,
        stack: 1,
        waker_tid: 8,
        waker_stack,
        waker_past: Vec::new(),
    };
    let frame = |stack, depth, line: Option<u32>| StackFrame {
        stack,
        depth,
        function: "log_write_up_to".to_string(),
        module: "mariadbd".to_string(),
        build_id: line.map(|_| "0a".to_string()),
        address: u64::MAX - 5,
        source_file: line.map(|_| "log0log.cc".to_string()),
        line,
        inlined: depth == 0,
    };
    let samples = [sample(5, 0), sample(10, 1), sample(20, 0)];
    let waits = [wait(6, None), wait(12, Some(0))];
    let frames = [frame(0, 0, Some(1370)), frame(0, 1, None), frame(1, 0, Some(4))];
    let runs = tempfile::tempdir().unwrap();
    for finished in [true, false] {
        let dir = runs.path().join(format!("finished-{finished}"));
        let recorder = Recorder::create(&dir, options()).unwrap();
        recorder.set_run(&RunInfo::default());
        recorder.stacks(&samples[..2]);
        recorder.waits(&waits);
        recorder.frames(&frames[2..]);
        recorder.seal().unwrap();
        recorder.stacks(&samples[2..]);
        recorder.stacks(&[]);
        recorder.frames(&frames[..2]);
        if finished {
            recorder.finish().unwrap();
        } else {
            abandon(recorder, &dir);
        }
        let recording = Recording::open(&dir).unwrap();
        assert_eq!(recording.stacks(None).unwrap(), samples);
        assert_eq!(recording.waits(None).unwrap(), waits);
        assert_eq!(recording.frames().unwrap(), frames);
        let window = Some(Window { begin_ns: 6, end_ns: 12 });
        assert_eq!(recording.stacks(window).unwrap(), samples[1..2]);
        assert_eq!(recording.waits(window).unwrap(), waits[..1]);
    }
}

#[test]
fn samples_and_waits_of_programs_come_back_and_are_none_of_the_servers() {
    let sample = |t_ns, program: &str, origin: &str, stack| ProgramSample {
        t_ns,
        pid: 7,
        program: program.to_string(),
        origin: origin.to_string(),
        stack,
        weight_ns: 10,
    };
    let samples = [
        sample(5, "python3", "process", 0),
        sample(6, "[kworker]", "kernel", 1),
        sample(7, "python3", "process", 0),
        sample(8, "whyso", "observer", 1),
        sample(9, "python3", "process", 1),
    ];
    let wait = |t_ns, program: &str, state: &str, stack| ProgramWait {
        t_ns,
        tid: 8,
        program: program.to_string(),
        state: state.to_string(),
        length_ns: 4,
        weight_ns: 20,
        stack,
    };
    let waits = [
        wait(5, "python3", "lock", 0),
        wait(6, "python3", "kernel_lock", 0),
        wait(8, "python3", "lock", 0),
        wait(9, "python3", "lock", 1),
    ];
    let frame = StackFrame {
        stack: 0,
        depth: 0,
        function: "_PyEval_EvalFrameDefault".to_string(),
        module: "python3.13".to_string(),
        build_id: None,
        address: 5,
        source_file: None,
        line: None,
        inlined: false,
    };
    let runs = tempfile::tempdir().unwrap();
    for finished in [true, false] {
        let dir = runs.path().join(format!("finished-{finished}"));
        let recorder = Recorder::create(&dir, options()).unwrap();
        recorder.set_run(&RunInfo::default());
        recorder.program_stacks(&samples[..2]);
        recorder.program_stacks(&[]);
        recorder.seal().unwrap();
        recorder.program_stacks(&samples[2..]);
        recorder.program_waits(&waits);
        recorder.program_frames(std::slice::from_ref(&frame));
        if finished {
            recorder.finish().unwrap();
        } else {
            abandon(recorder, &dir);
        }
        let recording = Recording::open(&dir).unwrap();
        let knows_all = !recording.problems().iter().any(|problem| problem.contains("knows no stream"));
        assert!(knows_all, "{:?}", recording.problems());
        assert!(recording.has_program_stacks());
        let sums = recording.program_sums(Window { begin_ns: 5, end_ns: 9 }).unwrap();
        let sums: Vec<_> = sums
            .iter()
            .map(|total| (&*total.program, &*total.origin, total.stack, total.sum.count, total.sum.weight_ns))
            .collect();
        let expected = [
            ("[kworker]", "kernel", 1, 1, 10),
            ("python3", "process", 0, 2, 20),
            ("whyso", "observer", 1, 1, 10),
        ];
        assert_eq!(sums, expected);
        assert!(recording.has_program_waits());
        let sums = recording.program_wait_sums(Window { begin_ns: 5, end_ns: 9 }).unwrap();
        let sums: Vec<_> = sums
            .iter()
            .map(|total| (&*total.program, &*total.state, total.stack, total.sum.count, total.sum.weight_ns))
            .collect();
        assert_eq!(sums, [("python3", "kernel_lock", 0, 1, 20), ("python3", "lock", 0, 2, 40)]);
        assert_eq!(recording.program_frames().unwrap(), std::slice::from_ref(&frame));
        let everything = Window { begin_ns: 0, end_ns: i64::MAX };
        assert_eq!(recording.stacks(None).unwrap(), []);
        assert_eq!(recording.frames().unwrap(), []);
        assert_eq!(recording.waits(None).unwrap(), []);
        assert_eq!(recording.stack_sums(everything).unwrap(), []);
        assert_eq!(recording.stacks_spread(None, 100).unwrap().samples, []);
    }
}

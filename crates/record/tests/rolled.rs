//! What comes from roll-ups equals what comes from detail, whatever was sealed and compacted meanwhile.

use std::collections::BTreeMap;

use proptest::prelude::*;
use whyso_record::data::{StackSample, StackWait, StatesInterval, TextRows, ThreadStates};
use whyso_record::run::{RunInfo, Window};
use whyso_record::{Options, Recorder, Recording, StackTotal};

const S: i64 = 1_000_000_000;
/// Not a whole number of buckets after zero.
const BEGIN_NS: i64 = 7_003 * S + 250_000_000;
const STATES: [&str; 3] = ["cpu", "lock", "net_receive"];

/// A thread's milliseconds on a CPU in a second; `None`: it was not there.
type Second = Vec<Option<u16>>;

fn interval(second: usize, threads: &Second) -> StatesInterval {
    let begin_ns = BEGIN_NS + second as i64 * S;
    let thread = |(number, cpu_ms): (usize, &Option<u16>)| {
        cpu_ms.map(|cpu_ms| ThreadStates {
            tid: 100 + number as u32,
            born_ns: 5,
            name: format!("name {number}"),
            role: "connection".to_string(),
            states_ms: vec![cpu_ms, 0, 1000 - cpu_ms],
            requests: u32::from(cpu_ms),
        })
    };
    StatesInterval {
        begin_ns,
        t_ns: begin_ns + S,
        states: STATES.map(str::to_string).to_vec(),
        threads: threads.iter().enumerate().filter_map(thread).collect(),
    }
}

fn sample(t_ns: i64, stack: u32) -> StackSample {
    StackSample { t_ns, tid: 100, role: "connection".to_string(), stack, weight_ns: 10 }
}

fn wait(t_ns: i64, stack: u32) -> StackWait {
    StackWait {
        t_ns,
        wait: 1,
        tid: 100,
        role: "purge".to_string(),
        state: "lock".to_string(),
        length_ns: 3,
        weight_ns: 30,
        stack,
        waker_tid: 0,
        waker_stack: None,
        waker_past: Vec::new(),
    }
}

/// Records these seconds, seals before those that are listed, and hands over the recording twice: unfinished, and finished.
fn recorded(seconds: &[Second], sealed_before: &[usize], check: impl Fn(&Recording)) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let options = Options { reserve_bytes: 0, own_cost: false, flush_ms: 1, ..Options::default() };
    let recorder = Recorder::create(&dir, options).unwrap();
    recorder.set_run(&RunInfo::default());
    for (second, threads) in seconds.iter().enumerate() {
        if sealed_before.contains(&second) {
            recorder.seal().unwrap();
        }
        let interval = interval(second, threads);
        let t_ns = interval.begin_ns;
        recorder.states(&interval);
        recorder.stacks(&[sample(t_ns, second as u32 % 3), sample(t_ns + 5, 7)]);
        recorder.waits(&[wait(t_ns + 9, second as u32 % 2)]);
        let rows = vec![vec![Some(second.to_string())]];
        let (source, columns) = ("r".to_string(), vec!["second".to_string()]);
        recorder.rows(TextRows { source, t_ns, columns, rows });
    }
    recorder.seal().unwrap();
    check(&Recording::open(&dir).unwrap());
    recorder.finish().unwrap();
    check(&Recording::open(&dir).unwrap());
}

fn seconds() -> impl Strategy<Value = Vec<Second>> {
    let thread = prop_oneof![2 => Just(Some(0)), 2 => (1u16..1000).prop_map(Some), 1 => Just(None)];
    prop::collection::vec(prop::collection::vec(thread, 3), 1..700)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn roll_ups_hold_what_the_seconds_held(
        seconds in seconds(),
        sealed_before in prop::collection::vec(0usize..700, 0..4),
        (from, length) in (-20i64..720, 1i64..720),
    ) {
        let window = Window { begin_ns: BEGIN_NS + from * S, end_ns: BEGIN_NS + (from + length) * S };
        let lies_within = |second: usize| (from..from + length).contains(&(second as i64));
        let mut expected: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        let mut stacks: BTreeMap<(String, u32), u64> = BTreeMap::new();
        for (second, threads) in seconds.iter().enumerate().filter(|(second, _)| lies_within(*second)) {
            for (number, cpu_ms) in threads.iter().enumerate() {
                if let Some(cpu_ms) = cpu_ms {
                    let sum = expected.entry(100 + number as u32).or_default();
                    *sum = (sum.0 + f64::from(*cpu_ms), sum.1 + 1000.0);
                }
            }
            *stacks.entry(("cpu".to_string(), second as u32 % 3)).or_default() += 1;
            *stacks.entry(("cpu".to_string(), 7)).or_default() += 1;
            *stacks.entry(("lock".to_string(), second as u32 % 2)).or_default() += 1;
        }
        recorded(&seconds, &sealed_before, |recording| {
            let times = recording.thread_times(window).unwrap();
            assert!(recording.has_thread_stretches());
            assert_eq!(times.threads.len(), expected.len());
            for thread in &times.threads {
                let (cpu_ms, all_ms) = expected[&thread.tid];
                let found_ms = thread.states_ns[0] as f64 / 1e6;
                assert!((found_ms - cpu_ms).abs() <= 0.01, "{}: {found_ms}, {cpu_ms}", thread.tid);
                assert!((thread.window_ns as f64 / 1e6 - all_ms).abs() <= 0.01);
                assert!((thread.requests as f64 - cpu_ms).abs() <= 0.5);
            }
            let whole = recording.thread_times(Window { begin_ns: i64::MIN, end_ns: i64::MAX }).unwrap();
            let all_ns: u64 = whole.threads.iter().map(|thread| thread.window_ns).sum();
            let there = seconds.iter().flatten().filter(|cpu_ms| cpu_ms.is_some()).count() as u64;
            assert!(all_ns.abs_diff(there * S as u64) <= 100, "{all_ns} of {there} s");

            let mut found: BTreeMap<(String, u32), u64> = BTreeMap::new();
            for total in recording.stack_sums(window).unwrap() {
                assert_eq!(total.sum.weight_ns, total.sum.count * if &*total.state == "cpu" { 10 } else { 30 });
                *found.entry((total.state.to_string(), total.stack)).or_default() += total.sum.count;
            }
            assert_eq!(found, stacks);
            // A sample is an estimate as a whole; of a wait, what is longer than it was seen.
            let variance = |total: &StackTotal| if &*total.state == "cpu" { 100.0 } else { 30.0 * 27.0 };
            for bucket_s in [1, 50, 120, 600, 3_600] {
                let totals = recording.stack_buckets(window, bucket_s * S, |_, stack| Some(stack)).unwrap();
                let mut by_stack: BTreeMap<(String, u32), u64> = BTreeMap::new();
                for total in &totals {
                    assert!((total.sum.variance_ns2 - total.sum.count as f64 * variance(total)).abs() < 1e-6);
                    assert!(total.t_ns == window.begin_ns || total.t_ns % (bucket_s * S) == 0);
                    *by_stack.entry((total.state.to_string(), total.stack)).or_default() += total.sum.count;
                }
                assert_eq!(by_stack, stacks, "{bucket_s} s");
            }
            let on_cpu = recording.stack_buckets(window, i64::MAX, |state, _| (state == "cpu").then_some(1)).unwrap();
            assert!(on_cpu.len() <= 1 && on_cpu.iter().all(|total| total.stack == 1));
            assert_eq!(recording.stacks(Some(window)).unwrap().len() as u64, stacks.iter().filter(|((state, _), _)| state == "cpu").map(|(_, count)| count).sum::<u64>());
            let tables = recording.rows("r", Some(Window { end_ns: window.end_ns - 1, ..window })).unwrap();
            assert_eq!(tables.len(), (0..seconds.len()).filter(|second| lies_within(*second)).count());
        });
    }
}

#[test]
fn threads_that_do_nothing_take_next_to_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let options = Options { reserve_bytes: 0, own_cost: false, ..Options::default() };
    let recorder = Recorder::create(&dir, options).unwrap();
    recorder.set_run(&RunInfo::default());
    for second in 0..300 {
        // One works each tenth second, the others never.
        let works = second % 10 == 0;
        let threads: Second =
            (0..50).map(|number| Some(if number == 0 && works { 400 } else { 0 })).collect();
        recorder.states(&interval(second, &threads));
    }
    recorder.finish().unwrap();
    let recording = Recording::open(&dir).unwrap();
    let rows: usize = recording.batches("states").unwrap().iter().map(|batch| batch.num_rows()).sum();
    assert!(rows <= 50 * 11 + 60, "{rows}");
    let timeline = recording.timeline(&[BEGIN_NS, BEGIN_NS + 10 * S, BEGIN_NS + 300 * S]).unwrap();
    let idle = timeline.threads.iter().position(|thread| thread.tid == 120).unwrap();
    assert_eq!(timeline.cell(idle, 0).unwrap(), [0.0, 0.0, 10_000.0]);
    assert_eq!(timeline.cell(idle, 1).unwrap(), [0.0, 0.0, 290_000.0]);
}

/// Of very many samples, parts of the time are read. What happens only between them is missing, while sums know all of it.
#[test]
fn a_burst_between_the_parts_that_are_read_is_in_the_sums_only() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let recorder = Recorder::create(&dir, Options { reserve_bytes: 0, ..Options::default() }).unwrap();
    recorder.set_run(&RunInfo::default());
    let samples: Vec<StackSample> = (0..64_000i64)
        .map(|at| sample(BEGIN_NS + at * S / 100, if at % 1_000 < 100 { 9 } else { 1 }))
        .collect();
    recorder.stacks(&samples);
    recorder.finish().unwrap();
    let recording = Recording::open(&dir).unwrap();
    let sums = recording.stack_sums(Window { begin_ns: 0, end_ns: i64::MAX }).unwrap();
    let counts: Vec<(u32, u64)> = sums.iter().map(|total| (total.stack, total.sum.count)).collect();
    assert_eq!(counts, [(1, 57_600), (9, 6_400)]);
    let spread = recording.stacks_spread(None, 6_400).unwrap();
    assert!((spread.part - 0.1).abs() < 0.001, "{}", spread.part);
    assert!(spread.samples.iter().all(|sample| sample.stack == 1));
}

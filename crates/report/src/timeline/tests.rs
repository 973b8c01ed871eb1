use whyso_profile::{FunctionName, SingleWait};
use whyso_record::StateTimes;
use whyso_record::data::{StackFrame, StackSample, StackWait};
use whyso_record::run::{Level, Purpose, RunEnd, RunInfo, Window};
use whyso_series::{Stretch, Timeline, even_edges};

use super::*;
use crate::source::Stacks;

const S: i64 = 1_000_000_000;

/// So many snapshots.
fn times(snapshots: i64) -> StateTimes {
    StateTimes { t_ns: (0..snapshots).collect(), threads: 3 }
}

/// Two connections and a purge thread over forty seconds, in columns of two.
fn example_timeline() -> Timeline {
    let states = ["cpu", "lock", "file_sync", "net_receive"].map(str::to_string).to_vec();
    let mut timeline = Timeline::new(states, even_edges(100 * S, 140 * S, 20));
    let mut enter = |tid, name, role, second: i64, states_ms: &[f64]| {
        let (begin_ns, end_ns) = ((100 + second) * S, (101 + second) * S);
        timeline.enter(&Stretch { tid, born_ns: 1, name, role, begin_ns, end_ns, states_ms });
    };
    for second in 0..40 {
        let at_work: &[f64] = match second {
            0..20 => &[700.0, 100.0, 100.0, 100.0],
            _ => &[200.0, 450.0, 350.0, 0.0],
        };
        enter(7, "one_connection", "connection", second, at_work);
        if second >= 20 {
            enter(8, "two\u{1b}[2J", "connection", second, &[0.0, 1000.0, 0.0, 0.0]);
        }
        enter(31, "ib_purge", "purge", second, &[0.0, 0.0, 0.0, 1000.0]);
    }
    timeline
}

fn run() -> RunInfo {
    let level = |index: u32, users, begin_s: i64| Level {
        index,
        users,
        purpose: Purpose::Sweep,
        warmup: Window { begin_ns: begin_s * S, end_ns: (begin_s + 2) * S },
        warmup_steady: true,
        window: Window { begin_ns: (begin_s + 2) * S, end_ns: (begin_s + 18) * S },
        result: Default::default(),
        ended: RunEnd::Complete { at_ns: (begin_s + 18) * S },
    };
    RunInfo { levels: vec![level(0, 1, 100), level(1, 2, 120)], ..RunInfo::default() }
}

fn function(name: &str) -> Option<FunctionName> {
    Some(FunctionName { name: name.to_string(), module: "mariadbd".to_string() })
}

fn waits() -> Vec<SingleWait> {
    vec![
        SingleWait {
            end_ns: 125 * S + 250_000_000,
            length_ns: 912_345_678,
            tid: 7,
            state: "lock".to_string(),
            class: Some("row_lock".to_string()),
            waited_in: function("lock_wait(que_thr_t*)"),
            waker_tid: 8,
            waker_role: "connection".to_string(),
            ended_in: function("lock_release(trx_t*)"),
        },
        SingleWait {
            end_ns: 126 * S,
            length_ns: 5_000_000,
            tid: 7,
            state: "file_sync".to_string(),
            ..SingleWait::default()
        },
    ]
}

fn drawn(rows: &[TimelineRow], waits: &[SingleWait], snapshot_interval_s: f64, colors: bool) -> String {
    let (run, example) = (run(), example_timeline());
    let view = TimelineView {
        run: &run,
        origin_ns: 100 * S,
        timeline: &example,
        rows,
        snapshot_interval_s,
        waits,
        waits_of: "these threads",
    };
    timeline(&view, colors)
}

#[test]
fn a_line_a_thread_has_the_state_with_most_time_and_the_waits_stand_beneath() {
    let text = drawn(&TimelineRow::of_threads(&example_timeline(), &[0, 2, 1]), &waits(), 1.0, false);
    let expected = "\
Threads of the server over time, from 0:00 to 0:40 of the run, 2 s per column. A line is a thread, a letter the state that took most of its time, small where that is less than half.

users from                 |1        |2
connection, 2 threads
       7 one_connection   CCCCCCCCCCllllllllll
       8 two?[2J                    LLLLLLLLLL
purge, 1 thread
      31 ib_purge         ....................
                          '0:00         '0:28

. net receive 42 %   L lock 31 %   C cpu 18 %
S file sync 9 %

The 2 longest waits of these threads among those that were chosen, and who ended them:
ended at  thread  state       ms  waited for  in                     ended by                    in
0:25.250       7  lock       912  row lock    lock_wait(que_thr_t*)  8 connection                lock_release(trx_t*)
0:26.000       7  file sync    5  <no class>  ?                      an interrupt, or not known  ?
";
    assert_eq!(text, expected);
}

#[test]
fn a_role_stacks_its_threads_time_by_state_and_a_timeline_shows_how_far_apart_its_snapshots_are() {
    let text = drawn(&TimelineRow::of_roles(&example_timeline(), &[0, 1, 2]), &[], 10.0, false);
    let expected = "\
Threads of the server over time, from 0:00 to 0:40 of the run, 2 s per column. A role's lines are its threads' time by state, from the foot up; a single thread has one line, of the state that took most. Their snapshots are 10 s apart: nothing is known of when between them.

users from                 |1        |2
connection × 2            LLLLLLLLLLSSSSSSSSSS
                          CCCCCCCCCCLLLLLLLLLL
                          CCCCCCCCCCLLLLLLLLLL
                          CCCCCCCCCCLLLLLLLLLL
                          CCCCCCCCCCLLLLLLLLLL
purge × 1                 ....................
                          '0:00         '0:28

. net receive 42 %   L lock 31 %   C cpu 18 %
S file sync 9 %
";
    assert_eq!(text, expected);
}

#[test]
fn colours_change_nothing_in_the_text() {
    let rows = TimelineRow::of_threads(&example_timeline(), &[0, 2, 1]);
    let painted = drawn(&rows, &waits(), 1.0, true);
    assert!(painted.contains("\u{1b}[38;5;231;48;5;32mCCCCCCCCCC\u{1b}[0m"), "{painted:?}");
    let mut plain = String::new();
    let mut rest = painted.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_eq!(plain, drawn(&rows, &waits(), 1.0, false));
}

#[test]
fn the_object_has_milliseconds_by_state_and_column() {
    let (run, example, waits) = (run(), example_timeline(), waits());
    let rows = TimelineRow::of_threads(&example, &[2]);
    let view = TimelineView {
        run: &run,
        origin_ns: 100 * S,
        timeline: &example,
        rows: &rows,
        snapshot_interval_s: 1.0,
        waits: &waits,
        waits_of: "these threads",
    };
    let object = timeline_json(&view);
    assert_eq!(object["edges_s"].as_array().unwrap().len(), 21);
    assert_eq!(object["levels"][1]["begin_s"], 22.0);
    let row = &object["rows"][0];
    assert_eq!((row["tid"].as_u64(), row["threads"].as_u64()), (Some(8), Some(1)));
    let lock = row["states_ms"]["lock"].as_array().unwrap();
    assert_eq!((lock[9].as_f64(), lock[10].as_f64()), (Some(0.0), Some(2000.0)));
    assert_eq!(row["states_ms"].as_object().unwrap().len(), 1);
    assert_eq!(object["waits"][0]["wait_class"], "row_lock");
    assert!(object["waits"][1]["woken_by_tid"].is_null());
}

#[test]
fn the_pages_cells_hold_every_millisecond_of_every_state() {
    let example = example_timeline();
    let (head, columns) = page::columns(&example, &times(21), 0);
    assert_eq!((head.note.as_str(), columns.len()), ("", 5));
    let total_ms: f64 = columns[1..].iter().flatten().sum();
    assert_eq!(total_ms, 40.0 * 1000.0 + 20.0 * 1000.0 + 40.0 * 1000.0);
    // By role and number: thread 7 is first, then 8, which joined half way, then the purge thread.
    assert_eq!(columns[0][..11], [15.0, 15.0, 15.0, 15.0, 15.0, 15.0, 15.0, 15.0, 15.0, 15.0, 7.0]);
    assert_eq!(columns[0][20..], [vec![2.0; 10], vec![8.0; 20]].concat());
    assert_eq!(columns[1][..11], [vec![1400.0; 10], vec![400.0]].concat());
}

#[test]
fn merged_buckets_are_shown_as_such_and_lose_nothing() {
    let mut example = example_timeline();
    example.edges_ns.truncate(2);
    let (head, _) = page::columns(&example, &times(21), 0);
    assert_eq!(head.note, "What lies between snapshots is added up to 2 s in the mean.");
}

#[test]
fn a_single_wait_is_its_threads_with_its_class_its_functions_and_who_woke_it() {
    let frame = |stack, depth, function: &str, module: &str| StackFrame {
        stack,
        depth,
        function: function.to_string(),
        module: module.to_string(),
        build_id: None,
        address: 0,
        source_file: None,
        line: None,
        inlined: false,
    };
    let wait = StackWait {
        waker_past: Vec::new(),
        t_ns: 125 * S,
        wait: 1,
        tid: 8,
        role: "connection".to_string(),
        state: "lock".to_string(),
        length_ns: 3_000_000,
        weight_ns: 9_000_000,
        stack: 1,
        waker_tid: 7,
        waker_stack: Some(2),
    };
    let sample = StackSample {
        t_ns: 101 * S,
        tid: 7,
        role: "connection".to_string(),
        stack: 2,
        weight_ns: 10_000_000,
    };
    let stranger = StackSample { tid: 99, ..sample.clone() };
    let stacks = Stacks {
        samples: vec![sample, stranger],
        waits: vec![wait],
        frames: vec![
            frame(1, 0, "futex_wait", "[kernel]"),
            frame(1, 1, "lock_wait(que_thr_t*)", "mariadbd"),
            frame(2, 0, "futex_wake", "[kernel]"),
            frame(2, 1, "lock_release(trx_t*)", "mariadbd"),
        ],
        ..Stacks::default()
    };
    let (head, _) = page::columns(&example_timeline(), &times(21), 0);
    let (singles, columns) = page::singles(&head, &stacks, 100 * S, 0).unwrap();
    assert_eq!((singles.count, columns[0].as_slice()), (2, [1.0, 1.0, 0.0].as_slice()));
    // End, state, length, weight, all in µs.
    let row = |at: usize| columns[1..5].iter().map(|column| column[at]).collect::<Vec<_>>();
    assert_eq!(row(0), [1_000_000.0, 0.0, 0.0, 10_000.0]);
    assert_eq!(row(1), [25_000_000.0, 1.0, 3_000.0, 9_000.0]);
    let site = |at: f64| {
        let site = &singles.sites[at as usize];
        let functions: Vec<&str> = site[1..].iter().map(|at| singles.functions[*at].as_str()).collect();
        (singles.classes[site[0]].as_str(), functions)
    };
    assert_eq!(site(columns[5][0]), ("", vec!["futex_wake", "lock_release(trx_t*)"]));
    assert_eq!(site(columns[5][1]), ("row_lock", vec!["lock_wait(que_thr_t*)"]));
    assert!(columns[6][0].is_nan() && columns[7][0].is_nan());
    assert_eq!((columns[6][1], site(columns[7][1])), (7.0, ("", vec!["lock_release(trx_t*)"])));
    assert_eq!(
        singles.note,
        "Single waits and samples of threads that are not in this page are left out: 1."
    );
}

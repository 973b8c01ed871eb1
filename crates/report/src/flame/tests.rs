use whyso_record::data::{StackFrame, StackSample, StackWait};
use whyso_record::run::{Level, LevelResult, Purpose, RunEnd, RunInfo, Window};

use super::*;

fn frames(stack: u32, path: &str) -> Vec<StackFrame> {
    let frame = |(depth, function): (usize, &str)| StackFrame {
        stack,
        depth: depth as u32,
        function: function.to_string(),
        module: if function.starts_with("futex") { "[kernel]" } else { "server" }.to_string(),
        build_id: None,
        address: 0,
        source_file: None,
        line: None,
        inlined: false,
    };
    path.split(';').rev().enumerate().map(frame).collect()
}

pub(super) fn sample(t_ns: i64, role: &str, stack: u32, weight_ns: u64) -> StackSample {
    StackSample { t_ns, tid: 1, role: role.to_string(), stack, weight_ns }
}

fn wait(t_ns: i64, state: &str, stack: u32, weight_ns: u64) -> StackWait {
    StackWait {
        t_ns,
        wait: 1,
        tid: 1,
        role: "connection".to_string(),
        state: state.to_string(),
        length_ns: weight_ns,
        weight_ns,
        stack,
        waker_tid: 0,
        waker_stack: None,
        waker_past: Vec::new(),
    }
}

pub(super) fn level(index: u32, begin_ns: i64) -> FlamePart {
    let window = Window { begin_ns, end_ns: begin_ns + 100 };
    FlamePart { window, level: Some(index), name: None, transactions: 7 }
}

pub(super) fn example_flame() -> Flame {
    Flame::new(vec![(stacks(), vec![level(0, 0), level(1, 100)])]).unwrap()
}

pub(super) fn stacks() -> Stacks {
    Stacks {
        samples: vec![
            sample(10, "connection", 0, 2_000),
            sample(20, "purge", 0, 3_000),
            sample(110, "connection", 1, 5_000),
            // Of no level.
            sample(900, "connection", 0, 11_000),
        ],
        waits: vec![
            wait(30, "file_sync", 1, 4_000),
            wait(31, "file_read", 1, 6_000),
            wait(32, "lock", 2, 8_000),
            wait(33, "net_receive", 2, 9_000),
            wait(34, "page_fault", 2, 1_000),
            wait(35, "runqueue", 0, 7_000),
        ],
        frames: [
            frames(0, "main;walk"),
            frames(1, "main;read"),
            frames(2, "main;lock;futex_wait"),
            frames(9, "elsewhere"),
        ]
        .concat(),
        ..Stacks::default()
    }
}

#[test]
fn times_are_divided_by_level_threads_and_metric() {
    let flame = example_flame();
    let (tree, _, share) = flame.tree();
    let (head, [depths, names]) = flame.head(&tree, share);
    let called: Vec<&str> = names.iter().map(|place| head.names[*place as usize].0.as_str()).collect();
    assert_eq!(called, ["<Total>", "main", "lock", "futex_wait", "read", "walk"]);
    assert_eq!(depths, [0.0, 1.0, 2.0, 3.0, 2.0, 2.0]);
    assert_eq!(head.modules[head.names[names[3] as usize].1], "[kernel]");
    assert_eq!((head.nodes, head.folded), (6, 0));
    assert_eq!(head.levels.iter().map(|level| level.level).collect::<Vec<_>>(), [Some(0), Some(1)]);
    let columns: Vec<Vec<f64>> = Flame::columns(&tree, 0).collect();
    let at = |threads: usize, metric: usize, node: usize| columns[threads * METRICS + metric][node];
    assert_eq!((at(0, 0, 5), at(1, 0, 5)), (2.0, 3.0));
    assert_eq!((at(0, 1, 3), at(0, 2, 4), at(0, 3, 5), at(0, 4, 3)), (8.0, 10.0, 7.0, 1.0));
    assert_eq!(columns.iter().flatten().sum::<f64>(), 31.0);
    assert_eq!(Flame::columns(&tree, 1).flatten().sum::<f64>(), 5.0);
}

#[test]
fn the_observers_time_has_columns_of_its_own() {
    let mut traced = stacks();
    let probe = [("irqentry_exit_to_user_mode", 0), ("asm_exc_int3", 1), ("main", 2)];
    traced.frames.extend(probe.iter().map(|(function, depth)| StackFrame {
        depth: *depth,
        function: function.to_string(),
        module: if *depth < 2 { "[kernel]" } else { "server" }.to_string(),
        ..frames(3, "main").remove(0)
    }));
    traced.samples.push(sample(40, "connection", 3, 30_000));
    traced.samples.push(sample(41, "observer", 0, 32_000));
    traced.waits.push(StackWait { role: "observer".to_string(), ..wait(42, "lock", 2, 20_000) });
    let flame = Flame::new(vec![(traced.with_observer_apart(), vec![level(0, 0), level(1, 100)])]).unwrap();
    let (tree, _, share) = flame.tree();
    let (head, [_, names]) = flame.head(&tree, share);
    let columns: Vec<Vec<f64>> = Flame::columns(&tree, 0).collect();
    let sum = |threads: usize| columns[threads * METRICS..][..METRICS].iter().flatten().sum::<f64>();
    // What the server did itself stays as it is without a tracer.
    assert_eq!((sum(0), sum(1), sum(2)), (28.0, 3.0, 82.0));
    assert!((head.observer_share - 82.0 / (82.0 + 21.0 + 35.0)).abs() < 1e-9, "{}", head.observer_share);
    let probe = names.iter().position(|place| head.names[*place as usize].0 == "irqentry_exit_to_user_mode");
    let by_threads = |threads: usize| columns[threads * METRICS][probe.unwrap()];
    assert_eq!((by_threads(0), by_threads(1), by_threads(2)), (0.0, 0.0, 30.0));
}

#[test]
fn a_column_has_its_total_its_interval_and_its_number_of_samples() {
    let flame = example_flame();
    let (tree, _, share) = flame.tree();
    let (head, _) = flame.head(&tree, share);
    let column = |place: usize| head.levels[0].columns[place];
    // One sample of a Poisson process: 1.96 times its own weight to each side. The waits were seen whole.
    assert_eq!(column(0), FlameColumn { total_us: 2.0, half_us: 4.0, samples: 1 });
    assert_eq!(column(2), FlameColumn { total_us: 10.0, half_us: 0.0, samples: 2 });
    assert_eq!(column(6), FlameColumn::default());
    for (place, level) in head.levels.iter().enumerate() {
        let sums = Flame::columns(&tree, place).map(|column| column.iter().sum::<f64>());
        assert_eq!(
            sums.collect::<Vec<_>>(),
            level.columns.iter().map(|column| column.total_us).collect::<Vec<_>>()
        );
    }
}

#[test]
fn of_more_calls_than_the_page_takes_those_with_less_are_folded() {
    let flame = example_flame();
    let (tree, _, share) = flame.tree_of(3);
    assert!(tree.nodes.len() <= 3 && share > LEAST_SHARE, "{} {share}", tree.nodes.len());
    assert_eq!(tree.folded + tree.nodes.len(), 6);
    assert_eq!(Flame::columns(&tree, 0).flatten().sum::<f64>(), 31.0);
}

#[test]
fn a_run_without_stacks_has_no_flame_graph() {
    assert!(Flame::new(vec![(Stacks::default(), vec![level(0, 0)])]).is_none());
    let outside = Stacks {
        samples: vec![sample(500, "connection", 0, 1)],
        frames: frames(0, "main"),
        ..Stacks::default()
    };
    assert!(Flame::new(vec![(outside, vec![level(0, 0)])]).is_none());
}

#[test]
fn a_recording_in_which_no_level_ended_is_shown_whole() {
    let parts = parts(&RunInfo::default(), &stacks());
    let window = Window { begin_ns: 10, end_ns: 901 };
    assert_eq!(parts, [FlamePart { window, level: None, name: None, transactions: 0 }]);
    let flame = Flame::new(vec![(stacks(), parts)]).unwrap();
    let (tree, _, share) = flame.tree();
    assert_eq!(flame.head(&tree, share).0.levels[0].columns[0].samples, 3);
    assert!(super::parts(&RunInfo::default(), &Stacks::default()).is_empty());
}

#[test]
fn another_run_s_levels_stand_in_the_same_tree_with_names_of_their_own() {
    let run = |id: &str, levels| RunInfo { id: id.to_string(), levels, ..RunInfo::default() };
    let of = |purpose, users, begin_ns| Level {
        index: 3,
        users,
        purpose,
        warmup: Window::default(),
        warmup_steady: true,
        window: Window { begin_ns, end_ns: begin_ns + 100 },
        result: LevelResult { transactions: 5, ..LevelResult::default() },
        ended: RunEnd::Complete { at_ns: 0 },
    };
    let one = run("one", vec![of(Purpose::Sweep, 16, 0)]);
    let other = run("other", vec![of(Purpose::Sweep, 1, 0), of(Purpose::Repeat, 1, 100)]);
    // The other run's stack 0 is a path of its own.
    let other_stacks = Stacks {
        samples: vec![sample(50, "connection", 0, 6_000)],
        frames: frames(0, "main;read;copy"),
        ..Stacks::default()
    };
    let other_parts = parts_of_other(&one, &other, &other_stacks);
    let names: Vec<Option<&str>> = other_parts.iter().map(|part| part.name.as_deref()).collect();
    assert_eq!(
        (names, other_parts[0].level, other_parts[0].transactions),
        (vec![Some("1 user of run other")], None, 5)
    );
    let own_stacks = stacks();
    let flame = Flame::new(vec![(stacks(), parts(&one, &own_stacks)), (other_stacks, other_parts)]).unwrap();
    let (tree, _, share) = flame.tree();
    let (head, _) = flame.head(&tree, share);
    let totals = |place: usize| Flame::columns(&tree, place).flatten().sum::<f64>();
    assert_eq!((totals(0), totals(1)), (31.0, 6.0));
    let copy = tree.nodes.iter().position(|node| node.name == "copy").unwrap();
    assert_eq!(Flame::columns(&tree, 1).next().unwrap()[copy], 6.0);
    assert_eq!(head.levels.iter().map(|level| level.level).collect::<Vec<_>>(), [Some(3), None]);
    let recorded = |mut run: RunInfo| {
        run.levels.iter_mut().for_each(|level| level.result.pacing = whyso_model::Pacing::Recorded);
        run
    };
    assert_eq!(
        parts_of_other(&recorded(one), &other, &stacks())[0].transactions,
        0,
        "requests are no transactions"
    );
}

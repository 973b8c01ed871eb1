use whyso_record::data::{StackFrame, StackSample, StackWait};
use whyso_record::run::Window;

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

fn sample(t_ns: i64, role: &str, stack: u32, weight_ns: u64) -> StackSample {
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

fn level(index: u32, begin_ns: i64) -> (u32, Window) {
    (index, Window { begin_ns, end_ns: begin_ns + 100 })
}

fn made() -> Flame {
    let stacks = Stacks {
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
        ],
        frames: [
            frames(0, "main;walk"),
            frames(1, "main;read"),
            frames(2, "main;lock;futex_wait"),
            frames(9, "elsewhere"),
        ]
        .concat(),
    };
    Flame::new(stacks, &[level(0, 0), level(1, 100)]).unwrap()
}

#[test]
fn times_are_told_by_level_threads_and_metric() {
    let flame = made();
    let (tree, share) = flame.tree();
    let (head, [depths, names]) = flame.head(&tree, share);
    let called: Vec<&str> = names.iter().map(|place| head.names[*place as usize].0.as_str()).collect();
    assert_eq!(called, ["<Total>", "main", "lock", "futex_wait", "read", "walk"]);
    assert_eq!(depths, [0.0, 1.0, 2.0, 3.0, 2.0, 2.0]);
    assert_eq!(head.modules[head.names[names[3] as usize].1], "[kernel]");
    assert_eq!((head.nodes, head.folded), (6, 0));
    assert_eq!(head.levels.iter().map(|level| level.level).collect::<Vec<_>>(), [0, 1]);
    let columns: Vec<Vec<f64>> = Flame::columns(&tree, 0).collect();
    let at = |threads: usize, metric: usize, node: usize| columns[threads * METRICS.len() + metric][node];
    assert_eq!((at(0, 0, 5), at(1, 0, 5)), (2.0, 3.0));
    assert_eq!((at(0, 1, 3), at(0, 2, 4), at(0, 3, 3)), (8.0, 10.0, 1.0));
    assert_eq!(columns.iter().flatten().sum::<f64>(), 24.0);
    assert_eq!(Flame::columns(&tree, 1).flatten().sum::<f64>(), 5.0);
}

#[test]
fn a_column_says_its_total_its_interval_and_how_many_samples_it_rests_on() {
    let flame = made();
    let (tree, share) = flame.tree();
    let (head, _) = flame.head(&tree, share);
    let column = |place: usize| head.levels[0].columns[place];
    // One sample of a Poisson process: 1.96 times its own weight to each side. The waits were seen whole.
    assert_eq!(column(0), ColumnHead { total_us: 2.0, half_us: 4.0, samples: 1 });
    assert_eq!(column(2), ColumnHead { total_us: 10.0, half_us: 0.0, samples: 2 });
    assert_eq!(column(6), ColumnHead::default());
    for (place, level) in head.levels.iter().enumerate() {
        let sums = Flame::columns(&tree, place).map(|column| column.iter().sum::<f64>());
        assert_eq!(
            sums.collect::<Vec<_>>(),
            level.columns.iter().map(|one| one.total_us).collect::<Vec<_>>()
        );
    }
}

#[test]
fn of_more_calls_than_the_page_takes_those_with_less_are_folded() {
    let flame = made();
    let (tree, share) = flame.tree_of(3);
    assert!(tree.nodes.len() <= 3 && share > LEAST_SHARE, "{} {share}", tree.nodes.len());
    assert_eq!(tree.folded + tree.nodes.len(), 6);
    assert_eq!(Flame::columns(&tree, 0).flatten().sum::<f64>(), 24.0);
}

#[test]
fn a_run_without_stacks_has_no_flame_graph() {
    let levels = [level(0, 0)];
    assert!(Flame::new(Stacks::default(), &levels).is_none());
    let outside = Stacks {
        samples: vec![sample(500, "connection", 0, 1)],
        frames: frames(0, "main"),
        ..Stacks::default()
    };
    assert!(Flame::new(outside, &levels).is_none());
}

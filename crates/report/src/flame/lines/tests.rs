use std::collections::BTreeSet;

use proptest::prelude::*;
use whyso_profile::{FunctionName, SourceFilter, functions, source_times};
use whyso_record::data::StackFrame;

use super::super::tests::{level, sample};
use super::text::texts_of;
use super::*;
use crate::profile::SourceText;
use crate::source::Stacks;

/// Functions `f0`, `f1`, … at lines of `f.c`, innermost first; line 0: not known.
fn frames(stack: u32, frames: &[(u8, u32)]) -> Vec<StackFrame> {
    let frame = |(depth, (function, line)): (usize, &(u8, u32))| StackFrame {
        stack,
        depth: depth as u32,
        function: format!("f{function}"),
        module: "server".to_string(),
        build_id: None,
        address: 0,
        source_file: (*line > 0).then(|| "f.c".to_string()),
        line: (*line > 0).then_some(*line),
        inlined: false,
    };
    frames.iter().enumerate().map(frame).collect()
}

/// One sample a stack, of whole microseconds.
fn flame_of(stacks: &[(Vec<(u8, u32)>, u16)]) -> Flame {
    let numbered = || (0u32..).zip(stacks);
    let stacks = Stacks {
        samples: numbered()
            .map(|(stack, (_, us))| sample(10, "connection", stack, (u64::from(*us) + 1) * 1_000))
            .collect(),
        frames: numbered().flat_map(|(stack, (path, _))| frames(stack, path)).collect(),
        ..Stacks::default()
    };
    Flame::new(vec![(stacks, vec![level(0, 0)])]).unwrap()
}

fn lines_of(flame: &Flame, nodes_max: usize) -> (CallTree<'_>, Vec<f64>, Option<LineTree>) {
    let (tree, node_of, share) = flame.tree();
    let (_, [_, names]) = flame.head(&tree, share);
    let lines = flame.lines_of(&tree, &node_of, &names, nodes_max);
    (tree, names, lines)
}

/// Each line's exclusive and inclusive nanoseconds, as the page adds them up: where a line is in a stack several times, once.
fn times(flame: &Flame, lines: &LineTree) -> Vec<(f64, f64)> {
    let mut times = vec![(0.0, 0.0); lines.names.len()];
    for sample in &flame.profile.samples {
        let mut at = lines.places[&sample.stack];
        times[lines.lines[at]].0 += sample.weight_ns;
        let mut lines_of_stack = BTreeSet::from([lines.lines[at]]);
        while lines.depths[at] > 0 {
            let depth = lines.depths[at];
            at = (0..at).rev().find(|before| lines.depths[*before] < depth).unwrap();
            lines_of_stack.insert(lines.lines[at]);
        }
        lines_of_stack.into_iter().for_each(|line| times[line].1 += sample.weight_ns);
    }
    times
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn lines_have_the_times_that_the_terminal_prints(
        // Each takes more than a ten-thousandth of all: what takes less is folded into its caller.
        stacks in prop::collection::vec((prop::collection::vec((0u8..4, 0u32..5), 1..6), 1000u16..), 1..30)
    ) {
        let flame = flame_of(&stacks);
        let (tree, names, lines) = lines_of(&flame, usize::MAX);
        let Some(lines) = lines else {
            prop_assert!(stacks.iter().all(|(path, _)| path.iter().all(|(_, line)| *line == 0)));
            return Ok(());
        };
        let times = times(&flame, &lines);
        for function in functions(&flame.profile).functions {
            let name = (0..tree.nodes.len()).find(|node| tree.nodes[*node].name == function.function.name);
            let name = names[name.unwrap()] as usize;
            let of_function = source_times(&flame.profile, &flame.places, SourceFilter::Function(&function.function));
            let column = flame.profile.samples[0].metric;
            let here = |place: Place| lines.names.iter().position(|line| *line == (name, place)).map_or((0.0, 0.0), |at| times[at]);
            for (place, time) in &of_function.lines {
                prop_assert_eq!(here(Place::At(0, place.line)), (time.exclusive_ns[column], time.inclusive_ns[column]));
            }
            prop_assert_eq!(here(Place::NotKnown), (of_function.unknown.exclusive_ns[column], of_function.unknown.inclusive_ns[column]));
        }
    }

    #[test]
    fn of_too_many_calls_those_of_little_time_lose_their_lines_and_no_time(
        stacks in prop::collection::vec((prop::collection::vec((0u8..4, 1u32..9), 1..6), any::<u16>()), 2..30)
    ) {
        let flame = flame_of(&stacks);
        let (tree, _, whole) = lines_of(&flame, usize::MAX);
        let (_, _, cut) = lines_of(&flame, 2);
        let (whole, cut) = (whole.unwrap(), cut.unwrap());
        // One stack has its lines, whatever it takes; of the others there are no more calls than without lines. A call of the first's
        // functions is there twice then, with its line and without.
        prop_assert!(cut.depths.len() <= 8 + tree.nodes.len());
        let sum = |lines: &LineTree| times(&flame, lines).iter().map(|time| time.0).sum::<f64>();
        prop_assert_eq!(sum(&cut), sum(&whole));
        prop_assert!(cut.lines.iter().zip(&cut.nodes).all(|(line, node)| cut.names[*line].1 != Place::NotKnown || *node == 0));
    }
}

#[test]
fn calls_of_folded_functions_are_on_their_callers_line() {
    // f1 takes less than a ten-thousandth of all: its time is f0's, at the line where f0 called it.
    let stacks = [(vec![(0, 7)], u16::MAX), (vec![(1, 3), (0, 8)], 0)];
    let flame = flame_of(&stacks);
    let (tree, _, lines) = lines_of(&flame, usize::MAX);
    let lines = lines.unwrap();
    assert_eq!((tree.nodes.len(), tree.folded), (2, 1));
    let places: Vec<Place> = lines.names.iter().map(|(_, place)| *place).collect();
    assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), 3);
    assert!(places.contains(&Place::At(0, 8)) && !places.contains(&Place::At(0, 3)), "{places:?}");
}

#[test]
fn text_stands_around_the_lines_with_the_most_time_and_what_is_too_much_is_counted() {
    let flame =
        flame_of(&[(vec![(0, 50)], 900), (vec![(0, 20)], 500), (vec![(0, 900)], 10), (vec![(0, 21)], 1)]);
    let (_, _, lines) = lines_of(&flame, usize::MAX);
    let lines = lines.unwrap();
    let text = SourceText {
        path: "/src/f.c".to_string(),
        lines: (1..=100).map(|line| format!("\tline {line}{}", "x".repeat(200))).collect(),
    };
    let read = |file: &str| (file == "f.c").then(|| text.clone());
    let texts = serde_json::to_value(texts_of(&lines, &read, 18)).unwrap();
    let numbers: Vec<u64> =
        texts["files"][0]["lines"].as_array().unwrap().iter().map(|line| line[0].as_u64().unwrap()).collect();
    assert_eq!(numbers, (16..=24).chain(46..=54).collect::<Vec<u64>>());
    let first = texts["files"][0]["lines"][0][1].as_str().unwrap();
    assert!(first.starts_with("    line 16") && first.len() == 160, "{first}");
    // Line 21 stands there already, and line 900 is beyond the file.
    assert_eq!((&texts["without"], &texts["files"][0]["length"]), (&0.into(), &100.into()));
    let less = serde_json::to_value(texts_of(&lines, &read, 9)).unwrap();
    assert_eq!((less["files"][0]["lines"].as_array().unwrap().len(), &less["without"]), (9, &2.into()));
    let absent = serde_json::to_value(texts_of(&lines, &|_| None, 18)).unwrap();
    assert_eq!(
        (&absent["files"][0]["path"], &absent["files"][0]["lines"]),
        (&"".into(), &serde_json::json!([]))
    );
}

#[test]
fn a_build_without_lines_has_none() {
    let flame = flame_of(&[(vec![(0, 0), (1, 0)], 9)]);
    let function = FunctionName { name: "f0".to_string(), module: "server".to_string() };
    assert!(flame.profile.stacks[&0].contains(&function));
    assert!(lines_of(&flame, usize::MAX).2.is_none());
}

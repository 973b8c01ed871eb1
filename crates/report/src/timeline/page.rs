//! Threads over time as the page takes them: each thread's time by state in every bucket, and single waits and samples.

use std::collections::BTreeMap;

use serde::Serialize;
use ts_rs::TS;
use whyso_profile::{FunctionName, Rules, is_own, place};
use whyso_record::StateTimes;
use whyso_record::data::StackFrame;
use whyso_series::{Timeline, is_idle};
use whyso_words::{count, seconds, whole};

use crate::flame::Numbering;
use crate::source::Stacks;

/// Most cells (a thread in a bucket) that come through as they were read: 1,000 threads for ten minutes. Of more, buckets are merged.
pub(crate) const CELLS_MAX: usize = 700_000;
/// The most threads; of more, the page has those with the most time outside of waiting for their peers.
pub(crate) const THREADS_MAX: usize = 5_000;
/// Most single waits and most samples that the page has.
const WAITS_MAX: usize = 100_000;
const SAMPLES_MAX: usize = 100_000;
/// Most functions of a stack.
const FUNCTIONS_MAX: usize = 6;
/// Longest name, in characters.
const NAME_MAX: usize = 400;
const CPU: &str = "cpu";

/// What the page's head holds of the timeline.
#[derive(Serialize, TS)]
pub(crate) struct TimelineHead {
    pub(crate) states: Vec<String>,
    /// Where buckets begin and end, monotonic ns: one more than buckets.
    pub(crate) edges_ns: Vec<i64>,
    pub(crate) list: Vec<LineHead>,
    /// The block that holds, over all cells thread by thread:
    ///
    /// - which states have time, one bit each;
    /// - of each state, the whole milliseconds of those cells in which it has some.
    pub(crate) block: u32,
    pub(crate) singles: Option<SinglesHead>,
    /// What was merged or left out, in plain words; empty where nothing was.
    pub(crate) note: String,
}

#[derive(Serialize, TS)]
pub(crate) struct LineHead {
    tid: u32,
    name: String,
    role: String,
    /// Its first bucket, and how many it has.
    first: usize,
    buckets: usize,
}

/// Single waits and samples.
#[derive(Serialize, TS)]
pub(crate) struct SinglesHead {
    /// Wait classes; the first one stands for none.
    pub(crate) classes: Vec<String>,
    pub(crate) functions: Vec<String>,
    /// Place of the class, then of functions, the innermost first.
    pub(crate) sites: Vec<Vec<usize>>,
    pub(crate) count: usize,
    /// The block that holds, in this order:
    ///
    /// - by thread, how many it has;
    /// - of each, by thread and time: its end in µs since the page's zero, and the place of its state;
    /// - of each: its length and weight in µs, its site, the thread that woke it, and that thread's site.
    ///
    /// A sample on a CPU has no length. NaN stands for none.
    pub(crate) block: u32,
    /// What was left out, in plain words; empty where nothing was.
    pub(crate) note: String,
}

/// The head, and the columns of its block.
pub(crate) fn columns(timeline: &Timeline, read: &StateTimes, block: u32) -> (TimelineHead, Vec<Vec<f64>>) {
    let snapshots = read.t_ns.len();
    let threads = busiest(timeline);
    let mut masks = Vec::new();
    let mut by_state: Vec<Vec<f64>> = vec![Vec::new(); timeline.states.len()];
    for thread in &threads {
        // What is left of a millisecond counts in the next bucket, so that no state's time is lost by rounding.
        let mut rest = vec![0.0; timeline.states.len()];
        for bucket in timeline.lived(*thread) {
            let Some(cell) = timeline.cell(*thread, bucket) else { continue };
            let mut mask = 0u32;
            for (state, ms) in cell.iter().enumerate() {
                let exact = f64::from(*ms) + rest[state];
                let whole_ms = exact.round().max(0.0);
                rest[state] = exact - whole_ms;
                if whole_ms > 0.0 {
                    mask |= 1 << state;
                    by_state[state].push(whole_ms);
                }
            }
            masks.push(f64::from(mask));
        }
    }
    let mut notes = Vec::new();
    if timeline.buckets() + 1 < snapshots {
        let mean_s = (timeline.edges_ns.last().unwrap_or(&0) - timeline.edges_ns.first().unwrap_or(&0))
            as f64
            / 1e9
            / timeline.buckets().max(1) as f64;
        notes.push(format!("What lies between snapshots is added up to {} in the mean.", seconds(mean_s)));
    }
    // The timeline may be of the busiest alone.
    let all = timeline.threads.len().max(read.threads);
    if threads.len() == THREADS_MAX && all > THREADS_MAX {
        notes.push(format!(
            "Of {}, the {} that worked and waited most are in this page.",
            count(all as u64, "thread"),
            whole(THREADS_MAX as u64)
        ));
    }
    let line = |thread: &usize| {
        let (line, lived) = (&timeline.threads[*thread], timeline.lived(*thread));
        LineHead {
            tid: line.tid,
            name: line.name.clone(),
            role: line.role.clone(),
            first: lived.start,
            buckets: lived.len(),
        }
    };
    let head = TimelineHead {
        states: timeline.states.clone(),
        edges_ns: timeline.edges_ns.clone(),
        list: threads.iter().map(line).collect(),
        block,
        singles: None,
        note: notes.join(" "),
    };
    (head, [vec![masks], by_state].concat())
}

/// The threads that the page has, by role and number.
fn busiest(timeline: &Timeline) -> Vec<usize> {
    let mut places: Vec<usize> = (0..timeline.threads.len()).collect();
    if places.len() > THREADS_MAX {
        let states = &timeline.states;
        let busy_ms = |thread: &usize| {
            let cells = timeline.lived(*thread).filter_map(|bucket| timeline.cell(*thread, bucket));
            let busy = |cell: &[f32]| {
                let at_work = cell.iter().zip(states).filter(|(_, state)| !is_idle(state));
                at_work.map(|(ms, _)| f64::from(*ms)).sum::<f64>()
            };
            std::cmp::Reverse(cells.map(busy).sum::<f64>() as u64)
        };
        places.sort_by_cached_key(busy_ms);
        places.truncate(THREADS_MAX);
    }
    let key = |place: &usize| {
        let line = &timeline.threads[*place];
        (line.role.clone(), line.tid, line.first)
    };
    places.sort_by_cached_key(key);
    places
}

/// A single wait, or a sample.
struct Single {
    end_ns: i64,
    tid: u32,
    state: usize,
    length_ns: u64,
    weight_ns: u64,
    stack: u32,
    waker_tid: Option<u32>,
    waker_stack: Option<u32>,
}

/// Single waits and samples of the threads in the head, and the columns of their block; `None` where there are none.
pub(crate) fn singles(
    head: &TimelineHead,
    stacks: &Stacks,
    origin_ns: i64,
    block: u32,
) -> Option<(SinglesHead, Vec<Vec<f64>>)> {
    let (found, note) = single_events(head, stacks);
    if found.is_empty() {
        return None;
    }
    let mut lines: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, line) in head.list.iter().enumerate() {
        lines.entry(line.tid).or_default().push(place);
    }
    // Of threads that bore one number, the one that was there.
    let line_of = |single: &Single| {
        let bucket = head.edges_ns.partition_point(|edge| *edge <= single.end_ns).saturating_sub(1);
        let of_tid = lines.get(&single.tid)?;
        let was_there = |place: &&usize| {
            let line = &head.list[**place];
            (line.first..line.first + line.buckets).contains(&bucket)
        };
        of_tid.iter().find(was_there).or(of_tid.last()).copied()
    };
    let all = found.len();
    let mut shown: Vec<(usize, Single)> =
        found.into_iter().filter_map(|single| Some((line_of(&single)?, single))).collect();
    shown.sort_by_key(|(line, single)| (*line, single.end_ns));

    let mut sites = Sites::new(&stacks.frames);
    let mut counts = vec![0.0; head.list.len()];
    let mut columns: Vec<Vec<f64>> = vec![Vec::new(); 7];
    for (line, single) in &shown {
        counts[*line] += 1.0;
        let state = head.states.get(single.state).map_or("", String::as_str);
        let cells = [
            us(single.end_ns - origin_ns),
            single.state as f64,
            // A wait is never as short as a sample.
            us(i64::try_from(single.length_ns).unwrap_or(i64::MAX))
                .max(f64::from(u8::from(single.length_ns > 0))),
            us(i64::try_from(single.weight_ns).unwrap_or(i64::MAX)),
            sites.of(single.stack, state) as f64,
            single.waker_tid.map_or(f64::NAN, f64::from),
            single.waker_stack.map_or(f64::NAN, |stack| sites.of(stack, "") as f64),
        ];
        columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
    }
    let mut notes: Vec<String> = stacks.note().into_iter().chain(note).collect();
    if shown.len() < all {
        let others = whole((all - shown.len()) as u64);
        notes.push(format!(
            "Single waits and samples of threads that are not in this page are left out: {others}."
        ));
    }
    let (classes, functions, sites) = sites.into_lists();
    let head = SinglesHead { classes, functions, sites, count: shown.len(), block, note: notes.join(" ") };
    Some((head, [vec![counts], columns].concat()))
}

fn us(ns: i64) -> f64 {
    (ns as f64 / 1e3).round()
}

/// The longest waits, and samples evenly over time; with what was left out.
fn single_events(head: &TimelineHead, stacks: &Stacks) -> (Vec<Single>, Option<String>) {
    let place_of = |state: &str| head.states.iter().position(|name| name == state);
    let mut waits: Vec<Single> = stacks
        .waits
        .iter()
        .filter_map(|wait| {
            Some(Single {
                end_ns: wait.t_ns,
                tid: wait.tid,
                state: place_of(&wait.state)?,
                length_ns: wait.length_ns.max(1),
                weight_ns: wait.weight_ns,
                stack: wait.stack,
                waker_tid: (wait.waker_tid > 0).then_some(wait.waker_tid),
                waker_stack: wait.waker_stack,
            })
        })
        .collect();
    let (all_waits, all_samples) = (waits.len(), stacks.samples.len());
    if all_waits > WAITS_MAX {
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.length_ns));
        waits.truncate(WAITS_MAX);
    }
    let stride = all_samples.div_ceil(SAMPLES_MAX).max(1);
    let cpu = place_of(CPU).unwrap_or(0);
    let samples = stacks.samples.iter().step_by(stride).map(|sample| Single {
        end_ns: sample.t_ns,
        tid: sample.tid,
        state: cpu,
        length_ns: 0,
        weight_ns: sample.weight_ns,
        stack: sample.stack,
        waker_tid: None,
        waker_stack: None,
    });
    let waits_shown = waits.len();
    waits.extend(samples);
    let samples_shown = waits.len() - waits_shown;
    let is_all = waits_shown == all_waits && samples_shown == all_samples;
    let note = (!is_all).then(|| {
        let [waits, longest, samples] =
            [all_waits, waits_shown, all_samples].map(|count| whole(count as u64));
        let of_samples = match stride {
            1 => format!("all {samples} samples"),
            _ => format!("of {samples} samples one in {stride}"),
        };
        format!("Of {waits} chosen waits the {longest} longest, and {of_samples} are in this page.")
    });
    (waits, note)
}

/// Where threads were found: a wait class and the functions around it, each place once.
struct Sites<'a> {
    rules: Rules,
    stacks: BTreeMap<u32, Vec<&'a StackFrame>>,
    classes: Numbering<String>,
    functions: Numbering<&'a str>,
    sites: Numbering<Vec<usize>>,
    /// By stack and state.
    by_stack: BTreeMap<(u32, String), usize>,
}

impl<'a> Sites<'a> {
    fn new(frames: &'a [StackFrame]) -> Sites<'a> {
        let mut stacks: BTreeMap<u32, Vec<&StackFrame>> = BTreeMap::new();
        for frame in frames {
            stacks.entry(frame.stack).or_default().push(frame);
        }
        let mut classes = Numbering::default();
        classes.place(String::new());
        let (functions, sites) = (Numbering::default(), Numbering::default());
        Sites { rules: Rules::built_in(), stacks, classes, functions, sites, by_stack: BTreeMap::new() }
    }

    /// `state`: empty for what ended a wait, which has no class.
    fn of(&mut self, stack: u32, state: &str) -> usize {
        let key = (stack, state.to_string());
        if let Some(number) = self.by_stack.get(&key) {
            return *number;
        }
        let frames = self.stacks.get(&stack).cloned().unwrap_or_default();
        let names: Vec<FunctionName> = frames
            .iter()
            .map(|frame| FunctionName { name: frame.function.clone(), module: frame.module.clone() })
            .collect();
        let class = if state.is_empty() { None } else { place(&names, state, &self.rules).0 };
        let mut site = vec![self.classes.place(class.unwrap_or_default().to_string())];
        // A wait is where the program's own code is; what runs is where it runs.
        let begin = if state == CPU { None } else { names.iter().position(is_own) };
        for frame in frames.into_iter().skip(begin.unwrap_or(0)).take(FUNCTIONS_MAX) {
            site.push(self.functions.place(&frame.function));
        }
        let number = self.sites.place(site);
        self.by_stack.insert(key, number);
        number
    }

    /// Classes, functions and sites.
    fn into_lists(self) -> (Vec<String>, Vec<String>, Vec<Vec<usize>>) {
        let cut = |name: &&str| name.chars().take(NAME_MAX).collect();
        (self.classes.list, self.functions.list.iter().map(cut).collect(), self.sites.list)
    }
}

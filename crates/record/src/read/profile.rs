//! Samples and waits over a window, added up by their stack: from roll-ups as far as there are.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::sync::Arc;

use arrow::array::RecordBatch;

use super::Recording;
use super::parts::Between;
use super::rolled::RollupStream;
use crate::data::{StackSample, StackWait};
use crate::error::Result;
use crate::layout;
use crate::run::Window;
use crate::stack_rollup::{COLUMNS, StackColumns, StackSum};
use crate::{stack_table, table};

const ROLLED: RollupStream<'_> = RollupStream {
    detail: &[layout::STACKS, layout::WAITS],
    rollups: &layout::STACK_ROLLUPS,
    begin: table::TIME,
    end: table::TIME,
    has_stretches: false,
};

/// Samples or waits of threads of one role in one state, of one stack.
#[derive(Clone, Debug, PartialEq)]
pub struct StackTotal {
    /// The begin of the bucket that they were added up over.
    pub t_ns: i64,
    pub role: Arc<str>,
    /// "cpu" of samples; of waits the state that the thread waited in.
    pub state: Arc<str>,
    pub stack: u32,
    pub sum: StackSum,
}

/// The samples and the waits of a window. Of very many, those of some parts of it, with weights that stand for all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackSpread {
    pub samples: Vec<StackSample>,
    pub waits: Vec<StackWait>,
    /// How much of the window's time was read, 0 to 1.
    pub part: f64,
}

/// Sums by bucket, role, state and stack.
#[derive(Default)]
struct StackSums {
    sums: HashMap<(i64, usize, u32), StackSum>,
    /// Each role with each state that occurs.
    labels: Vec<[Arc<str>; 2]>,
    /// The label that was found last: rows of one mostly follow each other.
    last: usize,
}

impl StackSums {
    fn label(&mut self, label: [&str; 2]) -> usize {
        let is_it = |known: &[Arc<str>; 2]| *known[0] == *label[0] && *known[1] == *label[1];
        if !self.labels.get(self.last).is_some_and(is_it) {
            self.last = self.labels.iter().position(is_it).unwrap_or(self.labels.len());
        }
        if self.last == self.labels.len() {
            self.labels.push(label.map(Arc::from));
        }
        self.last
    }

    fn add(&mut self, t_ns: i64, label: [&str; 2], stack: u32, sum: StackSum) {
        let label = self.label(label);
        self.sums.entry((t_ns, label, stack)).or_default().add(sum);
    }

    fn merge(&mut self, other: StackSums) {
        for ((t_ns, label, stack), sum) in other.sums {
            let [role, state] = &other.labels[label];
            self.add(t_ns, [role, state], stack, sum);
        }
    }

    fn into_totals(self) -> Vec<StackTotal> {
        let total = |((t_ns, label, stack), sum): ((i64, usize, u32), StackSum)| {
            let [role, state] = self.labels[label].clone();
            StackTotal { t_ns, role, state, stack, sum }
        };
        let mut totals: Vec<StackTotal> = self.sums.into_iter().map(total).collect();
        totals.sort_unstable_by_key(|total| {
            (total.t_ns, Arc::clone(&total.role), Arc::clone(&total.state), total.stack)
        });
        totals
    }
}

/// In this many parts of a window a part of its rows is read.
const PARTS: i64 = 64;

/// The parts of a window in which about `most` of its `count` rows lie: all of it, or parts of equal length spread evenly.
pub fn spread(window: Window, count: u64, most: u64) -> Vec<Window> {
    if count <= most {
        return vec![window];
    }
    let length_ns = window.end_ns.saturating_sub(window.begin_ns) / PARTS;
    let taken_ns = (length_ns as f64 * most as f64 / count as f64) as i64;
    let part = |number: i64| {
        let begin_ns = window.begin_ns + number * length_ns + (length_ns - taken_ns) / 2;
        Window { begin_ns, end_ns: begin_ns + taken_ns }
    };
    (0..PARTS).map(part).collect()
}

impl Recording {
    /// Samples and waits of a window, its end excluded, in order of time; about `most` of them where there are more. `None`: of all of the run.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn stacks_spread(&self, window: Option<Window>, most: u64) -> Result<StackSpread> {
        let known = self.stacks_window()?;
        let window = window.map_or(known, |window| Window {
            begin_ns: window.begin_ns.max(known.begin_ns),
            end_ns: window.end_ns.min(known.end_ns),
        });
        let count: u64 = self.stack_sums(window)?.iter().map(|total| total.sum.count).sum();
        let parts = spread(window, count, most);
        let mut found = StackSpread { part: 1.0, ..StackSpread::default() };
        if parts.len() > 1 {
            found.part = parts.iter().map(Window::seconds).sum::<f64>() / window.seconds();
        }
        for part in parts {
            self.each_stack(part, |sample| found.samples.push(sample))?;
            self.each_wait(part, |wait| found.waits.push(wait))?;
        }
        if found.part < 1.0 {
            let of_all = |weight_ns: u64| (weight_ns as f64 / found.part).round() as u64;
            found.samples.iter_mut().for_each(|sample| sample.weight_ns = of_all(sample.weight_ns));
            found.waits.iter_mut().for_each(|wait| wait.weight_ns = of_all(wait.weight_ns));
        }
        found.samples.sort_by_key(|sample| sample.t_ns);
        found.waits.sort_by_key(|wait| wait.t_ns);
        Ok(found)
    }

    /// The longest waits of a window, its end excluded, of threads that are chosen by their numbers: the longest first.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn longest_waits(
        &self,
        window: Window,
        most: usize,
        is_chosen: impl Fn(u32) -> bool,
    ) -> Result<Vec<StackWait>> {
        // First which: of very many waits, only three columns are read.
        let mut longest: BinaryHeap<Reverse<(u64, i64)>> = BinaryHeap::new();
        let between = Between::at(table::TIME, window);
        for part in self.plain.get(layout::WAITS).into_iter().flatten() {
            part.each(Some(between), Some(&stack_table::LENGTHS), |batch| {
                for (t_ns, tid, length_ns) in stack_table::lengths_of(batch) {
                    let is_longer =
                        longest.len() < most || longest.peek().is_some_and(|least| length_ns > least.0.0);
                    if is_longer && window.has(t_ns) && is_chosen(tid) {
                        longest.push(Reverse((length_ns, t_ns)));
                        if longest.len() > most {
                            longest.pop();
                        }
                    }
                }
                Ok(())
            })?;
        }
        let times: BTreeSet<i64> = longest.iter().map(|wait| wait.0.1).collect();
        let mut waits = Vec::new();
        for t_ns in times {
            let at_once = Window { begin_ns: t_ns, end_ns: t_ns.saturating_add(1) };
            self.each_wait(at_once, |wait| waits.push(wait))?;
        }
        waits.retain(|wait| is_chosen(wait.tid));
        waits.sort_by_key(|wait| Reverse(wait.length_ns));
        waits.truncate(most);
        Ok(waits)
    }

    /// From the first sample or wait to after the last.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn stacks_window(&self) -> Result<Window> {
        let mut window = Window { begin_ns: i64::MAX, end_ns: i64::MIN };
        for stream in [layout::STACKS, layout::WAITS] {
            for part in self.plain.get(stream).into_iter().flatten() {
                if let Some((first_ns, last_ns)) = part.bounds(table::TIME)? {
                    window.begin_ns = window.begin_ns.min(first_ns);
                    window.end_ns = window.end_ns.max(last_ns.saturating_add(1));
                }
            }
        }
        Ok(if window.begin_ns < window.end_ns { window } else { Window::default() })
    }

    /// Samples and waits of a window, its end excluded, by role, state and stack.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn stack_sums(&self, window: Window) -> Result<Vec<StackTotal>> {
        self.stack_buckets(window, i64::MAX, |_, stack| Some(stack))
    }

    /// The same, bucket by bucket: buckets begin at multiples of their length, and the first with the window. Where they are whole
    /// minutes, an even number of them is read the fastest. `place`: by state and stack, the stack that it counts as; `None`: not at all.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn stack_buckets(
        &self,
        window: Window,
        bucket_ns: i64,
        place: impl Fn(&str, u32) -> Option<u32> + Sync,
    ) -> Result<Vec<StackTotal>> {
        let bucket_ns = bucket_ns.max(1);
        let begin_ns = window.begin_ns;
        let mut sums = StackSums::default();
        let add = |sums: &mut StackSums, batch: &RecordBatch, window: Window| {
            let Some(columns) = StackColumns::of(batch) else { return Ok(()) };
            for row in columns.rows().filter(|row| window.has(row.t_ns)) {
                let Some(stack) = place(row.state, row.stack) else { continue };
                let bucket = row.t_ns.div_euclid(bucket_ns).saturating_mul(bucket_ns);
                sums.add(bucket.max(begin_ns), [row.role, row.state], stack, row.sum);
            }
            Ok(())
        };
        self.fold_rolled(&ROLLED, window, bucket_ns, Some(&COLUMNS), add, |part: StackSums| {
            sums.merge(part)
        })?;
        Ok(sums.into_totals())
    }
}

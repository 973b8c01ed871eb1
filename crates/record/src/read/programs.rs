//! Samples and waits of the programs on a machine over a window, added up by program and stack.

use std::collections::HashMap;
use std::sync::Arc;

use super::Recording;
use super::parts::Between;
use crate::data::StackFrame;
use crate::error::Result;
use crate::layout;
use crate::program_table::{COLUMNS, ProgramColumns, WAIT_COLUMNS, WaitColumns};
use crate::prune::PruneRecord;
use crate::run::Window;
use crate::stack_rollup::StackSum;
use crate::{stack_table, table};

/// Samples of one program in one stack.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramTotal {
    pub program: Arc<str>,
    /// "process", "kernel" or "observer", as in [`crate::data::ProgramSample`].
    pub origin: Arc<str>,
    /// One of [`Recording::program_frames`].
    pub stack: u32,
    pub sum: StackSum,
}

/// Waits of one program in one state and one stack.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramWaitTotal {
    pub program: Arc<str>,
    pub state: Arc<str>,
    /// One of [`Recording::program_frames`].
    pub stack: u32,
    pub sum: StackSum,
}

/// Each program with its origin, or with a state, once.
#[derive(Default)]
struct Labels {
    labels: Vec<[Arc<str>; 2]>,
    places: HashMap<[Arc<str>; 2], usize>,
    /// The label that was found last: rows of one often follow each other.
    last: usize,
}

impl Labels {
    fn place(&mut self, label: [&str; 2]) -> usize {
        let is_it = |known: &[Arc<str>; 2]| *known[0] == *label[0] && *known[1] == *label[1];
        if self.labels.get(self.last).is_some_and(is_it) {
            return self.last;
        }
        let label = label.map(Arc::from);
        let next = self.labels.len();
        self.last = *self.places.entry(label.clone()).or_insert(next);
        if self.last == next {
            self.labels.push(label);
        }
        self.last
    }
}

impl Recording {
    /// Whether waits of programs other than the server were recorded with their stacks.
    pub fn has_program_waits(&self) -> bool {
        self.plain.contains_key(layout::PROGRAM_WAITS)
    }

    /// Waits of programs other than the server that ended in a window, its end excluded, by program, state and stack.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn program_wait_sums(&self, window: Window) -> Result<Vec<ProgramWaitTotal>> {
        let mut labels = Labels::default();
        let mut sums: HashMap<(usize, u32), StackSum> = HashMap::new();
        let between = Between::at(table::TIME, window);
        for part in self.plain.get(layout::PROGRAM_WAITS).into_iter().flatten() {
            part.each(Some(between), Some(&WAIT_COLUMNS), |batch| {
                let Some(columns) = WaitColumns::of(batch) else { return Ok(()) };
                for row in columns.rows().filter(|row| window.has(row.t_ns)) {
                    let label = labels.place([row.program, row.state]);
                    let one = StackSum::one(row.weight_ns, row.length_ns);
                    sums.entry((label, row.stack)).or_default().add(one);
                }
                Ok(())
            })?;
        }
        let total = |((label, stack), sum): ((usize, u32), StackSum)| {
            let [program, state] = labels.labels[label].clone();
            ProgramWaitTotal { program, state, stack, sum }
        };
        let mut totals: Vec<ProgramWaitTotal> = sums.into_iter().map(total).collect();
        totals.sort_unstable_by(|a, b| (&a.program, &a.state, a.stack).cmp(&(&b.program, &b.state, b.stack)));
        Ok(totals)
    }

    /// Whether programs other than the server were sampled.
    pub fn has_program_stacks(&self) -> bool {
        self.plain.contains_key(layout::PROGRAM_STACKS)
    }

    /// Where the oldest detail was removed: the time of the oldest sample of programs that is left.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn program_stacks_kept_from_ns(&self) -> Result<Option<i64>> {
        if PruneRecord::of(self.dir()).is_none() {
            return Ok(None);
        }
        let mut from_ns: Option<i64> = None;
        for part in self.plain.get(layout::PROGRAM_STACKS).into_iter().flatten() {
            part.each(None, Some(&COLUMNS), |batch| {
                let Some(columns) = ProgramColumns::of(batch) else { return Ok(()) };
                let oldest = columns.rows().map(|row| row.t_ns).min();
                from_ns = from_ns.into_iter().chain(oldest).min();
                Ok(())
            })?;
        }
        Ok(from_ns)
    }

    /// Samples of the programs other than the server in a window, its end excluded, by program and stack.
    ///
    /// # Errors
    /// The files can't be read.
    pub fn program_sums(&self, window: Window) -> Result<Vec<ProgramTotal>> {
        let mut labels = Labels::default();
        let mut sums: HashMap<(usize, u32), StackSum> = HashMap::new();
        let between = Between::at(table::TIME, window);
        for part in self.plain.get(layout::PROGRAM_STACKS).into_iter().flatten() {
            part.each(Some(between), Some(&COLUMNS), |batch| {
                let Some(columns) = ProgramColumns::of(batch) else { return Ok(()) };
                for row in columns.rows().filter(|row| window.has(row.t_ns)) {
                    let label = labels.place([row.program, row.origin]);
                    sums.entry((label, row.stack)).or_default().add(StackSum::one(row.weight_ns, 0));
                }
                Ok(())
            })?;
        }
        let total = |((label, stack), sum): ((usize, u32), StackSum)| {
            let [program, origin] = labels.labels[label].clone();
            ProgramTotal { program, origin, stack, sum }
        };
        let mut totals: Vec<ProgramTotal> = sums.into_iter().map(total).collect();
        totals
            .sort_unstable_by(|a, b| (&a.program, &a.origin, a.stack).cmp(&(&b.program, &b.origin, b.stack)));
        Ok(totals)
    }

    /// The functions of the stacks of programs, by stack and depth. Their numbers are not those of [`Recording::frames`].
    ///
    /// # Errors
    /// The files can't be read.
    pub fn program_frames(&self) -> Result<Vec<StackFrame>> {
        let mut frames = Vec::new();
        for batch in self.batches(layout::PROGRAM_FRAMES)? {
            frames.extend(stack_table::frames_of(&batch).unwrap_or_default());
        }
        frames.sort_by_key(|frame| (frame.stack, frame.depth));
        Ok(frames)
    }
}

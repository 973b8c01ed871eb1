//! Columns of the samples and the waits of programs, and the way from our types to Arrow's and back.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};

use crate::data::{ProgramSample, ProgramWait};
use crate::error::Result;
use crate::table::{TIME, batch, longs, strings};

pub(crate) fn samples_batch(samples: &[ProgramSample]) -> Result<RecordBatch> {
    let ints = |of: fn(&ProgramSample) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(samples.iter().map(of)))
    };
    let weights = UInt64Array::from_iter_values(samples.iter().map(|sample| sample.weight_ns));
    batch(vec![
        (TIME, false, longs(samples.iter().map(|sample| sample.t_ns))),
        ("pid", false, ints(|sample| sample.pid)),
        ("program", false, strings(samples.iter().map(|sample| sample.program.as_str()))),
        ("origin", false, strings(samples.iter().map(|sample| sample.origin.as_str()))),
        ("stack", false, ints(|sample| sample.stack)),
        ("weight_ns", false, Arc::new(weights)),
    ])
}

pub(crate) fn waits_batch(waits: &[ProgramWait]) -> Result<RecordBatch> {
    let ints = |of: fn(&ProgramWait) -> u32| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(waits.iter().map(of)))
    };
    let counts = |of: fn(&ProgramWait) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(waits.iter().map(of)))
    };
    batch(vec![
        (TIME, false, longs(waits.iter().map(|wait| wait.t_ns))),
        ("tid", false, ints(|wait| wait.tid)),
        ("program", false, strings(waits.iter().map(|wait| wait.program.as_str()))),
        ("state", false, strings(waits.iter().map(|wait| wait.state.as_str()))),
        ("length_ns", false, counts(|wait| wait.length_ns)),
        ("weight_ns", false, counts(|wait| wait.weight_ns)),
        ("stack", false, ints(|wait| wait.stack)),
    ])
}

/// The columns of [`WaitColumns`].
pub(crate) const WAIT_COLUMNS: [&str; 6] = [TIME, "program", "state", "length_ns", "weight_ns", "stack"];

/// Rows of waits, read where they lie.
pub(crate) struct WaitColumns<'a> {
    t_ns: &'a [i64],
    program: &'a StringArray,
    state: &'a StringArray,
    length_ns: &'a [u64],
    weight_ns: &'a [u64],
    stack: &'a [u32],
}

/// A row of [`WaitColumns`].
pub(crate) struct WaitRow<'a> {
    pub(crate) t_ns: i64,
    pub(crate) program: &'a str,
    pub(crate) state: &'a str,
    pub(crate) length_ns: u64,
    pub(crate) weight_ns: u64,
    pub(crate) stack: u32,
}

impl<'a> WaitColumns<'a> {
    /// `None` where a batch has other columns.
    pub(crate) fn of(batch: &'a RecordBatch) -> Option<WaitColumns<'a>> {
        let text = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
        let count = |name| Some(batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>()?.values());
        Some(WaitColumns {
            t_ns: batch.column_by_name(TIME)?.as_primitive_opt::<Int64Type>()?.values(),
            program: text("program")?,
            state: text("state")?,
            length_ns: count("length_ns")?,
            weight_ns: count("weight_ns")?,
            stack: batch.column_by_name("stack")?.as_primitive_opt::<UInt32Type>()?.values(),
        })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = WaitRow<'_>> {
        (0..self.t_ns.len()).map(|row| WaitRow {
            t_ns: self.t_ns[row],
            program: self.program.value(row),
            state: self.state.value(row),
            length_ns: self.length_ns[row],
            weight_ns: self.weight_ns[row],
            stack: self.stack[row],
        })
    }
}

/// The columns of [`ProgramColumns`].
pub(crate) const COLUMNS: [&str; 5] = [TIME, "program", "origin", "stack", "weight_ns"];

/// Rows of samples, read where they lie.
pub(crate) struct ProgramColumns<'a> {
    t_ns: &'a [i64],
    program: &'a StringArray,
    origin: &'a StringArray,
    stack: &'a [u32],
    weight_ns: &'a [u64],
}

/// A row of [`ProgramColumns`].
pub(crate) struct ProgramRow<'a> {
    pub(crate) t_ns: i64,
    pub(crate) program: &'a str,
    pub(crate) origin: &'a str,
    pub(crate) stack: u32,
    pub(crate) weight_ns: u64,
}

impl<'a> ProgramColumns<'a> {
    /// `None` where a batch has other columns.
    pub(crate) fn of(batch: &'a RecordBatch) -> Option<ProgramColumns<'a>> {
        let text = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
        Some(ProgramColumns {
            t_ns: batch.column_by_name(TIME)?.as_primitive_opt::<Int64Type>()?.values(),
            program: text("program")?,
            origin: text("origin")?,
            stack: batch.column_by_name("stack")?.as_primitive_opt::<UInt32Type>()?.values(),
            weight_ns: batch.column_by_name("weight_ns")?.as_primitive_opt::<UInt64Type>()?.values(),
        })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = ProgramRow<'_>> {
        (0..self.t_ns.len()).map(|row| ProgramRow {
            t_ns: self.t_ns[row],
            program: self.program.value(row),
            origin: self.origin.value(row),
            stack: self.stack[row],
            weight_ns: self.weight_ns[row],
        })
    }
}

//! Columns of the streams of stacks, and the way from our types to Arrow's and back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow::datatypes::{Int64Type, UInt32Type, UInt64Type};

use crate::data::{PastState, StackFrame, StackSample, StackWait};
use crate::error::Result;
use crate::run::Window;
use crate::table::{batch, list, longs, strings};

fn ints(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(values))
}

fn counts(values: impl Iterator<Item = u64>) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(values))
}

pub(crate) fn samples_batch(samples: &[StackSample]) -> Result<RecordBatch> {
    batch(vec![
        ("t_ns", false, longs(samples.iter().map(|sample| sample.t_ns))),
        ("tid", false, ints(samples.iter().map(|sample| sample.tid))),
        ("role", false, strings(samples.iter().map(|sample| sample.role.as_str()))),
        ("stack", false, ints(samples.iter().map(|sample| sample.stack))),
        ("weight_ns", false, counts(samples.iter().map(|sample| sample.weight_ns))),
    ])
}

/// Those within a window, its end excluded.
pub(crate) fn samples_of(batch: &RecordBatch, window: Window) -> Option<Vec<StackSample>> {
    let t_ns = batch.column_by_name("t_ns")?.as_primitive_opt::<Int64Type>()?;
    let int = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>();
    let (tid, stack) = (int("tid")?, int("stack")?);
    let role = batch.column_by_name("role")?.as_string_opt::<i32>()?;
    let weight_ns = batch.column_by_name("weight_ns")?.as_primitive_opt::<UInt64Type>()?;
    let row = |row: usize| StackSample {
        t_ns: t_ns.value(row),
        tid: tid.value(row),
        role: role.value(row).to_string(),
        stack: stack.value(row),
        weight_ns: weight_ns.value(row),
    };
    Some((0..batch.num_rows()).filter(|row| window.has(t_ns.value(*row))).map(row).collect())
}

pub(crate) fn waits_batch(waits: &[StackWait]) -> Result<RecordBatch> {
    batch(vec![
        ("t_ns", false, longs(waits.iter().map(|wait| wait.t_ns))),
        ("wait", false, counts(waits.iter().map(|wait| wait.wait))),
        ("tid", false, ints(waits.iter().map(|wait| wait.tid))),
        ("role", false, strings(waits.iter().map(|wait| wait.role.as_str()))),
        ("state", false, strings(waits.iter().map(|wait| wait.state.as_str()))),
        ("length_ns", false, counts(waits.iter().map(|wait| wait.length_ns))),
        ("weight_ns", false, counts(waits.iter().map(|wait| wait.weight_ns))),
        ("stack", false, ints(waits.iter().map(|wait| wait.stack))),
        ("waker_tid", false, ints(waits.iter().map(|wait| wait.waker_tid))),
        ("waker_stack", true, Arc::new(waits.iter().map(|wait| wait.waker_stack).collect::<UInt32Array>())),
        ("waker_past", false, pasts(waits)?),
    ])
}

fn pasts(waits: &[StackWait]) -> Result<ArrayRef> {
    let states = || waits.iter().flat_map(|wait| &wait.waker_past);
    list(
        waits.iter().map(|wait| wait.waker_past.len()),
        vec![
            ("state", strings(states().map(|past| past.state.as_str()))),
            ("ns", counts(states().map(|past| past.ns))),
        ],
    )
}

/// What wakers did, of all rows of a batch.
struct Pasts<'a> {
    offsets: &'a [i32],
    state: &'a StringArray,
    ns: &'a [u64],
}

impl<'a> Pasts<'a> {
    /// `None` for other columns than these.
    fn of(lists: &'a ListArray) -> Option<Pasts<'a>> {
        let items = lists.values().as_struct_opt()?;
        let state = items.column_by_name("state")?.as_string_opt::<i32>()?;
        let ns = items.column_by_name("ns")?.as_primitive_opt::<UInt64Type>()?.values();
        Some(Pasts { offsets: lists.value_offsets(), state, ns })
    }

    fn row(&self, row: usize) -> Vec<PastState> {
        let (from, to) = (self.offsets[row] as usize, self.offsets[row + 1] as usize);
        (from..to).map(|at| PastState { state: self.state.value(at).to_string(), ns: self.ns[at] }).collect()
    }
}

/// Those that ended within a window, its end excluded.
pub(crate) fn waits_of(batch: &RecordBatch, window: Window) -> Option<Vec<StackWait>> {
    let t_ns = batch.column_by_name("t_ns")?.as_primitive_opt::<Int64Type>()?;
    let int = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>();
    let count = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>();
    let text = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
    let (tid, stack) = (int("tid")?, int("stack")?);
    let (waker_tid, waker_stack) = (int("waker_tid")?, int("waker_stack")?);
    let (wait, length_ns, weight_ns) = (count("wait")?, count("length_ns")?, count("weight_ns")?);
    let (role, state) = (text("role")?, text("state")?);
    // Recordings of before have none.
    let pasts = batch.column_by_name("waker_past").and_then(|pasts| Pasts::of(pasts.as_list_opt::<i32>()?));
    let row = |row: usize| StackWait {
        t_ns: t_ns.value(row),
        wait: wait.value(row),
        tid: tid.value(row),
        role: role.value(row).to_string(),
        state: state.value(row).to_string(),
        length_ns: length_ns.value(row),
        weight_ns: weight_ns.value(row),
        stack: stack.value(row),
        waker_tid: waker_tid.value(row),
        waker_stack: waker_stack.is_valid(row).then(|| waker_stack.value(row)),
        waker_past: pasts.as_ref().map(|pasts| pasts.row(row)).unwrap_or_default(),
    };
    Some((0..batch.num_rows()).filter(|row| window.has(t_ns.value(*row))).map(row).collect())
}

/// The columns of [`lengths_of`].
pub(crate) const LENGTHS: [&str; 3] = ["t_ns", "tid", "length_ns"];

/// When waits ended, whose they were, and how long.
pub(crate) fn lengths_of(batch: &RecordBatch) -> impl Iterator<Item = (i64, u32, u64)> {
    let [time, tid, length] = LENGTHS.map(|name| batch.column_by_name(name));
    let t_ns =
        time.and_then(|array| array.as_primitive_opt::<Int64Type>()).map(|array| array.values().iter());
    let tid = tid.and_then(|array| array.as_primitive_opt::<UInt32Type>()).map(|array| array.values().iter());
    let length =
        length.and_then(|array| array.as_primitive_opt::<UInt64Type>()).map(|array| array.values().iter());
    let rows = t_ns.into_iter().flatten().zip(tid.into_iter().flatten()).zip(length.into_iter().flatten());
    rows.map(|((t_ns, tid), length_ns)| (*t_ns, *tid, *length_ns))
}

pub(crate) fn frames_batch(frames: &[StackFrame]) -> Result<RecordBatch> {
    fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
        Arc::new(values.collect::<StringArray>())
    }
    batch(vec![
        ("stack", false, ints(frames.iter().map(|frame| frame.stack))),
        ("depth", false, ints(frames.iter().map(|frame| frame.depth))),
        ("function", false, strings(frames.iter().map(|frame| frame.function.as_str()))),
        ("module", false, strings(frames.iter().map(|frame| frame.module.as_str()))),
        ("build_id", true, texts(frames.iter().map(|frame| frame.build_id.as_deref()))),
        ("address", false, counts(frames.iter().map(|frame| frame.address))),
        ("source_file", true, texts(frames.iter().map(|frame| frame.source_file.as_deref()))),
        ("line", true, Arc::new(frames.iter().map(|frame| frame.line).collect::<UInt32Array>())),
        (
            "inlined",
            false,
            Arc::new(frames.iter().map(|frame| Some(frame.inlined)).collect::<BooleanArray>()),
        ),
    ])
}

pub(crate) fn frames_of(batch: &RecordBatch) -> Option<Vec<StackFrame>> {
    let int = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>();
    let text = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
    let (stack, depth, line) = (int("stack")?, int("depth")?, int("line")?);
    let (function, module) = (text("function")?, text("module")?);
    let (build_id, source_file) = (text("build_id")?, text("source_file")?);
    let address = batch.column_by_name("address")?.as_primitive_opt::<UInt64Type>()?;
    let inlined = batch.column_by_name("inlined")?.as_boolean_opt()?;
    let maybe = |column: &StringArray, row| column.is_valid(row).then(|| column.value(row).to_string());
    let row = |row: usize| StackFrame {
        stack: stack.value(row),
        depth: depth.value(row),
        function: function.value(row).to_string(),
        module: module.value(row).to_string(),
        build_id: maybe(build_id, row),
        address: address.value(row),
        source_file: maybe(source_file, row),
        line: line.is_valid(row).then(|| line.value(row)),
        inlined: inlined.value(row),
    };
    Some((0..batch.num_rows()).map(row).collect())
}

//! Columns of the stream of thread states, and the way from our types to Arrow's and back.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt16Array, UInt32Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, UInt16Type, UInt32Type};

use crate::data::{StatesInterval, ThreadStates};
use crate::error::{Error, Result};
use crate::table::{Columns, longs, strings};

/// What the name of a state's column ends in.
const STATE: &str = "_ms";

/// Has one row per thread and one column per state.
pub(crate) fn batch_of(interval: &StatesInterval) -> Result<RecordBatch> {
    let threads = || interval.threads.iter();
    let fixed: Columns = vec![
        ("begin_ns", false, longs(threads().map(|_| interval.begin_ns))),
        ("t_ns", false, longs(threads().map(|_| interval.t_ns))),
        ("tid", false, Arc::new(UInt32Array::from_iter_values(threads().map(|thread| thread.tid)))),
        ("born_ns", false, longs(threads().map(|thread| thread.born_ns))),
        ("name", false, strings(threads().map(|thread| thread.name.as_str()))),
        ("role", false, strings(threads().map(|thread| thread.role.as_str()))),
    ];
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, nullable, array) in fixed {
        fields.push(Field::new(name, array.data_type().clone(), nullable));
        arrays.push(array);
    }
    for (place, state) in interval.states.iter().enumerate() {
        let ms = threads().map(|thread| thread.states_ms.get(place).copied().unwrap_or(0));
        fields.push(Field::new(format!("{state}{STATE}"), DataType::UInt16, false));
        arrays.push(Arc::new(UInt16Array::from_iter_values(ms)));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|cause| Error::damaged(Path::new("a table"), "thread states", cause))
}

/// The intervals of a batch, in the order of their rows; `None` where it has other columns.
pub(crate) fn intervals_of(batch: &RecordBatch) -> Option<Vec<StatesInterval>> {
    let long = |name| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
    let text = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
    let (begin_ns, t_ns, born_ns) = (long("begin_ns")?, long("t_ns")?, long("born_ns")?);
    let tid = batch.column_by_name("tid")?.as_primitive_opt::<UInt32Type>()?;
    let (name, role) = (text("name")?, text("role")?);
    let mut states = Vec::new();
    let mut columns = Vec::new();
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let of_state = field.name().strip_suffix(STATE).zip(array.as_primitive_opt::<UInt16Type>());
        if let Some((state, column)) = of_state {
            states.push(state.to_string());
            columns.push(column);
        }
    }
    let mut intervals: Vec<StatesInterval> = Vec::new();
    for row in 0..batch.num_rows() {
        let (begin_ns, t_ns) = (begin_ns.value(row), t_ns.value(row));
        if intervals.last().is_none_or(|interval| interval.t_ns != t_ns) {
            intervals.push(StatesInterval { begin_ns, t_ns, states: states.clone(), threads: Vec::new() });
        }
        let thread = ThreadStates {
            tid: tid.value(row),
            born_ns: born_ns.value(row),
            name: name.value(row).to_string(),
            role: role.value(row).to_string(),
            states_ms: columns.iter().map(|column| column.value(row)).collect(),
        };
        if let Some(interval) = intervals.last_mut() {
            interval.threads.push(thread);
        }
    }
    Some(intervals)
}

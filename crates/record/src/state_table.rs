//! Columns of the stream of thread states, and the way from our types to Arrow's and back.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch, UInt16Array, UInt32Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, UInt16Type, UInt32Type};

use crate::data::{StatesLook, ThreadStates};
use crate::error::{Error, Result};
use crate::table::{Columns, longs, strings};

/// What the name of a state's column ends in.
const STATE: &str = "_ms";

/// A row a thread, a column a state.
pub(crate) fn batch_of(look: &StatesLook) -> Result<RecordBatch> {
    let threads = || look.threads.iter();
    let fixed: Columns = vec![
        ("begin_ns", false, longs(threads().map(|_| look.begin_ns))),
        ("t_ns", false, longs(threads().map(|_| look.t_ns))),
        ("tid", false, Arc::new(UInt32Array::from_iter_values(threads().map(|one| one.tid)))),
        ("born_ns", false, longs(threads().map(|one| one.born_ns))),
        ("name", false, strings(threads().map(|one| one.name.as_str()))),
        ("role", false, strings(threads().map(|one| one.role.as_str()))),
    ];
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, nullable, array) in fixed {
        fields.push(Field::new(name, array.data_type().clone(), nullable));
        arrays.push(array);
    }
    for (place, state) in look.states.iter().enumerate() {
        let ms = threads().map(|one| one.states_ms.get(place).copied().unwrap_or(0));
        fields.push(Field::new(format!("{state}{STATE}"), DataType::UInt16, false));
        arrays.push(Arc::new(UInt16Array::from_iter_values(ms)));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|cause| Error::damaged(Path::new("a table"), "thread states", cause))
}

/// The looks of a batch, in the order of their rows; `None` where it has other columns.
pub(crate) fn looks_of(batch: &RecordBatch) -> Option<Vec<StatesLook>> {
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
    let mut looks: Vec<StatesLook> = Vec::new();
    for row in 0..batch.num_rows() {
        let (begin_ns, t_ns) = (begin_ns.value(row), t_ns.value(row));
        if looks.last().is_none_or(|look| look.t_ns != t_ns) {
            looks.push(StatesLook { begin_ns, t_ns, states: states.clone(), threads: Vec::new() });
        }
        let thread = ThreadStates {
            tid: tid.value(row),
            born_ns: born_ns.value(row),
            name: name.value(row).to_string(),
            role: role.value(row).to_string(),
            states_ms: columns.iter().map(|column| column.value(row)).collect(),
        };
        if let Some(look) = looks.last_mut() {
            look.threads.push(thread);
        }
    }
    Some(looks)
}

//! Columns of the streams of thread states and of their roll-ups, and the way from our types to Arrow's and back.
//!
//! A row is a stretch: one thread from one time to another, with its time by state and the requests that it answered.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, UInt16Array, UInt32Array,
};
use arrow::datatypes::{Field, Int64Type, Schema, UInt16Type, UInt32Type};

use whyso_series::is_idle;

use crate::error::{Error, Result};
use crate::table::{longs, strings};

/// What the name of a state's column ends in.
const STATE: &str = "_ms";
pub(crate) const BEGIN: &str = "begin_ns";
pub(crate) const END: &str = "t_ns";
pub(crate) const REQUESTS: &str = "requests";

/// Stretches in memory, column by column.
#[derive(Clone, Debug, Default)]
pub(crate) struct StateRows {
    states: Vec<String>,
    texts: Texts,
    pub(crate) rows: Vec<StateRow>,
    /// By row and state.
    ms: Vec<u32>,
    /// Whether the requests of every row are known.
    knows_requests: bool,
}

/// A stretch without its times by state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StateRow {
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) tid: u32,
    pub(crate) born_ns: i64,
    name: u32,
    role: u32,
    pub(crate) requests: u32,
}

/// Texts by number, each once.
#[derive(Clone, Debug, Default)]
struct Texts {
    all: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let text: Arc<str> = Arc::from(text);
        let number = self.all.len() as u32;
        self.all.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    fn of(&self, number: u32) -> &str {
        self.all.get(number as usize).map_or("", AsRef::as_ref)
    }
}

/// A stretch as it is given: of which thread, and what it did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch<'a> {
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) tid: u32,
    pub(crate) born_ns: i64,
    pub(crate) name: &'a str,
    pub(crate) role: &'a str,
    pub(crate) requests: u32,
}

impl StateRows {
    pub(crate) fn new(states: Vec<String>) -> StateRows {
        StateRows { states, knows_requests: true, ..StateRows::default() }
    }

    pub(crate) fn push(&mut self, stretch: &Stretch<'_>, ms: impl Iterator<Item = u32>) {
        let (name, role) = (self.texts.number(stretch.name), self.texts.number(stretch.role));
        let Stretch { begin_ns, end_ns, tid, born_ns, requests, .. } = *stretch;
        self.rows.push(StateRow { begin_ns, end_ns, tid, born_ns, name, role, requests });
        let wanted = self.rows.len() * self.states.len();
        self.ms.extend(ms);
        self.ms.resize(wanted, 0);
    }

    fn ms_of(&self, row: usize) -> &[u32] {
        let states = self.states.len();
        &self.ms[row * states..(row + 1) * states]
    }

    /// As a batch, in the order of their ends. Numbers of states take two bytes in detail and four in roll-ups.
    pub(crate) fn batch(&self, is_rollup: bool) -> Result<RecordBatch> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by_key(|row| (self.rows[*row].end_ns, self.rows[*row].begin_ns, self.rows[*row].tid));
        let rows = || order.iter().map(|row| &self.rows[*row]);
        let ints = |of: fn(&StateRow) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(rows().map(of)))
        };
        let mut columns: Vec<(String, ArrayRef)> = vec![
            (BEGIN.to_string(), longs(rows().map(|row| row.begin_ns))),
            (END.to_string(), longs(rows().map(|row| row.end_ns))),
            ("tid".to_string(), ints(|row| row.tid)),
            ("born_ns".to_string(), longs(rows().map(|row| row.born_ns))),
            ("name".to_string(), strings(rows().map(|row| self.texts.of(row.name)))),
            ("role".to_string(), strings(rows().map(|row| self.texts.of(row.role)))),
        ];
        if self.knows_requests {
            columns.push((REQUESTS.to_string(), ints(|row| row.requests)));
        }
        for (place, state) in self.states.iter().enumerate() {
            let ms = order.iter().map(|row| self.ms_of(*row)[place]);
            let array: ArrayRef = match is_rollup {
                true => Arc::new(UInt32Array::from_iter_values(ms)),
                false => Arc::new(UInt16Array::from_iter_values(
                    ms.map(|ms| u16::try_from(ms).unwrap_or(u16::MAX)),
                )),
            };
            columns.push((format!("{state}{STATE}"), array));
        }
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(name, array.data_type().clone(), false)).collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .map_err(|cause| Error::damaged(Path::new("a table"), "thread states", cause))
    }
}

/// A batch of stretches, read where it lies.
pub(crate) struct StateColumns<'a> {
    begin_ns: &'a Int64Array,
    end_ns: &'a Int64Array,
    tid: &'a UInt32Array,
    born_ns: &'a Int64Array,
    name: &'a StringArray,
    role: &'a StringArray,
    requests: Option<&'a UInt32Array>,
    pub(crate) states: Vec<String>,
    ms: Vec<Milliseconds<'a>>,
}

enum Milliseconds<'a> {
    Detail(&'a [u16]),
    Rollup(&'a [u32]),
}

impl<'a> StateColumns<'a> {
    /// `None` where a batch has other columns.
    pub(crate) fn of(batch: &'a RecordBatch) -> Option<StateColumns<'a>> {
        let long = |name| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        let int = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>();
        let text = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
        let (mut states, mut ms) = (Vec::new(), Vec::new());
        for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let Some(state) = field.name().strip_suffix(STATE) else { continue };
            let column = match array.as_primitive_opt::<UInt16Type>() {
                Some(detail) => Milliseconds::Detail(detail.values()),
                None => Milliseconds::Rollup(array.as_primitive_opt::<UInt32Type>()?.values()),
            };
            states.push(state.to_string());
            ms.push(column);
        }
        Some(StateColumns {
            begin_ns: long(BEGIN)?,
            end_ns: long(END)?,
            tid: int("tid")?,
            born_ns: long("born_ns")?,
            name: text("name")?,
            role: text("role")?,
            requests: int(REQUESTS),
            states,
            ms,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.tid.len()
    }

    pub(crate) fn knows_requests(&self) -> bool {
        self.requests.is_some()
    }

    pub(crate) fn stretch(&self, row: usize) -> Stretch<'a> {
        Stretch {
            begin_ns: self.begin_ns.value(row),
            end_ns: self.end_ns.value(row),
            tid: self.tid.value(row),
            born_ns: self.born_ns.value(row),
            name: self.name.value(row),
            role: self.role.value(row),
            requests: self.requests.map_or(0, |requests| requests.value(row)),
        }
    }

    pub(crate) fn ms(&self, row: usize, state: usize) -> u32 {
        match &self.ms[state] {
            Milliseconds::Detail(column) => u32::from(column[row]),
            Milliseconds::Rollup(column) => column[row],
        }
    }
}

/// When the stretches of a batch begin and end. Its other columns may be missing.
pub(crate) fn times_of(batch: &RecordBatch) -> impl Iterator<Item = (i64, i64)> {
    let times = |name| {
        let column = batch.column_by_name(name).and_then(|column| column.as_primitive_opt::<Int64Type>());
        column.map_or(&[][..], |column| &column.values()[..])
    };
    times(BEGIN).iter().copied().zip(times(END).iter().copied())
}

/// The stretches of batches, those of a thread that end in one bucket made one.
///
/// # Errors
/// A batch has other columns.
pub(crate) fn roll_up(batches: &[RecordBatch], bucket_ns: i64) -> Result<StateRows> {
    let mut rolled = StateRows::new(Vec::new());
    let mut open: HashMap<(u32, i64), usize> = HashMap::new();
    let odd =
        || Error::damaged(Path::new("a table"), "thread states", "its columns are not what they should be");
    let all: Vec<StateColumns<'_>> =
        batches.iter().map(StateColumns::of).collect::<Option<_>>().ok_or_else(odd)?;
    for columns in &all {
        for state in &columns.states {
            if !rolled.states.contains(state) {
                rolled.states.push(state.clone());
            }
        }
        rolled.knows_requests &= columns.knows_requests();
    }
    let bucket_ns = bucket_ns.max(1);
    let bucket = |end_ns: i64| end_ns.saturating_sub(1).div_euclid(bucket_ns);
    let states = rolled.states.len();
    let is_work: Vec<bool> = rolled.states.iter().map(|state| !is_idle(state)).collect();
    for columns in &all {
        let places: Vec<usize> = columns
            .states
            .iter()
            .map(|state| rolled.states.iter().position(|other| other == state).unwrap_or(0))
            .collect();
        for row in 0..columns.len() {
            let stretch = columns.stretch(row);
            let key = (stretch.tid, stretch.born_ns);
            let same = open.get(&key).copied().filter(|place| {
                let before = &rolled.rows[*place];
                // A long rest from before the bucket stays apart: it would spread what was done in the bucket over its own time.
                let began_before = before.begin_ns < bucket(before.end_ns).saturating_mul(bucket_ns);
                let has_work =
                    || rolled.ms_of(*place).iter().zip(&is_work).any(|(ms, is_work)| *ms > 0 && *is_work);
                bucket(before.end_ns) == bucket(stretch.end_ns)
                    && before.end_ns == stretch.begin_ns
                    && (!began_before || has_work())
            });
            let place = match same {
                Some(place) => {
                    let (name, role) = (rolled.texts.number(stretch.name), rolled.texts.number(stretch.role));
                    let sum = &mut rolled.rows[place];
                    sum.end_ns = stretch.end_ns;
                    sum.requests = sum.requests.saturating_add(stretch.requests);
                    // The name and the role that it had last: both are found out while it works.
                    (sum.name, sum.role) = (name, role);
                    place
                }
                None => {
                    rolled.push(&stretch, std::iter::empty());
                    open.insert(key, rolled.rows.len() - 1);
                    rolled.rows.len() - 1
                }
            };
            for (state, to) in places.iter().enumerate() {
                let sum = &mut rolled.ms[place * states + to];
                *sum = sum.saturating_add(columns.ms(row, state));
            }
        }
    }
    Ok(rolled)
}

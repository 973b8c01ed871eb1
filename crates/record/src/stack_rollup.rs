//! Roll-ups of samples and waits: how many a bucket of time had in each stack, and the time that they stand for.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::{Float64Type, Int64Type, UInt32Type, UInt64Type};

use crate::error::{Error, Result};
use crate::table::{TIME, batch, longs, strings};

/// The state of a thread that a sample found.
pub(crate) const ON_CPU: &str = "cpu";

/// The thread of samples and waits that are added up over several.
pub const UNKNOWN_THREAD: u32 = 0;

/// Samples or waits of one stack, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StackSum {
    pub count: u64,
    /// The time that they stand for.
    pub weight_ns: u64,
    /// Of waits: their own lengths.
    pub length_ns: u64,
    /// Of the weight, as an estimate of all time in this stack. Each sample, and each wait that was chosen, is one independent choice.
    pub variance_ns2: f64,
}

impl StackSum {
    /// Of one sample or wait.
    pub fn one(weight_ns: u64, length_ns: u64) -> StackSum {
        let variance_ns2 = weight_ns as f64 * weight_ns.saturating_sub(length_ns) as f64;
        StackSum { count: 1, weight_ns, length_ns, variance_ns2 }
    }

    /// Of several, where only these sums are known: as if all were equal.
    fn even(count: u64, weight_ns: u64, length_ns: u64) -> StackSum {
        let variance_ns2 = StackSum::one(weight_ns, length_ns).variance_ns2 / count.max(1) as f64;
        StackSum { count, weight_ns, length_ns, variance_ns2 }
    }

    pub(crate) fn add(&mut self, other: StackSum) {
        self.count += other.count;
        self.weight_ns = self.weight_ns.saturating_add(other.weight_ns);
        self.length_ns = self.length_ns.saturating_add(other.length_ns);
        self.variance_ns2 += other.variance_ns2;
    }
}

/// What is added up apart: begin of the bucket, role, state, stack.
type Key = (i64, Arc<str>, Arc<str>, u32);

/// Sums by bucket, role, state and stack.
#[derive(Default)]
struct Rollups {
    sums: BTreeMap<Key, StackSum>,
    texts: BTreeMap<String, Arc<str>>,
}

impl Rollups {
    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        self.texts.insert(text.to_string(), Arc::clone(&new));
        new
    }

    fn add(&mut self, t_ns: i64, role: &str, state: &str, stack: u32, sum: StackSum, length_ns: i64) {
        let bucket_ns = t_ns.div_euclid(length_ns) * length_ns;
        let (role, state) = (self.text(role), self.text(state));
        self.sums.entry((bucket_ns, role, state, stack)).or_default().add(sum);
    }

    fn batch(&self) -> Result<RecordBatch> {
        let counts =
            |of: fn(&StackSum) -> u64| Arc::new(UInt64Array::from_iter_values(self.sums.values().map(of)));
        let variances = Float64Array::from_iter_values(self.sums.values().map(|sum| sum.variance_ns2));
        batch(vec![
            (TIME, false, longs(self.sums.keys().map(|key| key.0))),
            ("role", false, strings(self.sums.keys().map(|key| key.1.as_ref()))),
            ("state", false, strings(self.sums.keys().map(|key| key.2.as_ref()))),
            ("stack", false, Arc::new(UInt32Array::from_iter_values(self.sums.keys().map(|key| key.3)))),
            ("count", false, counts(|sum| sum.count)),
            ("weight_ns", false, counts(|sum| sum.weight_ns)),
            ("length_ns", false, counts(|sum| sum.length_ns)),
            ("variance_ns2", false, Arc::new(variances)),
        ])
    }
}

/// Rows of samples, of waits, or of roll-ups, read where they lie.
pub(crate) struct StackColumns<'a> {
    t_ns: &'a [i64],
    role: &'a StringArray,
    /// Samples have none: they are of threads on CPUs.
    state: Option<&'a StringArray>,
    stack: &'a [u32],
    count: Option<&'a [u64]>,
    weight_ns: &'a [u64],
    length_ns: Option<&'a [u64]>,
    /// The first roll-ups did not have it.
    variance_ns2: Option<&'a [f64]>,
}

/// A row of [`StackColumns`].
pub(crate) struct StackRow<'a> {
    pub(crate) t_ns: i64,
    pub(crate) role: &'a str,
    pub(crate) state: &'a str,
    pub(crate) stack: u32,
    pub(crate) sum: StackSum,
}

/// The columns of samples, waits and roll-ups that are read here.
pub(crate) const COLUMNS: [&str; 8] =
    [TIME, "role", "state", "stack", "count", "weight_ns", "length_ns", "variance_ns2"];

impl<'a> StackColumns<'a> {
    /// `None` where a batch has other columns.
    pub(crate) fn of(batch: &'a RecordBatch) -> Option<StackColumns<'a>> {
        let text = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
        let count = |name| Some(&batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>()?.values()[..]);
        Some(StackColumns {
            t_ns: batch.column_by_name(TIME)?.as_primitive_opt::<Int64Type>()?.values(),
            role: text("role")?,
            state: text("state"),
            stack: batch.column_by_name("stack")?.as_primitive_opt::<UInt32Type>()?.values(),
            count: count("count"),
            weight_ns: count("weight_ns")?,
            length_ns: count("length_ns"),
            variance_ns2: batch
                .column_by_name("variance_ns2")
                .and_then(|column| Some(&column.as_primitive_opt::<Float64Type>()?.values()[..])),
        })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = StackRow<'_>> {
        (0..self.role.len()).map(|row| StackRow {
            t_ns: self.t_ns[row],
            role: self.role.value(row),
            state: self.state.map_or(ON_CPU, |state| state.value(row)),
            stack: self.stack[row],
            sum: self.sum(row),
        })
    }

    fn sum(&self, row: usize) -> StackSum {
        let weight_ns = self.weight_ns[row];
        let length_ns = self.length_ns.map_or(0, |length_ns| length_ns[row]);
        match (self.count, self.variance_ns2) {
            (None, _) => StackSum::one(weight_ns, length_ns),
            (Some(count), None) => StackSum::even(count[row], weight_ns, length_ns),
            (Some(count), Some(variance_ns2)) => {
                StackSum { count: count[row], weight_ns, length_ns, variance_ns2: variance_ns2[row] }
            }
        }
    }
}

/// Roll-ups of samples, waits, or shorter roll-ups.
///
/// # Errors
/// A batch has other columns.
pub(crate) fn merged(batches: &[RecordBatch], length_ns: i64) -> Result<RecordBatch> {
    let mut rollups = Rollups::default();
    for batch in batches {
        let odd =
            || Error::damaged(Path::new("a table"), "stacks", "its columns are not what they should be");
        let columns = StackColumns::of(batch).ok_or_else(odd)?;
        for row in columns.rows() {
            rollups.add(row.t_ns, row.role, row.state, row.stack, row.sum, length_ns);
        }
    }
    rollups.batch()
}

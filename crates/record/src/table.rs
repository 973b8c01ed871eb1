//! Schemas of the streams, and the way from our types to Arrow's and back.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, UInt32Array, UInt64Array, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int64Type, Schema, UInt32Type, UInt64Type};

use crate::data::{Event, Kind, LoadCount, LoadInterval, SeriesKey, Status, TextRows, Value};
use crate::error::{Error, Result};

/// One row of `samples`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) series: u32,
    pub(crate) collection: i64,
    pub(crate) value: Value,
}

/// One row of `collections`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Collection {
    pub(crate) id: i64,
    pub(crate) source: Arc<str>,
    pub(crate) begin_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) status: Status,
}

pub(crate) type Columns = Vec<(&'static str, bool, ArrayRef)>;

/// The columns that are built here are of one length, and that is all that could be wrong with them.
pub(crate) fn batch(columns: Columns) -> Result<RecordBatch> {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, nullable, array)| Field::new(*name, array.data_type().clone(), *nullable))
        .collect();
    let arrays = columns.into_iter().map(|(_, _, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|cause| Error::damaged(Path::new("a table"), "columns", cause))
}

pub(crate) fn strings<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

pub(crate) fn longs(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(crate) fn series_batch(series: &[(u32, SeriesKey)]) -> Result<RecordBatch> {
    let kind = |kind| match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    };
    batch(vec![
        ("id", false, Arc::new(UInt32Array::from_iter_values(series.iter().map(|(id, _)| *id)))),
        ("host", false, strings(series.iter().map(|(_, key)| key.host.as_str()))),
        ("source", false, strings(series.iter().map(|(_, key)| key.source.as_str()))),
        ("metric", false, strings(series.iter().map(|(_, key)| key.metric.as_str()))),
        ("instance", false, strings(series.iter().map(|(_, key)| key.instance.as_str()))),
        ("kind", false, strings(series.iter().map(|(_, key)| kind(key.kind)))),
        ("unit", false, strings(series.iter().map(|(_, key)| key.unit.as_str()))),
    ])
}

pub(crate) fn series_of(batch: &RecordBatch) -> Option<Vec<(u32, SeriesKey)>> {
    let ids = batch.column_by_name("id")?.as_primitive_opt::<UInt32Type>()?;
    let column = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
    let (host, source, metric) = (column("host")?, column("source")?, column("metric")?);
    let (instance, kind, unit) = (column("instance")?, column("kind")?, column("unit")?);
    let row = |row: usize| {
        let key = SeriesKey {
            host: host.value(row).to_string(),
            source: source.value(row).to_string(),
            metric: metric.value(row).to_string(),
            instance: instance.value(row).to_string(),
            kind: if kind.value(row) == "counter" { Kind::Counter } else { Kind::Gauge },
            unit: unit.value(row).to_string(),
        };
        (ids.value(row), key)
    };
    Some((0..batch.num_rows()).map(row).collect())
}

pub(crate) fn collections_batch(collections: &[Collection]) -> Result<RecordBatch> {
    let status = |status| match status {
        Status::Ok => "ok",
        Status::Failed => "failed",
        Status::Missed => "missed",
    };
    batch(vec![
        ("id", false, longs(collections.iter().map(|collection| collection.id))),
        ("source", false, strings(collections.iter().map(|collection| &*collection.source))),
        ("t_begin_ns", false, longs(collections.iter().map(|collection| collection.begin_ns))),
        ("t_end_ns", false, longs(collections.iter().map(|collection| collection.end_ns))),
        ("status", false, strings(collections.iter().map(|collection| status(collection.status)))),
    ])
}

pub(crate) fn collections_of(batch: &RecordBatch) -> Option<Vec<Collection>> {
    let long = |name| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
    let (id, begin_ns, end_ns) = (long("id")?, long("t_begin_ns")?, long("t_end_ns")?);
    let source = batch.column_by_name("source")?.as_string_opt::<i32>()?;
    let status = batch.column_by_name("status")?.as_string_opt::<i32>()?;
    let mut names: HashMap<&str, Arc<str>> = HashMap::new();
    let mut collections = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let source = names.entry(source.value(row)).or_insert_with_key(|name| Arc::from(*name));
        collections.push(Collection {
            id: id.value(row),
            source: Arc::clone(source),
            begin_ns: begin_ns.value(row),
            end_ns: end_ns.value(row),
            status: match status.value(row) {
                "ok" => Status::Ok,
                "missed" => Status::Missed,
                _ => Status::Failed,
            },
        });
    }
    Some(collections)
}

pub(crate) fn samples_batch(samples: &[Sample]) -> Result<RecordBatch> {
    let whole = |sample: &Sample| match sample.value {
        Value::Int(value) => Some(value),
        Value::Float(_) => None,
    };
    let fraction = |sample: &Sample| match sample.value {
        Value::Int(_) => None,
        Value::Float(value) => Some(value),
    };
    batch(vec![
        (
            "series",
            false,
            Arc::new(UInt32Array::from_iter_values(samples.iter().map(|sample| sample.series))),
        ),
        ("collection", false, longs(samples.iter().map(|sample| sample.collection))),
        ("value_i64", true, Arc::new(samples.iter().map(whole).collect::<Int64Array>())),
        ("value_f64", true, Arc::new(samples.iter().map(fraction).collect::<Float64Array>())),
    ])
}

pub(crate) fn samples_of(batch: &RecordBatch) -> Option<Vec<Sample>> {
    let series = batch.column_by_name("series")?.as_primitive_opt::<UInt32Type>()?;
    let collection = batch.column_by_name("collection")?.as_primitive_opt::<Int64Type>()?;
    let whole = batch.column_by_name("value_i64")?.as_primitive_opt::<Int64Type>()?;
    let fraction = batch.column_by_name("value_f64")?.as_primitive_opt::<Float64Type>()?;
    let row = |row: usize| Sample {
        series: series.value(row),
        collection: collection.value(row),
        value: if whole.is_null(row) {
            Value::Float(fraction.value(row))
        } else {
            Value::Int(whole.value(row))
        },
    };
    Some((0..batch.num_rows()).map(row).collect())
}

pub(crate) fn events_batch(events: &[Event]) -> Result<RecordBatch> {
    batch(vec![
        ("t_ns", false, longs(events.iter().map(|event| event.t_ns))),
        ("host", false, strings(events.iter().map(|event| event.host.as_str()))),
        ("kind", false, strings(events.iter().map(|event| event.kind.as_str()))),
        ("text", false, strings(events.iter().map(|event| event.text.as_str()))),
    ])
}

pub(crate) fn events_of(batch: &RecordBatch) -> Option<Vec<Event>> {
    let t_ns = batch.column_by_name("t_ns")?.as_primitive_opt::<Int64Type>()?;
    let column = |name| batch.column_by_name(name)?.as_string_opt::<i32>();
    let (host, kind, text) = (column("host")?, column("kind")?, column("text")?);
    let row = |row: usize| Event {
        t_ns: t_ns.value(row),
        host: host.value(row).to_string(),
        kind: kind.value(row).to_string(),
        text: text.value(row).to_string(),
    };
    Some((0..batch.num_rows()).map(row).collect())
}

pub(crate) fn load_batch(load: &[LoadInterval]) -> Result<RecordBatch> {
    fn counts(load: &[LoadInterval], of: impl Fn(&LoadInterval) -> u64) -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(load.iter().map(of)))
    }
    let errors = list(
        load.iter().map(|interval| interval.errors.len()),
        vec![
            (
                "code",
                strings(
                    load.iter().flat_map(|interval| interval.errors.iter().map(|(code, _)| code.as_str())),
                ),
            ),
            (
                "count",
                Arc::new(UInt64Array::from_iter_values(
                    load.iter().flat_map(|interval| interval.errors.iter().map(|(_, count)| *count)),
                )),
            ),
        ],
    )?;
    batch(vec![
        ("t_begin_ns", false, longs(load.iter().map(|interval| interval.begin_ns))),
        ("t_end_ns", false, longs(load.iter().map(|interval| interval.end_ns))),
        ("level", false, Arc::new(UInt32Array::from_iter_values(load.iter().map(|interval| interval.level)))),
        (
            "measured",
            false,
            Arc::new(load.iter().map(|interval| Some(interval.measured)).collect::<BooleanArray>()),
        ),
        ("statement", false, strings(load.iter().map(|interval| interval.statement.as_str()))),
        ("count", false, counts(load, |interval| interval.count)),
        ("rows", false, counts(load, |interval| interval.rows)),
        ("errors", false, errors),
        ("response_sum_ns", false, counts(load, |interval| interval.response_sum_ns)),
        ("service_sum_ns", false, counts(load, |interval| interval.service_sum_ns)),
        ("response_max_ns", false, counts(load, |interval| interval.response_max_ns)),
        ("response", false, histograms(load, |interval| &interval.response)?),
        ("service", false, histograms(load, |interval| &interval.service)?),
    ])
}

fn histograms(
    load: &[LoadInterval],
    of: impl Fn(&LoadInterval) -> &Vec<(u64, u64)> + Copy,
) -> Result<ArrayRef> {
    let buckets = || load.iter().flat_map(|interval| of(interval).iter());
    list(
        load.iter().map(|interval| of(interval).len()),
        vec![
            ("upper_ns", Arc::new(UInt64Array::from_iter_values(buckets().map(|(upper_ns, _)| *upper_ns)))),
            ("count", Arc::new(UInt64Array::from_iter_values(buckets().map(|(_, count)| *count)))),
        ],
    )
}

/// A list<struct<…>> column from the lengths of the lists and the members' columns.
pub(crate) fn list(
    lengths: impl Iterator<Item = usize>,
    members: Vec<(&'static str, ArrayRef)>,
) -> Result<ArrayRef> {
    let fields: Fields =
        members.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), false)).collect();
    let arrays = members.into_iter().map(|(_, array)| array).collect();
    let lists = StructArray::try_new(fields, arrays, None).and_then(|items| {
        let item = Arc::new(Field::new("item", items.data_type().clone(), false));
        ListArray::try_new(item, OffsetBuffer::from_lengths(lengths), Arc::new(items), None)
    });
    Ok(Arc::new(lists.map_err(|cause| Error::damaged(Path::new("a table"), "lists", cause))?))
}

pub(crate) fn load_of(batch: &RecordBatch) -> Option<Vec<LoadInterval>> {
    let long = |name| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
    let count = |name| batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>();
    let items = |name, row| -> Option<StructArray> {
        let lists = batch.column_by_name(name)?.as_list_opt::<i32>()?;
        lists.value(row).as_struct_opt().cloned()
    };
    let histogram = |name, row| -> Option<Vec<(u64, u64)>> {
        let items = items(name, row)?;
        let upper_ns = items.column_by_name("upper_ns")?.as_primitive_opt::<UInt64Type>()?;
        let count = items.column_by_name("count")?.as_primitive_opt::<UInt64Type>()?;
        Some(upper_ns.values().iter().copied().zip(count.values().iter().copied()).collect())
    };
    let errors = |row| -> Option<Vec<(String, u64)>> {
        let items = items("errors", row)?;
        let code = items.column_by_name("code")?.as_string_opt::<i32>()?;
        let count = items.column_by_name("count")?.as_primitive_opt::<UInt64Type>()?;
        Some((0..items.len()).map(|item| (code.value(item).to_string(), count.value(item))).collect())
    };
    let (begin_ns, end_ns) = (long("t_begin_ns")?, long("t_end_ns")?);
    let level = batch.column_by_name("level")?.as_primitive_opt::<UInt32Type>()?;
    let measured = batch.column_by_name("measured")?.as_boolean_opt()?;
    let statement = batch.column_by_name("statement")?.as_string_opt::<i32>()?;
    let (counts, rows) = (count("count")?, count("rows")?);
    let (response_sum_ns, service_sum_ns) = (count("response_sum_ns")?, count("service_sum_ns")?);
    let response_max_ns = count("response_max_ns")?;
    let row = |row: usize| {
        Some(LoadInterval {
            begin_ns: begin_ns.value(row),
            end_ns: end_ns.value(row),
            level: level.value(row),
            measured: measured.value(row),
            statement: statement.value(row).to_string(),
            count: counts.value(row),
            rows: rows.value(row),
            errors: errors(row)?,
            response_sum_ns: response_sum_ns.value(row),
            service_sum_ns: service_sum_ns.value(row),
            response_max_ns: response_max_ns.value(row),
            response: histogram("response", row)?,
            service: histogram("service", row)?,
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

/// The columns of [`load_counts_of`].
pub(crate) const LOAD_COUNTS: [&str; 4] = ["t_begin_ns", "t_end_ns", "statement", "count"];

pub(crate) fn load_counts_of(batch: &RecordBatch) -> Option<Vec<LoadCount>> {
    let [begin, end, statement, count] = LOAD_COUNTS;
    let long = |name| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
    let (begin_ns, end_ns) = (long(begin)?, long(end)?);
    let statement = batch.column_by_name(statement)?.as_string_opt::<i32>()?;
    let count = batch.column_by_name(count)?.as_primitive_opt::<UInt64Type>()?;
    let row = |row: usize| LoadCount {
        begin_ns: begin_ns.value(row),
        end_ns: end_ns.value(row),
        statement: statement.value(row).to_string(),
        count: count.value(row),
    };
    Some((0..batch.num_rows()).map(row).collect())
}

/// A text table: the time first, then its own columns, each under a name that no other has.
pub(crate) fn rows_batch(table: &TextRows) -> Result<RecordBatch> {
    let mut names: Vec<String> = vec![TIME.to_string()];
    for column in &table.columns {
        let mut name = column.clone();
        let mut copies = 1;
        // Names that differ in case alone are one name to most tools that read Parquet.
        while names.iter().any(|other| other.eq_ignore_ascii_case(&name)) {
            copies += 1;
            name = format!("{column}_{copies}");
        }
        names.push(name);
    }
    let mut fields = vec![Field::new(TIME, DataType::Int64, false)];
    fields.extend(names[1..].iter().map(|name| Field::new(name, DataType::Utf8, true)));
    let mut arrays: Vec<ArrayRef> = vec![longs(table.rows.iter().map(|_| table.t_ns))];
    for column in 0..table.columns.len() {
        let cells = table.rows.iter().map(|row| row.get(column).and_then(Option::as_deref));
        arrays.push(Arc::new(cells.collect::<StringArray>()));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|cause| Error::damaged(Path::new("a table"), "text columns", cause))
}

/// The column of when a row was true.
pub(crate) const TIME: &str = "t_ns";

/// The tables in a batch, one a time, each with the columns of the whole batch.
pub(crate) fn rows_of(batch: &RecordBatch, source: &str) -> Option<Vec<TextRows>> {
    let t_ns = batch.column_by_name(TIME)?.as_primitive_opt::<Int64Type>()?;
    let schema = batch.schema();
    let columns: Option<Vec<(&str, &StringArray)>> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .filter(|(field, _)| field.name() != TIME)
        .map(|(field, array)| Some((field.name().as_str(), array.as_string_opt::<i32>()?)))
        .collect();
    let columns = columns?;
    let mut tables: Vec<TextRows> = Vec::new();
    for row in 0..batch.num_rows() {
        let t_ns = t_ns.value(row);
        if tables.last().is_none_or(|table| table.t_ns != t_ns) {
            let columns = columns.iter().map(|(name, _)| name.to_string()).collect();
            tables.push(TextRows { source: source.to_string(), t_ns, columns, rows: Vec::new() });
        }
        let cell = |array: &StringArray| array.is_valid(row).then(|| array.value(row).to_string());
        let cells = columns.iter().map(|(_, array)| cell(array)).collect();
        if let Some(table) = tables.last_mut() {
            table.rows.push(cells);
        }
    }
    Some(tables)
}

/// The columns of all of them: what one lacks is null there.
pub(crate) fn union_schema(schemas: &[&Schema]) -> Option<Arc<Schema>> {
    let mut fields: Vec<Field> = Vec::new();
    for schema in schemas {
        for field in schema.fields() {
            match fields.iter_mut().find(|other| other.name() == field.name()) {
                Some(other) if other.data_type() != field.data_type() => return None,
                Some(other) => {
                    *other = other.clone().with_nullable(other.is_nullable() || field.is_nullable())
                }
                None => fields.push(field.as_ref().clone()),
            }
        }
    }
    let lacking = |field: &Field| schemas.iter().any(|schema| schema.index_of(field.name()).is_err());
    let fields: Vec<Field> = fields
        .into_iter()
        .map(|field| {
            let nullable = field.is_nullable() || lacking(&field);
            field.with_nullable(nullable)
        })
        .collect();
    Some(Arc::new(Schema::new(fields)))
}

/// A batch with the columns of a wider schema.
pub(crate) fn widened(batch: &RecordBatch, schema: &Arc<Schema>) -> Option<RecordBatch> {
    let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
        Some(array) => Arc::clone(array),
        None => new_null_array(field.data_type(), batch.num_rows()),
    };
    let columns = schema.fields().iter().map(column).collect();
    RecordBatch::try_new(Arc::clone(schema), columns).ok()
}

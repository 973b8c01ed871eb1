//! The catalogue's columns: entries to a table, and back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray,
    UInt32Array, UInt64Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{Field, Fields, Float64Type, Int64Type, Schema, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use whyso_clock::Anchor;

use super::entry::{Entry, FolderFacts, LevelFacts, RunParts};
use crate::labels::Labels;
use crate::run::RunEnd;
use crate::run_facts::{BestLevel, RunFacts};
use crate::segment_facts::SegmentFacts;

/// A column in the making.
type Column = (Field, ArrayRef);

fn column(name: &str, array: impl Array + 'static) -> Column {
    (Field::new(name, array.data_type().clone(), true), Arc::new(array))
}

fn texts<'e, T>(name: &str, rows: &'e [T], of: impl Fn(&'e T) -> Option<&'e str>) -> Column {
    column(name, rows.iter().map(of).collect::<StringArray>())
}

fn owned_texts<T>(name: &str, rows: &[T], of: impl Fn(&T) -> Option<String>) -> Column {
    column(name, rows.iter().map(of).collect::<StringArray>())
}

fn integers<T>(name: &str, rows: &[T], of: impl Fn(&T) -> Option<i64>) -> Column {
    column(name, rows.iter().map(of).collect::<Int64Array>())
}

fn counts<T>(name: &str, rows: &[T], of: impl Fn(&T) -> Option<u64>) -> Column {
    column(name, rows.iter().map(of).collect::<UInt64Array>())
}

fn numbers<T>(name: &str, rows: &[T], of: impl Fn(&T) -> Option<u32>) -> Column {
    column(name, rows.iter().map(of).collect::<UInt32Array>())
}

fn floats<T>(name: &str, rows: &[T], of: impl Fn(&T) -> Option<f64>) -> Column {
    column(name, rows.iter().map(of).collect::<Float64Array>())
}

/// A list in each row, of `lengths` of the elements.
fn lists(name: &str, lengths: impl Iterator<Item = usize>, elements: ArrayRef) -> Result<Column, ArrowError> {
    let element = Arc::new(Field::new("element", elements.data_type().clone(), true));
    let list = ListArray::try_new(element, OffsetBuffer::from_lengths(lengths), elements, None)?;
    Ok(column(name, list))
}

fn structs(columns: Vec<Column>) -> Result<ArrayRef, ArrowError> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    Ok(Arc::new(StructArray::try_new(Fields::from(fields), arrays, None)?))
}

fn list_of_texts(name: &str, lists_of: &[&[String]]) -> Result<Column, ArrowError> {
    let elements = lists_of.iter().flat_map(|list| list.iter().map(Some)).collect::<StringArray>();
    lists(name, lists_of.iter().map(|list| list.len()), Arc::new(elements))
}

/// The table of these entries. Its first columns are for any reader, the last five are only whyso's.
pub(super) fn batch(entries: &[&Entry]) -> Result<RecordBatch, ArrowError> {
    fn best<'e>(entry: &&'e Entry) -> Option<&'e BestLevel> {
        entry.facts.best.as_ref()
    }
    let ends: Vec<(&str, &str)> = entries.iter().map(|entry| end_words(entry.facts.ended.as_ref())).collect();
    let tags: Vec<&[String]> = entries.iter().map(|entry| &entry.of_folder.labels.tags[..]).collect();
    let set: Vec<&[String]> = entries.iter().map(|entry| &entry.facts.set[..]).collect();
    let json = |entry: &&Entry| serde_json::to_string(&entry.facts).ok();
    let identity = |entry: &&Entry| serde_json::to_string(&(entry.run, entry.manifest)).ok();
    let wall_begin = |entry: &&Entry| entry.facts.began_wall_ns;
    let wall_end = |entry: &&Entry| Some(wall_begin(entry)?.saturating_add(entry.facts.length_ns?));
    let columns = vec![
        texts("run", entries, |entry| Some(&entry.name)),
        texts("name", entries, |entry| Some(&entry.of_folder.labels.name)),
        list_of_texts("tags", &tags)?,
        texts("workload", entries, |entry| entry.facts.workload.as_deref()),
        texts("subcommand", entries, |entry| entry.facts.subcommand.as_deref()),
        texts("process", entries, |entry| entry.facts.process.as_deref()),
        texts("flavor", entries, |entry| Some(&entry.facts.flavor)),
        texts("server_version", entries, |entry| Some(&entry.facts.server_version)),
        texts("hostname", entries, |entry| Some(&entry.facts.hostname)),
        texts("tool_version", entries, |entry| Some(&entry.parts.tool_version)),
        integers("begin_wall_ns", entries, wall_begin),
        integers("end_wall_ns", entries, wall_end),
        texts("ended", &ends, |end| Some(end.0)),
        texts("why", &ends, |end| Some(end.1)),
        list_of_texts("set", &set)?,
        numbers("best_users", entries, |entry| best(entry).map(|best| best.users)),
        floats("best_transactions_per_s", entries, |entry| best(entry).map(|best| best.transactions_per_s)),
        floats("best_p95_ms", entries, |entry| best(entry).map(|best| best.latency_p95_ms)),
        counts("bytes", entries, |entry| Some(entry.of_folder.bytes)),
        levels(entries)?,
        anchors(entries)?,
        segments(entries)?,
        owned_texts("facts", entries, json),
        owned_texts("identity", entries, identity),
        counts("stamp", entries, |entry| Some(entry.of_folder.stamp)),
        texts("problem", entries, |entry| entry.problem.as_deref()),
        numbers("has_segments", entries, |entry| Some(u32::from(entry.of_folder.segments.is_some()))),
    ];
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// "complete", "cut short" or empty, and why.
pub(crate) fn end_words(end: Option<&RunEnd>) -> (&str, &str) {
    match end {
        Some(RunEnd::Complete { .. }) => ("complete", ""),
        Some(RunEnd::CutShort { why, .. }) => ("cut short", why),
        None => ("", ""),
    }
}

fn levels(entries: &[&Entry]) -> Result<Column, ArrowError> {
    let all: Vec<&LevelFacts> = entries.iter().flat_map(|entry| &entry.parts.levels).collect();
    let elements = structs(vec![
        numbers("level", &all, |level| Some(level.level)),
        numbers("users", &all, |level| Some(level.users)),
        texts("purpose", &all, |level| Some(&level.purpose)),
        integers("begin_ns", &all, |level| Some(level.begin_ns)),
        integers("end_ns", &all, |level| Some(level.end_ns)),
        counts("transactions", &all, |level| Some(level.transactions)),
        counts("queries", &all, |level| Some(level.queries)),
        counts("errors", &all, |level| Some(level.errors)),
        floats("transactions_per_s", &all, |level| Some(level.transactions_per_s)),
        floats("queries_per_s", &all, |level| Some(level.queries_per_s)),
        floats("mean_ms", &all, |level| Some(level.mean_ms)),
        floats("p95_ms", &all, |level| Some(level.p95_ms)),
        floats("p99_ms", &all, |level| Some(level.p99_ms)),
        floats("max_ms", &all, |level| Some(level.max_ms)),
    ])?;
    lists("levels", entries.iter().map(|entry| entry.parts.levels.len()), elements)
}

fn anchors(entries: &[&Entry]) -> Result<Column, ArrowError> {
    let all: Vec<&Anchor> = entries.iter().flat_map(|entry| &entry.parts.anchors).collect();
    let elements = structs(vec![
        integers("monotonic_ns", &all, |anchor| Some(anchor.monotonic_ns)),
        integers("wall_ns", &all, |anchor| Some(anchor.wall_ns)),
        texts("boot_id", &all, |anchor| Some(&anchor.boot_id)),
    ])?;
    lists("anchors", entries.iter().map(|entry| entry.parts.anchors.len()), elements)
}

fn segments(entries: &[&Entry]) -> Result<Column, ArrowError> {
    let of = |entry: &&Entry| entry.of_folder.segments.as_ref().map_or(0, Vec::len);
    // With what the wall showed more, at least and at most.
    let all: Vec<(&SegmentFacts, Option<(i64, i64)>)> = entries
        .iter()
        .flat_map(|entry| {
            let offsets = entry.parts.wall_offsets();
            let segments = entry.of_folder.segments.iter().flatten();
            segments.map(move |segment| (segment, offsets))
        })
        .collect();
    let elements = structs(vec![
        texts("stream", &all, |(segment, _)| Some(&segment.stream)),
        texts("file", &all, |(segment, _)| Some(&segment.file)),
        integers("begin_ns", &all, |(segment, _)| segment.begin_ns),
        integers("end_ns", &all, |(segment, _)| segment.end_ns),
        integers("begin_wall_ns", &all, |(segment, offsets)| {
            Some(segment.begin_ns?.saturating_add((*offsets)?.0))
        }),
        integers("end_wall_ns", &all, |(segment, offsets)| {
            Some(segment.end_ns?.saturating_add((*offsets)?.1))
        }),
        counts("rows", &all, |(segment, _)| Some(segment.rows)),
        counts("bytes", &all, |(segment, _)| Some(segment.bytes)),
        numbers("columns", &all, |(segment, _)| Some(segment.columns)),
    ])?;
    lists("segments", entries.iter().map(of), elements)
}

/// The entries of a table, without the rows that are not whole. A foreign table has none.
pub(super) fn entries_of(batch: &RecordBatch) -> Vec<Entry> {
    let Some(table) = Table::of(batch) else { return Vec::new() };
    (0..batch.num_rows()).filter_map(|row| table.entry(row)).collect()
}

struct Table<'b> {
    run: &'b StringArray,
    name: &'b StringArray,
    tags: &'b ListArray,
    tool_version: &'b StringArray,
    bytes: &'b UInt64Array,
    levels: &'b ListArray,
    anchors: &'b ListArray,
    segments: &'b ListArray,
    facts: &'b StringArray,
    identity: &'b StringArray,
    stamp: &'b UInt64Array,
    problem: &'b StringArray,
    has_segments: &'b UInt32Array,
}

/// Columns that [`entries_of`] reads.
pub(super) const READ: [&str; 13] = [
    "run",
    "name",
    "tags",
    "tool_version",
    "bytes",
    "levels",
    "anchors",
    "segments",
    "facts",
    "identity",
    "stamp",
    "problem",
    "has_segments",
];

impl Table<'_> {
    fn of(batch: &RecordBatch) -> Option<Table<'_>> {
        let column = |name| batch.column_by_name(name);
        let text = |name| column(name)?.as_string_opt::<i32>();
        let list = |name| column(name)?.as_list_opt::<i32>();
        let count = |name| column(name)?.as_primitive_opt::<UInt64Type>();
        Some(Table {
            run: text("run")?,
            name: text("name")?,
            tags: list("tags")?,
            tool_version: text("tool_version")?,
            bytes: count("bytes")?,
            levels: list("levels")?,
            anchors: list("anchors")?,
            segments: list("segments")?,
            facts: text("facts")?,
            identity: text("identity")?,
            stamp: count("stamp")?,
            problem: text("problem")?,
            has_segments: column("has_segments")?.as_primitive_opt::<UInt32Type>()?,
        })
    }

    fn entry(&self, row: usize) -> Option<Entry> {
        let (run, manifest) = serde_json::from_str(self.identity.value(row)).ok()?;
        let facts: RunFacts = serde_json::from_str(self.facts.value(row)).ok()?;
        let tags = self.tags.value(row);
        let tags: Vec<String> = tags.as_string_opt::<i32>()?.iter().flatten().map(str::to_string).collect();
        let segments = match self.has_segments.value(row) {
            0 => None,
            _ => Some(segments_of(self.segments.value(row).as_struct_opt()?)?),
        };
        Some(Entry {
            name: self.run.value(row).to_string(),
            run,
            manifest,
            facts,
            problem: self.problem.is_valid(row).then(|| self.problem.value(row).to_string()),
            parts: RunParts {
                tool_version: self.tool_version.value(row).to_string(),
                levels: levels_of(self.levels.value(row).as_struct_opt()?)?,
                anchors: anchors_of(self.anchors.value(row).as_struct_opt()?)?,
            },
            of_folder: FolderFacts {
                stamp: self.stamp.value(row),
                bytes: self.bytes.value(row),
                labels: Labels { name: self.name.value(row).to_string(), tags },
                segments,
            },
        })
    }
}

fn text_part<'a>(of: &'a StructArray, name: &str) -> Option<&'a StringArray> {
    of.column_by_name(name)?.as_string_opt::<i32>()
}

fn integer_part<'a>(of: &'a StructArray, name: &str) -> Option<&'a Int64Array> {
    of.column_by_name(name)?.as_primitive_opt::<Int64Type>()
}

fn count_part<'a>(of: &'a StructArray, name: &str) -> Option<&'a UInt64Array> {
    of.column_by_name(name)?.as_primitive_opt::<UInt64Type>()
}

fn number_part<'a>(of: &'a StructArray, name: &str) -> Option<&'a UInt32Array> {
    of.column_by_name(name)?.as_primitive_opt::<UInt32Type>()
}

fn float_part<'a>(of: &'a StructArray, name: &str) -> Option<&'a Float64Array> {
    of.column_by_name(name)?.as_primitive_opt::<Float64Type>()
}

fn levels_of(of: &StructArray) -> Option<Vec<LevelFacts>> {
    let (level, users) = (number_part(of, "level")?, number_part(of, "users")?);
    let purpose = text_part(of, "purpose")?;
    let (begin_ns, end_ns) = (integer_part(of, "begin_ns")?, integer_part(of, "end_ns")?);
    let counts = ["transactions", "queries", "errors"].map(|name| count_part(of, name));
    let [Some(transactions), Some(queries), Some(errors)] = counts else { return None };
    let floats = ["transactions_per_s", "queries_per_s", "mean_ms", "p95_ms", "p99_ms", "max_ms"];
    let [Some(per_s), Some(queries_per_s), Some(mean), Some(p95), Some(p99), Some(max)] =
        floats.map(|name| float_part(of, name))
    else {
        return None;
    };
    let level = |row| LevelFacts {
        level: level.value(row),
        users: users.value(row),
        purpose: purpose.value(row).to_string(),
        begin_ns: begin_ns.value(row),
        end_ns: end_ns.value(row),
        transactions: transactions.value(row),
        queries: queries.value(row),
        errors: errors.value(row),
        transactions_per_s: per_s.value(row),
        queries_per_s: queries_per_s.value(row),
        mean_ms: mean.value(row),
        p95_ms: p95.value(row),
        p99_ms: p99.value(row),
        max_ms: max.value(row),
    };
    Some((0..of.len()).map(level).collect())
}

fn anchors_of(of: &StructArray) -> Option<Vec<Anchor>> {
    let (monotonic_ns, wall_ns) = (integer_part(of, "monotonic_ns")?, integer_part(of, "wall_ns")?);
    let boot_id = text_part(of, "boot_id")?;
    let anchor = |row| Anchor {
        monotonic_ns: monotonic_ns.value(row),
        wall_ns: wall_ns.value(row),
        boot_id: boot_id.value(row).to_string(),
    };
    Some((0..of.len()).map(anchor).collect())
}

fn segments_of(of: &StructArray) -> Option<Vec<SegmentFacts>> {
    let (stream, file) = (text_part(of, "stream")?, text_part(of, "file")?);
    let (begin_ns, end_ns) = (integer_part(of, "begin_ns")?, integer_part(of, "end_ns")?);
    let (rows, bytes) = (count_part(of, "rows")?, count_part(of, "bytes")?);
    let columns = number_part(of, "columns")?;
    let known = |array: &Int64Array, row| array.is_valid(row).then(|| array.value(row));
    let segment = |row| SegmentFacts {
        stream: stream.value(row).to_string(),
        file: file.value(row).to_string(),
        begin_ns: known(begin_ns, row),
        end_ns: known(end_ns, row),
        rows: rows.value(row),
        bytes: bytes.value(row),
        columns: columns.value(row),
    };
    Some((0..of.len()).map(segment).collect())
}

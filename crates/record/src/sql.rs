//! SQL over every run: views for DuckDB.
//!
//! DuckDB opens a file only if a statement needs it. Facts about runs, levels and files come from the catalogue. Files with the same
//! columns are read by one list of paths, of which DuckDB opens one to know the columns. A condition on `run` is a condition on paths.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::catalogue::{self, Entry};
use crate::error::Result;
use crate::layout;
use crate::list;
use crate::segment_facts::SegmentFacts;

/// Which runs and files the views are over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Ids of runs. `None`: every run.
    pub runs: Option<BTreeSet<String>>,
    /// Wall time in nanoseconds: what ended before it is left out, runs and files.
    pub since_wall_ns: Option<i64>,
    /// What began after it is left out.
    pub until_wall_ns: Option<i64>,
}

/// Statements for DuckDB, and the file that they read.
#[derive(Clone, Debug, PartialEq)]
pub struct Views {
    pub sql: String,
    /// Content of the file `catalogue`: a catalogue of the runs in the views.
    pub catalogue: Vec<u8>,
    /// Runs in the views.
    pub runs: usize,
    /// Files in the views.
    pub files: usize,
}

/// Returns statements for DuckDB that make views over the runs in a folder:
///
/// - `runs`, `levels`, `anchors`, `segments`, `series`, `collections`, `samples`, `rollup_10s`, `rollup_2min`, `load`, `states`,
///   `stacks`, `waits`, `frames`, `commands`, `statements`, `events`, `profile_2min`, `profile_1h`;
/// - `rows_<source>` for each source of text tables, and a view for every other stream;
/// - `readings`, which joins the series with their values and times.
///
/// Each has the run's id as `run`. The views read only sealed files; a run that lacks some is not in that view. `catalogue`: where the
/// caller writes [`Views::catalogue`].
///
/// # Errors
/// The folder can't be read.
pub fn views(runs_dir: &Path, selection: &Selection, catalogue: &Path) -> Result<Views> {
    let mut listing = list::list(runs_dir, list::SHIPPED)?;
    listing.entries.retain(|listed| selection.has_run(&listed.entry));
    listing.read_segments();
    let live = listing.entries.iter().filter(|listed| listed.is_live);
    let live = live.map(|listed| listed.entry.name.clone()).collect();
    let entries = listing.entries.into_iter().map(|listed| listed.entry).collect();
    views_of(entries, &Source { folder: runs_dir, catalogue, live, here: None }, selection)
}

/// Where views read.
pub(crate) struct Source<'s> {
    /// Holds the runs' folders.
    pub(crate) folder: &'s Path,
    pub(crate) catalogue: &'s Path,
    pub(crate) live: BTreeSet<String>,
    /// Runs whose files are in the folder. `None`: all.
    pub(crate) here: Option<BTreeSet<String>>,
}

impl Source<'_> {
    fn is_here(&self, run: &str) -> bool {
        self.here.as_ref().is_none_or(|here| here.contains(run))
    }
}

/// Makes views over these entries. Their segments were read.
pub(crate) fn views_of(mut entries: Vec<Entry>, source: &Source, selection: &Selection) -> Result<Views> {
    for entry in &mut entries {
        let offsets = entry.parts.wall_offsets();
        if let Some(segments) = &mut entry.of_folder.segments {
            segments.retain(|segment| selection.has_segment(segment, offsets));
        }
    }
    entries.sort_by_key(|entry| (entry.facts.began_wall_ns.unwrap_or(0), entry.name.clone()));
    let (mut columns, mut files): (BTreeMap<&str, BTreeSet<u32>>, usize) = (BTreeMap::new(), 0);
    for entry in entries.iter().filter(|entry| source.is_here(&entry.name)) {
        for segment in entry.of_folder.segments.iter().flatten() {
            columns.entry(&segment.stream).or_default().insert(segment.columns);
            files += 1;
        }
    }
    let sql = statements(source, columns);
    let all: Vec<&Entry> = entries.iter().collect();
    Ok(Views { sql, catalogue: catalogue::encode(&all)?, runs: all.len(), files })
}

impl Selection {
    pub(crate) fn has_run(&self, entry: &Entry) -> bool {
        let is_named = self.runs.as_ref().is_none_or(|runs| runs.contains(&entry.name));
        let begin = entry.facts.began_wall_ns;
        // Without a last time it may have lasted until now.
        let end = begin.zip(entry.facts.length_ns).map(|(begin, length)| begin.saturating_add(length));
        // A recorder that died wrote its last time up to a minute before.
        let end = end.filter(|_| entry.facts.ended.is_some());
        is_named && self.has_time(begin, end)
    }

    fn has_segment(&self, segment: &SegmentFacts, wall_offsets: Option<(i64, i64)>) -> bool {
        let wall = |t_ns: Option<i64>, offset: Option<i64>| Some(t_ns?.saturating_add(offset?));
        let begin = wall(segment.begin_ns, wall_offsets.map(|offsets| offsets.0));
        self.has_time(begin, wall(segment.end_ns, wall_offsets.map(|offsets| offsets.1)))
    }

    /// What is not known is not left out.
    fn has_time(&self, begin: Option<i64>, end: Option<i64>) -> bool {
        let ended_before = self.since_wall_ns.zip(end).is_some_and(|(since, end)| end < since);
        let began_after = self.until_wall_ns.zip(begin).is_some_and(|(until, begin)| begin > until);
        !ended_before && !began_after
    }
}

fn list_of_texts<'t>(texts: impl IntoIterator<Item = &'t String>) -> String {
    texts.into_iter().map(|of| text(of)).collect::<Vec<_>>().join(", ")
}

fn statements(from: &Source, mut columns: BTreeMap<&str, BTreeSet<u32>>) -> String {
    let source = format!("read_parquet({})", text(&from.catalogue.display().to_string()));
    let folder = text(&from.folder.join("").display().to_string());
    let still = match from.live.is_empty() {
        true => "'died'".to_string(),
        false => format!("CASE WHEN run IN ({}) THEN 'goes on' ELSE 'died' END", list_of_texts(&from.live)),
    };
    let is_here = match &from.here {
        None => "true".to_string(),
        Some(here) if here.is_empty() => "false".to_string(),
        Some(here) => format!("run IN ({})", list_of_texts(here)),
    };
    let mut sql = format!(
        "CREATE OR REPLACE VIEW runs AS SELECT run, {folder} || run AS path, make_timestamp_ns(coalesce(begin_wall_ns, 0)) AS began, \
         coalesce(workload, '') AS workload, flavor, server_version, hostname, tool_version, \
         CASE WHEN ended = '' THEN {still} ELSE ended END AS ended, why, bytes::BIGINT AS bytes, name, tags, \"set\", \
         make_timestamp_ns(end_wall_ns) AS last, best_users, best_transactions_per_s, best_p95_ms FROM {source};\n\
         CREATE OR REPLACE VIEW levels AS SELECT run, unnest(levels, recursive := true) FROM {source};\n\
         CREATE OR REPLACE VIEW anchors AS SELECT run, unnest(anchors, recursive := true) FROM {source};\n\
         CREATE OR REPLACE TEMP TABLE segments AS SELECT run, stream, file, begin_ns, end_ns, make_timestamp_ns(begin_wall_ns) AS began, \
         make_timestamp_ns(end_wall_ns) AS last, rows, bytes, columns, {folder} || run || '/' || file AS path, {is_here} AS is_here\n  \
         FROM (SELECT run, unnest(segments, recursive := true) FROM {source});\n"
    );
    for (stream, empty) in EMPTY {
        let columns = columns.remove(stream).unwrap_or_default();
        sql.push_str(&view(stream, &columns, empty));
    }
    for (stream, columns) in &columns {
        sql.push_str(&view(stream, columns, ""));
    }
    sql.push_str(
        "CREATE OR REPLACE VIEW readings AS SELECT samples.run, host, series.source, metric, instance, kind, unit, t_begin_ns, t_end_ns,\n  \
         coalesce(value_f64, value_i64::DOUBLE) AS value\nFROM samples\n  \
         JOIN series ON series.run = samples.run AND series.id = samples.series\n  \
         JOIN collections ON collections.run = samples.run AND collections.id = samples.collection;\n",
    );
    sql
}

/// The views that are always there, with their columns for when no run has the files.
const EMPTY: [(&str, &str); 18] = [
    (
        "series",
        "id UINTEGER, host VARCHAR, source VARCHAR, metric VARCHAR, instance VARCHAR, kind VARCHAR, unit VARCHAR",
    ),
    ("collections", "id BIGINT, source VARCHAR, t_begin_ns BIGINT, t_end_ns BIGINT, status VARCHAR"),
    ("samples", "series UINTEGER, collection BIGINT, value_i64 BIGINT, value_f64 DOUBLE"),
    (
        "rollup-10s",
        "series UINTEGER, t_ns BIGINT, min DOUBLE, max DOUBLE, sum DOUBLE, count UINTEGER, first DOUBLE, last DOUBLE",
    ),
    (
        "rollup-2min",
        "series UINTEGER, t_ns BIGINT, min DOUBLE, max DOUBLE, sum DOUBLE, count UINTEGER, first DOUBLE, last DOUBLE",
    ),
    (
        "load",
        "t_begin_ns BIGINT, t_end_ns BIGINT, level UINTEGER, measured BOOLEAN, statement VARCHAR, count UBIGINT, rows UBIGINT, \
         errors STRUCT(code VARCHAR, count UBIGINT)[], response_sum_ns UBIGINT, service_sum_ns UBIGINT, response_max_ns UBIGINT, \
         response STRUCT(upper_ns UBIGINT, count UBIGINT)[], service STRUCT(upper_ns UBIGINT, count UBIGINT)[]",
    ),
    (
        "states",
        "begin_ns BIGINT, t_ns BIGINT, tid UINTEGER, born_ns BIGINT, name VARCHAR, role VARCHAR, requests UINTEGER, cpu_ms USMALLINT, \
         runqueue_ms USMALLINT, wakeup_ms USMALLINT, lock_ms USMALLINT, kernel_lock_ms USMALLINT, file_read_ms USMALLINT, \
         file_write_ms USMALLINT, file_sync_ms USMALLINT, net_send_ms USMALLINT, net_receive_ms USMALLINT, \
         page_fault_ms USMALLINT, sleep_ms USMALLINT, aio_ms USMALLINT, other_ms USMALLINT, \
         idle_ms USMALLINT",
    ),
    ("stacks", "t_ns BIGINT, tid UINTEGER, role VARCHAR, stack UINTEGER, weight_ns UBIGINT"),
    (
        "waits",
        "t_ns BIGINT, wait UBIGINT, tid UINTEGER, role VARCHAR, state VARCHAR, length_ns UBIGINT, weight_ns UBIGINT, \
         stack UINTEGER, waker_tid UINTEGER, waker_stack UINTEGER, waker_past STRUCT(state VARCHAR, ns UBIGINT)[]",
    ),
    (
        "frames",
        "stack UINTEGER, depth UINTEGER, function VARCHAR, module VARCHAR, build_id VARCHAR, address UBIGINT, \
         source_file VARCHAR, line UINTEGER, inlined BOOLEAN",
    ),
    (
        "program_stacks",
        "t_ns BIGINT, pid UINTEGER, program VARCHAR, origin VARCHAR, stack UINTEGER, weight_ns UBIGINT",
    ),
    (
        "program_waits",
        "t_ns BIGINT, tid UINTEGER, program VARCHAR, state VARCHAR, length_ns UBIGINT, weight_ns UBIGINT, stack UINTEGER",
    ),
    (
        "program_frames",
        "stack UINTEGER, depth UINTEGER, function VARCHAR, module VARCHAR, build_id VARCHAR, address UBIGINT, \
         source_file VARCHAR, line UINTEGER, inlined BOOLEAN",
    ),
    (
        "commands",
        "t_ns BIGINT, tid UINTEGER, client VARCHAR, command VARCHAR, response_ns UBIGINT, cpu_ns UBIGINT, runqueue_ns UBIGINT, \
         lock_ns UBIGINT, io_ns UBIGINT, length UINTEGER, prepared UINTEGER, statement UINTEGER, text VARCHAR",
    ),
    ("profile-2min", PROFILE),
    ("profile-1h", PROFILE),
    ("statements", "statement UINTEGER, text VARCHAR"),
    ("events", "t_ns BIGINT, host VARCHAR, kind VARCHAR, text VARCHAR"),
];

const PROFILE: &str = "t_ns BIGINT, role VARCHAR, state VARCHAR, stack UINTEGER, count UBIGINT, weight_ns UBIGINT, length_ns UBIGINT";

/// A view over the files of a stream. Those of each group of columns have their paths in a variable: a list in the statement would be
/// longer than all else.
fn view(stream: &str, columns: &BTreeSet<u32>, empty: &str) -> String {
    let name = identifier(&view_name(stream));
    if columns.is_empty() {
        return empty_view(&name, empty);
    }
    let (mut sql, mut parts) = (String::new(), Vec::new());
    for columns in columns {
        let variable = identifier(&format!("whyso_{stream}_{columns}"));
        sql.push_str(&format!(
            "SET VARIABLE {variable} = (SELECT list(path ORDER BY path) FROM segments WHERE is_here AND stream = {} AND columns = {columns});\n",
            text(stream)
        ));
        parts.push(format!(
            "SELECT parse_path(filename)[-2] AS run, * EXCLUDE (filename)\n  \
             FROM read_parquet(getvariable({}), filename = true, hive_partitioning = false)",
            text(&format!("whyso_{stream}_{columns}"))
        ));
    }
    sql.push_str(&format!("CREATE OR REPLACE VIEW {name} AS {};\n", parts.join("\n  UNION ALL BY NAME ")));
    sql
}

fn view_name(stream: &str) -> String {
    match layout::rows_source(stream) {
        Some(source) => format!("rows_{source}"),
        None => stream.replace('-', "_"),
    }
}

fn empty_view(name: &str, columns: &str) -> String {
    let mut selected = vec!["NULL::VARCHAR AS run".to_string()];
    let mut depth = 0;
    let mut begin = 0;
    // Commas within STRUCT(…) separate no columns.
    for (at, letter) in columns.char_indices().chain([(columns.len(), ',')]) {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                if let Some((column, kind)) = columns[begin..at].trim().split_once(' ') {
                    selected.push(format!("NULL::{kind} AS {}", identifier(column)));
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
    format!("CREATE OR REPLACE VIEW {name} AS SELECT {} WHERE false;\n", selected.join(", "))
}

fn text(value: &str) -> String {
    // A NUL would end the statement for a C reader.
    format!("'{}'", value.replace('\0', "").replace('\'', "''"))
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('\0', "").replace('"', "\"\""))
}

//! SQL over every run: views for DuckDB.

use std::collections::BTreeMap;
use std::path::Path;

use crate::layout;
use crate::list::{LoadedRun, load_runs};
use crate::run::{Purpose, RunEnd};

/// Statements for DuckDB that make views over every run in a folder:
///
/// - `runs`, `levels`, `anchors`, `series`, `collections`, `samples`, `rollup_10s`, `rollup_2min`, `load`, `states`, `stacks`, `waits`,
///   `frames`, `commands`, `statements`, `events`, `profile_2min`, `profile_1h`;
/// - `rows_<source>` for each source of text tables, and a view for every other stream;
/// - `readings`, which joins the series with their values and times.
///
/// Each has the run's id as `run`. The views read only sealed files; a run that lacks some is not in that view. A folder that can't be
/// read gives empty views.
pub fn views(runs_dir: &Path) -> String {
    let runs = load_runs(runs_dir).unwrap_or_default();
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for run in &runs {
        let series = run.summary.path.join(layout::SERIES);
        if series.is_file() {
            files.entry("series".to_string()).or_default().push(series.display().to_string());
        }
        for segment in layout::live_segments(&run.summary.path).unwrap_or_default() {
            if segment.sealed {
                files.entry(segment.stream).or_default().push(segment.path.display().to_string());
            }
        }
    }
    let mut sql = String::new();
    sql.push_str(&runs_view(&runs));
    sql.push_str(&levels_view(&runs));
    sql.push_str(&anchors_view(&runs));
    for (stream, empty) in EMPTY {
        let files = files.remove(stream).unwrap_or_default();
        sql.push_str(&view(stream, &files, empty));
    }
    for (stream, files) in &files {
        sql.push_str(&view(stream, files, ""));
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
const EMPTY: [(&str, &str); 15] = [
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

fn view(stream: &str, files: &[String], empty: &str) -> String {
    let name = identifier(&view_name(stream));
    if files.is_empty() {
        return empty_view(&name, empty);
    }
    let files: Vec<String> = files.iter().map(|file| text(file)).collect();
    format!(
        "CREATE OR REPLACE VIEW {name} AS SELECT parse_path(filename)[-2] AS run, * EXCLUDE (filename)\nFROM read_parquet([{}], union_by_name = true, filename = true);\n",
        files.join(",\n  ")
    )
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

fn runs_view(runs: &[LoadedRun]) -> String {
    let rows = runs.iter().map(|run| {
        let (ended, why) = match &run.run.ended {
            Some(RunEnd::Complete { .. }) => ("complete", ""),
            Some(RunEnd::CutShort { why, .. }) => ("cut short", why.as_str()),
            None if run.summary.live => ("goes on", ""),
            None => ("died", ""),
        };
        let began_ns = run.run.anchors.first().map_or(0, |anchor| anchor.wall_ns);
        vec![
            text(&run.summary.id),
            text(&run.summary.path.display().to_string()),
            format!("make_timestamp_ns({began_ns})"),
            text(run.run.spec.workload.as_deref().unwrap_or("")),
            text(&run.run.server.flavor),
            text(&run.run.server.version),
            text(&run.run.host.hostname),
            text(&run.run.tool_version),
            text(ended),
            text(why),
            run.summary.bytes.to_string(),
        ]
    });
    let columns = "path VARCHAR, began TIMESTAMP_NS, workload VARCHAR, flavor VARCHAR, server_version VARCHAR, hostname VARCHAR, tool_version VARCHAR, ended VARCHAR, why VARCHAR, bytes BIGINT";
    values_view("runs", columns, rows)
}

fn levels_view(runs: &[LoadedRun]) -> String {
    let rows = runs.iter().flat_map(|run| run.run.levels.iter().map(move |level| (run, level))).map(
        |(run, level)| {
            let result = &level.result;
            let purpose = match level.purpose {
                Purpose::Sweep => "sweep",
                Purpose::Repeat => "repeat",
                Purpose::Switch => "switch",
            };
            vec![
                text(&run.summary.id),
                level.index.to_string(),
                level.users.to_string(),
                text(purpose),
                level.window.begin_ns.to_string(),
                level.window.end_ns.to_string(),
                result.transactions.to_string(),
                result.queries.to_string(),
                result.errors.to_string(),
                number(result.transactions_per_s),
                number(result.queries_per_s),
                number(result.latency_ms.mean),
                number(result.latency_ms.p95),
                number(result.latency_ms.p99),
                number(result.latency_ms.max),
            ]
        },
    );
    let columns = "level UINTEGER, users UINTEGER, purpose VARCHAR, begin_ns BIGINT, end_ns BIGINT, transactions UBIGINT, queries UBIGINT, errors UBIGINT, \
        transactions_per_s DOUBLE, queries_per_s DOUBLE, mean_ms DOUBLE, p95_ms DOUBLE, p99_ms DOUBLE, max_ms DOUBLE";
    values_view("levels", columns, rows)
}

fn anchors_view(runs: &[LoadedRun]) -> String {
    let anchors = runs.iter().flat_map(|run| run.run.anchors.iter().map(move |anchor| (run, anchor)));
    let rows = anchors.map(|(run, anchor)| {
        vec![
            text(&run.summary.id),
            anchor.monotonic_ns.to_string(),
            anchor.wall_ns.to_string(),
            text(&anchor.boot_id),
        ]
    });
    values_view("anchors", "monotonic_ns BIGINT, wall_ns BIGINT, boot_id VARCHAR", rows)
}

fn values_view(name: &str, columns: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<String> = rows.map(|cells| format!("({})", cells.join(", "))).collect();
    if rows.is_empty() {
        return empty_view(name, columns);
    }
    let typed = format!("run VARCHAR, {columns}");
    let (mut names, mut casts) = (Vec::new(), Vec::new());
    for column in typed.split(", ") {
        if let Some((column, kind)) = column.split_once(' ') {
            names.push(identifier(column));
            casts.push(format!("{0}::{kind} AS {0}", identifier(column)));
        }
    }
    format!(
        "CREATE OR REPLACE VIEW {name} AS SELECT {} FROM (VALUES\n  {}) AS v({});\n",
        casts.join(", "),
        rows.join(",\n  "),
        names.join(", ")
    )
}

fn text(value: &str) -> String {
    // A NUL would end the statement for a C reader.
    format!("'{}'", value.replace('\0', "").replace('\'', "''"))
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('\0', "").replace('"', "\"\""))
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:?}") } else { "NULL".to_string() }
}

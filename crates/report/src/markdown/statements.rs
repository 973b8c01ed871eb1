//! What clients asked of the server at one level, as a table.

use whyso_explain::statements::{COMMAND_METRICS, CommandMetric, StatementTime};
use whyso_record::run::RunInfo;

use super::text::{Markdown, escaped};
use crate::flame::level_name;
use crate::number::{grouped, whole};
use crate::statements::{RunStatements, sql_trace_words, total};

/// Those with the most response time are told.
const LINES_MAX: usize = 15;
const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;

/// `about`: the level that is told, where its commands were followed; else the last one is.
pub(super) fn statements_of(
    out: &mut Markdown,
    info: &RunInfo,
    about: Option<u32>,
    run: Option<&RunStatements>,
) {
    let Some(run) = run else { return };
    let of_about = run.levels.iter().find(|level| about.is_some() && level.level == about);
    let level = of_about.or(run.levels.last()).filter(|level| !level.statements.is_empty());
    let Some(level) = level else { return };
    let known = info.levels.iter().find(|one| Some(one.index) == level.level && one.users > 0);
    let place = known.map_or(String::new(), |known| format!(" at {}", level_name(info, known)));
    out.heading(&format!("What clients asked of the server{place}"));
    let names: Vec<String> = COMMAND_METRICS.iter().map(named).collect();
    let mut head = vec!["statement", "command", "count", "mean ms"];
    head.extend(names.iter().map(String::as_str));
    out.table(&head);
    let all = total(&level.statements);
    out.row(&cells(&all, &all, "all", ""));
    for one in level.statements.iter().take(LINES_MAX) {
        out.row(&cells(one, &all, &run.text(one), &one.command));
    }
    let more = match level.statements.len().saturating_sub(LINES_MAX) {
        0 => String::new(),
        left => format!(", and {} more statements", whole(left as u64)),
    };
    let cost = sql_trace_words(&run.trace).trim_end().replace('\n', " ");
    out.line(&format!(
        "\nIn {} s{more}. A dash: there is no such count, or it is not known of these commands.",
        grouped(level.seconds)
    ));
    out.line(&format!("\n{}", escaped(&cost)));
}

fn named(metric: &CommandMetric) -> String {
    let name = metric.name().replace('_', " ");
    if metric.is_time() { format!("{name} s") } else { name }
}

fn cells(one: &StatementTime, all: &StatementTime, statement: &str, command: &str) -> Vec<String> {
    let sum = |metric: &CommandMetric| match (one.sum(*metric), all.sum(*metric)) {
        (_, None) => "not known".to_string(),
        (None, _) => "–".to_string(),
        (Some(sum), _) if metric.is_time() => format!("{:.3}", sum as f64 / NS_PER_S),
        (Some(sum), _) => whole(sum),
    };
    let mean = format!("{:.3}", one.mean_ns() / NS_PER_MS);
    let mut cells = vec![escaped(statement), escaped(command), whole(one.count), mean];
    cells.extend(COMMAND_METRICS.iter().map(sum));
    cells
}

//! What clients asked of the server at one level, as a table.

use whyso_explain::statements::{COMMAND_METRICS, CommandMetric, StatementTime};
use whyso_record::run::RunInfo;
use whyso_words::{count, number, seconds, whole};

use super::writer::{Markdown, escaped};
use crate::statements::{RunStatements, total};
use crate::text::level::level_name;
use crate::text::statements::sql_trace_words;

/// Most statements, those with the most response time.
const LINES_MAX: usize = 15;
const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;

/// `about`: the level that is shown if its commands were followed; else the last one is.
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
    let level_shown =
        info.levels.iter().find(|candidate| Some(candidate.index) == level.level && candidate.users > 0);
    let place = level_shown.map_or(String::new(), |level| format!(" at {}", level_name(info, level)));
    out.heading(&format!("What clients asked of the server{place}"));
    let names: Vec<String> = COMMAND_METRICS.iter().map(named).collect();
    let mut head = vec!["statement", "command", "count", "mean ms"];
    head.extend(names.iter().map(String::as_str));
    out.table(&head);
    let all = total(&level.statements);
    out.row(&cells(&all, &all, "all", ""));
    for statement in level.statements.iter().take(LINES_MAX) {
        out.row(&cells(statement, &all, &run.text(statement), &statement.command));
    }
    let more = match level.statements.len().saturating_sub(LINES_MAX) {
        0 => String::new(),
        left => format!(", and {}", count(left as u64, "more statement")),
    };
    let cost = sql_trace_words(&run.trace).trim_end().replace('\n', " ");
    out.line(&format!(
        "\nIn {}{more}. A dash: there is no such count, or it is not known of these commands.",
        seconds(level.seconds)
    ));
    out.line(&format!("\n{}", escaped(&cost)));
}

fn named(metric: &CommandMetric) -> String {
    let name = metric.name().replace('_', " ");
    if metric.is_time() { format!("{name} s") } else { name }
}

fn cells(time: &StatementTime, all: &StatementTime, statement: &str, command: &str) -> Vec<String> {
    let sum = |metric: &CommandMetric| match (time.sum(*metric), all.sum(*metric)) {
        (_, None) => "not known".to_string(),
        (None, _) => "–".to_string(),
        (Some(sum), _) if metric.is_time() => number(sum as f64 / NS_PER_S),
        (Some(sum), _) => whole(sum),
    };
    let mean = number(time.mean_ns() / NS_PER_MS);
    let mut cells = vec![escaped(statement), escaped(command), whole(time.count), mean];
    cells.extend(COMMAND_METRICS.iter().map(sum));
    cells
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::statements::LevelStatements;

    #[test]
    fn what_is_known_of_no_command_is_shown_as_unknown_and_a_statement_stays_in_its_cell() {
        let time = StatementTime {
            command: "QUERY".to_string(),
            statement: Some(0),
            count: 4,
            sums: [8_000_000, 0, 0, 0, 0, 12, 0, 0, 1],
            known: [4, 0, 0, 0, 0, 4, 0, 0, 4],
            ..StatementTime::default()
        };
        let run = RunStatements {
            texts: HashMap::from([(0, "SELECT a | b <i>".to_string())]),
            levels: vec![LevelStatements {
                seconds: 2.0,
                statements: vec![time],
                ..LevelStatements::default()
            }],
            ..RunStatements::default()
        };
        let mut out = Markdown::default();
        statements_of(&mut out, &RunInfo::default(), None, Some(&run));
        let line = out.text.lines().find(|line| line.starts_with("| SELECT")).unwrap();
        assert_eq!(
            line,
            "| SELECT a \\| b &lt;i&gt; | QUERY | 4 | 2 | 0.008 | not known | not known | not known | not known | 12 | not known | \
             not known | 1 |"
        );
        let before = out.text.clone();
        statements_of(&mut out, &RunInfo::default(), None, None);
        assert_eq!(out.text, before);
    }
}

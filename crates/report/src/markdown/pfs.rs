//! What the Performance Schema counted at the last level: the first waits, and the first digests or statements.

use whyso_explain::pfs::{Per, Table};
use whyso_explain::timer::Timing;
use whyso_record::run::RunInfo;
use whyso_words::count;

use super::writer::{Markdown, escaped};
use crate::pfs::RunPfs;
use crate::text::capital;
use crate::text::level::level_name;
use crate::text::pfs::{PfsOf, events_head, events_line, observer_words};
use crate::text::timers::{DOCUMENTED, RECKONED, is_documented, timing_head, timing_rows};

/// Lines of each view.
const LINES_MAX: usize = 10;

pub(super) fn pfs_views(out: &mut Markdown, info: &RunInfo, run: Option<&RunPfs>) {
    let Some((run, level)) = run.and_then(|run| Some((run, run.levels.last()?))) else { return };
    let view =
        |name: &str| level.tables.iter().find(|table| table.view.name == name && !table.lines.is_empty());
    let statements = match (view("digests"), view("statements")) {
        (Some(digests), Some(statements)) if !covers_most(digests, statements) => Some(statements),
        (digests, statements) => digests.or(statements),
    };
    let tables: Vec<&Table> = [view("waits"), statements].into_iter().flatten().collect();
    if tables.is_empty() {
        return;
    }
    let level_shown =
        info.levels.iter().find(|candidate| Some(candidate.index) == level.level && candidate.users > 0);
    let place = level_shown.map_or(String::new(), |level| format!(" at {}", level_name(info, level)));
    out.heading(&format!("What the Performance Schema counted{place}"));
    for (order, table) in tables.into_iter().enumerate() {
        if order > 0 {
            out.line("");
        }
        out.line(&format!(
            "{}; {} in all.\n",
            escaped(&capital(table.view.about)),
            count(table.lines.len() as u64, table.view.line)
        ));
        let of = PfsOf { window: "", table, texts: &run.texts, per: Per::Second, limit: LINES_MAX };
        let head = events_head(table);
        out.table(&head.iter().map(String::as_str).collect::<Vec<_>>());
        for line in [table.total()].iter().chain(table.lines.iter().take(LINES_MAX)) {
            out.row(&events_line(of, line).iter().map(|cell| escaped(cell)).collect::<Vec<_>>());
        }
        if let Some(text) = observer_words(table) {
            out.line(&format!("\nNot shown: {text}."));
        }
    }
    out.line("\nIdle waits are left out, and in no total. `whyso pfs` has the other views and lines.");
    timed(out, level.timing.as_ref());
}

/// What timing cost, by class of events.
fn timed(out: &mut Markdown, timing: Option<&Timing>) {
    let Some(timing) = timing else { return };
    out.line("\nWhat timing cost:\n");
    out.table(&timing_head(timing));
    for row in timing_rows(timing) {
        out.row(&row.iter().map(|cell| escaped(cell)).collect::<Vec<_>>());
    }
    let documented = if is_documented(timing) { format!(" {DOCUMENTED}") } else { String::new() };
    out.line(&format!("\n{RECKONED}{documented} `whyso pfs RUN timers` has what other timers would cost."));
}

/// A server that has no digests of prepared statements may have hardly any but those of what whyso itself asks.
fn covers_most(digests: &Table, statements: &Table) -> bool {
    let count = |table: &Table| table.total().values.first().copied().flatten().unwrap_or(0.0);
    count(digests) >= count(statements) / 2.0
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use whyso_explain::model::{Counter, SeriesName};
    use whyso_explain::pfs::View;

    use super::*;
    use crate::pfs::LevelPfs;

    fn table(view: &str, increases: &[(&str, &str, f64)]) -> Table {
        let view = View::named(view).unwrap();
        let counter = |(metric, instance, increase): &(&str, &str, f64)| {
            let [host, source, metric, instance] =
                ["server", view.source, metric, instance].map(str::to_string);
            let series = SeriesName { host, source, metric, instance };
            Counter { series, unit: "1".to_string(), increase: *increase }
        };
        let counters: Vec<Counter> = increases.iter().map(counter).collect();
        Table::new(view, &counters, &[], 10.0, Some(2000.0), None)
    }

    #[test]
    fn the_last_level_is_shown_with_digests_by_their_text_and_nothing_breaks_out_of_a_cell() {
        let waits = table(
            "waits",
            &[("count", "wait/a", 1000.0), ("time_ns", "wait/a", 20e6), ("count", "idle", 5.0)],
        );
        let run = RunPfs {
            levels: vec![LevelPfs {
                level: Some(0),
                tables: vec![
                    waits,
                    table("statements", &[("count", "statement/sql/select", 7.0)]),
                    table("digests", &[("count", "shop:abc", 50.0), ("time_ns", "shop:abc", 1e6)]),
                ],
                timing: Some(Timing {
                    seconds: 10.0,
                    cpu_s: Some(0.5),
                    server_cpu_s: Some(5.0),
                    ..Timing::default()
                }),
            }],
            texts: HashMap::from([("shop:abc".to_string(), "SELECT a | b <i>".to_string())]),
        };
        let mut out = Markdown::default();
        pfs_views(&mut out, &RunInfo::default(), Some(&run));
        assert!(out.text.contains("## What the Performance Schema counted\n"), "{}", out.text);
        assert!(out.text.contains("| 100 | 0.5 | 2 | 10 | 20 | 100 % | wait/a |\n"), "{}", out.text);
        assert!(out.text.contains("| SELECT a \\| b &lt;i&gt; |\n"), "{}", out.text);
        let total = "| &lt;Total&gt; |  | 0 | – | 50 | 10 % | – | – |\n";
        assert!(out.text.contains(total), "{}", out.text);
        assert!(!out.text.contains("statement/sql/select") && !out.text.contains("| idle |"), "{}", out.text);
        assert!(!covers_most(
            &table("digests", &[("count", "shop:abc", 3.0)]),
            &table("statements", &[("count", "statement/com/Execute", 7.0)])
        ));
        let before = out.text.clone();
        pfs_views(&mut out, &RunInfo::default(), None);
        pfs_views(&mut out, &RunInfo::default(), Some(&RunPfs::default()));
        assert_eq!(out.text, before);
    }
}

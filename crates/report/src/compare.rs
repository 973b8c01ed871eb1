//! Two sides of recordings against each other, as tables and as Markdown.

use serde::Serialize;
use whyso_explain::comparison::{At, Comparison, Differences, FactDifference, MetricLine, Of, Row};
use whyso_inference::{Method, Spread, Verdict};
use whyso_words::{amount, number, p_value, percent, ratio, whole};

use crate::text::comparison::{fact_group, value_text};
use crate::text::layout::{TEXT_WIDTH, aligned_with_words, wrapped};
use crate::text::{clean, dash};

/// Settings that are shown; the rest is counted.
const SETTINGS_MAX: usize = 30;

/// A table of a comparison, as every form draws it.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, Serialize)]
pub struct CompareTable {
    pub title: String,
    pub head: Vec<String>,
    /// Columns of words; the others are of numbers.
    pub words: Vec<usize>,
    pub rows: Vec<Vec<String>>,
    pub notes: Vec<String>,
}

/// Returns tables of levels, of settings that differ, and of metrics that differ, as far as there are any.
pub fn compare_tables(comparison: &Comparison) -> Vec<CompareTable> {
    tables(comparison)
}

/// Returns the comparison for the terminal.
pub fn compare(comparison: &Comparison) -> String {
    let mut out = String::new();
    for table in tables(comparison) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("{}\n\n", table.title));
        let mut rows = vec![table.head];
        rows.extend(table.rows);
        out.push_str(&aligned_with_words(&rows, &table.words));
        if !table.notes.is_empty() {
            out.push('\n');
        }
        for note in &table.notes {
            out.push_str(&wrapped(note, "  ", TEXT_WIDTH));
        }
    }
    out
}

/// Returns the comparison as Markdown.
pub fn compare_markdown(comparison: &Comparison) -> String {
    let plain = |text: &str| text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ");
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| plain(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut out = String::from("# Comparison\n");
    for table in tables(comparison) {
        out.push_str(&format!("\n## {}\n\n", plain(&table.title)));
        out.push_str(&line(&table.head));
        let rule = |column: usize| if table.words.contains(&column) { " --- |" } else { " ---: |" };
        out.push_str(&format!("|{}\n", (0..table.head.len()).map(rule).collect::<String>()));
        out.extend(table.rows.iter().map(|row| line(row)));
        if !table.notes.is_empty() {
            out.push('\n');
        }
        out.extend(table.notes.iter().map(|note| format!("- {}\n", plain(note))));
    }
    out
}

fn tables(comparison: &Comparison) -> Vec<CompareTable> {
    let mut tables: Vec<CompareTable> =
        Some(levels(comparison)).filter(|table| !table.rows.is_empty()).into_iter().collect();
    if !comparison.differing.is_empty() {
        tables.push(settings(&comparison.differing));
    }
    if let Some(metrics) = comparison.metrics.as_ref().filter(|metrics| metrics.compared > 0) {
        tables.push(differences(metrics, comparison));
    }
    // Where the load was not recorded, only what was counted is compared.
    if let Some(first) = tables.first_mut().filter(|_| comparison.rows.is_empty()) {
        first.notes.insert(
            0,
            format!("{} was not measured in these windows. {}", comparison.metric.words(), comparison.why),
        );
    }
    tables
}

/// What each value stands for.
fn noun(of: Of) -> &'static str {
    match of {
        Of::Starts => "starts",
        Of::Windows => "windows",
        Of::Parts => "parts",
    }
}

fn levels(comparison: &Comparison) -> CompareTable {
    let side = |ids: &[String]| clean(&ids.join(", "));
    let is_over_rates = comparison.rows.iter().any(|row| row.at.rate_per_s.is_some());
    let own = format!("of its {}", noun(comparison.of));
    let mut head = vec![
        if is_over_rates { "due/s" } else { "users" },
        "first",
        &own,
        "second",
        &own,
        "ratio",
        "95 %",
        "p",
        "detectable",
        "verdict",
    ];
    let mut rows: Vec<Vec<String>> = comparison.rows.iter().map(|row| level(row, comparison)).collect();
    if comparison.of != Of::Starts {
        // Whatever levels lie in a window.
        head.remove(0);
        rows.iter_mut().for_each(|row| drop(row.remove(0)));
    }
    CompareTable {
        title: format!(
            "{}: second ({}) against first ({})",
            comparison.metric.words(),
            side(&comparison.second),
            side(&comparison.first)
        ),
        words: vec![head.len() - 1],
        head: head.into_iter().map(str::to_string).collect(),
        rows,
        notes: level_notes(comparison),
    }
}

fn level(row: &Row, comparison: &Comparison) -> Vec<String> {
    let At { users, rate_per_s } = row.at;
    let range = |spread: &Spread| match spread.starts {
        1 => dash(),
        _ => format!("{} to {}", number(spread.lowest), number(spread.highest)),
    };
    let contrast = &row.contrast;
    let mut verdict = match contrast.verdict {
        None if comparison.of == Of::Starts => "one start: can't say".to_string(),
        None => "too short: can't say".to_string(),
        Some(_) if row.first_unstable => "meaningless: the first is unstable*".to_string(),
        Some(verdict) => verdict.words().to_string(),
    };
    if contrast.method != comparison.method && contrast.method == Method::Welch {
        verdict.push_str(" (not paired here)");
    }
    if !row.invalid.is_empty() {
        verdict.push_str(", INVALID");
    }
    vec![
        rate_per_s.map_or_else(|| whole(u64::from(users)), number),
        number(row.first.mean),
        range(&row.first),
        number(row.second.mean),
        range(&row.second),
        ratio(contrast.ratio),
        contrast.ci95.map_or_else(dash, interval),
        contrast.p_corrected.map_or_else(dash, p_value),
        contrast.smallest_detectable.map_or_else(dash, detectable),
        verdict,
    ]
}

/// As per cent; two blocks that disagree detect hardly anything.
fn detectable(ratio: f64) -> String {
    if ratio > 11.0 { "over 1,000 %".to_string() } else { percent(ratio - 1.0) }
}

fn interval([low, high]: [f64; 2]) -> String {
    format!("{} to {}", ratio(low), ratio(high))
}

fn level_notes(comparison: &Comparison) -> Vec<String> {
    let mut notes = vec![comparison.why.clone()];
    let rows = &comparison.rows;
    if rows.iter().any(|row| row.contrast.p.is_some()) {
        let unit = if comparison.of == Of::Starts { "Each run is one start of the server. " } else { "" };
        notes.push(format!(
            "{unit}Means are geometric; p is corrected for all rows (Holm). \"Detectable\" is the smallest difference \
             that would be found in four of five repetitions at the corrected level. \"No difference found\" needs an equivalence \
             test, corrected likewise: the difference is within ±{} %.",
            comparison.matters_percent
        ));
    }
    if rows.iter().any(|row| row.first_unstable) {
        notes.push(format!(
            "* The first side's own {} differ by more than 15 % there (standard deviation): what is compared with it means little.",
            noun(comparison.of)
        ));
    }
    if rows.iter().any(|row| row.contrast.verdict == Some(Verdict::TooNoisyToSay)) {
        let more = match comparison.of {
            Of::Starts => "More starts per side, longer levels or a quieter machine",
            Of::Windows | Of::Parts => "Longer windows",
        };
        notes.push(format!("{more} would show smaller differences."));
    }
    let invalid = rows.iter().flat_map(|row| row.invalid.iter().map(move |why| (row.at, why)));
    notes.extend(invalid.map(|(at, why)| format!("INVALID at {}: {}.", at.words(), clean(why))));
    notes.extend(comparison.notes.iter().map(|note| clean(note)));
    notes
}

fn settings(differing: &[FactDifference]) -> CompareTable {
    let row = |fact: &FactDifference| {
        vec![fact_group(fact.of).to_string(), clean(&fact.name), values(&fact.first), values(&fact.second)]
    };
    let mut notes = Vec::new();
    if differing.iter().any(FactDifference::is_within_a_side) {
        notes.push(
            "Where a side has several values, its own runs differ, and are not starts of the same."
                .to_string(),
        );
    }
    if differing.len() > SETTINGS_MAX {
        notes.push(format!("and {} more: --json has them all", differing.len() - SETTINGS_MAX));
    }
    CompareTable {
        title: "Settings and facts that differ".to_string(),
        head: ["of", "name", "first", "second"].map(str::to_string).to_vec(),
        words: vec![0, 1, 2, 3],
        rows: differing.iter().take(SETTINGS_MAX).map(row).collect(),
        notes,
    }
}

fn values(values: &[String]) -> String {
    values.iter().map(|value| value_text(value)).collect::<Vec<_>>().join(" / ")
}

fn differences(metrics: &Differences, comparison: &Comparison) -> CompareTable {
    let row = |line: &MetricLine| {
        let value = |value: f64| {
            let unit = match (line.per_transaction, line.per_second) {
                (true, _) => "/transaction",
                (false, true) => "/s",
                (false, false) => "",
            };
            format!("{}{unit}", amount(value, &line.unit))
        };
        let series = &line.series;
        let instance =
            if series.instance.is_empty() { String::new() } else { format!(" {}", clean(&series.instance)) };
        vec![
            value(line.first),
            value(line.second),
            ratio(line.ratio),
            line.ci95.map_or("–".to_string(), interval),
            format!("{}: {}{instance}", clean(&series.source), clean(&series.metric)),
        ]
    };
    let counted = format!("{} of {}", whole(metrics.differ as u64), whole(metrics.compared as u64));
    let note = match comparison.method {
        Method::Untested if comparison.of != Of::Starts => {
            format!(
                "The ratios of one value per side, the largest first: any of them may be chance. {counted} metrics differ at all."
            )
        }
        Method::Untested => format!(
            "The ratios of one start per side, the largest first: how starts differ is not known, so any of them may be chance. {counted} metrics differ at all."
        ),
        _ => format!(
            "{counted} metrics differ: their 95 % interval leaves out 1. Of metrics that do not differ, one in twenty is among them by chance. First come those \
             whose interval ends farthest from 1."
        ),
    };
    CompareTable {
        title: match comparison.of {
            Of::Starts => format!("What differs most at {}", metrics.at.words()),
            Of::Windows | Of::Parts => "What differs most between the windows".to_string(),
        },
        head: ["first", "second", "ratio", "95 %", "metric"].map(str::to_string).to_vec(),
        words: vec![4],
        rows: metrics.lines.iter().map(row).collect(),
        notes: vec![note],
    }
}

#[cfg(test)]
mod tests {
    use whyso_explain::comparison::{
        FactOf, LevelValue, Metric, MetricValue, Run, Values, compare as compared, metrics_that_differ,
    };
    use whyso_explain::model::SeriesName;

    use super::*;

    fn run(id: &str, minute: i64, value: f64) -> Run {
        let at = At { users: 8, rate_per_s: None };
        let mut run = Run { id: id.to_string(), begin_ns: minute + 1, end_ns: minute + 2, ..Run::default() };
        run.levels = vec![LevelValue { at, value, invalid_why: String::new() }];
        run.facts.insert((FactOf::Variable, "sync_binlog".to_string()), id[..1].to_string());
        run
    }

    fn metric(value: f64) -> Vec<MetricValue> {
        let series =
            SeriesName { source: "status".into(), metric: "Com|select".into(), ..SeriesName::default() };
        vec![MetricValue { series, unit: "1".into(), value, count: Some(1e4), per_second: false }]
    }

    #[test]
    fn a_comparison_shows_what_is_faster_how_it_was_tested_and_what_was_set() {
        let first = [run("a1", 0, 1000.0), run("a2", 3, 1004.0), run("a3", 4, 998.0)];
        let second = [run("b1", 1, 2000.0), run("b2", 2, 2005.0), run("b3", 5, 2001.0)];
        let mut found = compared(&first, &second, Metric::TransactionsPerS, 3.0);
        let at = found.rows[0].at;
        found.metrics = Some(metrics_that_differ(
            at,
            &[metric(1.0), metric(1.001), metric(0.999)],
            &[metric(3.0), metric(3.001), metric(2.999)],
            Values::Apart,
        ));
        let shown = compare(&found);
        for part in [
            "second (b1, b2, b3) against first (a1, a2, a3)",
            "faster",
            "3 blocks",
            "sync_binlog",
            "3/transaction",
            "detectable",
        ] {
            assert!(shown.contains(part), "no {part:?} in\n{shown}");
        }
        let markdown = compare_markdown(&found);
        assert!(
            markdown.contains("status: Com\\|select |") && markdown.contains("| 8 | 1,001 |"),
            "{markdown}"
        );
    }

    #[test]
    fn one_start_each_is_shown_without_a_verdict() {
        let found = compared(&[run("a", 0, 1000.0)], &[run("b", 1, 1100.0)], Metric::LatencyP99Ms, 3.0);
        let shown = compare(&found);
        assert!(shown.contains("1.1") && shown.contains("one start: can't say"), "{shown}");
        assert!(shown.contains("One start each says nothing of how starts differ"), "{shown}");
        assert!(!shown.contains("Holm") && !shown.contains("slower"), "{shown}");
    }

    #[test]
    fn an_unstable_first_side_makes_it_meaningless() {
        let first = [run("a1", 0, 1000.0), run("a2", 3, 2000.0)];
        let second = [run("b1", 1, 3000.0), run("b2", 2, 3005.0)];
        let shown = compare(&compared(&first, &second, Metric::TransactionsPerS, 3.0));
        assert!(
            shown.contains("over 1,000 %")
                && shown.contains("meaningless: the first is unstable*")
                && shown.contains("* The first side's"),
            "{shown}"
        );
    }
}

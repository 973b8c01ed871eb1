//! The table of levels and the findings, as plain text for a terminal or a pipe.

use std::fmt::Write as _;

use whyso_explain::model::{CpuUse, Explanation, LevelVerdict, Regime};
use whyso_record::run::{Level, Purpose, RunEnd, RunInfo};
use whyso_words::{at_least, count, number, percent_number, whole};

use crate::axis::Axis;
use crate::text::engine::{engines, switches};
use crate::text::generators::generators;
use crate::text::layout::{TEXT_WIDTH, aligned_with_words, lines_of, wrapped};
use crate::text::level::how_unsteady;
use crate::text::nodes::nodes;
use crate::text::requests::requests;
use crate::text::requirements::{kinds_of_transactions, service_levels};
use crate::text::{clean, dash};

/// Returns the headline, the table of levels, and the findings under it.
pub fn terminal(run: &RunInfo, explanation: &Explanation) -> String {
    let headline = lines_of(&explanation.headline, "", "", TEXT_WIDTH);
    let blank = if headline.is_empty() { "" } else { "\n" };
    let nodes = match nodes(&explanation.nodes) {
        table if table.is_empty() => table,
        table => format!("\n{table}"),
    };
    let logs = match requests(&explanation.access_logs) {
        tables if tables.is_empty() => tables,
        tables => format!("\n{tables}"),
    };
    format!(
        "{headline}{blank}{}{nodes}{logs}\n{}",
        levels_table(run, explanation),
        findings_text(explanation)
    )
}

fn levels_table(run: &RunInfo, explanation: &Explanation) -> String {
    let axis = Axis::of(run);
    let header = [
        axis.head(),
        "TPS",
        "95 % interval",
        "QPS",
        "mean ms",
        "p95",
        "p99",
        "max",
        "user %",
        "sys %",
        "idle %",
        "client µs/q",
        "errors",
        "regime",
    ];
    let mut rows = vec![header.map(str::to_string).to_vec()];
    for level in &run.levels {
        let verdict = explanation.levels.iter().find(|verdict| verdict.index == level.index);
        rows.push(level_row(axis, level, verdict));
    }
    let mut out = String::new();
    if let Some(words) = run.performance_schema() {
        let _ = writeln!(out, "Performance Schema: {}.\n", clean(&words));
    }
    out.push_str(&aligned_with_words(&rows, &[]));
    let has_cpu = explanation.levels.iter().any(|verdict| verdict.cpu.is_some());
    if has_cpu {
        out.push_str("CPU is of the whole machine. ");
    }
    out.push_str("Intervals hold within this one start of the server.\n");
    for line in engines(run.levels.iter()).into_iter().chain(switches(run)) {
        let _ = writeln!(out, "{line}");
    }
    out.push_str(&generators(run.levels.iter()));
    out.push_str(&kinds_of_transactions(run.levels.iter()));
    out.push_str(&service_levels(run.levels.iter()));
    out
}

fn level_row(axis: Axis, level: &Level, verdict: Option<&LevelVerdict>) -> Vec<String> {
    let result = &level.result;
    let per_s = verdict.map_or(result.transactions_per_s, |verdict| verdict.transactions_per_s);
    let interval = match verdict.and_then(|verdict| verdict.transactions_per_s_ci95) {
        Some([low, high]) => format!("{} – {}", number(low), number(high)),
        None => dash(),
    };
    let cpu = verdict.and_then(|verdict| verdict.cpu);
    let percent = |part: fn(&CpuUse) -> f64| cpu.map_or_else(dash, |cpu| percent_number(part(&cpu)));
    let mut name = axis.number(level);
    if level.purpose == Purpose::Repeat {
        name.push_str(" again");
    }
    if level.purpose == Purpose::Switch {
        let _ = write!(name, " ({})", count(u64::from(level.result.engine.loops), "loop"));
    }
    vec![
        name,
        number(per_s),
        interval,
        number(result.queries_per_s),
        number(result.latency_ms.mean),
        at_least(number(result.latency_ms.p95), result.latency_ms.is_lower_bound(95.0)),
        at_least(number(result.latency_ms.p99), result.latency_ms.is_lower_bound(99.0)),
        at_least(number(result.latency_ms.max), result.latency_ms.is_lower_bound(100.0)),
        percent(|cpu| cpu.user),
        percent(|cpu| cpu.system),
        percent(|cpu| cpu.idle),
        number(result.client.cpu_us_per_query),
        whole(result.errors),
        remark(axis, level, verdict),
    ]
}

fn remark(axis: Axis, level: &Level, verdict: Option<&LevelVerdict>) -> String {
    let Some(verdict) = verdict else { return String::new() };
    let mut remark = match (level.purpose, verdict.regime) {
        (Purpose::Repeat, _) => "repeat",
        _ if axis == Axis::Rates => match &level.result.arrivals {
            Some(arrivals) if !arrivals.held => "behind",
            _ => "held",
        },
        (_, Regime::RampingUp) => "ramping up",
        (_, Regime::Peak) => "peak",
        (_, Regime::Degrading) => "degrading",
        (_, Regime::Unknown) => "unknown",
    }
    .to_string();
    if let Some(how) = how_unsteady(verdict.steadiness) {
        let _ = write!(remark, ", {how}");
    }
    if !verdict.stuck.is_empty() {
        remark.push_str(", stuck");
    }
    if let RunEnd::CutShort { .. } = level.ended {
        remark.push_str(", cut short");
    }
    if !verdict.valid {
        remark.push_str(", INVALID");
    }
    remark
}

/// The findings as a list of paragraphs, wrapped.
fn findings_text(explanation: &Explanation) -> String {
    let mut out = String::new();
    for finding in &explanation.findings {
        out.push_str(&wrapped(&finding.text, "  ", TEXT_WIDTH));
    }
    out
}

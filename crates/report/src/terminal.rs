//! The table of levels and the findings, as plain text for a terminal or a pipe.

use std::fmt::Write as _;

use whyso_explain::model::{CpuUse, Explanation, LevelVerdict, Regime};
use whyso_record::RunSummary;
use whyso_record::run::{Ended, Level, Purpose, RunInfo};

use crate::axis::Axis;
use crate::load::{engines, kinds_of_transactions, service_levels};
use crate::number::{at_least, grouped, whole};
use crate::steadiness::how_unsteady;
use crate::threads::clean;
use crate::unit::unit;

/// Widest line of the findings, in characters.
pub(crate) const TEXT_WIDTH: usize = 110;

/// The headline, the table of levels, and the findings under it.
pub fn terminal(run: &RunInfo, explanation: &Explanation) -> String {
    let headline = lines_of(&explanation.headline, "", "", TEXT_WIDTH);
    let blank = if headline.is_empty() { "" } else { "\n" };
    format!("{headline}{blank}{}\n{}", levels_table(run, explanation), findings_text(explanation))
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
    out.push_str(&aligned(&rows));
    let has_cpu = explanation.levels.iter().any(|verdict| verdict.cpu.is_some());
    if has_cpu {
        out.push_str("CPU is of the whole machine. ");
    }
    out.push_str("Intervals hold within this one start of the server.\n");
    for line in engines(run.levels.iter()).into_iter().chain(switches(run)) {
        let _ = writeln!(out, "{line}");
    }
    out.push_str(&kinds_of_transactions(run.levels.iter()));
    out.push_str(&service_levels(run.levels.iter()));
    out
}

/// What the load generator's own step is where the number of its event loops falls; a sentence each.
pub(crate) fn switches(run: &RunInfo) -> Vec<String> {
    let told = |switch: &Level| {
        let same = |level: &&Level| level.purpose == Purpose::Sweep && level.users == switch.users;
        let swept = run.levels.iter().find(same)?;
        let change = swept.result.transactions_per_s / switch.result.transactions_per_s - 1.0;
        Some(format!(
            "From {} users on the load has {} in place of {}. There this changed throughput by {:+.1} %: that is the \
             generator's own step, and not the server's.",
            switch.users,
            loops(swept.result.engine.loops),
            loops(switch.result.engine.loops),
            change * 100.0,
        ))
    };
    run.levels.iter().filter(|level| level.purpose == Purpose::Switch).filter_map(told).collect()
}

fn loops(count: u32) -> String {
    if count == 1 { "1 event loop".to_string() } else { format!("{count} event loops") }
}

fn level_row(axis: Axis, level: &Level, verdict: Option<&LevelVerdict>) -> Vec<String> {
    let result = &level.result;
    let per_s = verdict.map_or(result.transactions_per_s, |verdict| verdict.transactions_per_s);
    let interval = match verdict.and_then(|verdict| verdict.transactions_per_s_ci95) {
        Some([low, high]) => format!("{} – {}", grouped(low), grouped(high)),
        None => "–".to_string(),
    };
    let cpu = verdict.and_then(|verdict| verdict.cpu);
    let percent =
        |part: fn(&CpuUse) -> f64| cpu.map_or("–".to_string(), |cpu| format!("{:.0}", part(&cpu) * 100.0));
    let mut name = axis.number(level);
    if level.purpose == Purpose::Repeat {
        name.push_str(" again");
    }
    if level.purpose == Purpose::Switch {
        let _ = write!(name, " ({} loops)", level.result.engine.loops);
    }
    vec![
        name,
        grouped(per_s),
        interval,
        grouped(result.queries_per_s),
        grouped(result.latency_ms.mean),
        at_least(grouped(result.latency_ms.p95), result.latency_ms.is_lower_bound(95.0)),
        at_least(grouped(result.latency_ms.p99), result.latency_ms.is_lower_bound(99.0)),
        at_least(grouped(result.latency_ms.max), result.latency_ms.is_lower_bound(100.0)),
        percent(|cpu| cpu.user),
        percent(|cpu| cpu.system),
        percent(|cpu| cpu.idle),
        grouped(result.client.cpu_us_per_query),
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
    if let Ended::CutShort { .. } = level.ended {
        remark.push_str(", cut short");
    }
    if !verdict.valid {
        remark.push_str(", INVALID");
    }
    remark
}

/// Columns two blanks apart, all but the last flush right.
fn aligned(rows: &[Vec<String>]) -> String {
    aligned_with_words(rows, &[])
}

/// The same, with the columns of words flush left, given by their places.
pub(crate) fn aligned_with_words(rows: &[Vec<String>], words: &[usize]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let mut widths = vec![0; columns];
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let blanks = widths[column] - cell.chars().count();
            if column + 1 == columns {
                out.push_str(cell);
                break;
            }
            let is_words = words.contains(&column);
            out.extend(std::iter::repeat_n(' ', if is_words { 0 } else { blanks }));
            out.push_str(cell);
            out.extend(std::iter::repeat_n(' ', if is_words { blanks } else { 0 } + 2));
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// The findings as a list of paragraphs, wrapped.
fn findings_text(explanation: &Explanation) -> String {
    let mut out = String::new();
    for finding in &explanation.findings {
        out.push_str(&wrapped(&finding.text, "  ", TEXT_WIDTH));
    }
    out
}

pub(crate) fn wrapped(text: &str, indent: &str, width: usize) -> String {
    lines_of(text, &format!("{}• ", &indent[..indent.len().saturating_sub(2)]), indent, width)
}

/// The text in lines of this width, each with its end; nothing for an empty text. `first`: what the first line begins with.
fn lines_of(text: &str, first: &str, indent: &str, width: usize) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let mut line = first.to_string();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(&line);
            out.push('\n');
            line = indent.to_string();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
    out
}

/// One line about a recorded run: its id, what was run on what, its best level, how it ended.
pub fn run_line(summary: &RunSummary) -> String {
    let run = &summary.run;
    let best = match run.best_level().map(|level| &level.result) {
        None => "no level ended".to_string(),
        Some(result) if run.process().is_some() => format!("{} s", grouped(result.seconds)),
        Some(result) => format!("best {} {}s/s", grouped(result.transactions_per_s), unit(run)),
    };
    let workload = run.spec.get("workload").and_then(serde_json::Value::as_str).unwrap_or("?");
    let ended = match (&run.ended, summary.live) {
        (_, true) => "going on".to_string(),
        (Some(Ended::Complete { .. }), _) => "complete".to_string(),
        (Some(Ended::CutShort { why, .. }), _) => format!("cut short: {}", why.lines().next().unwrap_or("")),
        (None, _) => summary.problem.clone().unwrap_or_else(|| "not finished".to_string()),
    };
    let ended = match &summary.problem {
        Some(problem) if *problem != ended => format!("{ended}; {}", clean(problem)),
        _ => ended,
    };
    let server = match run.process() {
        Some(name) => name.to_string(),
        None => format!("{} {}", run.server.flavor, run.server.version),
    };
    let schema = match run.performance_schema() {
        Some(words) => format!("; Performance Schema {}", clean(&words)),
        None => String::new(),
    };
    format!("{:<24} {workload:<22} {server:<34} {best:<28} {ended}{schema}", summary.id)
}

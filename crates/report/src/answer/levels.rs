//! The levels of a run in as many lines as there is room for.

use whyso_explain::model::{Explanation, LevelVerdict, Regime, users_words};
use whyso_record::run::{Level, Purpose, RunInfo};
use whyso_words::{at_least, milliseconds, number, percent_change};

use super::line::{Line, Tone};
use super::throughput;
use crate::axis::Axis;
use crate::text::level::how_unsteady;

/// With fewer rows a table shows nothing.
const ROWS_MIN: usize = 2;

/// A level as it is shown.
struct Row {
    cells: [String; 3],
    remark: String,
    tone: Tone,
}

/// The header and the levels; nothing where there is but one, which the verdict shows. Levels that find no room are left out from
/// the start of the sweep on, the first one stays.
pub(super) fn table(run: &RunInfo, explanation: &Explanation, room: usize) -> Vec<Line> {
    let mut shown: Vec<&Level> = run.levels.iter().collect();
    if shown.len() < 2 || room < ROWS_MIN + 1 {
        return Vec::new();
    }
    let rows_max = room - 1;
    let left_out = shown.len().saturating_sub(rows_max);
    if left_out > 0 {
        // One more makes room for the row that says so.
        shown.drain(1..left_out + 2);
    }
    let axis = Axis::of(run);
    let head = if run.is_recorded() { "requests/s" } else { "tps" };
    let mut rows: Vec<Row> = shown.iter().map(|level| row(run, explanation, axis, level)).collect();
    if left_out > 0 {
        let remark = format!("{} levels more: whyso why", left_out + 1);
        rows.insert(1, Row { cells: ["…".into(), String::new(), String::new()], remark, tone: Tone::Faint });
    }
    let header = [axis.head().to_string(), head.to_string(), "p95".to_string()];
    let widths: [usize; 3] = std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| row.cells[column].chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    });
    let line = |cells: &[String; 3]| {
        let aligned = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}"));
        format!("  {}  ", aligned.collect::<Vec<_>>().join("  "))
    };
    let mut lines = vec![Line::default().with(Tone::Faint, format!("{}verdict", line(&header)))];
    lines.extend(
        rows.iter().map(|row| {
            Line::default().with(Tone::Plain, line(&row.cells)).with(row.tone, row.remark.clone())
        }),
    );
    lines
}

fn row(run: &RunInfo, explanation: &Explanation, axis: Axis, level: &Level) -> Row {
    let verdict = explanation.levels.iter().find(|verdict| verdict.index == level.index);
    let latency = &level.result.latency_ms;
    let p95 = match latency.p95 > 0.0 {
        true => at_least(milliseconds(latency.p95), latency.is_lower_bound(95.0)),
        false => "–".to_string(),
    };
    let name = match level.purpose {
        Purpose::Repeat => format!("{} again", axis.number(level)),
        _ => axis.number(level),
    };
    let (remark, tone) = remark(run, explanation, axis, level, verdict);
    Row { cells: [name, number(throughput(explanation, level)), p95], remark, tone }
}

fn remark(
    run: &RunInfo,
    explanation: &Explanation,
    axis: Axis,
    level: &Level,
    verdict: Option<&LevelVerdict>,
) -> (String, Tone) {
    if level.purpose == Purpose::Switch {
        let loops = whyso_words::count(u64::from(level.result.engine.loops), "loop");
        return (format!("again with {loops} of the load"), Tone::Faint);
    }
    let Some(verdict) = verdict else { return (String::new(), Tone::Plain) };
    if !verdict.valid {
        return (format!("invalid: {}", verdict.invalid_why), Tone::Bad);
    }
    let mut words = Vec::new();
    let mut tone = tone_of(verdict.regime);
    match (level.purpose, verdict.regime) {
        (Purpose::Repeat, _) => words.push("repeat of the best level".to_string()),

        _ if axis == Axis::Rates || run.is_recorded() => {}
        (_, Regime::RampingUp) => words.push("ramping up".to_string()),
        (_, Regime::Peak) => words.push(peak_words(explanation)),
        (_, Regime::Degrading) => words.push(fall(explanation, level)),
        (_, Regime::Unknown) => words.push("not judged".to_string()),
    }
    if let Some(arrivals) = &level.result.arrivals {
        words.push(if arrivals.held { "held" } else { "behind" }.to_string());
    }
    if let Some(how) = how_unsteady(verdict.steadiness) {
        words.push(how);
        tone = Tone::Warning;
    }
    if !verdict.stuck.is_empty() {
        words.push("stuck users".to_string());
        tone = Tone::Bad;
    }
    if level.result.errors > 0 {
        words.push(whyso_words::count(level.result.errors, "error"));
        tone = Tone::Warning;
    }
    if level.result.slo.iter().any(|slo| !slo.held) {
        words.push("service level missed".to_string());
        tone = Tone::Bad;
    }
    if matches!(level.ended, whyso_record::run::RunEnd::CutShort { .. }) {
        words.push("cut short".to_string());
        tone = Tone::Bad;
    }
    (words.join(", "), tone)
}

/// "peak (4 to 16 users)"
fn peak_words(explanation: &Explanation) -> String {
    match &explanation.peak {
        Some(peak) if peak.users_interval != (peak.users, Some(peak.users)) => {
            format!("peak ({})", users_words(peak.users_interval))
        }
        _ => "peak".to_string(),
    }
}

/// "−41 %", against the peak.
fn fall(explanation: &Explanation, level: &Level) -> String {
    match &explanation.peak {
        Some(peak) if peak.transactions_per_s > 0.0 => {
            percent_change(throughput(explanation, level) / peak.transactions_per_s - 1.0)
        }
        _ => "degrading".to_string(),
    }
}

/// How a level's regime is shown.
fn tone_of(regime: Regime) -> Tone {
    match regime {
        Regime::Peak => Tone::Good,
        Regime::Degrading => Tone::Warning,
        Regime::RampingUp | Regime::Unknown => Tone::Plain,
    }
}

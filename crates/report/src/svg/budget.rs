//! The time budget as stacked bars, one per level, beneath the chart of throughput.

use std::fmt::Write;

use whyso_explain::model::{Budget, Part};
use whyso_words::short;

use super::scale::{Scale, ticks};
use super::{Drawing, GRID, HEIGHT, INK, LEFT, MUTED, RIGHT};
use crate::text::budget::visible_parts;

const CHART_HEIGHT: f64 = 230.0;
const TOP: f64 = HEIGHT + 44.0;
const FOOT: f64 = TOP + CHART_HEIGHT;
const LEGEND_LINE: f64 = 19.0;
const BAR_MAX: f64 = 70.0;

/// What no part holds.
const UNACCOUNTED: &str = "#c9ced3";

/// Draws nothing where no level was traced.
pub(super) fn draw(drawing: &mut Drawing, budgets: &[Budget]) {
    let mut budgets: Vec<&Budget> = budgets.iter().filter(|budget| !budget.repeat).collect();
    if budgets.is_empty() {
        return;
    }
    budgets.sort_by_key(|budget| budget.users);
    let tops = budgets.iter().map(|budget| {
        let parts: f64 = budget.parts.iter().map(|part| part.ms).sum();
        parts.max(budget.response_ms)
    });
    let most = tops.fold(0.0, f64::max);
    let least = budgets.iter().map(|budget| budget.unaccounted_ms).fold(0.0, f64::min);
    let (factor, time) = if most < 1.0 { (1e3, "µs") } else { (1.0, "ms") };
    let unit = if budgets.iter().all(|budget| budget.recorded) { "request" } else { "transaction" };
    let marks = ticks(most, 4);
    let y = Scale { from: least, to: marks.last().copied().unwrap_or(1.0).max(most), bottom: FOOT, top: TOP };

    drawing.text(LEFT, HEIGHT + 18.0, INK, "start", &format!("Time budget per {unit}, by users"));
    for mark in &marks {
        drawing.line((LEFT, y.at(*mark)), (RIGHT, y.at(*mark)), GRID, "");
        drawing.text(LEFT - 8.0, y.at(*mark), MUTED, "end", &short(mark * factor));
    }
    drawing.vertical_text(18.0, (TOP + FOOT) / 2.0, &format!("{time} per {unit}"));
    let step = (RIGHT - LEFT) / budgets.len() as f64;
    let width = (step * 0.66).min(BAR_MAX);
    for (at, budget) in budgets.iter().enumerate() {
        let middle = LEFT + step * (at as f64 + 0.5);
        bar(drawing, budget, &y, middle - width / 2.0, width);
        drawing.text(middle, FOOT + 14.0, MUTED, "middle", &budget.users.to_string());
    }
    drawing.line((LEFT, y.at(0.0)), (RIGHT, y.at(0.0)), MUTED, "");
    legend(drawing, &budgets);
}

/// A remainder below 0 hangs from the axis.
fn bar(drawing: &mut Drawing, budget: &Budget, y: &Scale, x: f64, width: f64) {
    let mut below = 0.0;
    for part in &budget.parts {
        piece(drawing, x, width, [y.at(below), y.at(below + part.ms)], color(part.part));
        below += part.ms;
    }
    let rest = budget.unaccounted_ms;
    let from = if rest > 0.0 { below } else { 0.0 };
    piece(drawing, x, width, [y.at(from), y.at(from + rest)], UNACCOUNTED);
}

fn piece(drawing: &mut Drawing, x: f64, width: f64, [from, to]: [f64; 2], color: &str) {
    let (top, height) = (from.min(to), (from - to).abs());
    if height > 0.05 {
        let _ = writeln!(
            drawing.body,
            r#"<rect x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{height:.1}" fill="{color}"/>"#
        );
    }
}

fn legend(drawing: &mut Drawing, budgets: &[&Budget]) {
    let parts = visible_parts(budgets);
    let mut entries: Vec<(&str, &str)> = parts.iter().map(|part| (part.words(), color(*part))).collect();
    entries.push(("unaccounted", UNACCOUNTED));
    let (mut x, mut y) = (LEFT, FOOT + 40.0);
    for (words, color) in entries {
        let width = 30.0 + words.chars().count() as f64 * 6.1;
        if x + width > RIGHT + 40.0 {
            x = LEFT;
            y += LEGEND_LINE;
        }
        let _ = writeln!(
            drawing.body,
            r#"<rect x="{:.1}" y="{:.1}" width="10" height="10" fill="{color}"/>"#,
            x - 4.0,
            y - 5.0
        );
        x = drawing.legend_text(x, y, words);
    }
    drawing.more_height = y + 20.0 - HEIGHT;
}

/// The page's colours.
fn color(part: Part) -> &'static str {
    match part {
        Part::ClientQueue => "#8d979f",
        Part::ClientCpu => "#a88900",
        Part::ClientDelay => "#d8bd4a",
        Part::TransitIn => "#7fb8e0",
        Part::Wakeup => "#14a3a0",
        Part::Runqueue => "#e08a1e",
        Part::Connect => "#7a5c45",
        Part::ClientPause => "#c3c9cd",
        Part::Cpu | Part::ServerAndNetwork => "#2f7fb8",
        Part::Lock => "#a2559c",
        Part::KernelLock => "#6f4083",
        Part::FileRead => "#6cae58",
        Part::FileWrite => "#2f7d4f",
        Part::FileSync => "#9c4331",
        Part::NetSend => "#5a73d6",
        Part::PageFault => "#d66a8b",
        Part::Sleep => "#66788a",
        Part::Other => "#9aa4ac",
        Part::TransitOut => "#a9d0ec",
    }
}

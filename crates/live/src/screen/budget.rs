//! Where the time of a request goes, as a bar.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use whyso_explain::model::{Budget, Part};
use whyso_words::{amount, percent};

/// A head, the bar, and two lines of legend.
pub(super) const HEIGHT: u16 = 4;
/// Parts below this share of the whole are named in no legend.
const SHARE_MIN: f64 = 0.005;

pub(super) fn draw(frame: &mut Frame, area: Rect, budget: Result<&Budget, &str>, color: bool) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let dim = Style::new().add_modifier(Modifier::DIM);
    let budget = match budget {
        Ok(budget) => budget,
        Err(why) => {
            let lines = vec![Line::styled("Time of a request", bold), Line::styled(why.to_string(), dim)];
            frame.render_widget(
                ratatui::widgets::Paragraph::new(Text::from(lines))
                    .wrap(ratatui::widgets::Wrap { trim: true }),
                area,
            );
            return;
        }
    };
    let whole_ms: f64 = budget.parts.iter().map(|part| part.ms).sum();
    let mut parts: Vec<(&str, f64, Color, char)> = budget
        .parts
        .iter()
        .filter(|part| part.ms > 0.0)
        .map(|part| (part.part.name(), part.ms, color_of(part.part), letter_of(part.part)))
        .collect();
    if budget.unaccounted_ms > 0.0 {
        parts.push(("unaccounted", budget.unaccounted_ms, Color::Reset, '?'));
    }
    let total_ms = whole_ms + budget.unaccounted_ms.max(0.0);
    let head = vec![
        Span::styled(format!("Time of a {} ", budget.unit()), bold),
        Span::raw(amount(budget.response_ms, "ms")),
    ];
    let mut bar = Vec::new();
    for ((_, _, part, letter), cells) in parts.iter().zip(cells(&parts, total_ms, usize::from(area.width))) {
        // Letters distinguish the parts where colours don't.
        let style = if color { Style::new().fg(Color::Black).bg(*part) } else { Style::new() };
        bar.push(Span::styled(letter.to_string().repeat(cells), style));
    }
    let mut lines = vec![Line::from(head), Line::from(bar)];
    lines.extend(legend(&parts, total_ms, usize::from(area.width), color));
    frame.render_widget(Text::from(lines), area);
}

/// How many columns each part has: all of them together are the width.
fn cells(parts: &[(&str, f64, Color, char)], total_ms: f64, width: usize) -> Vec<usize> {
    let mut from = 0;
    let mut sum_ms = 0.0;
    let mut cells = Vec::with_capacity(parts.len());
    for (_, ms, ..) in parts {
        sum_ms += ms;
        let to = if total_ms > 0.0 { (sum_ms / total_ms * width as f64).round() as usize } else { 0 };
        cells.push(to.min(width).saturating_sub(from));
        from = from.max(to.min(width));
    }
    cells
}

/// The parts by size, in as many lines as there are.
fn legend(
    parts: &[(&str, f64, Color, char)],
    total_ms: f64,
    width: usize,
    color: bool,
) -> Vec<Line<'static>> {
    let mut sorted: Vec<&(&str, f64, Color, char)> = parts.iter().collect();
    sorted.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut lines = vec![Vec::new()];
    let mut used = 0;
    for (name, ms, part, letter) in sorted {
        if *ms < SHARE_MIN * total_ms {
            break;
        }
        let text = format!("{letter} {name} {} {}", amount(*ms, "ms"), percent(*ms / total_ms));
        let length = text.chars().count() + 3;
        if used + length > width && used > 0 {
            if lines.len() + 2 >= usize::from(HEIGHT) {
                break;
            }
            lines.push(Vec::new());
            used = 0;
        }
        used += length;
        let style = if color { Style::new().fg(*part) } else { Style::new() };
        if let Some(line) = lines.last_mut() {
            line.push(Span::styled(text, style));
            line.push(Span::raw("   "));
        }
    }
    lines.into_iter().map(Line::from).collect()
}

fn color_of(part: Part) -> Color {
    match part {
        Part::Cpu => Color::Green,
        Part::Runqueue | Part::Wakeup => Color::Yellow,
        Part::Lock => Color::Red,
        Part::KernelLock => Color::LightRed,
        Part::FileRead => Color::Blue,
        Part::FileWrite => Color::Cyan,
        Part::FileSync => Color::Magenta,
        Part::NetSend | Part::TransitIn | Part::TransitOut | Part::ServerAndNetwork => Color::LightBlue,
        Part::PageFault => Color::LightMagenta,
        Part::Connect => Color::LightGreen,
        Part::ClientQueue
        | Part::ClientPause
        | Part::ClientCpu
        | Part::ClientDelay
        | Part::Sleep
        | Part::Other => Color::Gray,
    }
}

fn letter_of(part: Part) -> char {
    match part {
        Part::Cpu => 'c',
        Part::Runqueue => 'q',
        Part::Wakeup => 'u',
        Part::Lock => 'L',
        Part::KernelLock => 'K',
        Part::FileRead => 'r',
        Part::FileWrite => 'w',
        Part::FileSync => 's',
        Part::NetSend => 'n',
        Part::TransitIn => '>',
        Part::TransitOut => '<',
        Part::ServerAndNetwork => 'S',
        Part::PageFault => 'p',
        Part::Sleep => 'z',
        Part::Other => 'o',
        Part::ClientQueue => 'Q',
        Part::Connect => 'C',
        Part::ClientPause => 'P',
        Part::ClientCpu => 'g',
        Part::ClientDelay => 'd',
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_part_has_a_letter_of_its_own() {
        let letters: BTreeSet<char> = Part::ALL.into_iter().map(letter_of).collect();
        assert_eq!(letters.len(), Part::ALL.len());
    }

    proptest! {
        #[test]
        fn the_bar_is_as_wide_as_it_may_be(ms in prop::collection::vec(0.001f64..1e4, 1..18), width in 1usize..300) {
            let parts: Vec<(&str, f64, Color, char)> = ms.iter().map(|ms| ("p", *ms, Color::Red, 'p')).collect();
            let total: f64 = ms.iter().sum();
            let cells = cells(&parts, total, width);
            prop_assert_eq!(cells.iter().sum::<usize>(), width);
            for (cells, ms) in cells.iter().zip(&ms) {
                prop_assert!((*cells as f64 - ms / total * width as f64).abs() <= 1.0 + 1e-6);
            }
        }
    }
}

//! What lies over the screen: the keys, and a line shown whole.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

const WIDTH_MAX: u16 = 110;

const KEYS: [(&str, &str); 21] = [
    ("1 … 9, Tab", "what the table shows"),
    ("↑ ↓ PgUp PgDn", "select a line"),
    ("Enter", "show the selected line whole"),
    ("e", "the plan of the selected statement: EXPLAIN, which executes nothing"),
    ("K", "end the selected connection's statement, if --allow-kill was given"),
    ("s S", "sort by the next column, by the one before"),
    ("o", "the other way round"),
    ("O", "show whyso's own connections and statements, too; hide them"),
    ("/", "only lines that contain a text; Esc shows all"),
    ("v V", "next view of the Performance Schema, the one before"),
    ("w W", "longer window: 1 s, 5 s, 10 s, 30 s, 1 min, 5 min; shorter"),
    ("space", "stop the time, or continue"),
    ("← →", "a second back, on"),
    ("Shift+← →, [ ]", "ten seconds"),
    ("{ }", "a minute"),
    ("Home, End", "the oldest that is known; now"),
    ("< >", "the server before, the next one, where several are watched"),
    ("n", "add a note, drawn on every chart of the recording"),
    ("r", "begin to record, end it; the recording keeps what was seen before, too"),
    ("?", "these keys"),
    ("q, Ctrl-C", "end"),
];

pub(super) fn draw(frame: &mut Frame, area: Rect) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let line = |(key, what): &(&'static str, &'static str)| {
        Line::from(vec![Span::styled(format!(" {key:<16}"), bold), Span::raw(*what)])
    };
    let text = Text::from(KEYS.iter().map(line).collect::<Vec<Line>>());
    over(frame, area, "Keys (any key closes this)", text, KEYS.len() as u16 + 2);
}

pub(super) fn draw_whole(frame: &mut Frame, area: Rect, whole: &str) {
    let width = usize::from(area.width.saturating_sub(8)).max(1);
    let lines = whole.chars().count().div_ceil(width) + 3;
    let height = u16::try_from(lines).unwrap_or(u16::MAX);
    over(frame, area, "The selected line (any key closes this)", Text::from(whole.to_string()), height);
}

/// The lines as they are: a table's columns stand below one another.
pub(super) fn draw_answer(frame: &mut Frame, area: Rect, answer: &str) {
    let width = usize::from(area.width.min(WIDTH_MAX).saturating_sub(6)).max(1);
    let lines: usize = answer.lines().map(|line| line.chars().count().div_ceil(width).max(1)).sum();
    let height = u16::try_from(lines + 2).unwrap_or(u16::MAX);
    over(frame, area, "The server's answer (any key closes this)", Text::from(answer.to_string()), height);
}

fn over(frame: &mut Frame, area: Rect, title: &str, text: Text, height: u16) {
    let width = area.width.saturating_sub(4).min(WIDTH_MAX);
    let height = height.clamp(3, area.height);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    let words =
        Paragraph::new(text).wrap(Wrap { trim: false }).block(Block::bordered().title(title.to_string()));
    frame.render_widget(words, place);
}

//! A table that can be sorted and filtered, with a line selected.

use std::cmp::Ordering;

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line as Text;
use ratatui::widgets::{Cell as Drawn, Row, Table};

use super::app::TableState;
use super::session_statement::SessionStatement;

/// Width of a column that takes what is left.
pub(super) const REST: u16 = 0;

pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) width: u16,
}

/// What is shown, and what is sorted by.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Text(String),
    /// `NaN` where it is not known: the last, however it is sorted.
    Number(f64, String),
}

impl Cell {
    pub(super) fn number(value: Option<f64>, shown: impl FnOnce(f64) -> String) -> Cell {
        match value {
            Some(value) => Cell::Number(value, shown(value)),
            None => Cell::Number(f64::NAN, "–".to_string()),
        }
    }

    fn text(&self) -> &str {
        match self {
            Cell::Text(text) | Cell::Number(_, text) => text,
        }
    }

    /// The order in which they stand unless the user chose another: numbers with the greatest first, texts by the alphabet.
    fn order(&self, other: &Cell) -> Ordering {
        match (self, other) {
            (Cell::Number(one, _), Cell::Number(other, _)) => other.total_cmp(one),
            _ => self.text().cmp(other.text()),
        }
    }

    fn is_unknown(&self) -> bool {
        matches!(self, Cell::Number(value, _) if value.is_nan())
    }
}

pub(super) struct Line {
    pub(super) cells: Vec<Cell>,
    /// What is shown of it when it is shown whole.
    pub(super) whole: String,
    /// What is executed; `None` where the line is of something else.
    pub(super) executed: Option<SessionStatement>,
}

/// What a tab shows.
pub(super) struct Listing {
    pub(super) columns: Vec<Column>,
    pub(super) lines: Vec<Line>,
    /// The column that it is sorted by where the user chose none; `None`: the order of the lines has a meaning, and stays.
    pub(super) sort: Option<usize>,
    /// What it is of, such as "per second, over 5 s".
    pub(super) about: String,
    /// Why there are no lines.
    pub(super) empty: String,
}

impl Listing {
    /// Returns a listing that only has a reason.
    pub(super) fn nothing(why: impl Into<String>) -> Listing {
        Listing {
            columns: Vec::new(),
            lines: Vec::new(),
            sort: None,
            about: String::new(),
            empty: why.into(),
        }
    }

    /// As the user wants it: sorted and filtered.
    pub(super) fn arranged(mut self, state: &TableState) -> Listing {
        let wanted = state.filter.to_lowercase();
        if !wanted.is_empty() {
            self.lines.retain(|line| {
                let cells = line.cells.iter().map(Cell::text);
                cells.chain([line.whole.as_str()]).any(|text| text.to_lowercase().contains(&wanted))
            });
            self.empty = format!("nothing here contains {:?}; Esc shows all", state.filter);
        }
        if self.sort.is_some() {
            self.sort = state.sort.filter(|column| *column < self.columns.len()).or(self.sort);
        }
        if let Some(column) = self.sort {
            self.lines.sort_by(|one, other| {
                let (Some(one), Some(other)) = (one.cells.get(column), other.cells.get(column)) else {
                    return Ordering::Equal;
                };
                let order = one.order(other);
                let order = if state.reversed { order.reverse() } else { order };
                one.is_unknown().cmp(&other.is_unknown()).then(order)
            });
        }
        self
    }

    /// `selected`: a line, or the last one where there are fewer.
    pub(super) fn draw(&self, frame: &mut Frame, area: Rect, selected: usize, reversed: bool) {
        if self.lines.is_empty() {
            let text = Text::from(self.empty.as_str()).style(Style::new().add_modifier(Modifier::DIM));
            frame.render_widget(text, Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area });
            return;
        }
        let height = usize::from(area.height.saturating_sub(1)).max(1);
        let selected = selected.min(self.lines.len() - 1);
        let first = selected.saturating_sub(height - 1);
        let is_of_numbers = |column: usize| {
            matches!(self.lines.first().and_then(|line| line.cells.get(column)), Some(Cell::Number(..)))
        };
        let head = self.columns.iter().enumerate().map(|(at, column)| {
            let mark = match (self.sort == Some(at), reversed) {
                (false, _) => "",
                (true, false) => "▾",
                (true, true) => "▴",
            };
            let text = Text::from(format!("{}{mark}", column.title));
            Drawn::from(if is_of_numbers(at) { text.right_aligned() } else { text })
        });
        let head = Row::new(head).style(Style::new().add_modifier(Modifier::BOLD));
        let shown = self.lines.iter().enumerate().skip(first).take(height);
        let rows = shown.map(|(at, line)| {
            let cells = line.cells.iter().map(|cell| {
                let text = Text::from(cell.text());
                Drawn::from(if matches!(cell, Cell::Number(..)) { text.right_aligned() } else { text })
            });
            let style = Style::new();
            let is_selected = at == selected;
            Row::new(cells).style(if is_selected { style.add_modifier(Modifier::REVERSED) } else { style })
        });
        let widths = self.columns.iter().map(|column| match column.width {
            REST => Constraint::Min(10),
            width => Constraint::Length(width),
        });
        frame.render_widget(Table::new(rows, widths).header(head).column_spacing(1), area);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let line = |name: &str, value: Option<f64>| Line {
            cells: vec![Cell::Text(name.to_string()), Cell::number(value, |value| value.to_string())],
            whole: format!("all of {name}"),
            executed: None,
        };
        Listing {
            columns: vec![Column { title: "name", width: REST }, Column { title: "number", width: 9 }],
            lines: vec![line("b", Some(1.0)), line("a", None), line("c", Some(7.0))],
            sort: Some(1),
            about: String::new(),
            empty: "nothing".to_string(),
        }
    }

    fn names(state: &TableState) -> String {
        let arranged = listing().arranged(state);
        arranged.lines.iter().map(|line| line.cells[0].text()).collect()
    }

    #[test]
    fn what_is_not_known_is_last_however_it_is_sorted() {
        let state = TableState::default();
        assert_eq!(names(&state), "cba");
        assert_eq!(names(&TableState { reversed: true, ..state.clone() }), "bca");
        assert_eq!(names(&TableState { sort: Some(0), ..state.clone() }), "abc");
        assert_eq!(names(&TableState { sort: Some(9), ..state }), "cba", "a column of another table");
    }

    #[test]
    fn a_filter_applies_to_all_of_a_line() {
        assert_eq!(names(&TableState { filter: "ALL OF C".to_string(), ..TableState::default() }), "c");
        let none = listing().arranged(&TableState { filter: "x".to_string(), ..TableState::default() });
        assert_eq!(none.empty, "nothing here contains \"x\"; Esc shows all");
    }
}

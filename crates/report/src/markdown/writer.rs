//! Headings, lines and tables of Markdown.

use std::fmt::Write;

#[derive(Default)]
pub(super) struct Markdown {
    pub(super) text: String,
}

impl Markdown {
    pub(super) fn heading(&mut self, text: &str) {
        let _ = writeln!(self.text, "\n## {}\n", escaped(text));
    }

    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    pub(super) fn row(&mut self, cells: &[String]) {
        let _ = writeln!(self.text, "| {} |", cells.join(" | "));
    }

    /// Columns of words stand left, numbers right.
    pub(super) fn table(&mut self, head: &[&str]) {
        self.row(&head.iter().map(|cell| cell.to_string()).collect::<Vec<_>>());
        let is_words = |cell: &str| {
            matches!(
                cell,
                "regime"
                    | "validity"
                    | "verdict"
                    | "counter"
                    | "kind"
                    | "transaction"
                    | "action"
                    | "what it is"
                    | "statement"
                    | "command"
                    | "event"
                    | "digest"
                    | "events"
                    | "timer"
            )
        };
        let rule = |cell: &&str| if is_words(cell) { "---".to_string() } else { "---:".to_string() };
        let _ = writeln!(self.text, "| {} |", head.iter().map(rule).collect::<Vec<_>>().join(" | "));
    }
}

/// Text that others wrote, so that it stays text: no markup, no table cell, no line of its own.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' | '`' | '*' | '[' | ']' | '|' | '#' => {
                out.push('\\');
                out.push(character);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            _ if character.is_control() => out.push(' '),
            _ => out.push(character),
        }
    }
    out
}

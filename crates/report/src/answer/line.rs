//! A line of a terminal, as pieces of text with the tone in which each is shown.

/// Columns in front of what a line says.
const LABEL_WIDTH: usize = 10;

/// How a piece of text stands out in a terminal with colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    Faint,
    Good,
    Bad,
    Warning,
}

/// A piece of a line. Its text may be anyone's: who prints it escapes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub tone: Tone,
    pub text: String,
}

/// One line of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    pub spans: Vec<Span>,
}

impl Line {
    /// "  try     "
    pub(super) fn labelled(label: &str) -> Line {
        Line::default().with(Tone::Faint, format!("  {label:<LABEL_WIDTH$}"))
    }

    pub(super) fn with(mut self, tone: Tone, text: impl Into<String>) -> Line {
        self.spans.push(Span { tone, text: text.into() });
        self
    }

    /// At most so many characters: the longest span gives way. A faint one at the end does not.
    pub(super) fn cut(mut self, width: usize) -> Line {
        let length = |span: &Span| span.text.chars().count();
        let over = self.spans.iter().map(length).sum::<usize>().saturating_sub(width);
        if over == 0 {
            return self;
        }
        let last = self.spans.len() - 1;
        let gives_way = |at: usize, span: &Span| at < last || span.tone != Tone::Faint;
        let spans = self.spans.iter().enumerate().filter(|(at, span)| gives_way(*at, span));
        let Some(at) = spans.max_by_key(|(_, span)| length(span)).map(|(at, _)| at) else { return self };
        let kept = length(&self.spans[at]).saturating_sub(over + 1);
        self.spans[at].text = self.spans[at].text.chars().take(kept).chain(['…']).collect();
        // Where nothing is left to give way, the rest does.
        let mut left = width;
        for span in &mut self.spans {
            span.text = span.text.chars().take(left).collect();
            left -= length(span);
        }
        self
    }

    /// The line without its tones.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect::<String>().trim_end().to_string()
    }
}

//! Prints the answer of a run.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use whyso_explain::model::Explanation;
use whyso_record::run::RunInfo;
use whyso_report::{AnswerPlace, Span, Tone};
use whyso_words::terminal::escape;

use crate::terminal::{has_color, width};

/// The end of an order to the terminal.
const RESET: &str = "\u{1b}[0m";

/// Prints the answer in colours, if standard output has some. `report`: `None` where there is none.
pub(crate) fn print_answer(run: &RunInfo, explanation: &Explanation, report: Option<&Path>) -> Result<()> {
    let report = report.map(|path| path.display().to_string());
    let place = AnswerPlace { width: width(), report: report.as_deref() };
    let colors = has_color();
    let mut out = crate::out::own();
    for line in whyso_report::answer(run, explanation, &place) {
        if !colors {
            writeln!(out, "{}", escape(&line.text()))?;
            continue;
        }
        for span in &line.spans {
            write!(out, "{}", in_color(span))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The only orders are the tones': the text is escaped.
fn in_color(span: &Span) -> String {
    let text = escape(&span.text);
    let code = match span.tone {
        Tone::Plain => return text,
        Tone::Strong => "1",
        Tone::Faint => "2",
        Tone::Good => "32",
        Tone::Bad => "1;31",
        Tone::Warning => "33",
    };
    format!("\u{1b}[{code}m{text}{RESET}")
}

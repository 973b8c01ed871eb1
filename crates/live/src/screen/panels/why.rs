//! What explains the window: the causes with who holds them and what is worth a try, then every finding, in lines that fit the screen.

use whyso_explain::model::Explanation;
use whyso_record::run::RunInfo;
use whyso_words::percent;

use super::{TabData, plain};
use crate::screen::listing::{Cell, Column, Line, Listing, REST};

/// Findings that compare levels of a sweep, or that the screen shows elsewhere.
const OF_SWEEPS: [&str; 4] = ["peak", "regimes", "no-result", "not-measured"];
/// Columns of the names.
const NAME_WIDTH: u16 = 16;
/// What a table keeps between columns and at its edges.
const MARGIN: u16 = 4;
/// Lines are no shorter, however narrow the screen is.
const TEXT_WIDTH_MIN: usize = 30;

pub(super) fn listing(shown: &TabData) -> Listing {
    let Some(explanation) = shown.explanation else {
        return Listing::nothing("nothing was read yet that could be explained");
    };
    let width = usize::from(shown.width.saturating_sub(NAME_WIDTH + MARGIN)).max(TEXT_WIDTH_MIN);
    let mut paragraphs = causes(explanation);
    let findings = explanation.findings.iter().filter(|finding| !OF_SWEEPS.contains(&finding.id.as_str()));
    paragraphs.extend(findings.map(|finding| (finding.id.clone(), plain(&finding.text))));
    paragraphs
        .extend(shown.not_measured.iter().map(|line| ("not measured".to_string(), plain(&line.to_string()))));
    Listing {
        columns: vec![Column { title: "", width: NAME_WIDTH }, Column { title: "", width: REST }],
        lines: paragraphs.into_iter().flat_map(|(name, text)| lines(&name, &text, width)).collect(),
        sort: None,
        about: "what `whyso why` would show for this window; ↓ has more".to_string(),
        empty: "nothing stands out in this window: w makes it longer".to_string(),
    }
}

/// The limit, and each suspect with what is known of it.
fn causes(explanation: &Explanation) -> Vec<(String, String)> {
    let answer = whyso_report::answer(&RunInfo::default(), explanation);
    let mut named = Vec::new();
    if !answer.limit.is_empty() {
        named.push(("limit".to_string(), answer.limit));
    }
    for cause in answer.causes {
        let share = format!("{}, {} of the response time", plain(&cause.words), percent(cause.share));
        named.push((cause.id.name().to_string(), share));
        if !cause.held_by.is_empty() {
            named
                .push(("  held by".to_string(), format!("{} ({})", plain(&cause.held_by), cause.held_share)));
        }
        if !cause.remedy.is_empty() {
            let name = if cause.id == whyso_explain::model::Cause::Unknown { "  next" } else { "  try" };
            let gain =
                if cause.gain.is_empty() { String::new() } else { format!("  {} (estimate)", cause.gain) };
            named.push((name.to_string(), format!("{}{gain}", plain(&cause.remedy))));
        }
    }
    named
}

/// A paragraph in lines of at most so many characters, its name before the first.
fn lines(name: &str, text: &str, width: usize) -> Vec<Line> {
    let whole = format!("{}: {text}", name.trim());
    let mut wrapped: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match wrapped.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => wrapped.push(word.to_string()),
        }
    }
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    let cells = |(name, text): (&str, String)| vec![Cell::Text(name.to_string()), Cell::Text(text)];
    names.zip(wrapped).map(|pair| Line { cells: cells(pair), whole: whole.clone(), executed: None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_whole_in_lines_that_fit() {
        let text = "Waits for row locks hold 73 % of the response time: statements waited for rows.";
        let found = lines("row-lock", text, 30);
        let cell = |line: &Line, at: usize| match &line.cells[at] {
            Cell::Text(text) => text.clone(),
            Cell::Number(..) => unreachable!("no number is shown"),
        };
        let joined: Vec<String> = found.iter().map(|line| cell(line, 1)).collect();
        assert_eq!(joined.join(" "), text);
        assert!(joined.iter().all(|line| line.chars().count() <= 30), "{joined:?}");
        let names: Vec<String> = found.iter().map(|line| cell(line, 0)).collect();
        assert_eq!(names[0], "row-lock");
        assert!(names[1..].iter().all(String::is_empty));
        assert!(found.iter().all(|line| line.whole == format!("row-lock: {text}")));
    }
}

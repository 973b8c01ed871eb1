//! What explains the window: the findings of an explanation, and what is not measured.

use super::{TabData, plain};
use crate::screen::listing::{Cell, Column, Line, Listing, REST};

/// Findings that compare levels of a sweep, or that the screen shows elsewhere.
const OF_SWEEPS: [&str; 4] = ["peak", "regimes", "no-result", "not-measured"];

pub(super) fn listing(shown: &TabData) -> Listing {
    let Some(explanation) = shown.explanation else {
        return Listing::nothing("nothing was read yet that could be explained");
    };
    let findings = explanation.findings.iter().filter(|finding| !OF_SWEEPS.contains(&finding.id.as_str()));
    let findings = findings.map(|finding| (finding.id.clone(), plain(&finding.text)));
    let not_measured =
        shown.not_measured.iter().map(|line| ("not measured".to_string(), plain(&line.to_string())));
    let lines = findings.chain(not_measured).map(|(id, text)| Line {
        whole: format!("{id}: {text}"),
        cells: vec![Cell::Text(id), Cell::Text(text)],
    });
    Listing {
        columns: vec![Column { title: "finding", width: 24 }, Column { title: "what", width: REST }],
        lines: lines.collect(),
        sort: None,
        about: "what `whyso why` would show for this window; Enter shows a line whole".to_string(),
        empty: "nothing stands out in this window: w makes it longer".to_string(),
    }
}

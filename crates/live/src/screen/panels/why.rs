//! What explains the window: the sentences of an explanation, and what is not measured.

use super::{TabData, plain};
use crate::screen::listing::{Cell, Column, Line, Listing, REST};

/// Findings that compare levels of a sweep, or say what stands elsewhere on the screen.
const OF_SWEEPS: [&str; 4] = ["peak", "regimes", "no-result", "not-measured"];

pub(super) fn listing(shown: &TabData) -> Listing {
    let Some(explanation) = shown.explanation else {
        return Listing::nothing("nothing was read yet that could be explained");
    };
    let found = explanation.findings.iter().filter(|finding| !OF_SWEEPS.contains(&finding.id.as_str()));
    let found = found.map(|finding| (finding.id.clone(), plain(&finding.text)));
    let untold = shown.not_measured.iter().map(|line| ("not measured".to_string(), plain(&line.to_string())));
    let lines = found.chain(untold).map(|(id, text)| Line {
        whole: format!("{id}: {text}"),
        cells: vec![Cell::Text(id), Cell::Text(text)],
    });
    Listing {
        columns: vec![Column { title: "finding", width: 24 }, Column { title: "what", width: REST }],
        lines: lines.collect(),
        sort: None,
        about: "as `whyso why` would say it of this window; Enter shows a line whole".to_string(),
        empty: "nothing stands out in this window: w makes it longer".to_string(),
    }
}

//! Why a server does not go faster, as `whyso why` prints it: the time budget, and what was found in it.

mod json;
mod table;

pub use json::why_json;

use whyso_explain::model::Explanation;

use crate::terminal::{TEXT_WIDTH, wrapped};

/// The explanation for people, in as many columns as a terminal has: the budget level by level, the budget of the level
/// that the cause is asked about as bars, and the sentences.
pub fn why(explanation: &Explanation) -> String {
    let mut out = String::new();
    if explanation.budgets.is_empty() {
        out.push_str("This run was not traced: where the time of a transaction went is not known.\n");
    } else {
        out.push_str(&table::levels(&explanation.budgets));
        if let Some(budget) = table::about(explanation) {
            out.push('\n');
            out.push_str(&table::bars(budget));
        }
    }
    out.push('\n');
    for finding in explanation.findings.iter().filter(|finding| finding.id.starts_with("budget")) {
        out.push_str(&wrapped(&finding.text, "  ", TEXT_WIDTH));
    }
    out
}

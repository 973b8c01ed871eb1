//! Which parts of a time budget have a line.

use whyso_explain::model::{Budget, Part};

/// Parts below this share of the response time at every level are left out of the tables; the JSON has them all.
const SHOWN_SHARE_MIN: f64 = 0.001;

/// Returns the parts that hold a share worth a line at one of the levels.
pub(crate) fn visible_parts(budgets: &[&Budget]) -> Vec<Part> {
    let is_shown = |part: &Part| {
        budgets
            .iter()
            .any(|budget| budget.ms(*part) >= SHOWN_SHARE_MIN * budget.response_ms && budget.ms(*part) > 0.0)
    };
    Part::ALL.into_iter().filter(is_shown).collect()
}

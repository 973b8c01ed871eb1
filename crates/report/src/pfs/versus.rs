//! Two views side by side: what differs between two windows, or two runs.

use serde_json::{Value, json};
use whyso_explain::pfs::{Column, Difference, Per};
use whyso_words::whole;

use crate::text::layout::aligned_with_words;
use crate::text::pfs::{DIGEST_TEXT_MAX, PfsOf, value_text, window_text};
use crate::text::{capital, clean, shortened};

/// Returns what differs in `column`, the greatest difference first.
pub fn pfs_differences(here: PfsOf, there: PfsOf, column: &Column, differences: &[Difference]) -> String {
    let view = here.table.view;
    let mut out = format!(
        "{} by {}, per {}.\n  here: {}: {}\n  there: {}: {}\n\n",
        capital(view.about),
        column.name,
        here.per.name(),
        here.window,
        window_text(here.table),
        there.window,
        window_text(there.table),
    );
    if differences.is_empty() {
        out.push_str("Nothing was counted on either side.\n");
        return out;
    }
    let place = view.columns.iter().position(|other| other == column).unwrap_or(0);
    let mut rows = vec![["here", "there", "difference", view.line].map(str::to_string).to_vec()];
    for line in differences.iter().take(here.limit) {
        let [a, b] = [line.here[place], line.there[place]];
        let difference = a.zip(b).map(|(a, b)| a - b);
        let sign = if difference.is_some_and(|difference| difference > 0.0) { "+" } else { "" };
        let name = here.texts.get(&line.name).or_else(|| there.texts.get(&line.name));
        rows.push(vec![
            value_text(a, column),
            value_text(b, column),
            format!("{sign}{}", value_text(difference, column)),
            name.map_or_else(|| clean(&line.name), |text| clean(&shortened(text, DIGEST_TEXT_MAX))),
        ]);
    }
    out.push_str(&aligned_with_words(&rows, &[3]));
    let left = differences.len().saturating_sub(here.limit);
    if left > 0 {
        out.push_str(&format!("and {} more: --limit N shows N\n", whole(left as u64)));
    }
    out
}

/// Returns the same as one object; times in ns, divided as `per` says.
pub fn pfs_differences_json(
    here: PfsOf,
    there: PfsOf,
    column: &Column,
    per: Per,
    differences: &[Difference],
) -> Value {
    let place = here.table.view.columns.iter().position(|other| other == column).unwrap_or(0);
    let object = |difference: &Difference| {
        json!({
            "name": difference.name,
            "text": here.texts.get(&difference.name).or_else(|| there.texts.get(&difference.name)),
            "here": difference.here[place],
            "there": difference.there[place],
        })
    };
    json!({
        "view": here.table.view.name,
        "column": column.metric,
        "per": per.name(),
        "here": here.window,
        "there": there.window,
        "differences": differences.iter().map(object).collect::<Vec<_>>(),
    })
}

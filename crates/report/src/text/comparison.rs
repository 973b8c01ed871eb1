//! Settings and facts that differ between recordings.

use whyso_explain::comparison::FactOf;
use whyso_words::NOTHING;

use super::{clean, shortened};

/// Longest text of a setting's value, in characters.
const VALUE_MAX: usize = 40;

/// Returns the name of what a fact is of.
pub(crate) fn fact_group(of: FactOf) -> &'static str {
    match of {
        FactOf::Work => "work",
        FactOf::Plan => "plan",
        FactOf::Server => "server",
        FactOf::Host => "host",
        FactOf::Variable => "variable",
    }
}

/// Returns a value in one line; "–" for one that was not recorded.
pub(crate) fn value_text(value: &str) -> String {
    let line = clean(value).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.is_empty() { NOTHING.to_string() } else { shortened(&line, VALUE_MAX) }
}

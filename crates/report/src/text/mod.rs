//! Texts that several forms of report share. None of them knows the form that shows it.

pub(crate) mod budget;
pub(crate) mod comparison;
pub(crate) mod engine;
pub(crate) mod files;
pub(crate) mod generators;
pub(crate) mod layout;
pub(crate) mod level;
pub(crate) mod nodes;
pub(crate) mod pfs;
pub(crate) mod requests;
pub(crate) mod requirements;
pub(crate) mod statements;
pub(crate) mod tiers;
pub(crate) mod timers;
pub(crate) mod transactions;

/// Returns what is shown for a value that nobody knows.
pub(crate) fn dash() -> String {
    whyso_words::NOTHING.to_string()
}

/// Returns text that others wrote without the control characters that would steer a terminal.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// Returns a text of at most `max` characters, with "…" at the end of one that was longer.
pub(crate) fn shortened(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_string();
    }
    text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
}

/// Returns the text with its first letter in upper case.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

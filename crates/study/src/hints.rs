//! Texts about what is wrong with a file, which name what would be right.

/// Returns TOML's own message, with the nearest key where one is not known.
pub(crate) fn of_toml(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match (message.starts_with("unknown field"), &quoted[..]) {
        (true, [unknown, known @ ..]) => format!("unknown key `{unknown}`: {}", hint(unknown, known, "keys")),
        _ => format!("the study's file can't be read: {}", message.trim().replace('\n', " ")),
    }
}

/// Returns the known word that is meant, as a question, or that none is near.
pub fn suggest_word(unknown: &str, known: &[&str]) -> String {
    nearest(unknown, known).map_or_else(
        || "no knob of it has a name like that".to_string(),
        |near| format!("did you mean `{near}`?"),
    )
}

/// Returns the known word that is meant, or all of them. `what`: what they are, in the plural.
pub(crate) fn hint(unknown: &str, known: &[&str], what: &str) -> String {
    nearest(unknown, known).map_or_else(
        || format!("the {what} are {}", known.join(", ")),
        |near| format!("did you mean `{near}`?"),
    )
}

/// Returns the known word that differs in the fewest letters, if these are few.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().copied().min_by_key(|other| letters_apart(word, other))?;
    (letters_apart(word, near) <= word.len().max(near.len()) / 3 + 1).then_some(near)
}

/// V. I. Levenshtein's distance (1965).
fn letters_apart(first: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in first.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (place, candidate) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *candidate);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(row[place] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

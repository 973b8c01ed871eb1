//! Text for a terminal. Recordings, scripts and servers hold text that others wrote: a terminal obeys control characters in it.

use std::fmt::Write as _;

/// Returns the text with every character that steers a terminal, or that turns the direction of text, written as `\u001b`. JSON reads that
/// as the same character. Newlines and tabs stay.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if is_harmful(character) {
            // Writing to a string does not fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn is_harmful(character: char) -> bool {
    let is_layout = character == '\n' || character == '\t';
    (character.is_control() && !is_layout)
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_json_keeps_its_meaning() {
        let text = "a\u{1b}[2J\u{9b}31m\r\u{202e}b\u{2066}\u{7f}é\tö\n";
        assert_eq!(escape(text), "a\\u001b[2J\\u009b31m\\u000d\\u202eb\\u2066\\u007fé\tö\n");
        let json = serde_json::to_string(text).unwrap();
        assert_eq!(serde_json::from_str::<String>(&escape(&json)).unwrap(), text);
    }
}

//! One segment of a path, without what is an identifier in it.

use std::borrow::Cow;

/// Stands for an identifier.
pub(crate) const HOLE: &str = "{}";
/// Stands for what was left out.
pub(crate) const MORE: &str = "…";

/// A longer segment is an identifier, such as a title or a token.
const SEGMENT_CHARS_MAX: usize = 40;
const HEX_DIGITS_MIN: usize = 8;
const TOKEN_CHARS_MIN: usize = 16;
/// This many digits in a row are a number that counts something.
const DIGITS_MIN: usize = 4;
/// Keys of a query that are kept.
const QUERY_KEYS_MAX: usize = 4;

/// Endings that are kept of names that are not.
const ENDINGS: [&str; 24] = [
    "php", "html", "htm", "asp", "aspx", "jsp", "do", "cgi", "js", "css", "map", "json", "xml", "txt", "png",
    "jpg", "jpeg", "gif", "svg", "ico", "webp", "woff", "woff2", "pdf",
];

/// Returns the segment with a hole where an identifier is.
pub(crate) fn normalise(segment: &str) -> Cow<'_, str> {
    if let Some((name, ending)) = split_ending(segment) {
        return Cow::Owned(format!("{}.{ending}", normalise_name(name)));
    }
    normalise_name(segment)
}

/// Returns what all segments are in a place that has too many different ones.
pub(crate) fn widen(segment: &str) -> Cow<'static, str> {
    if segment.is_empty() {
        return Cow::Borrowed("");
    }
    if segment.starts_with('?') {
        return Cow::Owned(format!("?{MORE}"));
    }
    if segment == MORE {
        return Cow::Borrowed(MORE);
    }
    match split_ending(segment) {
        Some((_, ending)) => Cow::Owned(format!("{HOLE}.{ending}")),
        None => Cow::Borrowed(HOLE),
    }
}

/// Returns the keys of a query in order of their names, without values: `?a&b`. Empty for a query without keys.
pub(crate) fn query_keys(query: &str) -> String {
    let mut keys: Vec<&str> = query
        .split(['&', ';'])
        .filter_map(|pair| pair.split('=').next())
        .filter(|key| !key.is_empty() && key.len() <= 32 && key.bytes().all(is_of_key))
        .filter(|key| !is_identifier(key))
        .take(64)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let is_cut = keys.len() > QUERY_KEYS_MAX;
    keys.truncate(QUERY_KEYS_MAX);
    match keys.is_empty() {
        true => String::new(),
        false => format!("?{}{}", keys.join("&"), if is_cut { "&…" } else { "" }),
    }
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.[]".contains(&byte)
}

fn split_ending(segment: &str) -> Option<(&str, &str)> {
    let (name, ending) = segment.rsplit_once('.').filter(|(name, _)| !name.is_empty())?;
    let known = ENDINGS.iter().find(|known| known.eq_ignore_ascii_case(ending))?;
    Some((name, known))
}

fn normalise_name(name: &str) -> Cow<'_, str> {
    if name == HOLE || name == MORE {
        return Cow::Borrowed(name);
    }
    if is_identifier(name) {
        return Cow::Borrowed(HOLE);
    }
    replace_numbers(name)
}

fn is_identifier(name: &str) -> bool {
    let is_odd = |letter: char| letter.is_control() || letter == char::REPLACEMENT_CHARACTER;
    if name.chars().count() > SEGMENT_CHARS_MAX || name.contains(is_odd) {
        return true;
    }
    let count = |is_wanted: fn(&u8) -> bool| name.bytes().filter(is_wanted).count();
    let (digits, letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    if digits == 0 {
        return false;
    }
    let is_number = letters == 0 && name.is_ascii();
    let is_hex =
        name.len() >= HEX_DIGITS_MIN && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_token = name.len() >= TOKEN_CHARS_MIN
        && count(u8::is_ascii_uppercase) > 0
        && count(u8::is_ascii_lowercase) > 0
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-=~".contains(&byte));
    is_number || is_hex || is_token
}

/// Replaces long numbers within a name: `order-12345` is `order-{}`.
fn replace_numbers(name: &str) -> Cow<'_, str> {
    let mut replaced = String::new();
    let mut rest = name;
    while let Some(begin) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let length =
            rest[begin..].find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len() - begin);
        replaced.push_str(&rest[..begin]);
        let number = &rest[begin..begin + length];
        replaced.push_str(if length >= DIGITS_MIN { HOLE } else { number });
        rest = &rest[begin + length..];
    }
    replaced.push_str(rest);
    if replaced == name { Cow::Borrowed(name) } else { Cow::Owned(replaced) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_holes_and_names_are_not() {
        for (segment, expected) in [
            ("17", "{}"),
            ("2026-11-28", "{}"),
            ("6f1c2a9e-0a4b-4c1e-8f3a-9c5d2b7e1a00", "{}"),
            ("deadbeef01", "{}"),
            ("dGhpcyBpcyBhIHRva2Vu", "{}"),
            ("order-12345", "order-{}"),
            ("img_0001.png", "img_{}.png"),
            ("17.PNG", "{}.png"),
            ("v1", "v1"),
            ("items", "items"),
            ("facade", "facade"),
            ("", ""),
            ("a\u{1b}[2J", "{}"),
            ("a-very-long-title-of-a-page-that-nobody-would-type", "{}"),
        ] {
            assert_eq!(normalise(segment), expected, "{segment}");
        }
    }

    #[test]
    fn of_a_query_the_keys_stay() {
        assert_eq!(query_keys("b=2&a=1&a=3"), "?a&b");
        assert_eq!(query_keys("17"), "");
        assert_eq!(query_keys("a&b&c&d&e"), "?a&b&c&d&…");
        assert_eq!(query_keys("q=secret&\u{1b}[2J=1"), "?q");
    }
}
